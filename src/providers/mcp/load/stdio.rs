//! Many calls over the pipes of a server that is a child process.
//!
//! Owns: the loop between a [`Load`] and the wire, and the limit on each call. Never does: pace or
//! count (the load does), judge an answer (`judge`), or know what a request looks like (the `mcp`
//! room does).
//!
//! What a time means here: a call was sent when the batch it is part of was handed to the pipe, and
//! answered when the piece of the pipe that holds the end of its answer was read. Reading and
//! judging the answer comes after that. A call that waits in our buffer because the server does not
//! read counts as sent.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::time::{Sleep, sleep};
use tokio_util::sync::CancellationToken;

use super::super::CachedServerState;
use super::RootsGuard;
use super::response_classifier::ResponseClassifier;
use crate::mcp::repeat::answer;
use crate::mcp::repeat::in_flight::InFlightCall;
use crate::mcp::repeat::stdio_run::{AnswerBody, StdioLane, StdioRun};
use crate::model::Error;
use crate::provider::load::{
    BenchRequest, CompletedRequest, Load, LoadDecision, LoadExecutor, LoadJob, LoadOutcome,
};
use crate::util::pacer::Pacer;
use crate::util::units::show_duration;

/// Carries calls over the pipes of a server.
pub(super) struct StdioExecutor {
    lane: StdioLane,
    concurrency: usize,
    limit: Duration,
    cancel: CancellationToken,
    roots_guard: Option<RootsGuard>,
    classifier: ResponseClassifier,
    worked: Arc<AtomicBool>,
    known: Arc<Mutex<CachedServerState>>,
}

/// What a load wants, when no further call is due.
#[derive(Clone, Copy)]
enum StdioWait {
    /// Until this moment.
    NextRequest(Instant),
    /// Until something happens.
    Indefinitely,
    /// For ever; what is in flight may end until this moment.
    DrainDeadline(Instant),
}

impl StdioExecutor {
    pub(super) fn new(
        lane: StdioLane,
        job: &LoadJob,
        roots_guard: Option<RootsGuard>,
        worked: Arc<AtomicBool>,
        known: Arc<Mutex<CachedServerState>>,
    ) -> Self {
        let server = lane.connection().name().to_owned();
        Self {
            lane,
            concurrency: job.concurrency,
            limit: job.timeout,
            cancel: job.context.cancel.clone(),
            roots_guard,
            classifier: ResponseClassifier::new(&server, job.inspection.clone()),
            worked,
            known,
        }
    }
}

#[async_trait]
impl LoadExecutor for StdioExecutor {
    async fn run(&mut self, load: &mut dyn Load) -> Result<(), Error> {
        let Self {
            lane,
            concurrency: lanes,
            limit,
            cancel,
            roots_guard,
            classifier: judge,
            worked,
            known,
        } = self;
        let limit = *limit;
        let failed = |error: Error| {
            known.lock().unwrap_or_else(PoisonError::into_inner).health.record_failure(&error);
            error
        };
        let begun = lane.start(*lanes, load.now()).await;
        let mut run = begun.map_err(|error| failed(judge.with_server(error)))?;
        let wakeup = load.wakeup();
        let mut notified = pin!(wakeup.notified());
        let mut cancelled = pin!(cancel.cancelled());
        let mut alarm = DeadlineTimer { sleep: pin!(sleep(Duration::ZERO)), set: None };
        let mut pacer = Pacer::new();
        loop {
            let pause = send_due(&mut run, load, roots_guard.as_mut());
            run.flush(load.now());
            if matches!(pause, StdioWait::DrainDeadline(_)) && run.in_flight() == 0 {
                return Ok(());
            }
            let late = run.oldest().and_then(|flight| flight.sent.checked_add(limit));
            let over =
                if let StdioWait::DrainDeadline(moment) = pause { Some(moment) } else { None };
            alarm.set(late.into_iter().chain(over).min(), load);
            tokio::select! {
                biased;
                () = &mut cancelled => {
                    abandon(&mut run, load, "the run was given up");
                    return Ok(());
                }
                () = run.wait() => {}
                () = &mut notified => notified.set(wakeup.notified()),
                () = paced(&mut pacer, pause) => {}
                () = alarm.sleep.as_mut(), if alarm.set.is_some() => alarm.set = None,
            }
            let at = load.now();
            run.take_answers(at, |landing| {
                let (flight, bytes_in) = (landing.call, as_u64(landing.bytes));
                let verdict = match landing.answer {
                    AnswerBody::Plain(line) => judge.classify(true, || answer::read_outcome(line)),
                    AnswerBody::Parsed(outcome) => judge.classify(false, || outcome),
                };
                if matches!(verdict, LoadOutcome::Ok) && !worked.load(Ordering::Relaxed) {
                    worked.store(true, Ordering::Relaxed);
                }
                load.on_completed(CompletedRequest { bytes_in, ..ended(flight, at, verdict) });
            });
            while run.oldest().is_some_and(|flight| at.duration_since(flight.sent) >= limit) {
                let text = format!("no answer within {}", show_duration(limit));
                let Some(flight) = run.cancel_oldest(&text) else { break };
                let error = judge.with_server(Error::timeout(text));
                load.on_completed(ended(flight, at, LoadOutcome::Failed(Box::new(error))));
            }
            if let Some(error) = run.close_reason() {
                let error = judge.with_server(error);
                while let Some(flight) = run.drop_oldest() {
                    let verdict = LoadOutcome::Failed(Box::new(error.clone()));
                    load.on_completed(ended(flight, at, verdict));
                }
                return Err(failed(error));
            }
            if over.is_some_and(|moment| at >= moment) {
                abandon(&mut run, load, "the run is over");
                return Ok(());
            }
        }
    }

