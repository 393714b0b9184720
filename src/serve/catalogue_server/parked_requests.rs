//! Requests that wait for a client to come back with answers.
//!
//! In revision 2026-07-28 a server cannot ask: it ends the request with the questions and a state
//! that the client sends along when it calls again. Its work continues here meanwhile. The state
//! is a random name of the parked request, valid for one retry, and useless to another client.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use uuid::Uuid;

use super::client_registry::ClientQuestion;
use super::running_request::RunningServed;
use crate::model::JsonObject;

const MAX_PARKED: usize = 256;
const PATIENCE: Duration = Duration::from_mins(5);

#[derive(Default)]
pub(super) struct ParkedRequests(Arc<Mutex<HashMap<String, ParkedRequest>>>);

/// What a retry has to repeat to be taken for one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RequestKey {
    pub(super) session: String,
    pub(super) method: &'static str,
    pub(super) name: String,
    pub(super) arguments: JsonObject,
}

pub(super) struct ParkedRequest {
    pub(super) key: RequestKey,
    pub(super) running: RunningServed,
    pub(super) questions: Vec<(String, ClientQuestion)>,
    pub(super) taken: Option<oneshot::Sender<()>>,
}

impl ParkedRequests {
    /// Keeps a request until its client comes back, and gives the state to come back with; `None` when
    /// too many wait already.
    pub(super) fn park(&self, mut request: ParkedRequest) -> Option<String> {
        let state = Uuid::new_v4().simple().to_string();
        let (sender, wait) = oneshot::channel();
        request.taken = Some(sender);
        let mut parked = self.lock();
        if parked.len() >= MAX_PARKED {
            return None;
        }
        parked.insert(state.clone(), request);
        drop(parked);
        let (all, forgotten) = (Arc::clone(&self.0), state.clone());
        tokio::spawn(async move {
            if tokio::time::timeout(PATIENCE, wait).await.is_err() {
                // Dropping it cancels the request.
                drop(all.lock().unwrap_or_else(PoisonError::into_inner).remove(&forgotten));
            }
        });
        Some(state)
    }

    pub(super) fn take(&self, state: &str, key: &RequestKey) -> Option<ParkedRequest> {
        let mut parked = self.lock();
        if parked.get(state).is_none_or(|request| request.key != *key) {
            return None;
        }
        parked.remove(state)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, ParkedRequest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
