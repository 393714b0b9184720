//! The calls of a run: attempts of the provider, several at once.

use std::collections::HashMap;
use std::future::pending;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio_util::sync::CancellationToken;

use super::contract::{
    BenchRequest, CompletedRequest, Load, LoadDecision, LoadExecutor, LoadOutcome,
};
use crate::host::listings::ListedTool;
use crate::host::{content, limits, output_check};
use crate::model::{
    Error, ErrorKind, JsonObject, ServerState, ToolCall, ToolContext, ToolName, ToolResult,
};
use crate::provider::ToolProvider;
use crate::util::json;
use crate::util::pacer::Pacer;
use crate::util::units::show_duration;

/// How much of a tool's error message is kept, in characters.
const MAX_ERROR_CHARS: usize = 300;

pub(super) struct AttemptExecutor {
    provider: Arc<dyn ToolProvider>,
    tool: ToolName,
    /// How long an answer is waited for.
    timeout: Duration,
    output_sample: Option<OutputSample>,
    context: ToolContext,
}

/// Which answers are checked against the output schema: the first, and then one in `every`.
pub(super) struct OutputSample {
    every: u64,
    tool: Arc<ListedTool>,
    answers: u64,
}

struct FinishedAttempt {
    ticket: u64,
    sent_at: Instant,
    /// When a limit fired; else it ended when that is noticed.
    ended_at: Option<Instant>,
    result: Result<ToolResult, Error>,
    bytes_out: u64,
}

impl OutputSample {
    /// Readies the check, which may take a moment the first time.
    pub(super) async fn new(tool: &Arc<ListedTool>, every: u64) -> Self {
        let _compiled = tool.output_checker().await;
        Self { every: every.max(1), tool: Arc::clone(tool), answers: 0 }
    }

    /// Counts an answer; what is wrong with it, if it is one that is checked.
    fn check(&mut self, result: &ToolResult) -> Option<Error> {
        let number = self.answers;
        self.answers += 1;
        if !number.is_multiple_of(self.every) {
            return None;
        }
        let mut result = result.clone();
        // A schema whose check could take long is left to ordinary calls.
        output_check::check_output(&self.tool, &mut result, true).now_or_never()?;
        result.error
    }
}

impl AttemptExecutor {
    pub(super) fn new(
        provider: Arc<dyn ToolProvider>,
        (tool, timeout): (ToolName, Duration),
        output_sample: Option<OutputSample>,
        context: ToolContext,
    ) -> Self {
        Self { provider, tool, timeout, output_sample, context }
    }

    /// Readies a call, whose time begins when `now` is asked: what is done before is no part of it.
    fn start(
        &self,
        request: &BenchRequest,
        now: impl FnOnce() -> Instant,
        run: &CancellationToken,
    ) -> (Instant, BoxFuture<'static, FinishedAttempt>) {
        let context = ToolContext { cancel: run.child_token(), ..self.context.clone() };
        let arguments = JsonObject::clone(&request.arguments);
        let call = ToolCall { name: self.tool.clone(), arguments };
        let bytes_out = json::size(&call.arguments);
        let provider = Arc::clone(&self.provider);
        let (ticket, limit, sent_at) = (request.ticket, self.timeout, now());
        let attempt = Box::pin(async move {
            let mut work = pin!(AssertUnwindSafe(provider.call(&context, &call)).catch_unwind());
            let (result, ended_at) = match tokio::time::timeout(limit, &mut work).await {
                Ok(Ok(result)) => (result, None),
                Ok(Err(_panic)) => {
                    (Err(Error::internal("the code behind the tool panicked")), None)
                }
                Err(_elapsed) => {
                    context.cancel.cancel();
                    // A call is not over before the tool has let go.
                    let _last = tokio::time::timeout(limits::STOP_GRACE_PERIOD, work).await;
                    let message = format!("no response within {}", show_duration(limit));
                    (Err(Error::timeout(message)), Some(sent_at + limit))
                }
            };
            FinishedAttempt { ticket, sent_at, ended_at, result, bytes_out }
        });
        (sent_at, attempt)
    }

    fn classify(&mut self, result: Result<ToolResult, Error>) -> (LoadOutcome, u64) {
        let result = match result {
            Ok(result) => result,
            Err(error) => return (LoadOutcome::Failed(Box::new(error)), 0),
        };
        let bytes = content::size(&result);
        let outcome = if result.success {
            let error = self.output_sample.as_mut().and_then(|sample| sample.check(&result));
            let error = error.or_else(|| result.error.clone());
            error.map_or(LoadOutcome::Ok, |error| LoadOutcome::Failed(Box::new(error)))
        } else {
            tool_error(&result)
        };
        (outcome, bytes)
    }

    /// Whether an attempt failed because the connection to its server is gone.
    fn is_lost(&self, error: &Error) -> bool {
        error.kind() == ErrorKind::Unreachable
            && self
                .provider
                .as_server()
                .is_some_and(|server| !matches!(server.status().state, ServerState::Ready))
    }
}

