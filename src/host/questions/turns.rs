//! Concurrency permits of calls that wait for a person.
//!
//! Owns: that a call waiting for an answer lets another call of its component run meanwhile, and
//! takes a turn again before it continues. Never does: decide how many may run at once; `limits`
//! does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::model::CallId;

/// The turns of the calls that run.
#[derive(Default)]
pub(super) struct CallTurns(Mutex<HashMap<CallId, CallTurn>>);

struct CallTurn {
    /// `None` while the call waits for an answer.
    permit: Option<OwnedSemaphorePermit>,
    permits: Arc<Semaphore>,
    /// How many questions of the call are open.
    open_questions: usize,
}

/// Ends the turn of a call when it is dropped.
pub(in crate::host) struct TurnGuard<'a> {
    turns: &'a CallTurns,
    call: CallId,
}

impl CallTurns {
    /// Keeps the permit of a call until the guard is dropped, or the call waits.
    pub(super) fn hold(&self, call: &CallId, permit: OwnedSemaphorePermit) -> TurnGuard<'_> {
        let permits = Arc::clone(permit.semaphore());
        let turn = CallTurn { permit: Some(permit), permits, open_questions: 0 };
        self.lock().insert(call.clone(), turn);
        TurnGuard { turns: self, call: call.clone() }
    }

    /// A question of the call is put: another call may run meanwhile.
    pub(super) fn pause(&self, call: &CallId) {
        if let Some(turn) = self.lock().get_mut(call) {
            turn.open_questions += 1;
            turn.permit = None;
        }
    }

    /// A question of the call was answered; after the last one the call waits for its turn again.
    pub(super) async fn resume(&self, call: &CallId) {
        let permits = {
            let mut turns = self.lock();
            let Some(turn) = turns.get_mut(call) else { return };
            turn.open_questions = turn.open_questions.saturating_sub(1);
            if turn.open_questions > 0 {
                return;
            }
            Arc::clone(&turn.permits)
        };
        // Closed only when the host is: then nothing has to wait.
        let permit = permits.acquire_owned().await.ok();
        if let Some(turn) = self.lock().get_mut(call) {
            turn.permit = permit;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CallId, CallTurn>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        drop(self.turns.lock().remove(&self.call));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_turn() -> (Arc<Semaphore>, CallTurns, CallId) {
        (Arc::new(Semaphore::new(1)), CallTurns::default(), CallId("a".into()))
    }

    #[tokio::test]
    async fn a_call_that_waits_for_a_person_lets_others_run() {
        let (permits, turns, call) = one_turn();
        let permit = Arc::clone(&permits).acquire_owned().await.unwrap();
        let guard = turns.hold(&call, permit);
        assert!(permits.try_acquire().is_err());
        turns.pause(&call);
        turns.pause(&call);
        let other = permits.try_acquire().unwrap();
        turns.resume(&call).await;
        let mut last = std::pin::pin!(turns.resume(&call));
        let is_waiting = tokio::select! {
            biased;
            () = last.as_mut() => false,
            () = std::future::ready(()) => true,
        };
        assert!(is_waiting, "the turn is another call's");
        drop(other);
        last.await;
        assert!(permits.try_acquire().is_err());
        drop(guard);
        assert!(permits.try_acquire().is_ok());
    }

    #[tokio::test]
    async fn a_call_that_ended_takes_no_turn() {
        let (permits, turns, call) = one_turn();
        let permit = Arc::clone(&permits).acquire_owned().await.unwrap();
        let guard = turns.hold(&call, permit);
        turns.pause(&call);
        drop(guard);
        turns.resume(&call).await;
        assert!(permits.try_acquire().is_ok());
    }
}
