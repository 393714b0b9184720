//! The worker of one target: connects, opens the load, and reports the results.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;

use crate::host::load::LoadExecutor;
use crate::host::load::{LoadRunRecord, LoadTarget};
use crate::model::{Error, JsonObject, RetryAdvice};
use crate::util::clock::Clock;

use super::arguments::ArgumentRows;
use super::control::RunControl;
use super::driver::{LoadDriver, lock};
use super::meter::Meter;
use super::report::TargetReport;
use crate::util::number::float;

const MAX_RECONNECTS: u64 = 100;
/// How often it is tried in a row without success.
const MAX_CONNECT_ATTEMPTS: u32 = 3;
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

#[async_trait]
pub(super) trait ToolConnector: Send + Sync {
    fn tool(&self) -> String;

    /// The tool of a host; simulated ones have none.
    fn load_target(&self) -> Option<&LoadTarget> {
        None
    }

    async fn open(&self) -> Result<Box<dyn LoadExecutor>, Error>;

    fn is_cancelled(&self) -> bool {
        self.load_target().is_some_and(LoadTarget::is_cancelled)
    }
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

pub(super) struct TargetWorker {
    pub(super) connector: Arc<dyn ToolConnector>,
    pub(super) driver: LoadDriver,
    /// Of a run in steps: the calls in flight of this one.
    pub(super) step: Option<usize>,
    pub(super) is_repeated: bool,
    control: RunControl,
    executor: Option<Box<dyn LoadExecutor>>,
    connect_time: Duration,
    restarts: u64,
    pub(super) error: Option<Error>,
    protocol_warnings: Vec<String>,
    record: Option<RunRecordGuard>,
}

impl TargetWorker {
    pub(super) async fn open(
        connector: Arc<dyn ToolConnector>,
        driver: LoadDriver,
        (clock, control): (Arc<dyn Clock>, RunControl),
    ) -> Result<Self, Error> {
        let from = clock.now();
        let executor = Some(connector.open().await?);
        let opened_in = clock.now().saturating_duration_since(from);
        Ok(Self {
            connector,
            driver,
            step: None,
            is_repeated: false,
            control,
            executor,
            connect_time: opened_in,
            restarts: 0,
            error: None,
            protocol_warnings: Vec::new(),
            record: None,
        })
    }

    /// Writes down what is about to be done; the first call has these arguments.
    pub(super) fn begin(&mut self, first: &JsonObject, planned: &str) -> Result<(), Error> {
        let target = self.connector.load_target();
        let record = target.map(|target| target.record(first, planned)).transpose()?;
        let meter = self.driver.meter();
        self.record = record.map(|record| RunRecordGuard { record: Some(record), meter });
        Ok(())
    }

    /// Carries what the scheduler has for this target, until nothing is left or the connector is lost for
    /// good.
    pub(super) async fn run(&mut self) {
        while let Some(executor) = &mut self.executor {
            let before = self.driver.answered();
            let ran = executor.run(&mut self.driver).await;
            // Nothing is left when all is as it should be.
            self.driver.give_up_in_flight();
            let Err(error) = ran else { return };
            self.close();
            if self.driver.is_done() || self.connector.is_cancelled() {
                return;
            }
            let worked = self.driver.answered() > before;
            if !worked || self.restarts >= MAX_RECONNECTS {
                self.error = Some(error);
                return;
            }
            match self.reopen(error).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    self.error = Some(error);
                    return;
                }
            }
        }
    }

    /// Opens the connector again; says no when the run was ended meanwhile.
    async fn reopen(&mut self, mut error: Error) -> Result<bool, Error> {
        for _ in 0..MAX_CONNECT_ATTEMPTS {
            let pause = match error.retry_advice() {
                RetryAdvice::Never => return Err(error),
                RetryAdvice::After(pause) => pause.min(LONGEST_PAUSE),
                RetryAdvice::Unspecified | RetryAdvice::AfterBackoff => Duration::ZERO,
            };
            let connector = Arc::clone(&self.connector);
            let work = async move {
                if !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
                connector.open().await
            };
            let opened = tokio::select! {
                biased;
                () = self.control.stopped() => return Ok(false),
                opened = work => opened,
            };
            match opened {
                Ok(executor) => {
                    self.restarts += 1;
                    self.executor = Some(executor);
                    self.driver.reconnected();
                    return Ok(true);
                }
                Err(_) if self.connector.is_cancelled() => return Ok(false),
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
        let meter = lock(&self.driver.meter()).clone();
        let target = self.connector.load_target();
        let masked =
            |text: &str| target.map_or_else(|| text.to_owned(), |target| target.masked(text));
        // What was connected before belongs to the first step.
        let before = target.and_then(LoadTarget::connect).filter(|_| !self.is_repeated);
        let protocol = target.and_then(LoadTarget::protocol).map(str::to_owned);
        // Tools that nothing is connected for have nothing to say about connecting.
        let connects = protocol.is_some() || before.is_some();
        let connect = connects.then(|| before.unwrap_or_default() + self.connect_time);
        let elapsed = meter.active_time();
        let throughput = float(meter.report.ok) / elapsed.as_secs_f64();
        let mut report = TargetReport {
            tool: self.connector.tool(),
            step: self.step,
            elapsed,
            program: target.and_then(|target| target.definition().program()),
            protocol,
            throughput: if elapsed.is_zero() { 0.0 } else { throughput },
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
        record.close(made, report.ok, meter.failures() + report.unanswered)
    }
}

impl Drop for RunRecordGuard {
    fn drop(&mut self) {
        let _unheard = self.write();
    }
}
