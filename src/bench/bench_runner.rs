//! One run, from prepared tools to the report.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::host::ToolHost;
use crate::host::load::LoadTarget;
use crate::model::Error;
use crate::util::clock::SystemClock;
use crate::util::process::cpu_time;

use super::bench_result::{AcceptanceCriteria, BenchFindings, BenchResult};
use super::control::{RunControl, RunMonitor, RunPhase};
use super::environment::{BenchEnvironment, read_file};
use super::plan::{ArgumentRows, BenchPlan, LoadModel, RunLimits, Sharing, WarmUp};
use super::report::{BenchReport, GeneratorReport, Round, RunStatus, SampleBlock};
use super::target_worker::{BenchTarget, RunHandles, TargetWorker};
use super::{caveats, targets};
use crate::util::lock::lock;
use crate::util::units::{float, show_duration};

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
        let before = BenchEnvironment::before(read_file);
        let server_times = targets::processor_times(host);
        let own_time = own_processor_time();
        let bench_target = |prepared: PreparedTarget| {
            let PreparedTarget { target, arguments } = prepared;
            BenchTarget { connector: Arc::new(target), arguments }
        };
        let prepared = prepared.into_iter().map(bench_target).collect();
        let (control, monitor) = (self.control.clone(), self.monitor.clone());
        let handles = RunHandles { clock: Arc::new(SystemClock), control, monitor };
        let mut report = run_targets(&self.plan, prepared, handles).await?;
        let used = own_processor_time().zip(own_time);
        report.generator.cpu = used.and_then(|(after, before)| after.checked_sub(before));
        let environment = BenchEnvironment {
            servers: targets::identities(&report, &servers, &server_times, host),
            ..before.after(read_file)
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
    mut bench_targets: Vec<BenchTarget>,
    handles: RunHandles,
) -> Result<BenchReport, Error> {
    let (began, from) = (handles.clock.unix(), handles.clock.now());
    let mut run = Run {
        plan,
        handles,
        rounds: Vec::new(),
        warnings: Vec::new(),
        lost_record: None,
        is_aborted: false,
        paused: Duration::ZERO,
    };
    let workers = match (&plan.sharing, bench_targets.len()) {
        (_, 0) => return Err(Error::usage("there are no tools to call")),
        (Sharing::Steps { in_flight, error_limit }, 1) => {
            run.make_steps(&bench_targets.remove(0), in_flight, *error_limit).await?
        }
        (Sharing::Steps { .. }, _) => return Err(Error::usage("steps need a single tool")),
        (Sharing::Single, 2..) => return Err(Error::usage("several tools must take turns")),
        (Sharing::Single, _) => run.make_rounds(bench_targets, 1).await?,
        (Sharing::Interleaved { rounds }, _) => {
            run.make_rounds(bench_targets, (*rounds).max(1)).await?
        }
    };
    Ok(run.finish(workers, began, from))
}

struct Run<'a> {
    plan: &'a BenchPlan,
    handles: RunHandles,
    rounds: Vec<Round>,
    warnings: Vec<String>,
    lost_record: Option<Error>,
    is_aborted: bool,
    paused: Duration,
}

