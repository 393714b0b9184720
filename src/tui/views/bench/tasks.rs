//! Work for the benchmark view.

use std::convert::Infallible;

use tokio_util::sync::CancellationToken;

use crate::bench;
use crate::bench::bench_result::BenchResult;
use crate::bench::plan::BenchPlan;
use crate::bench::snapshot::BenchSnapshot;
use crate::bench::{ArgumentInput, Benchmark, RunControl, TargetOptions, TargetSpec};
use crate::host::request::CallArguments;
use crate::tui::prelude::*;

#[derive(Debug, Clone, PartialEq)]
pub struct BenchRunSpec {
    /// The full names of its tools: one, or two that are compared.
    pub tools: Vec<String>,
    pub arguments: JsonObject,
    pub plan: BenchPlan,
}

const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// How long to wait for responses after a run was stopped.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(800);

/// In which runs are: at most one goes on at a time.
pub const SLOT: &str = "benchmark";

/// Makes a run, with its number from 1 on. Stopped, it keeps what was measured.
pub fn start(run: u64, spec: BenchRunSpec, control: RunControl) -> Task {
    let name = ("benchmark", run, spec.clone());
    let work = async move |context: TaskContext| {
        // Tracing each message would slow all calls down.
        let closed = context.trace_gate.close();
        let benchmark = Benchmark { control: control.clone(), ..Benchmark::new(spec.plan) };
        let (cancel, abort) = (context.cancel.clone(), CancellationToken::new());
        let task = BenchTask { run, context, benchmark, abort: abort.clone() };
        let stop = async {
            cancel.cancelled().await;
            control.stop();
            tokio::time::sleep(DRAIN_TIMEOUT).await;
            abort.cancel();
            std::future::pending::<Infallible>().await
        };
        let result = tokio::select! {
            result = task.measure(spec.tools, spec.arguments) => result,
            never = stop => match never {},
        };
        drop(closed);
        (Box::new(task.snapshot()), result)
    };
    Task::new(name, work, move |state, (snapshot, result)| {
        state.bench.finished(run, snapshot, result, &mut state.context);
    })
    .in_slot(SLOT)
}

/// Performs one run, from resolving its tools to the report.
struct BenchTask {
    run: u64,
    context: TaskContext,
    benchmark: Benchmark,
    abort: CancellationToken,
}

impl BenchTask {
    async fn measure(
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
            prepared = bench::prepare(tools, &options, &self.context.deps.host, warn) => prepared,
        }?;
        let run = self.run;
        self.context.report(move |state| state.bench.started(run, warnings)).await;
        self.watched(self.benchmark.run(&self.context.deps.host, prepared)).await
    }

    fn snapshot(&self) -> BenchSnapshot {
        let Benchmark { monitor, plan, .. } = &self.benchmark;
        BenchSnapshot::capture(monitor, plan, self.context.deps.clock.now())
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
                    let (run, snapshot) = (self.run, Box::new(self.snapshot()));
                    let event = AppEvent::outcome(move |state| state.bench.seen(run, snapshot));
                    let _lost = self.context.events.try_send(event);
                }
            }
        }
    }
}
