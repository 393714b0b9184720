//! Commands and events of the benchmark view.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::bench;
use crate::bench::bench_result::BenchResult;
use crate::bench::plan::BenchPlan;
use crate::bench::snapshot::BenchSnapshot;
use crate::bench::{ArgumentInput, Benchmark, RunControl, TargetOptions, TargetSpec};
use crate::host::request::CallArguments;
use crate::model::{Error, JsonObject, TraceGate};
use crate::tui::event::AppEvent;
use crate::tui::tasks::ConsoleDeps;

/// Which of the two tools of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetSide {
    /// The tool that is measured.
    A,
    /// The tool it is compared with.
    B,
}

#[derive(Debug, Clone, PartialEq)]
pub enum BenchEffect {
    /// Make a run; at most one goes on at a time.
    Start {
        /// The number of the run, from 1 on.
        run: u64,
        spec: Box<BenchRunSpec>,
    },
    Pause(bool),
    /// End the run and keep what was measured.
    Stop,
}

#[derive(Debug, Clone, PartialEq)]
pub struct BenchRunSpec {
    /// The full names of its tools: one, or two that are compared.
    pub tools: Vec<String>,
    pub arguments: JsonObject,
    pub plan: BenchPlan,
}

#[derive(Debug)]
pub enum BenchEvent {
    /// The tools were found; calls are made from now on.
    Started {
        run: u64,
        /// Warnings that are shown before the run.
        warnings: Vec<String>,
    },
    /// The run is in progress; sent several times a second.
    Progress {
        run: u64,
        /// The figures so far.
        snapshot: Box<BenchSnapshot>,
    },
    /// The run has ended, by itself, by request or with an error.
    Finished {
        run: u64,
        /// The last figures, for the final frame.
        snapshot: Box<BenchSnapshot>,
        /// The result; `Err` when no call could be made at all.
        outcome: Box<Result<BenchResult, Error>>,
    },
}

/// The time between two looks at a run.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// How long to wait for responses after a run was stopped.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(800);

/// Starts, pauses and stops benchmark runs, at most one at a time.
#[derive(Default)]
pub struct BenchController {
    control: RunControl,
    abort: CancellationToken,
}

impl BenchController {
    /// Performs a command; `trace_gate` is closed while a run goes on, because tracing each message
    /// would slow all calls down.
    pub fn perform(
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
                let BenchRunSpec { tools, arguments, plan } = *spec;
                let control = self.control.clone();
                let task = BenchTask {
                    number: run,
                    deps: deps.clone(),
                    event_tx: send.clone(),
                    benchmark: Benchmark { control, ..Benchmark::new(plan) },
                    abort: self.abort.clone(),
                };
                let trace_gate = trace_gate.clone();
                tokio::spawn(async move {
                    let closed = trace_gate.close();
                    task.perform(tools, arguments).await;
                    drop(closed);
                });
            }
        }
    }

    pub fn stop(&self) {
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
    benchmark: Benchmark,
    abort: CancellationToken,
}

impl BenchTask {
    async fn perform(self, tools: Vec<String>, arguments: JsonObject) {
        let outcome = self.account(tools, arguments).await;
        let (snapshot, outcome) = (Box::new(self.snapshot()), Box::new(outcome));
        let event = BenchEvent::Finished { run: self.number, snapshot, outcome };
        let _unheard = self.event_tx.send(AppEvent::Bench(event)).await;
    }

    async fn account(
        &self,
        tools: Vec<String>,
        arguments: JsonObject,
    ) -> Result<BenchResult, Error> {
        let options = TargetOptions { cancel: self.abort.clone(), ..TargetOptions::default() };
        let arguments = ArgumentInput::Single(CallArguments::Object(arguments));
        let tools = tools.into_iter();
        let tools = tools.map(|name| TargetSpec { name, arguments: arguments.clone() }).collect();
        let mut warnings = Vec::new();
        let warn = |warning: &str| warnings.push(warning.to_owned());
        let prepared = tokio::select! {
            biased;
            () = self.abort.cancelled() => Err(Error::timeout("stopped before any call was made")),
            prepared = bench::prepare(tools, &options, &self.deps.host, warn) => prepared,
        }?;
        let began = BenchEvent::Started { run: self.number, warnings };
        let _unheard = self.event_tx.send(AppEvent::Bench(began)).await;
        self.watched(self.benchmark.run(&self.deps.host, prepared)).await
    }

    fn snapshot(&self) -> BenchSnapshot {
        let Benchmark { monitor, plan, .. } = &self.benchmark;
        BenchSnapshot::capture(monitor, plan, self.deps.clock.now())
    }

    /// Drives a run to its report, and sends snapshots of it meanwhile. A snapshot that the console
    /// is too busy to take is dropped.
    async fn watched(
        &self,
        work: impl Future<Output = Result<BenchResult, Error>>,
    ) -> Result<BenchResult, Error> {
        let mut looks = tokio::time::interval(POLL_INTERVAL);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                report = &mut work => return report,
                _ = looks.tick() => {
                    let snapshot = Box::new(self.snapshot());
                    let event = BenchEvent::Progress { run: self.number, snapshot };
                    let _lost = self.event_tx.try_send(AppEvent::Bench(event));
                }
            }
        }
    }
}
