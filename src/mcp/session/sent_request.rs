//! One of our requests, waiting for its outcome.

use std::sync::Arc;

use tokio::sync::{Notify, oneshot};

use super::{McpSession, RequestOutcome};
use crate::model::Error;

/// A request that was sent. Dropped, it is forgotten, and the server is not told.
pub struct SentRequest {
    pub(super) session: Arc<McpSession>,
    pub id: i64,
    pub(super) answer: oneshot::Receiver<RequestOutcome>,
    pub(super) news: Arc<Notify>,
    pub(super) progress: Option<ProgressRegistration>,
}

/// What happened to a request that is not answered yet.
#[derive(Debug, Default)]
pub struct RequestNews {
    pub unmatched_response: Option<String>,
    pub has_progressed: bool,
    pub waits_for_person: bool,
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
    /// Waits for the outcome. Cancel-safe; not to be asked again after it came.
    pub async fn outcome(&mut self) -> RequestOutcome {
        match (&mut self.answer).await {
            Ok(outcome) => outcome,
            Err(_) => Err(self
                .session
                .close_reason()
                .unwrap_or_else(|| Error::unreachable("the connection is closed"))),
        }
    }

    pub async fn outcome_or_news(&mut self) -> Option<RequestOutcome> {
        let news = Arc::clone(&self.news);
        tokio::select! {
            biased;
            outcome = self.outcome() => Some(outcome),
            () = news.notified() => None,
        }
    }

    pub fn news(&self) -> RequestNews {
        let mut state = self.session.state();
        let waits_for_person = state.questions.waits_for_person(self.id);
        let Some(pending) = state.pending.get_mut(&self.id) else { return RequestNews::default() };
        RequestNews {
            unmatched_response: pending.unmatched_response.clone(),
            has_progressed: std::mem::take(&mut pending.has_progressed),
            waits_for_person,
        }
    }

    pub fn take_progress(&mut self) -> Option<ProgressRegistration> {
        self.progress.take()
    }

    pub fn is_open(&self) -> bool {
        self.session.state().pending.contains_key(&self.id)
    }
}

impl Drop for SentRequest {
    fn drop(&mut self) {
        self.session.retire(self.id);
    }
}
