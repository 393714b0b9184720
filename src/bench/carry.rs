//! One target of a run, from the way to it being opened to its calls being told.
//!
//! Owns: opening the way again when it broke in the middle of a run, and how often that is tried.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;

use crate::host::repeat::{RunRecord, Target};
use crate::model::{Again, Fault, JsonObject};
use crate::provider::repeat::Repeater;
use crate::util::clock::Clock;

use super::control::Control;
use super::driver::{Driver, locked};
use super::meter::Meter;

/// How often a way is opened again in one run.
const RESTARTS: u64 = 100;
/// How often it is tried in a row without success.
const TRIES: u32 = 3;
/// The longest pause before it is tried.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A way to a tool, as far as a run needs to know it.
#[async_trait]
pub(super) trait Way: Send + Sync {
    /// The full name of the tool.
    fn tool(&self) -> String;

    /// The protocol revision, for tools of servers.
    fn protocol(&self) -> Option<String> {
        None
    }

    /// How long connecting took before, if it was done.
    fn connect(&self) -> Option<Duration> {
        None
    }

    /// Opens it for so many calls at once.
    async fn open(&self, lanes: usize) -> Result<Box<dyn Repeater>, Fault>;

    /// Whether the run was to end at once.
    fn is_cancelled(&self) -> bool {
        false
    }

    /// Known secrets taken out.
    fn masked(&self, text: &str) -> String {
        text.to_owned()
    }

    /// Writes down that many calls are about to be made; the first one has these arguments.
    ///
    /// # Errors
    /// When they must not be made without a record.
    fn record(&self, _arguments: &JsonObject, _planned: &str) -> Result<Option<RunRecord>, Fault> {
        Ok(None)
    }
}

#[async_trait]
impl Way for Target {
    fn tool(&self) -> String {
        self.definition().name.full()
    }

    fn protocol(&self) -> Option<String> {
        Self::protocol(self).map(str::to_owned)
    }

    fn connect(&self) -> Option<Duration> {
        Self::connect(self)
    }

    async fn open(&self, lanes: usize) -> Result<Box<dyn Repeater>, Fault> {
        self.repeater(lanes).await
    }

    fn is_cancelled(&self) -> bool {
        Self::is_cancelled(self)
    }

    fn masked(&self, text: &str) -> String {
        Self::masked(self, text)
    }

    fn record(&self, arguments: &JsonObject, planned: &str) -> Result<Option<RunRecord>, Fault> {
        Self::record(self, arguments, planned).map(Some)
    }
}

/// Carries the calls of one target.
pub(super) struct Carrier {
    pub(super) way: Arc<dyn Way>,
    pub(super) driver: Driver,
    pub(super) weight: f64,
    control: Control,
    lanes: usize,
    repeater: Option<Box<dyn Repeater>>,
    /// How long the way took to open for the first time.
    pub(super) opened_in: Duration,
    pub(super) restarts: u64,
    /// Why it carries no more.
    pub(super) fault: Option<Fault>,
    pub(super) doubts: Vec<String>,
    record: Option<Recorded>,
}

impl Carrier {
    /// Opens the way.
    ///
    /// # Errors
    /// When the tool cannot be reached.
    pub(super) async fn open(
        way: Arc<dyn Way>,
        driver: Driver,
        weight: f64,
        lanes: usize,
        (clock, control): (Arc<dyn Clock>, Control),
    ) -> Result<Self, Fault> {
        let from = clock.now();
        let repeater = Some(way.open(lanes).await?);
        let opened_in = clock.now().saturating_duration_since(from);
        Ok(Self {
            way,
            driver,
            weight,
            control,
            lanes,
            repeater,
            opened_in,
            restarts: 0,
            fault: None,
            doubts: Vec::new(),
            record: None,
        })
    }

    /// Writes down what is about to be done.
    ///
    /// # Errors
    /// When it must not be done without a record.
    pub(super) fn begin(&mut self, planned: &str) -> Result<(), Fault> {
        let first = self.driver.arguments_of(0);
        self.record = self
            .way
            .record(&first.object, planned)?
            .map(|record| Recorded { record: Some(record), meter: self.driver.meter() });
        Ok(())
    }

    /// Carries what the course has for this target, until nothing is left or the way is lost for
    /// good.
    pub(super) async fn carry(&mut self) {
        while let Some(repeater) = &mut self.repeater {
            let before = self.driver.answered();
            let ran = repeater.run(&mut self.driver).await;
            // Nothing is left when all is as it should be.
            self.driver.abandon();
            let Err(fault) = ran else { return };
            self.close();
            self.driver.set_up(false);
            if self.driver.is_over() || self.way.is_cancelled() {
                return;
            }
            let worked = self.driver.answered() > before;
            if !worked || self.restarts >= RESTARTS {
                self.fault = Some(fault);
                return;
            }
            match self.reopen(fault).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(fault) => {
                    self.fault = Some(fault);
                    return;
                }
            }
        }
    }

    /// Opens the way again; says no when the run was ended meanwhile.
    async fn reopen(&mut self, mut fault: Fault) -> Result<bool, Fault> {
        for _ in 0..TRIES {
            let pause = match fault.tried_again() {
                Again::Never => return Err(fault),
                Again::After(pause) => pause.min(LONGEST_PAUSE),
                Again::Unsaid | Again::Soon => Duration::ZERO,
            };
            let way = Arc::clone(&self.way);
            let lanes = self.lanes;
            let work = async move {
                if !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
                way.open(lanes).await
            };
            let opened = tokio::select! {
                biased;
                () = self.control.stopped() => return Ok(false),
                opened = work => opened,
            };
            match opened {
                Ok(repeater) => {
                    self.restarts += 1;
                    self.repeater = Some(repeater);
                    self.driver.renew();
                    self.driver.set_up(true);
                    return Ok(true);
                }
                Err(_) if self.way.is_cancelled() => return Ok(false),
                Err(next) => fault = next,
            }
        }
        Err(fault)
    }

    /// Whether calls can still be carried.
    pub(super) fn is_open(&self) -> bool {
        self.repeater.is_some() && self.fault.is_none()
    }

    /// Lets the way go and keeps what was odd about it.
    pub(super) fn close(&mut self) {
        let Some(repeater) = self.repeater.take() else { return };
        for doubt in repeater.doubts() {
            if !self.doubts.contains(&doubt) {
                self.doubts.push(doubt);
            }
        }
    }

    /// Closes the way and the record, which says when it cannot be kept.
    pub(super) fn end(&mut self) -> (Vec<String>, Option<Fault>) {
        self.close();
        self.record.take().map(Recorded::end).unwrap_or_default()
    }
}

/// A record that tells what became of the calls, even when the run is dropped.
struct Recorded {
    record: Option<RunRecord>,
    meter: Arc<Mutex<Meter>>,
}

impl Recorded {
    fn end(mut self) -> (Vec<String>, Option<Fault>) {
        self.write()
    }

    fn write(&mut self) -> (Vec<String>, Option<Fault>) {
        let Some(record) = self.record.take() else { return <_>::default() };
        let meter = locked(&self.meter);
        let made = meter.requests + meter.warm_up;
        record.close(made, meter.ok, meter.failures() + meter.unanswered)
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        let _nobody_listens = self.write();
    }
}
