//! The load executor for kinds of tools without their own: one provider attempt per call, several
//! at once.

use std::collections::HashMap;
use std::future::pending;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio_util::sync::CancellationToken;

use crate::host::{content, limits};
use crate::model::{Error, ToolCall, ToolContext, ToolResult};
use crate::provider::ToolProvider;
use crate::provider::load::{
    AnswerSampler, BenchRequest, CompletedRequest, EncodedArguments, Load, LoadExecutor, LoadJob,
    LoadOutcome, LoadTransport, LoadWait, drive, split_decision, tool_error,
};
use crate::util::units::show_duration;

/// Attempts of a provider, side by side.
pub(super) struct AttemptExecutor {
    provider: Arc<dyn ToolProvider>,
    job: LoadJob,
    /// What calls that have ended left for later ones.
    idle: Vec<AttemptSlot>,
    sampler: AnswerSampler,
}

/// What a call needs besides its arguments, reused for every call.
struct AttemptSlot {
    context: ToolContext,
    call: ToolCall,
    /// Whose object the call has.
    payload: Option<Arc<EncodedArguments>>,
}

/// A call that has ended.
struct FinishedAttempt {
    ticket: u64,
    sent_at: Instant,
    /// When a limit fired; else it ended when that is noticed.
    ended_at: Option<Instant>,
    result: Result<ToolResult, Error>,
    lane: AttemptSlot,
}

impl AttemptExecutor {
    pub(super) fn new(provider: Arc<dyn ToolProvider>, job: LoadJob) -> Self {
        let sampler = AnswerSampler::new(job.inspection.clone());
        Self { provider, job, idle: Vec::new(), sampler }
    }

    /// A lane for these arguments, which ends with `run`.
    fn lane(&mut self, arguments: &Arc<EncodedArguments>, run: &CancellationToken) -> AttemptSlot {
        let mut lane = self.idle.pop().unwrap_or_else(|| {
            let call =
                ToolCall { name: self.job.tool.clone(), arguments: arguments.object.clone() };
            let context = ToolContext { cancel: run.child_token(), ..self.job.context.clone() };
            AttemptSlot { context, call, payload: Some(Arc::clone(arguments)) }
        });
        if lane.context.cancel.is_cancelled() {
            lane.context.cancel = run.child_token();
        }
        if !lane.payload.as_ref().is_some_and(|before| Arc::ptr_eq(before, arguments)) {
            lane.call.arguments.clone_from(&arguments.object);
            lane.payload = Some(Arc::clone(arguments));
        }
        lane
    }

    fn start(
        &mut self,
        request: &BenchRequest,
        sent: Instant,
        run: &CancellationToken,
    ) -> BoxFuture<'static, FinishedAttempt> {
        let lane = self.lane(&request.arguments, run);
        let provider = Arc::clone(&self.provider);
        let (ticket, limit) = (request.ticket, self.job.timeout);
        Box::pin(async move {
            let (result, at) = {
                let call = provider.call(&lane.context, &lane.call);
                let mut work = pin!(AssertUnwindSafe(call).catch_unwind());
                match tokio::time::timeout(limit, &mut work).await {
                    Ok(Ok(result)) => (result, None),
                    Ok(Err(_panic)) => {
                        (Err(Error::internal("the code behind the tool panicked")), None)
                    }
                    Err(_elapsed) => {
                        lane.context.cancel.cancel();
                        // The lane is not free before the tool has let go.
                        let _last = tokio::time::timeout(limits::STOP_GRACE_PERIOD, work).await;
                        let message = format!("no response within {}", show_duration(limit));
                        (Err(Error::timeout(message)), Some(sent + limit))
                    }
                }
            };
            FinishedAttempt { ticket, sent_at: sent, ended_at: at, result, lane }
        })
    }

    fn classify(&mut self, result: Result<ToolResult, Error>) -> (LoadOutcome, u64) {
        let failed = |error| LoadOutcome::Failed(Box::new(error));
        let result = match result {
            Ok(result) => result,
            Err(error) => return (failed(error), 0),
        };
        let bytes = content::size(&result);
        if !result.success {
            return (tool_error(&result), bytes);
        }
        let inspection = self.sampler.sample();
        let wrong = inspection.and_then(|inspection| inspection.inspector.inspect(&result));
        (wrong.map_or(LoadOutcome::Ok, failed), bytes)
    }
}

#[async_trait]
impl LoadExecutor for AttemptExecutor {
    async fn run(&mut self, load: &mut dyn Load) -> Result<(), Error> {
        let cancel = self.job.context.cancel.clone();
        let run = cancel.child_token();
        // What is still running when this returns is cancelled, with the calls it made.
        let _cancels_the_rest = run.clone().drop_guard();
        let mut transport = AttemptTransport {
            executor: self,
            run: &run,
            flying: FuturesUnordered::new(),
            open: HashMap::new(),
        };
        drive(&mut transport, load, &cancel).await
    }
}

/// The attempts of one run.
struct AttemptTransport<'a> {
    executor: &'a mut AttemptExecutor,
    run: &'a CancellationToken,
    flying: FuturesUnordered<BoxFuture<'static, FinishedAttempt>>,
    /// When each call in flight was started, by its ticket.
    open: HashMap<u64, Instant>,
}

impl LoadTransport for AttemptTransport<'_> {
    type Event = FinishedAttempt;

    fn send_due(&mut self, load: &mut dyn Load) -> LoadWait {
        loop {
            let request = match split_decision(load.next(load.now())) {
                Ok(request) => request,
                Err(wait) => return wait,
            };
            let sent = load.now();
            self.open.insert(request.ticket, sent);
            self.flying.push(self.executor.start(&request, sent, self.run));
        }
    }

    fn is_idle(&self) -> bool {
        self.flying.is_empty()
    }

    /// Each attempt has its own timer.
    fn next_deadline(&self) -> Option<Instant> {
        None
    }

    async fn wait(&mut self) -> FinishedAttempt {
        // Tools that answer at once would leave no time for other tasks of this thread.
        tokio::task::coop::consume_budget().await;
        match self.flying.next().await {
            Some(finished) => finished,
            None => pending().await,
        }
    }

    fn on_wake(
        &mut self,
        event: Option<FinishedAttempt>,
        load: &mut dyn Load,
    ) -> Result<(), Error> {
        let Some(finished) = event else { return Ok(()) };
        let FinishedAttempt { ticket, sent_at, ended_at, result, lane } = finished;
        let ended_at = ended_at.unwrap_or_else(|| load.now());
        self.open.remove(&ticket);
        self.executor.idle.push(lane);
        let (outcome, bytes_in) = self.executor.classify(result);
        load.on_completed(CompletedRequest {
            ticket,
            sent_at,
            ended_at,
            bytes_out: 0,
            bytes_in,
            outcome,
        });
        Ok(())
    }

    fn abandon(&mut self, load: &mut dyn Load, _reason: &str) {
        let at = load.now();
        for (ticket, sent) in std::mem::take(&mut self.open) {
            load.on_completed(CompletedRequest::unanswered(ticket, sent, at));
        }
    }
}
