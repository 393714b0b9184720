//! The sender of a request, and the route back to it.

use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, ProgressToken, ProtocolVersion, RequestId, RequestMetaObject,
    ServerNotification,
};
use rmcp::service::{Peer, RequestContext};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::log_line::known_level;
use crate::model::JsonObject;

pub(super) struct RequestSender {
    pub(super) id: RequestId,
    /// What it can do, where it says so: with the request, or when it introduced itself.
    pub(super) capabilities: Option<ClientCapabilities>,
    /// How it calls itself.
    pub(super) name: Option<String>,
    /// Whether the request belongs to the stateless era, in which a server cannot ask the client.
    pub(super) is_modern: bool,
    pub(super) cancelled: CancellationToken,
    meta: RequestMetaObject,
    way_back: WayBack,
}

/// How the client hears of something before the answer.
enum WayBack {
    Connection(Peer<RoleServer>),
    Answer(mpsc::Sender<ServerNotification>),
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
            way_back: WayBack::Connection(context.peer),
        }
    }

    /// The client of a request of the newer era that came alone. It hears what is sent to `notifier`, and
    /// gives the request up by leaving.
    pub(super) fn of_request(
        id: RequestId,
        meta: RequestMetaObject,
        capabilities: ClientCapabilities,
        notifier: mpsc::Sender<ServerNotification>,
    ) -> Self {
        Self {
            id,
            capabilities: Some(capabilities),
            name: meta.client_info().map(|client| client.name),
            is_modern: true,
            cancelled: CancellationToken::new(),
            meta,
            way_back: WayBack::Answer(notifier),
        }
    }

    pub(super) fn log_level(&self) -> Option<&'static str> {
        self.meta.log_level().and_then(known_level)
    }

    /// The token of its progress notifications; without one it wants none.
    pub(super) fn progress_token(&self) -> Option<ProgressToken> {
        self.meta.get_progress_token()
    }

    /// The request's `_meta`.
    pub(super) fn meta(&self) -> &JsonObject {
        &self.meta.0.0
    }

    pub(super) fn meta_member(&self, key: &str) -> Option<&Value> {
        self.meta.get(key)
    }

    pub(super) async fn tell(&self, notification: ServerNotification) {
        match &self.way_back {
            WayBack::Connection(peer) => {
                let _client_gone = peer.send_notification(notification).await;
            }
            WayBack::Answer(notifier) => {
                let _client_gone = notifier.send(notification).await;
            }
        }
    }

    /// Where it can be asked something, which needs a connection.
    pub(super) fn connection(&self) -> Option<&Peer<RoleServer>> {
        match &self.way_back {
            WayBack::Connection(peer) => Some(peer),
            WayBack::Answer(_) => None,
        }
    }
}

/// Whether a request belongs to the stateless era.
pub(super) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}
