//! A run in steps: one tool again and again, with other numbers of calls in flight.

use std::sync::Arc;

use super::driver::{LoadDriver, RunControl, lock};
use super::monitor::{RunMonitor, RunPhase};
use super::plan::{BenchPlan, LoadModel};
use super::report_builder::RunFacts;
use super::target_worker::{BenchTarget, TargetWorker};
use super::turns::{describe_plan, measure_turn, warm_up};
use crate::model::Error;
use crate::util::clock::Clock;
use crate::util::number::float;

/// Runs the steps, one after the other.
pub(super) async fn run(
    plan: &BenchPlan,
    target: BenchTarget,
    (in_flight, error_limit): (&[usize], Option<f64>),
    clock: &Arc<dyn Clock>,
    control: &RunControl,
    watch: &RunMonitor,
) -> Result<(Vec<TargetWorker>, RunFacts), Error> {
    let mut ran = RunFacts::default();
    let mut workers: Vec<TargetWorker> = Vec::with_capacity(in_flight.len());
    let BenchTarget { connector, arguments } = target;
    let many = u32::try_from(in_flight.len()).unwrap_or(u32::MAX);
    for (number, &calls) in (1..).zip(in_flight) {
        let driver = LoadDriver::idle(Arc::clone(clock), control, arguments.clone());
        {
            let mut stage = watch.lock();
            (stage.phase, stage.round) = (RunPhase::Connecting, Some((number, many)));
            stage.targets.push((format!("{calls} in flight"), driver.meter()));
        }
        let around = (Arc::clone(clock), control.clone());
        let opened = TargetWorker::open(Arc::clone(&connector), driver, around).await;
        let mut worker = match opened {
            Ok(worker) => worker,
            Err(error) if workers.is_empty() => return Err(error),
            Err(error) => {
                ran.warnings
                    .push(format!("stopped before the step with {calls} in flight: {error}"));
                ran.aborted = true;
                break;
            }
        };
        worker.step = Some(calls);
        worker.is_repeated = number > 1;
        let step = BenchPlan { model: LoadModel::Closed { concurrency: calls }, ..plan.clone() };
        let planned = format!("{}, {calls} in flight", describe_plan(plan));
        worker.begin(arguments.of_call(0), &planned)?;
        warm_up(&step, &mut worker, &mut ran, control, watch).await;
        measure_turn(step, &mut worker, &mut ran, control, watch).await;
        let (warnings, lost) = worker.end();
        ran.warnings.extend(warnings);
        ran.lost_record = ran.lost_record.take().or(lost);
        let is_over = ran.aborted
            || worker.error.is_some()
            || control.is_stopped()
            || connector.is_cancelled()
            || error_limit.is_some_and(|limit| failed_share(&worker) > limit);
        workers.push(worker);
        if is_over {
            break;
        }
    }
    Ok((workers, ran))
}

fn failed_share(worker: &TargetWorker) -> f64 {
    let meter = worker.driver.meter();
    let meter = lock(&meter);
    float(meter.requests.saturating_sub(meter.ok)) / float(meter.requests.max(1))
}
