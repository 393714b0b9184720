//! The sender of a request, and the route back to it.

use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, ProgressToken, ProtocolVersion, RequestId, RequestMetaObject,
    ServerNotification,
};
use rmcp::service::{Peer, RequestContext};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::log_line::known_level;
use crate::model::JsonObject;

pub(super) struct RequestSender {
    pub(super) id: RequestId,
    /// What it can do, where it says so: with the request, or when it introduced itself.
    pub(super) capabilities: Option<ClientCapabilities>,
    pub(super) name: Option<String>,
    pub(super) is_modern: bool,
    pub(super) cancelled: CancellationToken,
    meta: RequestMetaObject,
    peer: Peer<RoleServer>,
}

impl RequestSender {
    pub(super) fn of_connection(context: RequestContext<RoleServer>) -> Self {
        Self {
            capabilities: context.client_capabilities(),
            name: context.client_info().map(|client| client.name),
            is_modern: is_modern(&context),
            id: context.id,
            cancelled: context.ct,
            meta: context.meta,
            peer: context.peer,
        }
    }

    pub(super) fn log_level(&self) -> Option<&'static str> {
        self.meta.log_level().and_then(known_level)
    }

    /// The token of its progress notifications; without one it wants none.
    pub(super) fn progress_token(&self) -> Option<ProgressToken> {
        self.meta.get_progress_token()
    }

    pub(super) fn meta(&self) -> &JsonObject {
        &self.meta.0.0
    }

    pub(super) fn meta_member(&self, key: &str) -> Option<&Value> {
        self.meta.get(key)
    }

    pub(super) async fn tell(&self, notification: ServerNotification) {
        let _client_gone = self.peer.send_notification(notification).await;
    }

    pub(super) fn peer(&self) -> &Peer<RoleServer> {
        &self.peer
    }
}

pub(super) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}
