//! Carries calls for kinds of tools that have no way of their own for many: one attempt of the
//! provider for each call, so many at once.
//!
//! Owns: the attempts in flight and their limit. Never does: check arguments, ask, retry or record;
//! what is measured is the tool, with as little around it as is honest.

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
    BenchRequest, CompletedRequest, EncodedArguments, Load, LoadDecision, LoadExecutor, LoadJob,
    LoadOutcome,
};
use crate::util::pacer::Pacer;
use crate::util::units::show_duration;

/// How much of what a tool said is kept, in characters.
const WORDS: usize = 300;

/// Attempts of a provider, side by side.
pub(super) struct AttemptExecutor {
    provider: Arc<dyn ToolProvider>,
    job: LoadJob,
    /// What calls that have ended left for later ones.
    idle: Vec<AttemptSlot>,
    /// Answers that were read.
    answer_count: u64,
}

/// What a call needs beside its arguments, used again and again.
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
        Self { provider, job, idle: Vec::new(), answer_count: 0 }
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
                        let words = format!("no answer within {}", show_duration(limit));
                        (Err(Error::timeout(words)), Some(sent + limit))
                    }
                }
            };
            FinishedAttempt { ticket, sent_at: sent, ended_at: at, result, lane }
        })
    }

    fn classify(&mut self, result: Result<ToolResult, Error>) -> (LoadOutcome, u64) {
        let result = match result {
            Ok(result) => result,
            Err(error) => return (LoadOutcome::Failed(Box::new(error)), 0),
        };
        let bytes = content::size(&result);
        if !result.success {
            let words = result.error.as_ref().map_or("the tool said no", Error::message);
            // The cut shows, also to whoever looks for secrets beside it.
            let words = match words.char_indices().nth(WORDS) {
                Some((at, _)) => format!("{}…", words.get(..at).unwrap_or_default()).into(),
                None => words.into(),
            };
            return (LoadOutcome::ToolError(words), bytes);
        }
        let number = self.answer_count;
        self.answer_count += 1;
        let inspection = self.job.inspection.as_ref();
        let wrong = inspection
            .filter(|inspection| number.is_multiple_of(inspection.every.max(1)))
            .and_then(|inspection| inspection.inspector.inspect(&result));
        (wrong.map_or(LoadOutcome::Ok, |error| LoadOutcome::Failed(Box::new(error))), bytes)
    }
}

#[async_trait]
impl LoadExecutor for AttemptExecutor {
    async fn run(&mut self, load: &mut dyn Load) -> Result<(), Error> {
        let (wakeup, mut pacer) = (load.wakeup(), Pacer::new());
        let cancel = self.job.context.cancel.clone();
        let run = cancel.child_token();
        // Whatever is still running when this returns is told, also by those who work for it.
        let _tells = run.clone().drop_guard();
        let mut flying: FuturesUnordered<BoxFuture<'static, FinishedAttempt>> =
            FuturesUnordered::new();
        let mut open: HashMap<u64, Instant> = HashMap::new();
        loop {
            // Tools that answer at once would leave no time for anybody else on this thread.
            tokio::task::coop::consume_budget().await;
            let until = loop {
                match load.next(load.now()) {
                    LoadDecision::Send(request) => {
                        let sent = load.now();
                        open.insert(request.ticket, sent);
                        flying.push(self.start(&request, sent, &run));
                    }
                    LoadDecision::WaitUntil(moment) => break Some((moment, false)),
                    LoadDecision::WaitForWakeup => break None,
                    LoadDecision::Drain(_) if flying.is_empty() => return Ok(()),
                    LoadDecision::Drain(moment) => break Some((moment, true)),
                }
            };
            tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    give_up(load, open);
                    return Ok(());
                }
                Some(ended) = flying.next() => {
                    let FinishedAttempt { ticket, sent_at, ended_at, result, lane } = ended;
                    let at = ended_at.unwrap_or_else(|| load.now());
                    open.remove(&ticket);
                    self.idle.push(lane);
                    let (verdict, bytes_in) = self.classify(result);
                    load.on_completed(CompletedRequest { ticket, sent_at, ended_at: at, bytes_out: 0, bytes_in, outcome: verdict });
                }
                () = wakeup.notified() => {}
                () = wait(&mut pacer, until.map(|(moment, _)| moment)) => {
                    if until.is_some_and(|(moment, last)| last && load.now() >= moment) {
                        give_up(load, open);
                        return Ok(());
                    }
                }
            }
        }
    }
}

fn give_up(load: &mut dyn Load, open: HashMap<u64, Instant>) {
    let at = load.now();
    for (ticket, sent) in open {
        load.on_completed(CompletedRequest::unanswered(ticket, sent, at));
    }
}

async fn wait(pacer: &mut Pacer, moment: Option<Instant>) {
    match moment {
        Some(moment) => pacer.until(moment).await,
        None => pending().await,
    }
}
