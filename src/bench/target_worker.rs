//! The worker of one target: connects, opens the load, and reports the results.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::task::coop::consume_budget;
use tokio_util::sync::CancellationToken;

use super::control::{RunControl, RunMonitor};
use super::meter::{Meter, PendingCall};
use super::plan::{ArgumentRows, BenchPlan};
use super::report::{TargetReport, throughput};
use super::scheduler::{ScheduleDecision, Scheduler};
use crate::host::load::{CompletedCall, LoadExecutor, LoadOutcome, LoadRunRecord, LoadTarget};
use crate::host::retry;
use crate::model::{Error, RetryAdvice};
use crate::util::clock::Clock;
use crate::util::lock::lock;

const MAX_RECONNECTS: u64 = 100;
/// How often it is tried in a row without success.
const MAX_CONNECT_ATTEMPTS: u32 = 3;

#[async_trait]
pub(super) trait ToolConnector: Send + Sync {
    fn tool(&self) -> String;

    /// The tool of a host; simulated ones have none.
    fn load_target(&self) -> Option<&LoadTarget> {
        None
    }

    async fn open(&self) -> Result<Box<dyn LoadExecutor>, Error>;
}

#[async_trait]
impl ToolConnector for LoadTarget {
    fn tool(&self) -> String {
        self.definition().name.full()
    }

    fn load_target(&self) -> Option<&LoadTarget> {
        Some(self)
    }

    async fn open(&self) -> Result<Box<dyn LoadExecutor>, Error> {
        self.executor().await
    }
}

#[derive(Clone)]
pub(super) struct BenchTarget {
    pub(super) connector: Arc<dyn ToolConnector>,
    pub(super) arguments: ArgumentRows,
}

/// What the targets of a run share.
#[derive(Clone)]
pub(super) struct RunHandles {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) control: RunControl,
    pub(super) monitor: RunMonitor,
}

pub(super) struct TargetWorker {
    target: BenchTarget,
    handles: RunHandles,
    pub(super) meter: Arc<Mutex<Meter>>,
    /// Of a run in steps: the calls in flight of this one.
    pub(super) step: Option<usize>,
    pub(super) is_repeated: bool,
    executor: Option<Box<dyn LoadExecutor>>,
    connect_time: Duration,
    restarts: u64,
    pub(super) error: Option<Error>,
    protocol_warnings: Vec<String>,
    record: Option<RunRecordGuard>,
    /// Calls that were ever sent.
    sent: u64,
    in_flight: BTreeMap<u64, PendingCall>,
}

impl TargetWorker {
    pub(super) async fn open(
        target: BenchTarget,
        name: String,
        handles: RunHandles,
    ) -> Result<Self, Error> {
        let meter: Arc<Mutex<Meter>> = Arc::default();
        handles.monitor.lock().targets.push((name, Arc::clone(&meter)));
        let from = handles.clock.now();
        let executor = Some(target.connector.open().await?);
        let connect_time = handles.clock.now().saturating_duration_since(from);
        Ok(Self {
            target,
            handles,
            meter,
            step: None,
            is_repeated: false,
            executor,
            connect_time,
            restarts: 0,
            error: None,
            protocol_warnings: Vec::new(),
            record: None,
            sent: 0,
            in_flight: BTreeMap::new(),
        })
    }

    /// Writes down what is about to be done.
    pub(super) fn begin(&mut self, planned: &str) -> Result<(), Error> {
        let Some(target) = self.target.connector.load_target() else { return Ok(()) };
        let record = target.record(&self.target.arguments.of_call(0).call.arguments, planned)?;
        let meter = Arc::clone(&self.meter);
        self.record = Some(RunRecordGuard { record: Some(record), meter });
        Ok(())
    }

    /// Ends the run at once, if it can be ended so.
    fn cancel(&self) -> CancellationToken {
        let target = self.target.connector.load_target();
        target.map_or_else(CancellationToken::new, |target| target.cancel().clone())
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel().is_cancelled()
    }

