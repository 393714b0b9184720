//! The sender of a request, and the route back to it.

use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, GetExtensions as _, ProgressToken, RequestId, RequestMetaObject,
    ServerNotification,
};
use rmcp::service::{OriginatingRequestId, Peer, RequestContext};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::log_line::known_level;
use crate::model::JsonObject;
use crate::serve::is_modern;

/// Fires when the session over HTTP that a request belongs to has ended.
#[derive(Clone)]
pub(in crate::serve) struct SessionEnded(pub(in crate::serve) CancellationToken);

pub(super) struct RequestSender {
    id: RequestId,
    /// What it can do, where it says so: with the request, or when it introduced itself.
    pub(super) capabilities: Option<ClientCapabilities>,
    pub(super) name: Option<String>,
    pub(super) is_modern: bool,
    pub(super) cancelled: CancellationToken,
    pub(super) session_ended: CancellationToken,
    meta: RequestMetaObject,
    peer: Peer<RoleServer>,
}

impl RequestSender {
    pub(super) fn of_connection(context: RequestContext<RoleServer>) -> Self {
        let session_ended = context.extensions.get::<SessionEnded>();
        Self {
            session_ended: session_ended.map(|ended| ended.0.clone()).unwrap_or_default(),
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

    pub(super) async fn tell(&self, mut notification: ServerNotification) {
        // Over HTTP that is what ties it to the stream of the request.
        notification.extensions_mut().insert(OriginatingRequestId(self.id.clone()));
        let _client_gone = self.peer.send_notification(notification).await;
    }

    pub(super) fn peer(&self) -> &Peer<RoleServer> {
        &self.peer
    }
}