impl Run<'_> {
    fn is_over(&self, worker: &TargetWorker) -> bool {
        self.is_aborted || self.handles.control.is_stopped() || worker.is_cancelled()
    }

    /// One target after the other, again and again; a single one at once.
    async fn make_rounds(
        &mut self,
        targets: Vec<BenchTarget>,
        rounds: u32,
    ) -> Result<Vec<TargetWorker>, Error> {
        let mut workers = Vec::with_capacity(targets.len());
        for target in targets {
            let name = target.connector.tool();
            workers.push(TargetWorker::open(target, name, self.handles.clone()).await?);
        }
        for worker in &mut workers {
            worker.begin(&describe(self.plan))?;
        }
        for worker in &mut workers {
            self.warm_up(worker, self.plan).await;
        }
        let mut random = fastrand::Rng::with_seed(self.plan.seed);
        let takes_turns = workers.len() > 1;
        for round in 0..rounds {
            self.handles.monitor.lock().round = takes_turns.then_some((round + 1, rounds));
            let mut order: Vec<usize> = (0..workers.len()).collect();
            random.shuffle(&mut order);
            let mut turns: Vec<Option<SampleBlock>> = vec![None; workers.len()];
            for at in order {
                if self.is_over(&workers[at]) {
                    return Ok(workers);
                }
                let part = BenchPlan {
                    limits: round_limits(self.plan.limits, round, rounds),
                    // The same chance for all targets of a round, another one for each round.
                    seed: self.plan.seed.wrapping_add(u64::from(round)),
                    ..self.plan.clone()
                };
                turns[at] = self.measure(&mut workers[at], part).await;
            }
            // An interrupted run says nothing about how the targets compare.
            if takes_turns && workers.iter().all(|worker| worker.is_open() && !self.is_over(worker))
            {
                self.rounds.push(Round { turns: turns.into_iter().flatten().collect() });
            }
        }
        Ok(workers)
    }

    /// One target again and again, each time on a connection of its own.
    async fn make_steps(
        &mut self,
        target: &BenchTarget,
        in_flight: &[usize],
        error_limit: Option<f64>,
    ) -> Result<Vec<TargetWorker>, Error> {
        let mut workers: Vec<TargetWorker> = Vec::with_capacity(in_flight.len());
        let steps = u32::try_from(in_flight.len()).unwrap_or(u32::MAX);
        for (number, &calls) in (1..).zip(in_flight) {
            {
                let mut state = self.handles.monitor.lock();
                (state.phase, state.round) = (RunPhase::Connecting, Some((number, steps)));
            }
            let name = format!("{calls} in flight");
            let opened = TargetWorker::open(target.clone(), name, self.handles.clone()).await;
            let mut worker = match opened {
                Ok(worker) => worker,
                Err(error) if workers.is_empty() => return Err(error),
                Err(error) => {
                    self.warnings
                        .push(format!("stopped before the step with {calls} in flight: {error}"));
                    self.is_aborted = true;
                    break;
                }
            };
            worker.step = Some(calls);
            worker.is_repeated = number > 1;
            let model = LoadModel::Closed { concurrency: calls };
            let step = BenchPlan { model, ..self.plan.clone() };
            let planned = format!("{}, {calls} in flight", describe(self.plan));
            worker.begin(&planned)?;
            self.warm_up(&mut worker, &step).await;
            self.measure(&mut worker, step).await;
            self.end(&mut worker);
            let too_many_failed = error_limit.is_some_and(|limit| failed_share(&worker) > limit);
            let is_last = too_many_failed || worker.error.is_some() || self.is_over(&worker);
            workers.push(worker);
            if is_last {
                break;
            }
        }
        Ok(workers)
    }

    /// Makes the calls before those of a plan, which do not count.
    async fn warm_up(&mut self, worker: &mut TargetWorker, plan: &BenchPlan) {
        let limits = match plan.warm_up {
            WarmUp::Calls(calls) => RunLimits { requests: Some(calls), duration: None },
            WarmUp::Time(time) => RunLimits { requests: None, duration: Some(time) },
        };
        let concurrency = match plan.model {
            LoadModel::Closed { concurrency } => concurrency,
            // One after the other: the schedule begins afterwards.
            LoadModel::Open { .. } => 1,
        };
        let model = LoadModel::Closed { concurrency };
        self.call(worker, (BenchPlan { model, limits, ..plan.clone() }, false)).await;
    }

    /// Makes the calls of a plan, as a turn of the target.
    async fn measure(&mut self, worker: &mut TargetWorker, plan: BenchPlan) -> Option<SampleBlock> {
        lock(&worker.meter).begin_turn();
        self.call(worker, (plan, true)).await;
        lock(&worker.meter).end_turn()
    }

    async fn call(&mut self, worker: &mut TargetWorker, plan: (BenchPlan, bool)) {
        if worker.is_open() {
            let scheduler = worker.run(plan).await;
            self.is_aborted |= scheduler.is_aborted;
            self.paused += scheduler.paused;
        }
    }

    fn end(&mut self, worker: &mut TargetWorker) {
        let (warnings, lost) = worker.end();
        self.warnings.extend(warnings);
        self.lost_record = self.lost_record.take().or(lost);
    }

    /// Closes what is still open, and makes the report of a run that began then.
    fn finish(
        mut self,
        mut workers: Vec<TargetWorker>,
        began: Duration,
        from: Instant,
    ) -> BenchReport {
        self.handles.monitor.lock().phase = RunPhase::Done;
        for worker in &mut workers {
            self.end(worker);
        }
        let clock = &self.handles.clock;
        let (wall, past) = (clock.unix().saturating_sub(began), clock.now() - from);
        self.warnings.extend(caveats::clock_step(wall, past));
        let is_stopped = self.handles.control.is_stopped();
        let status = if is_stopped || workers.iter().any(TargetWorker::is_cancelled) {
            RunStatus::Stopped
        } else if self.is_aborted || workers.iter().any(|worker| worker.error.is_some()) {
            RunStatus::Aborted
        } else {
            RunStatus::Complete
        };
        let mut generator = GeneratorReport { paused: self.paused, ..GeneratorReport::default() };
        for worker in &workers {
            let meter = lock(&worker.meter);
            generator.lag.merge(&meter.lag);
            generator.queued += meter.queued;
        }
        let lag = &generator.lag;
        generator.late = lag.count() - lag.count_up_to(Duration::from_millis(1));
        let targets: Vec<_> = workers.into_iter().map(TargetWorker::into_report).collect();
        let mut report = BenchReport {
            plan: self.plan.clone(),
            began,
            elapsed: targets.iter().map(|target| target.elapsed).sum(),
            status,
            targets,
            rounds: self.rounds,
            generator,
            lost_record: self.lost_record,
            warnings: Vec::new(),
        };
        report.warnings = caveats::collect(&report);
        report.warnings.extend(self.warnings);
        report
    }
}

/// What a run is about to do, for the record of it.
fn describe(plan: &BenchPlan) -> String {
    let calls = plan.limits.requests.map(|calls| format!("{calls} calls"));
    let time = plan.limits.duration.map(|time| format!("for {}", show_duration(time)));
    match (calls, time) {
        (Some(calls), Some(time)) => format!("a benchmark, {calls} or {time}"),
        (Some(one), None) | (None, Some(one)) => format!("a benchmark, {one}"),
        (None, None) => "a benchmark".to_owned(),
    }
}

fn failed_share(worker: &TargetWorker) -> f64 {
    let report = &lock(&worker.meter).report;
    float(report.failed_calls()) / float(report.requests.max(1))
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
