//! One turn of a target: its calls to warm up, and those that count.

use std::time::Duration;

use super::driver::{RunControl, lock};
use super::monitor::RunMonitor;
use super::plan::{BenchPlan, RunLimits, WarmUp};
use super::report::SampleBlock;
use super::report_builder::RunFacts;
use super::target_worker::TargetWorker;
use crate::util::units::show_duration;

/// Makes the calls of a plan that do not count.
pub(super) async fn warm_up(
    plan: &BenchPlan,
    worker: &mut TargetWorker,
    ran: &mut RunFacts,
    control: &RunControl,
    watch: &RunMonitor,
) {
    if !matches!(plan.warm_up, WarmUp::Calls(0) | WarmUp::Time(Duration::ZERO)) {
        let limits = RunLimits { requests: Some(0), duration: None };
        run_turn(BenchPlan { limits, ..plan.clone() }, worker, ran, control, watch).await;
    }
}

/// Makes the calls of a plan that count, as a turn of the target: after its warm-up.
pub(super) async fn measure_turn(
    plan: BenchPlan,
    worker: &mut TargetWorker,
    ran: &mut RunFacts,
    control: &RunControl,
    watch: &RunMonitor,
) -> Option<SampleBlock> {
    let meter = worker.driver.meter();
    lock(&meter).begin_turn();
    let plan = BenchPlan { warm_up: WarmUp::Calls(0), ..plan };
    run_turn(plan, worker, ran, control, watch).await;
    lock(&meter).end_turn()
}

/// Makes the calls of a plan, with its warm-up.
pub(super) async fn run_turn(
    plan: BenchPlan,
    worker: &mut TargetWorker,
    ran: &mut RunFacts,
    control: &RunControl,
    watch: &RunMonitor,
) {
    if !worker.is_open() {
        return;
    }
    worker.driver.follow(plan, control, watch);
    worker.run().await;
    let scheduler = worker.driver.scheduler();
    ran.aborted |= scheduler.is_aborted();
    ran.paused += scheduler.paused();
}

/// What a run is about to do, for the record of it.
pub(super) fn describe_plan(plan: &BenchPlan) -> String {
    let calls = plan.limits.requests.map(|calls| format!("{calls} calls"));
    let time = plan.limits.duration.map(|time| format!("for {}", show_duration(time)));
    match (calls, time) {
        (Some(calls), Some(time)) => format!("a benchmark, {calls} or {time}"),
        (Some(one), None) | (None, Some(one)) => format!("a benchmark, {one}"),
        (None, None) => "a benchmark".to_owned(),
    }
}