    /// Makes the calls of a plan, and whether they count, until none is left or the connection is
    /// lost for good.
    pub(super) async fn run(&mut self, plan: (BenchPlan, bool)) -> Scheduler {
        let RunHandles { control, monitor, .. } = self.handles.clone();
        let mut scheduler = Scheduler::new(plan, control, monitor, Arc::clone(&self.meter));
        while let Some(mut executor) = self.executor.take() {
            let before = self.answered();
            let made = self.make_calls(&mut *executor, &mut scheduler).await;
            self.executor = Some(executor);
            let Err(error) = made else { break };
            self.close();
            if scheduler.is_done(self.handles.clock.now()) || self.is_cancelled() {
                break;
            }
            let has_worked = self.answered() > before;
            if !has_worked || self.restarts >= MAX_RECONNECTS {
                self.error = Some(error);
                break;
            }
            match self.reopen(error).await {
                Ok(true) => scheduler.reconnected(self.handles.clock.now()),
                Ok(false) => break,
                Err(error) => self.error = Some(error),
            }
        }
        scheduler
    }

    /// Makes calls until nothing is left to do, the run is cancelled, or it waits no longer for
    /// calls in flight. Fails when the connection is lost.
    async fn make_calls(
        &mut self,
        executor: &mut dyn LoadExecutor,
        scheduler: &mut Scheduler,
    ) -> Result<(), Error> {
        let clock = Arc::clone(&self.handles.clock);
        let cancel = self.cancel();
        let mut changes = self.handles.control.changes();
        let mut calls = FuturesUnordered::new();
        loop {
            let lost = executor.lost();
            let mut decision = ScheduleDecision::Wait(None);
            while lost.is_none() {
                decision = scheduler.next(clock.now(), self.in_flight.len());
                let ScheduleDecision::Send(planned) = decision else { break };
                let number = self.sent;
                let (sent_at, call) = executor.call(self.target.arguments.of_call(number));
                calls.push(call.map(move |end| (number, end)));
                let pending = PendingCall { planned, is_first: number == 0, sent_at };
                lock(&self.meter).call_sent(&pending);
                self.in_flight.insert(number, pending);
                self.sent += 1;
            }
            if calls.is_empty() {
                match (lost, decision) {
                    (Some(error), _) => return Err(error),
                    (None, ScheduleDecision::Drain(_)) => return Ok(()),
                    _ => {}
                }
            }
            let (moment, patience) = match decision {
                ScheduleDecision::Drain(deadline) => (Some(deadline), Some(deadline)),
                ScheduleDecision::Wait(moment) => (moment, None),
                ScheduleDecision::Send(_) => (None, None),
            };
            let next_end = async {
                // Tools that answer at once would leave no time for other tasks of this thread.
                consume_budget().await;
                calls.next().await
            };
            tokio::select! {
                biased;
                () = cancel.cancelled() => break,
                Some((number, end)) = next_end => self.call_ended(number, &end, scheduler),
                _ = changes.changed() => {}
                () = until(executor, moment) => {}
            }
            if patience.is_some_and(|deadline| clock.now() >= deadline) {
                break;
            }
        }
        let ended_at = clock.now();
        let outcome = LoadOutcome::Unanswered;
        let end = CompletedCall { ended_at, bytes_out: 0, bytes_in: 0, outcome };
        while let Some((&number, _)) = self.in_flight.first_key_value() {
            self.call_ended(number, &end, scheduler);
        }
        Ok(())
    }

    fn call_ended(&mut self, number: u64, end: &CompletedCall, scheduler: &mut Scheduler) {
        let Some(call) = self.in_flight.remove(&number) else { return };
        lock(&self.meter).call_ended(&call, end);
        let has_failed = !matches!(end.outcome, LoadOutcome::Ok | LoadOutcome::Unanswered);
        let has_failed = has_failed && call.planned.is_counted;
        scheduler.call_ended(end.ended_at, has_failed, self.in_flight.len());
    }

    /// How many calls the tool answered, with a result or an error.
    fn answered(&self) -> u64 {
        let meter = lock(&self.meter);
        meter.report.ok + meter.report.tool_errors + meter.warm_up_answered
    }

    /// Opens the connector again; says no when the run was ended meanwhile.
    async fn reopen(&mut self, mut error: Error) -> Result<bool, Error> {
        for attempt in 1..=MAX_CONNECT_ATTEMPTS {
            let Some(pause) = pause(error.retry_advice(), attempt) else { return Err(error) };
            let work = async {
                if !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
                self.target.connector.open().await
            };
            let opened = tokio::select! {
                biased;
                () = self.handles.control.stopped() => return Ok(false),
                opened = work => opened,
            };
            match opened {
                Ok(executor) => {
                    self.restarts += 1;
                    self.executor = Some(executor);
                    return Ok(true);
                }
                Err(_) if self.is_cancelled() => return Ok(false),
                Err(next) => error = next,
            }
        }
        Err(error)
    }

