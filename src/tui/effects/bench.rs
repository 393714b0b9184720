//! Runs benchmarks, one at a time, and sends snapshots of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::ConsoleDeps;
use crate::bench::bench_result::BenchResult;
use crate::bench::driver::RunControl;
use crate::bench::environment::{BenchEnvironment, ThisMachine};
use crate::bench::findings::{AcceptanceCriteria, BenchFindings};
use crate::bench::monitor::RunMonitor;
use crate::bench::plan::BenchPlan;
use crate::bench::report::BenchReport;
use crate::bench::snapshot::BenchSnapshot;
use crate::bench::targets::{
    self, ArgumentInput, TargetOptions, TargetSpec, identities, prepare, servers,
};
use crate::bench::{argument_lines, baseline, bench_runner};
use crate::host::request::CallArguments;
use crate::model::{Error, TraceGate};
use crate::tui::event::AppEvent;
use crate::tui::event::bench::{
    BenchArguments, BenchEffect, BenchEvent, BenchRunSpec, BenchRunTarget,
};
use crate::util::atomic_file::{self, FileMode};

/// The time between two looks at a run.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// How long to wait for responses after a run was stopped.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(800);

/// Starts, pauses and stops benchmark runs, at most one at a time.
#[derive(Default)]
pub(super) struct BenchController {
    control: RunControl,
    /// Cancels the wait for the remaining responses.
    abort: CancellationToken,
}

impl BenchController {
    /// Performs a command; `trace_gate` is closed while a run goes on, because tracing each message
    /// would slow all calls down.
    pub(super) fn perform(
        &mut self,
        effect: BenchEffect,
        deps: &ConsoleDeps,
        send: &mpsc::Sender<AppEvent>,
        trace_gate: &TraceGate,
    ) {
        match effect {
            BenchEffect::Pause(true) => self.control.pause(),
            BenchEffect::Pause(false) => self.control.resume(),
            BenchEffect::Stop => self.stop(),
            BenchEffect::SaveBaseline { path, text } => {
                let (cwd, send) = (deps.cwd.clone(), send.clone());
                tokio::spawn(async move {
                    let event =
                        tokio::task::spawn_blocking(move || save_baseline(&cwd, path, &text)).await;
                    if let Ok(event) = event {
                        let _unheard = send.send(event).await;
                    }
                });
            }
            BenchEffect::Start { run, spec } => {
                *self = Self::default();
                let (control, abort) = (self.control.clone(), self.abort.clone());
                let conduct = BenchTask {
                    number: run,
                    deps: deps.clone(),
                    event_tx: send.clone(),
                    control,
                    abort,
                    watch: RunMonitor::default(),
                };
                let trace_gate = trace_gate.clone();
                tokio::spawn(async move {
                    let closed = trace_gate.close();
                    conduct.perform(*spec).await;
                    drop(closed);
                });
            }
        }
    }

    pub(super) fn stop(&self) {
        self.control.stop();
        let abort = self.abort.clone();
        tokio::spawn(async move {
            tokio::time::sleep(DRAIN_TIMEOUT).await;
            abort.cancel();
        });
    }
}

/// Performs one run, from resolving its tools to the report.
struct BenchTask {
    number: u64,
    deps: ConsoleDeps,
    event_tx: mpsc::Sender<AppEvent>,
    control: RunControl,
    abort: CancellationToken,
    watch: RunMonitor,
}

impl BenchTask {
    async fn perform(self, spec: BenchRunSpec) {
        let plan = spec.plan.clone();
        let outcome = self.account(spec).await;
        let seen = Box::new(BenchSnapshot::capture(&self.watch, &plan, self.deps.clock.now()));
        let event =
            BenchEvent::Finished { run: self.number, snapshot: seen, outcome: Box::new(outcome) };
        let _unheard = self.event_tx.send(AppEvent::Bench(event)).await;
    }