fn tool_error(result: &ToolResult) -> LoadOutcome {
    let message = result.error.as_ref().map_or("the tool returned an error", Error::message);
    LoadOutcome::ToolError(match message.char_indices().nth(MAX_ERROR_CHARS) {
        // The ellipsis shows the cut, also to what looks for secrets at the end of the text.
        Some((at, _)) => format!("{}…", message.get(..at).unwrap_or_default()).into(),
        None => message.into(),
    })
}

#[async_trait]
impl LoadExecutor for AttemptExecutor {
    async fn run(&mut self, load: &mut dyn Load) -> Result<(), Error> {
        let cancel = self.context.cancel.clone();
        let token = cancel.child_token();
        // What is still running when this returns is cancelled, with the calls it made.
        let _cancels_the_rest = token.clone().drop_guard();
        let attempts = FuturesUnordered::new();
        let run = AttemptRun { executor: self, token, attempts, open: HashMap::new(), lost: None };
        run.drive(load, &cancel).await
    }

    fn warnings(&self) -> Vec<String> {
        let Some(server) = self.provider.as_server() else { return Vec::new() };
        let status = server.status();
        status.warnings.iter().map(|warning| format!("{}: {warning}", status.name)).collect()
    }
}

struct AttemptRun<'a> {
    executor: &'a mut AttemptExecutor,
    token: CancellationToken,
    attempts: FuturesUnordered<BoxFuture<'static, FinishedAttempt>>,
    /// When each call in flight was started, by its ticket.
    open: HashMap<u64, Instant>,
    /// Why no more is sent: the connection is gone.
    lost: Option<Error>,
}

impl AttemptRun<'_> {
    /// Makes the calls of `load` until it is done, `cancel` fires, the connection is lost, or the
    /// load waits no longer for calls in flight.
    async fn drive(mut self, load: &mut dyn Load, cancel: &CancellationToken) -> Result<(), Error> {
        let wakeup = load.wakeup();
        let mut notified = pin!(wakeup.notified());
        let mut cancelled = pin!(cancel.cancelled());
        let mut pacer = Pacer::new();
        loop {
            let wait = self.start_due(load);
            let (next, end) = match wait {
                LoadDecision::WaitUntil(moment) => (Some(moment), None),
                LoadDecision::Drain(moment) => (None, Some(moment)),
                LoadDecision::Send(_) | LoadDecision::WaitForWakeup => (None, None),
            };
            if self.attempts.is_empty() {
                if let Some(error) = self.lost {
                    return Err(error);
                }
                if end.is_some() {
                    return Ok(());
                }
            }
            let finished = tokio::select! {
                biased;
                () = &mut cancelled => {
                    self.abandon(load);
                    return Ok(());
                }
                finished = self.next_finished() => Some(finished),
                () = &mut notified => {
                    notified.set(wakeup.notified());
                    None
                }
                () = until(end) => None,
                () = pacer.until(next.unwrap_or_else(|| load.now())), if next.is_some() => None,
            };
            if let Some(finished) = finished {
                self.report(finished, load);
            }
            if end.is_some_and(|moment| load.now() >= moment) {
                self.abandon(load);
                return Ok(());
            }
        }
    }

    /// Starts what is due; what to wait for then.
    fn start_due(&mut self, load: &mut dyn Load) -> LoadDecision {
        while self.lost.is_none() {
            let now = load.now();
            match load.next(now) {
                LoadDecision::Send(request) => {
                    let now = || load.now();
                    let (sent_at, attempt) = self.executor.start(&request, now, &self.token);
                    self.open.insert(request.ticket, sent_at);
                    self.attempts.push(attempt);
                }
                wait => return wait,
            }
        }
        LoadDecision::WaitForWakeup
    }

    async fn next_finished(&mut self) -> FinishedAttempt {
        // Tools that answer at once would leave no time for other tasks of this thread.
        tokio::task::coop::consume_budget().await;
        match self.attempts.next().await {
            Some(finished) => finished,
            None => pending().await,
        }
    }

    fn report(&mut self, finished: FinishedAttempt, load: &mut dyn Load) {
        let FinishedAttempt { ticket, sent_at, ended_at, result, bytes_out } = finished;
        let ended_at = ended_at.unwrap_or_else(|| load.now());
        self.open.remove(&ticket);
        if let Err(error) = &result
            && self.executor.is_lost(error)
        {
            self.lost.get_or_insert_with(|| error.clone());
        }
        let (outcome, bytes_in) = self.executor.classify(result);
        load.on_completed(CompletedRequest {
            ticket,
            sent_at,
            ended_at,
            bytes_out,
            bytes_in,
            outcome,
        });
    }

    fn abandon(&mut self, load: &mut dyn Load) {
        let now = load.now();
        for (ticket, sent_at) in std::mem::take(&mut self.open) {
            load.on_completed(CompletedRequest::unanswered(ticket, sent_at, now));
        }
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment.into()).await,
        None => pending().await,
    }
}
