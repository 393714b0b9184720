//! Benchmark load over the pipes of a stdio server.
//!
//! What a time means here: a call was sent when the batch it is part of was handed to the pipe, and
//! answered when the piece of the pipe that holds the end of its answer was read. Reading and
//! judging the answer comes after that. A call that waits in our buffer because the server does not
//! read counts as sent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::super::CachedServerState;
use super::RootsGuard;
use super::response_classifier::ResponseClassifier;
use crate::mcp::repeat::answer;
use crate::mcp::repeat::in_flight::InFlightCall;
use crate::mcp::repeat::stdio_run::{AnswerBody, StdioLane, StdioRun};
use crate::model::Error;
use crate::provider::load::{
    BenchRequest, CompletedRequest, Load, LoadExecutor, LoadJob, LoadOutcome, LoadTransport,
    LoadWait, drive, split_decision,
};
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
    cached: Arc<Mutex<CachedServerState>>,
}

impl StdioExecutor {
    pub(super) fn new(
        lane: StdioLane,
        job: &LoadJob,
        roots_guard: Option<RootsGuard>,
        worked: Arc<AtomicBool>,
        cached: Arc<Mutex<CachedServerState>>,
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
            cached,
        }
    }
}

#[async_trait]
impl LoadExecutor for StdioExecutor {
    async fn run(&mut self, load: &mut dyn Load) -> Result<(), Error> {
        let cached = Arc::clone(&self.cached);
        let record_failure = |error: &Error| {
            cached.lock().unwrap_or_else(PoisonError::into_inner).health.record_failure(error);
        };
        let begun = self.lane.start(self.concurrency, load.now()).await;
        let run = begun
            .map_err(|error| self.classifier.with_server(error))
            .inspect_err(record_failure)?;
        let mut transport = StdioTransport {
            run,
            limit: self.limit,
            roots_guard: self.roots_guard.as_mut(),
            classifier: &mut self.classifier,
            worked: &self.worked,
        };
        drive(&mut transport, load, &self.cancel).await.inspect_err(record_failure)
    }

    fn warnings(&self) -> Vec<String> {
        let server = self.classifier.server();
        let warnings = self.lane.connection().protocol_warnings().into_iter();
        warnings.map(|warning| format!("{server}: {warning}")).collect()
    }
}

/// The pipes of a server during one run.
struct StdioTransport<'a> {
    run: StdioRun<'a>,
    /// How long an answer is waited for.
    limit: Duration,
    roots_guard: Option<&'a mut RootsGuard>,
    classifier: &'a mut ResponseClassifier,
    /// Set by the first call that succeeds.
    worked: &'a AtomicBool,
}

impl LoadTransport for StdioTransport<'_> {
    type Event = ();

    fn send_due(&mut self, load: &mut dyn Load) -> LoadWait {
        let wait = self.take_due(load);
        self.run.flush(load.now());
        wait
    }

    fn is_idle(&self) -> bool {
        self.run.in_flight() == 0
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.run.oldest().and_then(|flight| flight.sent.checked_add(self.limit))
    }

    async fn wait(&mut self) {
        self.run.wait().await;
    }

    fn on_wake(&mut self, _event: Option<()>, load: &mut dyn Load) -> Result<(), Error> {
        let at = load.now();
        let (classifier, worked) = (&mut *self.classifier, self.worked);
        self.run.take_answers(at, |landing| {
            let (flight, bytes_in) = (landing.call, as_u64(landing.bytes));
            let outcome = match landing.answer {
                AnswerBody::Plain(line) => classifier.classify(true, || answer::read_outcome(line)),
                AnswerBody::Parsed(outcome) => classifier.classify(false, || outcome),
            };
            if matches!(outcome, LoadOutcome::Ok) && !worked.load(Ordering::Relaxed) {
                worked.store(true, Ordering::Relaxed);
            }
            load.on_completed(CompletedRequest { bytes_in, ..ended(flight, at, outcome) });
        });
        while self.run.oldest().is_some_and(|flight| at.duration_since(flight.sent) >= self.limit) {
            let text = format!("no response within {}", show_duration(self.limit));
            let Some(flight) = self.run.cancel_oldest(&text) else { break };
            let error = self.classifier.with_server(Error::timeout(text));
            load.on_completed(ended(flight, at, LoadOutcome::Failed(Box::new(error))));
        }
        let Some(error) = self.run.close_reason() else { return Ok(()) };
        let error = self.classifier.with_server(error);
        while let Some(flight) = self.run.drop_oldest() {
            let outcome = LoadOutcome::Failed(Box::new(error.clone()));
            load.on_completed(ended(flight, at, outcome));
        }
        Err(error)
    }

    /// The server is notified as well, if it still reads.
    fn abandon(&mut self, load: &mut dyn Load, reason: &str) {
        let at = load.now();
        while let Some(flight) = self.run.cancel_oldest(reason) {
            load.on_completed(ended(flight, at, LoadOutcome::Unanswered));
        }
        self.run.flush(at);
    }
}

impl StdioTransport<'_> {
    /// Takes from the load what is due now, as far as there is room.
    fn take_due(&mut self, load: &mut dyn Load) -> LoadWait {
        let now = load.now();
        while self.run.has_room() {
            let BenchRequest { ticket, arguments } = match split_decision(load.next(now)) {
                Ok(request) => request,
                Err(wait) => return wait,
            };
            let guard = self.roots_guard.as_mut();
            match guard.map_or(Ok(()), |guard| guard.check(&arguments)) {
                Ok(()) => self.run.send(ticket, &arguments.json),
                Err(error) => {
                    let outcome = LoadOutcome::Failed(Box::new(error));
                    load.on_completed(CompletedRequest::unsent(ticket, load.now(), outcome));
                }
            }
        }
        LoadWait::Indefinitely
    }
}

fn ended(flight: InFlightCall, at: Instant, outcome: LoadOutcome) -> CompletedRequest {
    let InFlightCall { ticket, sent, bytes, .. } = flight;
    CompletedRequest {
        ticket,
        sent_at: sent,
        ended_at: at,
        bytes_out: as_u64(bytes),
        bytes_in: 0,
        outcome,
    }
}

fn as_u64(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
