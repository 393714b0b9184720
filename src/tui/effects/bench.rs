//! Runs benchmarks, one at a time, and sends snapshots of them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::ConsoleDeps;
use crate::bench::bench_result::BenchResult;
use crate::bench::bench_runner;
use crate::bench::driver::RunControl;
use crate::bench::environment::{BenchEnvironment, ThisMachine};
use crate::bench::findings::{AcceptanceCriteria, BenchFindings};
use crate::bench::monitor::RunMonitor;
use crate::bench::plan::BenchPlan;
use crate::bench::report::BenchReport;
use crate::bench::snapshot::BenchSnapshot;
use crate::bench::targets::{self, ArgumentInput, TargetOptions, TargetSpec, identities, servers};
use crate::host::request::CallArguments;
use crate::model::{Error, TraceGate};
use crate::tui::event::AppEvent;
use crate::tui::event::bench::{BenchEffect, BenchEvent, BenchRunSpec};

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
        let options = TargetOptions { cancel: self.abort.clone(), ..TargetOptions::default() };
        let arguments = ArgumentInput::Single(CallArguments::Object(spec.arguments));
        let tools = spec.tools.into_iter();
        let tools = tools.map(|name| TargetSpec { name, arguments: arguments.clone() }).collect();
        let (host, clock) = (&self.deps.host, Arc::clone(&self.deps.clock));
        let mut warnings = Vec::new();
        let warn = |warning: &str| warnings.push(warning.to_owned());
        let found = tokio::select! {
            biased;
            () = self.abort.cancelled() => Err(Error::timeout("stopped before any call was made")),
            found = targets::resolve(tools, &options, host, warn) => found,
        }?;
        let servers = servers(&found);
        let began = BenchEvent::Started { run: self.number, warnings };
        let _unheard = self.event_tx.send(AppEvent::Bench(began)).await;
        let environment = BenchEnvironment::before(&ThisMachine);
        let work = bench_runner::run(&plan, found, clock, &self.control, &self.watch);
        let report = self.watched(work, &plan).await?;
        let environment = BenchEnvironment {
            servers: identities(&report, &servers, host),
            ..environment.after(&ThisMachine)
        };
        // Intervals take a while to be calculated: the screen does not wait for them.
        let concluded = move || {
            let findings =
                BenchFindings::conclude(&report, &environment, &AcceptanceCriteria::default());
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
