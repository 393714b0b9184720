//! A snapshot of a running benchmark, for display.

use std::time::{Duration, Instant};

use super::control::{RunMonitor, RunPhase};
use super::plan::{BenchPlan, RunLimits, Sharing};
use super::report::{TargetReport, TimelineSlice, throughput};
use crate::util::lock::lock;
use crate::util::units::float;

/// What is seen of a run at one moment.
#[derive(Debug, Clone, Default)]
pub struct BenchSnapshot {
    pub phase: RunPhase,
    /// The time in which the calls that count were made: of targets that take turns, the turns of
    /// all together.
    pub elapsed: Duration,
    /// How much of it is done, as far as it is known, from 0 to 1.
    pub progress: Option<f64>,
    pub round: Option<(u32, u32)>,
    pub in_flight: u64,
    /// The reports so far.
    pub targets: Vec<TargetReport>,
}

impl BenchSnapshot {
    pub fn capture(watch: &RunMonitor, plan: &BenchPlan, now: Instant) -> Self {
        let stage = watch.lock();
        let (phase, round, began) = (stage.phase, stage.round, stage.began);
        let meters = stage.targets.clone();
        drop(stage);
        let mut snapshot = Self { phase, round, ..Self::default() };
        for (at, (name, meter)) in meters.into_iter().enumerate() {
            let meter = lock(&meter);
            snapshot.in_flight += meter.in_flight;
            let elapsed = meter.elapsed(now);
            let step = match &plan.sharing {
                Sharing::Steps { in_flight, .. } => in_flight.get(at).copied(),
                Sharing::Single | Sharing::Interleaved { .. } => None,
            };
            let report = &meter.report;
            // Not all of it: the run waits meanwhile.
            snapshot.targets.push(TargetReport {
                tool: name,
                step,
                elapsed,
                warm_up: report.warm_up,
                requests: report.requests,
                ok: report.ok,
                tool_errors: report.tool_errors,
                errors: report.errors,
                timeouts: report.timeouts,
                unanswered: report.unanswered,
                dropped: report.dropped,
                throughput: throughput(report.ok, elapsed),
                response: report.response.clone(),
                service: meter.service().clone(),
                errors_by_kind: report.errors_by_kind.clone(),
                timeline: report.timeline.iter().map(TimelineSlice::counts).collect(),
                ..TargetReport::default()
            });
        }
        let times = snapshot.targets.iter().map(|target| target.elapsed);
        snapshot.elapsed = match plan.sharing {
            Sharing::Interleaved { .. } | Sharing::Steps { .. } => times.sum(),
            Sharing::Single => times.max().unwrap_or_default(),
        };
        let limits = total_limits(plan, snapshot.targets.len());
        let made = snapshot.total(|target| target.requests + target.dropped);
        snapshot.progress = began.and_then(|_| progress(&limits, snapshot.elapsed, made));
        snapshot
    }

    pub fn total(&self, count: impl Fn(&TargetReport) -> u64) -> u64 {
        self.targets.iter().map(count).sum()
    }

    pub fn answered(&self) -> u64 {
        self.total(|target| target.ok)
    }

    pub fn failed(&self) -> u64 {
        self.total(TargetReport::failures)
    }

    pub fn rate(&self) -> f64 {
        throughput(self.answered(), self.elapsed)
    }
}

/// The limits of the whole run; each target that takes turns and each step has the whole plan.
pub fn total_limits(plan: &BenchPlan, targets: usize) -> RunLimits {
    let times = match &plan.sharing {
        Sharing::Interleaved { .. } => targets.max(1),
        Sharing::Steps { in_flight, .. } => in_flight.len(),
        Sharing::Single => 1,
    };
    let times = u32::try_from(times).unwrap_or(1);
    RunLimits {
        requests: plan.limits.requests.map(|all| all.saturating_mul(times.into())),
        duration: plan.limits.duration.map(|all| all.saturating_mul(times)),
    }
}

/// How much is done: of the calls or of the time, whichever ends first.
pub fn progress(until: &RunLimits, elapsed: Duration, made: u64) -> Option<f64> {
    let calls = until.requests.map(|all| float(made) / float(all.max(1)));
    let time = until.duration.map(|all| elapsed.as_secs_f64() / all.as_secs_f64().max(1e-9));
    let most = calls.into_iter().chain(time).fold(f64::NAN, f64::max);
    (!most.is_nan()).then(|| most.clamp(0.0, 1.0))
}

