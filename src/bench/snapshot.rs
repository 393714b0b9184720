//! A snapshot of a running benchmark, for display.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use super::meter::Meter;
use super::monitor::{RunMonitor, RunPhase};
use super::plan::{BenchPlan, RunLimits, Sharing};
use super::report::TimelineSlice;
use crate::util::distribution::{Distribution, logarithmic};
use crate::util::histogram::Durations;
use crate::util::number::float;

const CLASSES: usize = 24;

pub const PERCENTILES: [(&str, f64); 4] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)];

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
    pub targets: Vec<TargetSnapshot>,
}

#[derive(Debug, Clone, Default)]
pub struct TargetSnapshot {
    pub name: String,
    pub warm_up: u64,
    /// Calls that were made and count.
    pub requests: u64,
    pub ok: u64,
    pub failed: u64,
    /// Not made, because too many were in flight.
    pub dropped: u64,
    pub in_flight: u64,
    pub kinds: Vec<(String, u64)>,
    /// Times of answered calls from their intended starts (open) or their sending (closed).
    pub response: Option<LatencySummary>,
    pub service: Option<LatencySummary>,
    pub sent: f64,
    /// Answered calls per second, in slices of equal length from the start.
    pub rates: Vec<f64>,
    /// How the response times are spread.
    pub distribution: Option<Distribution>,
    /// The shortest response time, and the longest of all but one in a thousand.
    pub range: Option<(Duration, Duration)>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LatencySummary {
    pub count: u64,
    /// Those of [`PERCENTILES`], and whether enough lie beyond each to rely on it.
    pub quantiles: [(Duration, bool); 4],
    pub max: Duration,
    pub mean: Duration,
    pub deviation: Duration,
}

impl LatencySummary {
    /// Those of some durations; `None` without one.
    pub fn of(durations: &Durations) -> Option<Self> {
        let (max, mean) = (durations.max()?, durations.mean()?);
        let quantile = |(_, share): (&str, f64)| {
            (durations.quantile(share).unwrap_or(max), durations.is_reliable_at(share))
        };
        Some(Self {
            count: durations.count(),
            quantiles: PERCENTILES.map(quantile),
            max,
            mean,
            deviation: durations.stddev().unwrap_or_default(),
        })
    }
}

impl BenchSnapshot {
    pub fn capture(watch: &RunMonitor, plan: &BenchPlan, now: Instant) -> Self {
        let stage = watch.lock();
        let (phase, round, began) = (stage.phase, stage.round, stage.began);
        let meters = stage.targets.clone();
        drop(stage);
        let mut targets = Vec::new();
        let mut times = Vec::new();
        for (name, meter) in meters {
            let meter = meter.lock().unwrap_or_else(PoisonError::into_inner);
            let elapsed = meter.elapsed(now);
            times.push(elapsed);
            targets.push(TargetSnapshot::of(name, &meter, elapsed));
        }
        let elapsed = match plan.sharing {
            Sharing::Interleaved { .. } | Sharing::Steps { .. } => times.iter().sum(),
            Sharing::Single => times.iter().max().copied().unwrap_or_default(),
        };
        let made = targets.iter().map(|target| target.requests + target.dropped).sum();
        let share = began.and_then(|_| progress(&total_limits(plan, targets.len()), elapsed, made));
        Self { phase, elapsed, progress: share, round, targets }
    }

    pub fn answered(&self) -> u64 {
        self.targets.iter().map(|target| target.ok).sum()
    }

    pub fn failed(&self) -> u64 {
        self.targets.iter().map(|target| target.failed).sum()
    }

    pub fn requests(&self) -> u64 {
        self.targets.iter().map(|target| target.requests).sum()
    }

    /// Calls that were not made, because too many were in flight.
    pub fn dropped(&self) -> u64 {
        self.targets.iter().map(|target| target.dropped).sum()
    }

    pub fn in_flight(&self) -> u64 {
        self.targets.iter().map(|target| target.in_flight).sum()
    }

    pub fn rate(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        let answered = float(self.answered());
        if seconds > 0.0 { answered / seconds } else { 0.0 }
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
pub fn rates(slices: &[TimelineSlice], elapsed: Duration) -> Vec<f64> {
    let rate = |slice: &TimelineSlice| {
        let lasted = elapsed.saturating_sub(slice.from).min(slice.lasting);
        // What lasted next to nothing has no rate.
        let lasted = lasted.max(slice.lasting / 10);
        let ok = float(slice.ok);
        ok / lasted.as_secs_f64().max(1e-9)
    };
    slices.iter().map(rate).collect()
}

impl TargetSnapshot {
    fn of(name: String, meter: &Meter, elapsed: Duration) -> Self {
        let report = &meter.report;
        let times = &report.response;
        let mut kinds: Vec<(String, u64)> =
            report.errors_by_kind.iter().map(|(kind, error)| (kind.clone(), error.count)).collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let requests = float(report.requests);
        Self {
            name,
            warm_up: report.warm_up,
            requests: report.requests,
            ok: report.ok,
            failed: meter.failures(),
            dropped: report.dropped,
            in_flight: meter.in_flight,
            kinds,
            response: LatencySummary::of(times),
            service: LatencySummary::of(meter.service()),
            sent: requests / meter.active_time().as_secs_f64().max(1e-3),
            rates: rates(&report.timeline, elapsed),
            distribution: logarithmic(times, CLASSES),
            range: times.min().zip(times.quantile(0.999)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::bench::meter::PendingCall;
    use crate::host::load::{CompletedRequest, LoadOutcome};
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
                    let sent_at = now;
                    let ended_at = now
                        + Duration::from_secs(1) * u32::try_from(call).unwrap()
                            / u32::try_from(*calls).unwrap();
                    meter.call_sent(sent_at, true);
                    let end = CompletedRequest {
                        ticket: call,
                        sent_at,
                        ended_at,
                        outcome: LoadOutcome::Ok,
                        bytes_out: 0,
                        bytes_in: 0,
                    };
                    let pending = PendingCall { first: false, is_counted: true, planned: None };
                    meter.call_ended(&end, pending);
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
        assert!((snapshot.targets[1].sent - 30.0).abs() < 1e-9, "{}", snapshot.targets[1].sent);
        // A call that runs counts with its turn, and the slices of the timeline with their length.
        watch.lock().targets[0].1.lock().unwrap().call_sent(now, true);
        let later = BenchSnapshot::capture(&watch, &turns, now + Duration::from_secs(2));
        assert_eq!(later.elapsed, Duration::from_secs(12));
        let slowest = later.targets[1].rates.iter().copied().fold(0.0, f64::max);
        assert!(slowest < 200.0, "{:?}", later.targets[1].rates);
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
