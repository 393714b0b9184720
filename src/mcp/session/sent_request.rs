//! One of our requests, waiting for its outcome.

use std::sync::Arc;

use tokio::sync::Notify;

use super::McpSession;
use crate::mcp::message::RawJson;
use crate::model::Error;

/// A request that was sent. Dropped, it is forgotten, and the server is not told.
pub struct SentRequest {
    pub(super) session: Arc<McpSession>,
    pub id: i64,
    pub(super) woken: Arc<Notify>,
    pub(super) progress: Option<ProgressRegistration>,
}

/// Keeps the listener of a request's progress, which goes on after the answer when that is a task.
pub struct ProgressRegistration {
    pub(super) session: Arc<McpSession>,
    pub(super) token: i64,
}

impl Drop for ProgressRegistration {
    fn drop(&mut self) {
        self.session.state().progress.remove(&self.token);
    }
}

impl SentRequest {
    /// Waits for its outcome, an unmatched response, news of a question, or the end of the wire.
    pub async fn wait_for_change(&self) {
        self.woken.notified().await;
    }

    /// Takes its outcome, if it came.
    pub fn take_outcome(&self) -> Option<Result<RawJson, Error>> {
        self.session.take_outcome(self.id)
    }

    pub fn take_progress(&mut self) -> Option<ProgressRegistration> {
        self.progress.take()
    }

    /// Whether an answer to some unknown request came while this one waited.
    pub fn unmatched_response(&self) -> Option<String> {
        self.session.state().pending.get(&self.id)?.unmatched_response.clone()
    }

    /// Whether nothing is known of its end.
    pub fn is_open(&self) -> bool {
        let state = self.session.state();
        state.closed.is_none() && state.pending.contains_key(&self.id)
    }

    pub fn waits_for_person(&self) -> bool {
        self.session.state().questions.waits_for_person(self.id)
    }
}

impl Drop for SentRequest {
    fn drop(&mut self) {
        self.session.retire(self.id);
    }
}
