//! Long-running requests that receive notifications until they end.

use std::sync::Arc;

use serde_json::Value;

use super::Connection;
use crate::mcp::message::RawJson;
use crate::mcp::notifications::NotificationListener;
use crate::mcp::outgoing::OutgoingRequest;
use crate::mcp::session::{ProgressListener, SentRequest};
use crate::model::Error;

/// A request that was sent and is not answered yet. Dropped, it is forgotten, and the server is
/// not told: [`PendingRequest::cancel`] does that.
pub struct PendingRequest<'a> {
    connection: &'a Connection,
    request: SentRequest,
}

impl Connection {
    /// Sends a request that may stay unanswered for ever; `progress` hears of its progress.
    pub async fn start_request(
        &self,
        outgoing: &OutgoingRequest<'_>,
        progress: Option<ProgressListener>,
    ) -> Result<PendingRequest<'_>, Error> {
        let named = |error: Error| error.with_server(&self.name);
        if let Some(error) = self.session.close_reason() {
            return Err(named(error));
        }
        let request = self.session.send_request(outgoing, progress).await;
        Ok(PendingRequest { connection: self, request })
    }

    /// Receives the server's notifications about its lists and resources from now on.
    pub fn listener(&self) -> Arc<NotificationListener> {
        self.session.listener()
    }

    /// Waits for the end of the connection; why it ended.
    pub async fn wait_closed(&self) -> Error {
        self.session.closed_token.cancelled().await;
        self.wait_close_reason().await.with_server(&self.name)
    }
}

impl PendingRequest<'_> {
    pub fn id(&self) -> Value {
        self.request.id.into()
    }

    pub async fn answer(&mut self) -> Result<RawJson, Error> {
        let connection = self.connection;
        let outcome = connection.explain_outcome(self.request.outcome().await).await;
        outcome.map_err(|error| error.with_server(&connection.name))
    }

    /// Tells the server that we no longer wait for the response.
    pub async fn cancel(&self, reason: &str) {
        if self.request.is_open() {
            self.connection.cancel_request(self.request.id, reason).await;
        }
    }
}
