//! One run, from prepared tools to the report.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::host::ToolHost;
use crate::host::load::LoadTarget;
use crate::model::Error;
use crate::util::clock::{Clock, SystemClock};
use crate::util::process::cpu_time;

use super::arguments::ArgumentRows;
use super::bench_result::BenchResult;
use super::caveats;
use super::driver::{LoadDriver, RunControl};
use super::environment::{BenchEnvironment, ThisMachine};
use super::findings::{AcceptanceCriteria, BenchFindings};
use super::monitor::{RunMonitor, RunPhase};
use super::plan::{BenchPlan, RunLimits, Sharing};
use super::report::{BenchReport, Round, SampleBlock};
use super::report_builder::{self, RunFacts};
use super::step_runner;
use super::target_worker::{BenchTarget, TargetWorker};
use super::targets;
use super::turns::{describe_plan, measure_turn, run_turn, warm_up};

/// A tool that is ready to be called many times, from [`prepare`](super::prepare).
pub struct PreparedTarget {
    pub(crate) target: LoadTarget,
    pub(crate) arguments: ArgumentRows,
}

/// A run: what is done, what it is held to, and the switches that pause and stop it.
#[derive(Debug, Clone, Default)]
pub struct Benchmark {
    /// How the tools are called.
    pub plan: BenchPlan,
    /// What fails the run although its calls succeed; nothing by default.
    pub criteria: AcceptanceCriteria,
    /// Pauses and stops the run while it goes on.
    pub control: RunControl,
    pub(crate) monitor: RunMonitor,
}

impl Benchmark {
    /// A run of this plan that is held to nothing.
    pub fn new(plan: BenchPlan) -> Self {
        Self { plan, ..Self::default() }
    }

    /// Makes the run on tools of `host`, one or, in rounds, several, and returns once it is over.
    /// Whether it met its criteria, or no call succeeded, says [`BenchResult::failure`].
    pub async fn run(
        &self,
        host: &ToolHost,
        prepared: Vec<PreparedTarget>,
    ) -> Result<BenchResult, Error> {
        let servers = targets::servers(&prepared);
        let before = BenchEnvironment::before(&ThisMachine);
        let server_times = targets::processor_times(host);
        let own_time = own_processor_time();
        let bench_target = |prepared: PreparedTarget| {
            let PreparedTarget { target, arguments } = prepared;
            BenchTarget { connector: Arc::new(target), arguments }
        };
        let prepared = prepared.into_iter().map(bench_target).collect();
        let (clock, control) = (Arc::new(SystemClock), &self.control);
        let mut report = run_targets(&self.plan, prepared, clock, control, &self.monitor).await?;
        let used = own_processor_time().zip(own_time);
        report.generator.cpu = used.and_then(|(after, before)| after.checked_sub(before));
        let environment = BenchEnvironment {
            servers: targets::identities(&report, &servers, &server_times, host),
            ..before.after(&ThisMachine)
        };
        let criteria = self.criteria.clone();
        // Intervals take a while to be calculated, and nobody should wait for them.
        let conclude = move || {
            let findings = BenchFindings::conclude(&report, &environment, &criteria);
            BenchResult { report, environment, findings }
        };
        let lost =
            |_panicked| Error::internal("the thread evaluating the run stopped unexpectedly");
        tokio::task::spawn_blocking(conclude).await.map_err(lost)
    }
}

fn own_processor_time() -> Option<Duration> {
    cpu_time(std::process::id())
}

