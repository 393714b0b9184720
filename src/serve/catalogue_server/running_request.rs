//! A request of a client while it runs, and while it waits for its client to come back with answers.
//!
//! In revision 2026-07-28 a server cannot ask: it ends the request with the questions and a state
//! that the client sends along when it calls again. Its work continues here meanwhile. The state
//! is a random name of the parked request, valid for one retry, and useless to another client.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::{ErrorData, ServerResult};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use super::client_registry::{CallWatch, ClientQuestion, ClientRegistry};
use crate::model::{CallId, HostEvent, JsonObject};
use crate::serve::background::lifetime::RunningCallGuard;
use crate::util::lock::lock;

const MAX_PARKED: usize = 256;
const PATIENCE: Duration = Duration::from_mins(5);

/// A request that runs in the background. Dropped, it is cancelled.
pub(super) struct RunningRequest {
    outcome: JoinHandle<Result<ServerResult, ErrorData>>,
    watch: CallWatch,
    /// Keeps a background host from ending.
    _running: Option<RunningCallGuard>,
    _cancelled_when_dropped: DropGuard,
}

#[expect(clippy::large_enum_variant, reason = "one at a time, taken apart where it arrives")]
pub(super) enum RequestStep {
    /// Progress, a line that was logged, or that it became a task.
    Update(HostEvent),
    Question(ClientQuestion),
    Ended(Result<ServerResult, ErrorData>),
}

impl RunningRequest {
    /// Begins the request `call` by `work`, which gets its id and hears when it is cancelled. Where it
    /// `is_heavy`, other requests do not wait for it.
    pub(super) fn start<F>(
        clients: &Arc<ClientRegistry>,
        call: CallId,
        admitted: Option<RunningCallGuard>,
        is_heavy: bool,
        work: impl FnOnce(CallId, CancellationToken) -> F,
    ) -> Self
    where
        F: Future<Output = Result<ServerResult, ErrorData>> + Send + 'static,
    {
        let (watch, cancel) = (clients.watch(&call), CancellationToken::new());
        // Boxed: a task is moved as a whole when it begins and when it ends.
        let work = Box::pin(work(call, cancel.clone()));
        let outcome = if is_heavy {
            let runtime = Handle::current();
            tokio::task::spawn_blocking(move || runtime.block_on(work))
        } else {
            tokio::spawn(work)
        };
        Self { outcome, watch, _running: admitted, _cancelled_when_dropped: cancel.drop_guard() }
    }

    pub(super) async fn next(&mut self) -> RequestStep {
        tokio::select! {
            // What was sent before the end is passed on before the end.
            biased;
            Some(update) = self.watch.updates.recv() => RequestStep::Update(update),
            Some(question) = self.watch.questions.recv() => RequestStep::Question(question),
            outcome = &mut self.outcome => RequestStep::Ended(outcome.unwrap_or_else(|_panicked| {
                Err(ErrorData::internal_error("the request ended without a result", None))
            })),
        }
    }

    pub(super) fn more_questions(&mut self) -> Vec<ClientQuestion> {
        std::iter::from_fn(|| self.watch.questions.try_recv().ok()).collect()
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nothing_waits_for_the_thread_of_heavy_work() {
        let (go, receiver) = std::sync::mpsc::channel::<()>();
        let (clients, call) = (ClientRegistry::new(), CallId("call".into()));
        let work = async move {
            receiver.recv().unwrap();
            Ok(ServerResult::empty(()))
        };
        let mut running = RunningRequest::start(&clients, call, None, true, |_, _| work);
        // On the thread of the runtime, it would never come back from here.
        tokio::task::yield_now().await;
        go.send(()).unwrap();
        assert!(matches!(running.next().await, RequestStep::Ended(Ok(_))));
    }
}
