//! Calls that wait for a client to come back with answers.
//!
//! In revision 2026-07-28 a server cannot ask: it ends the request with the questions and a state
//! that the client sends along when it calls again. The call itself goes on here meanwhile. The state
//! is a random name of the parked call, good for one retry, and of no use to another client.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use uuid::Uuid;

use super::call::RunningCall;
use super::client_registry::ClientQuestion;
use crate::model::JsonObject;

/// How many calls may wait for answers at once.
const MAX_PARKED: usize = 256;
/// How long a call waits for its client to come back.
const PATIENCE: Duration = Duration::from_mins(5);

/// The calls that wait.
#[derive(Default)]
pub(super) struct ParkedCalls(Arc<Mutex<HashMap<String, ParkedCall>>>);

/// What a retry has to repeat to be taken for one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CallKey {
    pub(super) session: String,
    pub(super) name: String,
    pub(super) arguments: JsonObject,
}

/// A call that waits for answers.
pub(super) struct ParkedCall {
    pub(super) key: CallKey,
    pub(super) running: RunningCall,
    /// The questions under the names by which the client answers.
    pub(super) questions: Vec<(String, ClientQuestion)>,
    /// Dropped when the call is taken, which ends the wait for the client.
    pub(super) taken: Option<oneshot::Sender<()>>,
}

impl ParkedCalls {
    /// Keeps a call until its client comes back, and gives the state to come back with; `None` when
    /// too many wait already.
    pub(super) fn park(&self, mut call: ParkedCall) -> Option<String> {
        let state = Uuid::new_v4().simple().to_string();
        let (taken, wait) = oneshot::channel();
        call.taken = Some(taken);
        let mut parked = self.lock();
        if parked.len() >= MAX_PARKED {
            return None;
        }
        parked.insert(state.clone(), call);
        drop(parked);
        let (all, forgotten) = (Arc::clone(&self.0), state.clone());
        tokio::spawn(async move {
            if tokio::time::timeout(PATIENCE, wait).await.is_err() {
                // Dropping it cancels the call.
                drop(all.lock().unwrap_or_else(PoisonError::into_inner).remove(&forgotten));
            }
        });
        Some(state)
    }

    /// The call of this state, when the same client asks for the same thing.
    pub(super) fn take(&self, state: &str, key: &CallKey) -> Option<ParkedCall> {
        let mut parked = self.lock();
        if parked.get(state).is_none_or(|call| call.key != *key) {
            return None;
        }
        parked.remove(state)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, ParkedCall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
