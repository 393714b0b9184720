//! A request of a client while it runs.

use std::sync::Arc;

use rmcp::model::{ErrorData, ServerResult};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::client_registry::{CallWatch, ClientQuestion, ClientRegistry};
use crate::model::{CallId, HostEvent};
use crate::serve::background::lifetime::RunningCallGuard;

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