pub(super) async fn run_targets(
    plan: &BenchPlan,
    bench_targets: Vec<BenchTarget>,
    clock: Arc<dyn Clock>,
    control: &RunControl,
    watch: &RunMonitor,
) -> Result<BenchReport, Error> {
    if bench_targets.is_empty() {
        return Err(Error::usage("there are no tools to call"));
    }
    let (began, from) = (clock.unix(), clock.now());
    if let Sharing::Steps { in_flight, error_limit } = &plan.sharing {
        let [target] = <[BenchTarget; 1]>::try_from(bench_targets)
            .map_err(|_| Error::usage("steps need a single tool"))?;
        let steps = (in_flight.as_slice(), *error_limit);
        let (workers, ran) = step_runner::run(plan, target, steps, &clock, control, watch).await?;
        return Ok(finish(plan, workers, ran, (&clock, began, from), control, watch));
    }
    let mut workers = Vec::with_capacity(bench_targets.len());
    let mut first_arguments = Vec::with_capacity(bench_targets.len());
    for BenchTarget { connector, arguments } in bench_targets {
        first_arguments.push(Arc::clone(arguments.of_call(0)));
        let driver = LoadDriver::idle(Arc::clone(&clock), control, arguments);
        watch.lock().targets.push((connector.tool(), driver.meter()));
        let around = (Arc::clone(&clock), control.clone());
        workers.push(TargetWorker::open(connector, driver, around).await?);
    }
    for (worker, first) in workers.iter_mut().zip(first_arguments) {
        worker.begin(&first, &describe_plan(plan))?;
    }
    let ran = match (&plan.sharing, workers.as_mut_slice()) {
        (_, [worker]) => {
            let mut ran = RunFacts::default();
            run_turn(plan.clone(), worker, &mut ran, control, watch).await;
            ran
        }
        (Sharing::Interleaved { rounds }, workers) => {
            run_interleaved(plan, workers, (*rounds).max(1), control, watch).await
        }
        _ => return Err(Error::usage("several tools must take turns")),
    };
    Ok(finish(plan, workers, ran, (&clock, began, from), control, watch))
}

/// Closes what is still open, and makes the report of a run that began then.
fn finish(
    plan: &BenchPlan,
    mut workers: Vec<TargetWorker>,
    mut ran: RunFacts,
    (clock, began, from): (&Arc<dyn Clock>, Duration, Instant),
    control: &RunControl,
    watch: &RunMonitor,
) -> BenchReport {
    watch.lock().phase = RunPhase::Done;
    for worker in &mut workers {
        let (warnings, lost) = worker.end();
        ran.warnings.extend(warnings);
        ran.lost_record = ran.lost_record.take().or(lost);
    }
    let (wall, past) = (clock.unix().saturating_sub(began), clock.now() - from);
    ran.warnings.extend(caveats::clock_step(wall, past));
    ran.stopped =
        control.is_stopped() || workers.iter().any(|worker| worker.connector.is_cancelled());
    report_builder::build(plan, began, workers, ran)
}

/// One target after the other, again and again.
async fn run_interleaved(
    plan: &BenchPlan,
    workers: &mut [TargetWorker],
    rounds: u32,
    control: &RunControl,
    watch: &RunMonitor,
) -> RunFacts {
    let mut ran = RunFacts::default();
    for worker in workers.iter_mut() {
        warm_up(plan, worker, &mut ran, control, watch).await;
    }
    let mut random = fastrand::Rng::with_seed(plan.seed);
    for round in 0..rounds {
        watch.lock().round = Some((round + 1, rounds));
        let mut order: Vec<usize> = (0..workers.len()).collect();
        random.shuffle(&mut order);
        let mut turns: Vec<Option<SampleBlock>> = vec![None; workers.len()];
        for who in order {
            let worker = &mut workers[who];
            if ran.aborted || control.is_stopped() || worker.connector.is_cancelled() {
                return ran;
            }
            let part = BenchPlan {
                limits: round_limits(plan.limits, round, rounds),
                // The same chance for all targets of a round, another one for each round.
                seed: plan.seed.wrapping_add(u64::from(round)),
                ..plan.clone()
            };
            turns[who] = measure_turn(part, worker, &mut ran, control, watch).await;
        }
        // An interrupted run says nothing about how the targets compare.
        let is_whole = !ran.aborted
            && !control.is_stopped()
            && workers.iter().all(|worker| worker.is_open() && !worker.connector.is_cancelled());
        if is_whole {
            ran.rounds.push(Round { turns: turns.into_iter().flatten().collect() });
        }
    }
    ran
}

fn round_limits(until: RunLimits, round: u32, rounds: u32) -> RunLimits {
    let (round, rounds) = (u64::from(round), u64::from(rounds));
    RunLimits {
        requests: until.requests.map(|all| all / rounds + u64::from(round < all % rounds)),
        duration: until.duration.map(|all| all / u32::try_from(rounds).unwrap_or(u32::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_all_rounds_are_the_whole() {
        let until = RunLimits { requests: Some(11), duration: Some(Duration::from_secs(8)) };
        let shares: Vec<RunLimits> = (0..4).map(|round| round_limits(until, round, 4)).collect();
        let requests: Vec<u64> = shares.iter().filter_map(|share| share.requests).collect();
        assert_eq!(requests, [3, 3, 3, 2]);
        assert_eq!(shares[3].duration, Some(Duration::from_secs(2)));
    }
}
