//! Work for the benchmark view.

use std::convert::Infallible;

use tokio_util::sync::CancellationToken;

use crate::bench::bench_result::BenchResult;
use crate::bench::plan::BenchPlan;
use crate::bench::snapshot::BenchSnapshot;
use crate::bench::{self, ArgumentInput, Benchmark, RunControl, TargetOptions, TargetSpec};
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
        let BenchRunSpec { tools, arguments, plan } = spec;
        let benchmark = Benchmark { control: control.clone(), ..Benchmark::new(plan) };
        let abort = CancellationToken::new();
        let stop = async {
            context.cancel.cancelled().await;
            control.stop();
            tokio::time::sleep(DRAIN_TIMEOUT).await;
            abort.cancel();
            std::future::pending::<Infallible>().await
        };
        let result = tokio::select! {
            result = measure(run, &context, &benchmark, tools, arguments, &abort) => result,
            never = stop => match never {},
        };
        drop(closed);
        (Box::new(snapshot(&context, &benchmark)), result)
    };
    Task::new(name, work, move |state, (snapshot, result)| {
        state.bench.finished(run, snapshot, result, &mut state.context);
    })
    .in_slot(SLOT)
}

/// Performs one run, from resolving its tools to the report, and sends snapshots of it meanwhile. One
/// that the console is too busy to take is dropped.
async fn measure(
    run: u64,
    context: &TaskContext,
    benchmark: &Benchmark,
    tools: Vec<String>,
    arguments: JsonObject,
    abort: &CancellationToken,
) -> Result<BenchResult, Error> {
    let options = TargetOptions { cancel: abort.clone(), ..TargetOptions::default() };
    let arguments = ArgumentInput::Single(CallArguments::Object(arguments));
    let target = |name| TargetSpec { name, arguments: arguments.clone() };
    let tools = tools.into_iter().map(target).collect();
    let mut warnings = Vec::new();
    let warn = |warning: &str| warnings.push(warning.to_owned());
    let prepared = tokio::select! {
        biased;
        () = abort.cancelled() => Err(Error::timeout("stopped before any call was made")),
        prepared = bench::prepare(tools, &options, &context.deps.host, warn) => prepared,
    }?;
    context.report(move |state| state.bench.started(run, warnings)).await;
    let mut looks = tokio::time::interval(POLL_INTERVAL);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut work = std::pin::pin!(benchmark.run(&context.deps.host, prepared));
    loop {
        tokio::select! {
            report = &mut work => return report,
            _ = looks.tick() => {
                // The time of a snapshot leaves a pause out only when that is over.
                if benchmark.control.is_paused() {
                    continue;
                }
                let snapshot = Box::new(snapshot(context, benchmark));
                let event = AppEvent::outcome(move |state| state.bench.seen(run, snapshot));
                let _lost = context.events.try_send(event);
            }
        }
    }
}

fn snapshot(context: &TaskContext, benchmark: &Benchmark) -> BenchSnapshot {
    let Benchmark { monitor, plan, .. } = benchmark;
    BenchSnapshot::capture(monitor, plan, context.deps.clock.now())
}