/// Answered calls per second in each slice; the last one may have been cut short by the end.
pub fn rates(target: &TargetReport) -> Vec<f64> {
    let rate = |slice: &TimelineSlice| {
        let lasted = target.elapsed.saturating_sub(slice.from).min(slice.lasting);
        // What lasted next to nothing has no rate.
        let lasted = lasted.max(slice.lasting / 10);
        let ok = float(slice.ok);
        ok / lasted.as_secs_f64().max(1e-9)
    };
    target.timeline.iter().map(rate).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::bench::meter::{Meter, PendingCall};
    use crate::bench::scheduler::PlannedCall;
    use crate::host::load::{CompletedCall, LoadOutcome};
    use crate::util::clock::{Clock as _, SystemClock};

    fn plan() -> BenchPlan {
        let until = RunLimits { requests: Some(1_600), duration: Some(Duration::from_secs(10)) };
        BenchPlan { limits: until, ..BenchPlan::default() }
    }

    #[test]
    fn in_turns_each_tool_has_the_whole_plan() {
        let turns = BenchPlan { sharing: Sharing::Interleaved { rounds: 5 }, ..plan() };
        assert_eq!(total_limits(&turns, 2).requests, Some(3_200));
        assert_eq!(total_limits(&plan(), 2).requests, Some(1_600));
    }

    /// A monitor of these targets, each called for turns of one second in which `calls` were
    /// answered.
    fn ran(calls: &[(u64, u32)], began: Instant) -> (RunMonitor, Instant) {
        let watch = RunMonitor::default();
        let mut now = began;
        let meters: Vec<_> = calls.iter().map(|_| Arc::new(Mutex::new(Meter::default()))).collect();
        let most = calls.iter().map(|(_, turns)| *turns).max().unwrap_or(0);
        for turn in 0..most {
            for ((calls, turns), meter) in calls.iter().zip(&meters) {
                if turn >= *turns {
                    continue;
                }
                let mut meter = meter.lock().unwrap();
                watch.lock().began = Some(now);
                meter.begin_turn();
                for call in 1..=*calls {
                    let planned = PlannedCall { is_counted: true, moments: None };
                    let pending = PendingCall { planned, is_first: false, sent_at: now };
                    meter.call_sent(&pending);
                    let ended_at = now
                        + Duration::from_secs(1) * u32::try_from(call).unwrap()
                            / u32::try_from(*calls).unwrap();
                    let outcome = LoadOutcome::Ok;
                    let end = CompletedCall { ended_at, bytes_out: 0, bytes_in: 0, outcome };
                    meter.call_ended(&pending, &end);
                }
                meter.end_turn();
                now += Duration::from_secs(1);
            }
        }
        for (at, meter) in meters.into_iter().enumerate() {
            watch.lock().targets.push((format!("tool-{at}"), meter));
        }
        (watch, now)
    }

    #[test]
    fn the_rate_of_targets_that_take_turns_is_over_the_time_of_all_turns() {
        let turns = BenchPlan { sharing: Sharing::Interleaved { rounds: 5 }, ..plan() };
        let (watch, now) = ran(&[(10, 5), (30, 5)], SystemClock.now());
        let snapshot = BenchSnapshot::capture(&watch, &turns, now);
        assert_eq!((snapshot.answered(), snapshot.elapsed), (200, Duration::from_secs(10)));
        assert!((snapshot.rate() - 20.0).abs() < 1e-9, "{}", snapshot.rate());
        let throughput = snapshot.targets[1].throughput;
        assert!((throughput - 30.0).abs() < 1e-9, "{throughput}");
        // A call that runs counts with its turn, and the slices of the timeline with their length.
        let planned = PlannedCall { is_counted: true, moments: None };
        let running = PendingCall { planned, is_first: false, sent_at: now };
        watch.lock().targets[0].1.lock().unwrap().call_sent(&running);
        let later = BenchSnapshot::capture(&watch, &turns, now + Duration::from_secs(2));
        assert_eq!(later.elapsed, Duration::from_secs(12));
        let rates = rates(&later.targets[1]);
        let highest = rates.iter().copied().fold(0.0, f64::max);
        assert!(highest < 200.0, "{rates:?}");
    }

    #[test]
    fn whatever_ends_first_says_how_much_is_done() {
        let share =
            |elapsed, made| progress(&plan().limits, Duration::from_secs(elapsed), made).unwrap();
        assert!((share(1, 800) - 0.5).abs() < 1e-9);
        assert!((share(9, 800) - 0.9).abs() < 1e-9);
        assert!((share(99, 800) - 1.0).abs() < 1e-9);
    }
}