    async fn account(&self, spec: BenchRunSpec) -> Result<BenchResult, Error> {
        let plan = spec.plan;
        let demands = AcceptanceCriteria {
            thresholds: spec.thresholds,
            baseline: read(&self.deps.cwd, spec.baseline).await?,
            max_regression: spec.max_regression,
        };
        let terms = TargetOptions {
            timeout: spec.timeout,
            allow_writes: spec.allow_writes,
            seed: plan.seed,
            cancel: self.abort.clone(),
            ..TargetOptions::default()
        };
        let cwd = self.deps.cwd.clone();
        let wanted = tokio::task::spawn_blocking(move || target_specs(spec.targets, &cwd)).await;
        let lost =
            |_panicked| Error::internal("the thread reading the arguments stopped unexpectedly");
        let wanted = wanted.map_err(lost)??;
        let (host, clock) = (&self.deps.host, Arc::clone(&self.deps.clock));
        let mut warnings = Vec::new();
        let warn = |warning: &str| warnings.push(warning.to_owned());
        let found = tokio::select! {
            biased;
            () = self.abort.cancelled() => Err(Error::timeout("stopped before any call was made")),
            found = targets::resolve(wanted, &terms, host, &clock, warn) => found,
        }?;
        let servers = servers(&found);
        let began = BenchEvent::Started { run: self.number, warnings };
        let _unheard = self.event_tx.send(AppEvent::Bench(began)).await;
        let environment = BenchEnvironment::before(&ThisMachine);
        let work = bench_runner::run(&plan, prepare(found), clock, &self.control, &self.watch);
        let report = self.watched(work, &plan).await?;
        let environment = BenchEnvironment {
            servers: identities(&report, &servers, host),
            ..environment.after(&ThisMachine)
        };
        // Intervals take a while to be calculated: the screen does not wait for them.
        let concluded = move || {
            let findings = BenchFindings::conclude(&report, &environment, &demands);
            BenchResult { report, environment, findings }
        };
        let lost =
            |_panicked| Error::internal("the thread evaluating the run stopped unexpectedly");
        tokio::task::spawn_blocking(concluded).await.map_err(lost)
    }

    /// Drives a run to its report, and sends snapshots of it meanwhile. A snapshot that the console
    /// is too busy to take is dropped.
    async fn watched(
        &self,
        work: impl Future<Output = Result<BenchReport, Error>>,
        plan: &BenchPlan,
    ) -> Result<BenchReport, Error> {
        let mut looks = tokio::time::interval(POLL_INTERVAL);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                report = &mut work => return report,
                _ = looks.tick() => {
                    let seen = BenchSnapshot::capture(&self.watch, plan, self.deps.clock.now());
                    let event = BenchEvent::Progress { run: self.number, snapshot: Box::new(seen) };
                    let _lost = self.event_tx.try_send(AppEvent::Bench(event));
                }
            }
        }
    }
}

/// The tools with their arguments, read where they are in files.
fn target_specs(targets: Vec<BenchRunTarget>, cwd: &Path) -> Result<Vec<TargetSpec>, Error> {
    let spec = |target: BenchRunTarget| {
        let arguments = match target.arguments {
            BenchArguments::Single(object) => ArgumentInput::Single(CallArguments::Object(object)),
            BenchArguments::Lines(path) => {
                ArgumentInput::Lines(argument_lines::read("lines of", &cwd.join(path))?)
            }
        };
        Ok(TargetSpec { name: target.tool, arguments, weight: target.weight })
    };
    targets.into_iter().map(spec).collect()
}

async fn read(cwd: &Path, file: Option<PathBuf>) -> Result<Option<baseline::SavedRun>, Error> {
    let Some(file) = file else { return Ok(None) };
    let path = cwd.join(file);
    let lost = |_panicked| Error::internal("the thread reading the baseline stopped unexpectedly");
    tokio::task::spawn_blocking(move || baseline::read(&path)).await.map_err(lost)?.map(Some)
}

/// Writes a run that later ones are compared with; replaces nothing but such a run.
fn save_baseline(cwd: &Path, path: PathBuf, text: &str) -> AppEvent {
    let whole = cwd.join(&path);
    let said = |text: String| AppEvent::StatusText { text, is_bad: true };
    if whole.exists() && baseline::read(&whole).is_err() {
        let shown = path.display();
        return said(format!("{shown} exists and is not a saved run: choose another file"));
    }
    match atomic_file::replace(&whole, text.as_bytes(), FileMode::Private) {
        Ok(()) => AppEvent::Bench(BenchEvent::BaselineSaved(path)),
        Err(error) => said(format!("cannot write {}: {error}", path.display())),
    }
}