    fn warnings(&self) -> Vec<String> {
        let server = self.classifier.server();
        let doubts = self.lane.connection().protocol_warnings().into_iter();
        doubts.map(|doubt| format!("{server}: {doubt}")).collect()
    }
}

/// Takes from the load what is due now, as far as there is room for it.
fn send_due(
    run: &mut StdioRun<'_>,
    load: &mut dyn Load,
    mut roots_guard: Option<&mut RootsGuard>,
) -> StdioWait {
    let now = load.now();
    while run.has_room() {
        match load.next(now) {
            LoadDecision::Send(BenchRequest { ticket, arguments }) => {
                let checked = roots_guard
                    .as_mut()
                    .map_or(Ok(()), |roots_guard| roots_guard.check(&arguments));
                match checked {
                    Ok(()) => run.send(ticket, &arguments.json),
                    Err(error) => {
                        let (at, verdict) = (load.now(), LoadOutcome::Failed(Box::new(error)));
                        load.on_completed(CompletedRequest {
                            outcome: verdict,
                            ..CompletedRequest::unanswered(ticket, at, at)
                        });
                    }
                }
            }
            LoadDecision::WaitUntil(moment) => return StdioWait::NextRequest(moment),
            LoadDecision::WaitForWakeup => return StdioWait::Indefinitely,
            LoadDecision::Drain(moment) => return StdioWait::DrainDeadline(moment),
        }
    }
    StdioWait::Indefinitely
}

/// Ends whatever is in flight without an answer, and tells the server as far as it listens.
fn abandon(run: &mut StdioRun<'_>, load: &mut dyn Load, why: &str) {
    let at = load.now();
    while let Some(flight) = run.cancel_oldest(why) {
        load.on_completed(ended(flight, at, LoadOutcome::Unanswered));
    }
    run.flush(at);
}

fn ended(flight: InFlightCall, at: Instant, verdict: LoadOutcome) -> CompletedRequest {
    let InFlightCall { ticket, sent, bytes, .. } = flight;
    CompletedRequest {
        ticket,
        sent_at: sent,
        ended_at: at,
        bytes_out: as_u64(bytes),
        bytes_in: 0,
        outcome: verdict,
    }
}

fn as_u64(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

async fn paced(pacer: &mut Pacer, pause: StdioWait) {
    match pause {
        StdioWait::NextRequest(moment) => pacer.until(moment).await,
        StdioWait::Indefinitely | StdioWait::DrainDeadline(_) => std::future::pending().await,
    }
}

/// One timer for moments that mostly are put off before they come.
struct DeadlineTimer<'a> {
    sleep: std::pin::Pin<&'a mut Sleep>,
    /// When it goes off.
    set: Option<Instant>,
}

impl DeadlineTimer<'_> {
    /// Goes off at this moment or before it.
    fn set(&mut self, moment: Option<Instant>, load: &dyn Load) {
        let Some(moment) = moment else { return };
        if self.set.is_none_or(|set| moment < set) {
            let left = moment.saturating_duration_since(load.now());
            self.sleep.as_mut().reset(tokio::time::Instant::now() + left);
            self.set = Some(moment);
        }
    }
}
