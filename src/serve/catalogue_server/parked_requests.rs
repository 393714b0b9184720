//! Requests that wait for a client to come back with answers.
//!
//! In revision 2026-07-28 a server cannot ask: it ends the request with the questions and a state
//! that the client sends along when it calls again. Its work continues here meanwhile. The state
//! is a random name of the parked request, valid for one retry, and useless to another client.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use super::client_registry::ClientQuestion;
use super::running_request::RunningRequest;
use crate::model::JsonObject;
use crate::util::lock::lock;

const MAX_PARKED: usize = 256;
const PATIENCE: Duration = Duration::from_mins(5);

#[derive(Default)]
pub(super) struct ParkedRequests(Arc<Mutex<HashMap<String, TimedRequest>>>);

/// What is parked, and the timer that forgets it.
type TimedRequest = (ParkedRequest, AbortOnDropHandle<()>);

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
    pub(super) running: RunningRequest,
    pub(super) questions: Vec<(String, ClientQuestion)>,
}

impl ParkedRequests {
    /// Keeps a request until its client comes back, and gives the state to come back with; `None` when
    /// too many wait already.
    pub(super) fn park(&self, request: ParkedRequest) -> Option<String> {
        let state = Uuid::new_v4().simple().to_string();
        let mut parked = lock(&self.0);
        if parked.len() >= MAX_PARKED {
            return None;
        }
        let (all, forgotten) = (Arc::clone(&self.0), state.clone());
        let forgetting = tokio::spawn(async move {
            tokio::time::sleep(PATIENCE).await;
            // Dropping it cancels the request.
            drop(lock(&all).remove(&forgotten));
        });
        parked.insert(state.clone(), (request, AbortOnDropHandle::new(forgetting)));
        Some(state)
    }

    pub(super) fn take(&self, state: &str, key: &RequestKey) -> Option<ParkedRequest> {
        let mut parked = lock(&self.0);
        if parked.get(state).is_none_or(|(request, _)| request.key != *key) {
            return None;
        }
        parked.remove(state).map(|(request, _)| request)
    }
}
