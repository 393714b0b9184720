//! Benchmark reports for tests.

use std::time::Duration;

use super::plan::BenchPlan;
use super::report::{
    BenchReport, ErrorReport, GeneratorReport, Round, RunStatus, SampleBlock, TargetReport,
    TimelineSlice,
};
use crate::util::histogram::Durations;

/// A target that answered in these times, one after the other.
pub(crate) fn target(tool: &str, times: impl IntoIterator<Item = Duration>) -> TargetReport {
    const SLICE: Duration = Duration::from_millis(100);
    let mut response = Durations::default();
    let mut timeline: Vec<TimelineSlice> = Vec::new();
    let mut now = Duration::ZERO;
    for time in times {
        response.record(time);
        now += time;
        let at = usize::try_from(now.as_nanos() / SLICE.as_nanos()).unwrap();
        while timeline.len() <= at {
            timeline.push(TimelineSlice {
                from: SLICE * u32::try_from(timeline.len()).unwrap(),
                lasting: SLICE,
                ok: 0,
                failed: 0,
                response: Durations::coarse(),
            });
        }
        timeline[at].ok += 1;
        timeline[at].response.record(time);
    }
    let ok = response.count();
    #[expect(clippy::cast_precision_loss, reason = "few calls")]
    let throughput = if now.is_zero() { 0.0 } else { ok as f64 / now.as_secs_f64() };
    TargetReport {
        tool: tool.to_owned(),
        elapsed: now,
        requests: ok,
        ok,
        throughput,
        service: response.clone(),
        response,
        peak_in_flight: 1,
        bytes_in: 200 * ok,
        bytes_out: 100 * ok,
        timeline,
        ..TargetReport::default()
    }
}

/// A target in the middle of a run, with so many answers in each second.
pub(crate) fn running(
    tool: &str,
    response: Durations,
    answers: impl Iterator<Item = u64>,
) -> TargetReport {
    let lasting = Duration::from_secs(1);
    let slice = |(second, ok): (u32, u64)| TimelineSlice {
        from: lasting * second,
        lasting,
        ok,
        failed: 0,
        response: Durations::coarse(),
    };
    let timeline: Vec<_> = (0..).zip(answers).map(slice).collect();
    TargetReport {
        tool: tool.to_owned(),
        elapsed: timeline.iter().map(|slice| slice.lasting).sum(),
        requests: response.count(),
        ok: response.count(),
        service: response.clone(),
        response,
        timeline,
        ..TargetReport::default()
    }
}

/// Adds calls that no answer came to in time.
pub(crate) fn timed_out(target: &mut TargetReport, calls: u64) {
    target.timeouts += calls;
    let sample = "no response within 1 s".to_owned();
    let error = ErrorReport { count: calls, first_seen: Duration::ZERO, sample };
    target.errors_by_kind.insert("timeout".to_owned(), error);
}

pub(crate) fn report(targets: Vec<TargetReport>) -> BenchReport {
    let elapsed = targets
        .iter()
        .filter_map(|target| target.timeline.last())
        .map(|last| last.from + last.lasting)
        .max()
        .unwrap_or_default();
    BenchReport {
        plan: BenchPlan::default(),
        began: Duration::from_hours(500_000),
        elapsed,
        status: RunStatus::Complete,
        targets,
        rounds: Vec::new(),
        generator: GeneratorReport::default(),
        lost_record: None,
        warnings: Vec::new(),
    }
}

/// So many log-normal durations around so many seconds, a few of them far out.
pub(crate) fn noisy(base: f64, calls: usize, seed: u64) -> Vec<Duration> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut one = || {
        let (u, v) = (1.0 - random.f64(), random.f64());
        let normal = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
        let outlier = if random.f64() < 0.01 { 5.0 } else { 1.0 };
        Duration::try_from_secs_f64(base * (0.3 * normal).exp() * outlier).unwrap()
    };
    (0..calls).map(|_| one()).collect()
}

/// Rounds of 100 calls of evenly 1 to 100 times so many microseconds for each target.
pub(crate) fn rounds(micros: &[u64], rounds: usize) -> Vec<Round> {
    let turn = |micros: &u64| {
        let mut response = Durations::default();
        (1..=100).for_each(|n| response.record(Duration::from_micros(n * micros)));
        SampleBlock { elapsed: Duration::from_micros(5_050 * micros), ok: 100, failed: 0, response }
    };
    let round = || Round { turns: micros.iter().map(turn).collect() };
    std::iter::repeat_with(round).take(rounds).collect()
}
