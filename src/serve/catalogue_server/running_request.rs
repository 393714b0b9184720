//! A request of a client while it runs.

use rmcp::model::{CallToolResult, ErrorData, GetPromptResult, ReadResourceResult};
use tokio::task::JoinHandle;
use tokio_util::sync::DropGuard;

use super::client_registry::{CallUpdate, CallWatch, ClientQuestion};
use crate::serve::background::lifetime::RunningCallGuard;

/// What a request gave at last.
pub(super) enum ServedResult {
    Tool(CallToolResult),
    Prompt(GetPromptResult),
    Resource(ReadResourceResult),
}

/// A request that runs in the background. Dropped, it is cancelled.
pub(super) struct RunningRequest {
    /// Its task.
    pub(super) outcome: JoinHandle<Result<ServedResult, ErrorData>>,
    /// What happens meanwhile.
    pub(super) watch: CallWatch,
    /// Whether a front end of this program made it.
    pub(super) is_of_front_end: bool,
    /// Keeps a background host from ending.
    pub(super) _running: Option<RunningCallGuard>,
    pub(super) _cancelled_when_dropped: DropGuard,
}

/// What happened to a running request.
pub(super) enum RequestStep {
    Update(CallUpdate),
    Question(ClientQuestion),
    Ended(Result<ServedResult, ErrorData>),
}

impl RunningRequest {
    /// What happens next.
    pub(super) async fn next(&mut self) -> RequestStep {
        tokio::select! {
            // What was sent before the end is passed on before the end.
            biased;
            Some(update) = self.watch.updates.recv() => RequestStep::Update(update),
            Some(question) = self.watch.questions.recv() => RequestStep::Question(question),
            outcome = &mut self.outcome => RequestStep::Ended(outcome.unwrap_or_else(|failed| {
                let words = format!("the request ended without a result: {failed}");
                Err(ErrorData::internal_error(words, None))
            })),
        }
    }

    /// The questions that came together with the last one.
    pub(super) fn more_questions(&mut self) -> Vec<ClientQuestion> {
        std::iter::from_fn(|| self.watch.questions.try_recv().ok()).collect()
    }
}
