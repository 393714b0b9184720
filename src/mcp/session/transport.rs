//! The transport given to the SDK: messages in, messages out.

use std::collections::VecDeque;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{ClientNotification, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use serde_json::Value;
use tokio::sync::watch;

use super::McpSession;
use crate::mcp::message::RpcMessage;
use crate::mcp::wire::{FrameKind, OutgoingFrame};
use crate::model::Error;

/// The transport the SDK sees.
pub struct SessionTransport {
    session: Arc<McpSession>,
    /// Whether a run of calls reads the wire.
    running: watch::Receiver<bool>,
    ready: VecDeque<RxJsonRpcMessage<RoleClient>>,
}

/// A message could not be handed to the server.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SendError(pub Error);

impl SessionTransport {
    /// A transport over `session`, with what came before it existed.
    pub fn new(session: Arc<McpSession>, early: Vec<RpcMessage>) -> Self {
        let ready = early.into_iter().filter_map(|m| session.route_message(m, None)).collect();
        Self { running: session.read_handoff.running(), session, ready }
    }
}

impl rmcp::transport::Transport<RoleClient> for SessionTransport {
    type Error = SendError;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let session = Arc::clone(&self.session);
        let frame = frame(&item);
        let answers = answered_question(&item);
        // The server took its question back: it wants no answer.
        let unwanted = answers.as_ref().is_some_and(|id| session.is_withdrawn(id));
        let question = ServerQuestionGuard { session: Arc::clone(&session), id: answers };
        async move {
            let _until_handed_over = question;
            if unwanted {
                return Ok(());
            }
            // None of these gets a response.
            session.wire.send(frame.map_err(SendError)?).await.map(drop).map_err(SendError)
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let session = &self.session;
            if let Some(message) = self.ready.pop_front().or_else(|| session.read_handoff.pop()) {
                return Some(message);
            }
            if session.closed_token.is_cancelled() {
                return None;
            }
            if *self.running.borrow_and_update() {
                tokio::select! {
                    biased;
                    () = session.read_handoff.wait_for_message() => {}
                    () = session.closed_token.cancelled() => {}
                    _turned = self.running.changed() => {}
                }
                continue;
            }
            tokio::select! {
                biased;
                // The wire is let go of at once: a run waits for it.
                _turned = self.running.changed() => {}
                arrival = session.wire.receive() => self.ready.extend(session.route(arrival)),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

impl Drop for SessionTransport {
    fn drop(&mut self) {
        // The SDK has dropped its end: nothing takes in what comes.
        self.session.close(Error::unreachable("the connection is closed"));
    }
}

/// A question of the server, open until its answer is handed over or dropped.
struct ServerQuestionGuard {
    session: Arc<McpSession>,
    id: Option<RequestId>,
}

impl Drop for ServerQuestionGuard {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.session.close_question(id);
        }
    }
}

/// The question that a message of ours answers.
fn answered_question(item: &TxJsonRpcMessage<RoleClient>) -> Option<RequestId> {
    match item {
        JsonRpcMessage::Response(response) => Some(response.id.clone()),
        JsonRpcMessage::Error(error) => error.id.clone(),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
    }
}

/// Serialises a message of the SDK and says what it is.
fn frame(item: &TxJsonRpcMessage<RoleClient>) -> Result<OutgoingFrame, Error> {
    let bytes = serde_json::to_vec(item)
        .map_err(|error| Error::internal(format!("a message cannot be serialised: {error}")))?;
    let kind = match item {
        JsonRpcMessage::Request(_) => {
            return Err(Error::internal("requests are not sent by the SDK"));
        }
        JsonRpcMessage::Notification(notification) => match &notification.notification {
            ClientNotification::CancelledNotification(cancelled) => FrameKind::Notification {
                method: "notifications/cancelled".into(),
                cancels: serde_json::to_value(&cancelled.params.request_id).ok(),
            },
            other => {
                let value = serde_json::to_value(other).unwrap_or_default();
                let method = value.get("method").and_then(Value::as_str).unwrap_or_default();
                FrameKind::Notification { method: method.to_owned(), cancels: None }
            }
        },
        JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => FrameKind::Response,
    };
    Ok(OutgoingFrame { bytes: bytes.into(), kind, call: None })
}