    pub(super) fn is_open(&self) -> bool {
        self.executor.is_some() && self.error.is_none()
    }

    /// Releases the connector and keeps the oddities it reported.
    pub(super) fn close(&mut self) {
        let Some(executor) = self.executor.take() else { return };
        for doubt in executor.warnings() {
            if !self.protocol_warnings.contains(&doubt) {
                self.protocol_warnings.push(doubt);
            }
        }
    }

    pub(super) fn into_report(self) -> TargetReport {
        let meter = lock(&self.meter).clone();
        let target = self.target.connector.load_target();
        let masked =
            |text: &str| target.map_or_else(|| text.to_owned(), |target| target.masked(text));
        // What was connected before belongs to the first step.
        let before = target.and_then(LoadTarget::connect).filter(|_| !self.is_repeated);
        let protocol = target.and_then(LoadTarget::protocol).map(str::to_owned);
        // Tools that nothing is connected for have nothing to say about connecting.
        let connects = protocol.is_some() || before.is_some();
        let connect = connects.then(|| before.unwrap_or_default() + self.connect_time);
        let elapsed = meter.active_time();
        let mut report = TargetReport {
            tool: self.target.connector.tool(),
            step: self.step,
            elapsed,
            program: target.and_then(|target| target.definition().program()),
            protocol,
            throughput: throughput(meter.report.ok, elapsed),
            restarts: self.restarts,
            service: meter.service().clone(),
            protocol_warnings: self.protocol_warnings.iter().map(|doubt| masked(doubt)).collect(),
            error: self.error.map(|error| error.map_text(&masked)),
            ..meter.report
        };
        report.cold.connect = connect;
        for cause in report.errors_by_kind.values_mut() {
            cause.sample = masked(&cause.sample);
        }
        report
    }

    /// Closes the connector and the record, which says when it cannot be kept.
    pub(super) fn end(&mut self) -> (Vec<String>, Option<Error>) {
        self.close();
        self.record.take().map(RunRecordGuard::end).unwrap_or_default()
    }
}

async fn until(executor: &mut dyn LoadExecutor, moment: Option<Instant>) {
    match moment {
        Some(moment) => executor.until(moment).await,
        None => pending().await,
    }
}

struct RunRecordGuard {
    record: Option<LoadRunRecord>,
    meter: Arc<Mutex<Meter>>,
}

impl RunRecordGuard {
    fn end(mut self) -> (Vec<String>, Option<Error>) {
        self.write()
    }

    fn write(&mut self) -> (Vec<String>, Option<Error>) {
        let Some(record) = self.record.take() else { return <_>::default() };
        let meter = lock(&self.meter);
        let report = &meter.report;
        let made = report.requests + report.warm_up;
        record.close(made, report.ok, report.failures() + report.unanswered)
    }
}

impl Drop for RunRecordGuard {
    fn drop(&mut self) {
        let _unheard = self.write();
    }
}

/// How long to wait before a connector is opened for the `attempt`-th time, counted from 1; `None` when
/// that would not help.
fn pause(advice: RetryAdvice, attempt: u32) -> Option<Duration> {
    match advice {
        RetryAdvice::Never => None,
        RetryAdvice::Unspecified => Some(Duration::ZERO),
        RetryAdvice::AfterBackoff => Some(retry::pause(retry::FIRST, attempt, 1.0)),
        RetryAdvice::After(pause) => Some(pause.min(retry::LONGEST)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connector_is_opened_again_as_its_error_advises() {
        let seconds = |advice| pause(advice, 2).map(|pause| pause.as_secs_f64());
        assert_eq!(seconds(RetryAdvice::Never), None);
        assert_eq!(seconds(RetryAdvice::Unspecified), Some(0.0));
        assert_eq!(seconds(RetryAdvice::After(Duration::from_mins(10))), Some(30.0));
        assert_eq!(seconds(RetryAdvice::AfterBackoff), Some(1.0));
    }
}
