//! Concurrency permits of calls that wait for a person.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::host::permits::{CallPermit, PermitSource};
use crate::model::CallId;

#[derive(Default)]
pub(super) struct CallTurns(Mutex<HashMap<CallId, CallTurn>>);

struct CallTurn {
    /// `None` while the call waits for an answer.
    permit: Option<CallPermit>,
    source: PermitSource,
    open_questions: usize,
}

pub(in crate::host) struct TurnGuard<'a> {
    turns: &'a CallTurns,
    call: CallId,
}

impl CallTurns {
    pub(super) fn hold(&self, call: &CallId, permit: CallPermit) -> TurnGuard<'_> {
        let source = permit.source();
        let turn = CallTurn { permit: Some(permit), source, open_questions: 0 };
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
        let source = {
            let mut turns = self.lock();
            let Some(turn) = turns.get_mut(call) else { return };
            turn.open_questions = turn.open_questions.saturating_sub(1);
            if turn.open_questions > 0 {
                return;
            }
            turn.source.clone()
        };
        let permit = source.acquire().await;
        if let Some(turn) = self.lock().get_mut(call) {
            turn.permit = Some(permit);
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
    use futures_util::{FutureExt as _, poll};

    use super::*;
    use crate::host::attempt::MAX_PARALLEL_CALLS;
    use crate::host::permits::CallPermits;
    use crate::model::{Origin, ToolDefinition, ToolName, ToolSource};

    async fn one_turn() -> (CallPermits, ToolDefinition, Vec<CallPermit>) {
        let (permits, name) = (CallPermits::default(), ToolName::of("c", "t"));
        let tool =
            ToolDefinition::new(name, ToolSource::Internal, "kind", Origin::Server("c".into()));
        let mut held = Vec::new();
        for _ in 1..MAX_PARALLEL_CALLS {
            held.push(permits.acquire(&tool, 0, "other").await);
        }
        (permits, tool, held)
    }

    #[tokio::test]
    async fn a_call_that_waits_for_a_person_lets_others_run() {
        let (permits, tool, _held) = one_turn().await;
        let (turns, call) = (CallTurns::default(), CallId("a".into()));
        let guard = turns.hold(&call, permits.acquire(&tool, 0, "").await);
        assert!(permits.acquire(&tool, 0, "").now_or_never().is_none());
        turns.pause(&call);
        turns.pause(&call);
        let other = permits.acquire(&tool, 0, "").now_or_never().unwrap();
        turns.resume(&call).await;
        let mut last = std::pin::pin!(turns.resume(&call));
        assert!(poll!(&mut last).is_pending(), "the turn is another call's");
        drop(other);
        last.await;
        assert!(permits.acquire(&tool, 0, "").now_or_never().is_none());
        drop(guard);
        assert!(permits.acquire(&tool, 0, "").now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_call_that_ended_takes_no_turn() {
        let (permits, tool, _held) = one_turn().await;
        let (turns, call) = (CallTurns::default(), CallId("a".into()));
        let guard = turns.hold(&call, permits.acquire(&tool, 0, "").await);
        turns.pause(&call);
        drop(guard);
        turns.resume(&call).await;
        assert!(permits.acquire(&tool, 0, "").now_or_never().is_some());
    }
}
