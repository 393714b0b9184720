//! The calls of a run: attempts of the provider, any number at once.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::{CompletedCall, LoadCall, LoadExecutor, LoadOutcome};
use crate::host::listings::ListedTool;
use crate::host::{content, limits, output_check};
use crate::model::{Error, ErrorKind, ServerState, ToolContext, ToolResult};
use crate::provider::ToolProvider;
use crate::util::clock::{Clock as _, SystemClock};
use crate::util::pacer::Pacer;
use crate::util::units::show_duration;

/// How much of a tool's error message is kept, in characters.
const MAX_ERROR_CHARS: usize = 300;

pub(super) struct AttemptExecutor {
    pub(super) provider: Arc<dyn ToolProvider>,
    /// How long an answer is waited for.
    pub(super) timeout: Duration,
    pub(super) output_sample: Option<Arc<OutputSample>>,
    pub(super) context: ToolContext,
    pub(super) lost: Arc<OnceLock<Error>>,
    pub(super) pacer: Pacer,
}

/// Which answers are checked against the output schema: the first, and then one in `every`.
pub(super) struct OutputSample {
    every: u64,
    tool: Arc<ListedTool>,
    answers: AtomicU64,
}

impl OutputSample {
    /// Readies the check, which may take a moment the first time.
    pub(super) async fn new(tool: &Arc<ListedTool>, every: u64) -> Self {
        let _compiled = tool.output_checker().await;
        Self { every: every.max(1), tool: Arc::clone(tool), answers: AtomicU64::new(0) }
    }

    /// Counts an answer; what is wrong with it, if it is one that is checked.
    fn check(&self, result: &ToolResult) -> Option<Error> {
        let number = self.answers.fetch_add(1, Ordering::Relaxed);
        if !number.is_multiple_of(self.every) {
            return None;
        }
        let mut result = result.clone();
        // A schema whose check could take long is left to ordinary calls.
        output_check::check_output(&self.tool, &mut result, true).now_or_never()?;
        result.error
    }
}

#[async_trait]
impl LoadExecutor for AttemptExecutor {
    fn call(&mut self, call: &Arc<LoadCall>) -> (Instant, BoxFuture<'static, CompletedCall>) {
        let cancel = self.context.cancel.child_token();
        let context = ToolContext { cancel, ..self.context.clone() };
        let call = Arc::clone(call);
        let (provider, limit) = (Arc::clone(&self.provider), self.timeout);
        let (output_sample, lost) = (self.output_sample.clone(), Arc::clone(&self.lost));
        // What was done so far is no part of the call.
        let sent_at = SystemClock.now();
        let attempt = async move {
            // A call that is abandoned is cancelled, with the calls it made.
            let cancels = context.cancel.drop_guard_ref();
            let mut work =
                pin!(AssertUnwindSafe(provider.call(&context, &call.call)).catch_unwind());
            let (result, ended_at) = match tokio::time::timeout(limit, &mut work).await {
                Ok(result) => {
                    let panicked = |_| Err(Error::internal("the code behind the tool panicked"));
                    (result.unwrap_or_else(panicked), SystemClock.now())
                }
                Err(_elapsed) => {
                    context.cancel.cancel();
                    // A call is not over before the tool has let go.
                    let _last = tokio::time::timeout(limits::STOP_GRACE_PERIOD, work).await;
                    let message = format!("no response within {}", show_duration(limit));
                    (Err(Error::timeout(message)), sent_at + limit)
                }
            };
            cancels.disarm();
            if let Err(error) = &result
                && is_lost(&*provider, error)
            {
                let _is_first = lost.set(error.clone());
            }
            let (outcome, bytes_in) = classify(result, output_sample.as_deref());
            CompletedCall { ended_at, bytes_out: call.bytes, bytes_in, outcome }
        };
        (sent_at, Box::pin(attempt))
    }

    fn lost(&self) -> Option<Error> {
        self.lost.get().cloned()
    }

    async fn until(&mut self, moment: Instant) {
        self.pacer.until(moment).await;
    }

    fn warnings(&self) -> Vec<String> {
        let Some(server) = self.provider.as_server() else { return Vec::new() };
        let status = server.status();
        status.warnings.iter().map(|warning| format!("{}: {warning}", status.name)).collect()
    }
}

/// Whether an attempt failed because the connection to its server is gone.
fn is_lost(provider: &dyn ToolProvider, error: &Error) -> bool {
    error.kind() == ErrorKind::Unreachable
        && provider
            .as_server()
            .is_some_and(|server| !matches!(server.status().state, ServerState::Ready))
}

fn classify(
    result: Result<ToolResult, Error>,
    output_sample: Option<&OutputSample>,
) -> (LoadOutcome, u64) {
    let result = match result {
        Ok(result) => result,
        Err(error) => return (LoadOutcome::Failed(Box::new(error)), 0),
    };
    let bytes = content::size(&result);
    let outcome = if result.success {
        let error = output_sample.and_then(|sample| sample.check(&result));
        let error = error.or_else(|| result.error.clone());
        error.map_or(LoadOutcome::Ok, |error| LoadOutcome::Failed(Box::new(error)))
    } else {
        tool_error(&result)
    };
    (outcome, bytes)
}

fn tool_error(result: &ToolResult) -> LoadOutcome {
    let message = result.error.as_ref().map_or("the tool returned an error", Error::message);
    LoadOutcome::ToolError(match message.char_indices().nth(MAX_ERROR_CHARS) {
        // The ellipsis shows the cut, also to what looks for secrets at the end of the text.
        Some((at, _)) => format!("{}…", message.get(..at).unwrap_or_default()).into(),
        None => message.into(),
    })
}
