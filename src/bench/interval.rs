//! Confidence intervals of the ratio of two runs.

use std::time::Duration;

use super::plan::BenchPlan;
use super::report::{SampleBlock, TargetReport, TimelineSlice};
use super::statistic::Statistic;
use crate::util::units::{float, float_len, nanos};

const RESAMPLES: usize = 2_000;

/// Stretches below this number say nothing about how much they vary.
pub const MIN_BLOCKS: usize = 5;

const MAX_BLOCKS: usize = 20;

/// Classes of equal ratio, per factor e: a thousandth apart, like the histogram's own.
const CLASSES: f64 = 1_000.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pairing {
    /// One of each was measured at the same time: what the machine did then hit both.
    Paired,
    Independent,
}

/// The stretches of a run, ready to be drawn many times.
#[derive(Debug, Clone, Default)]
pub(super) struct BlockSet {
    /// Calls of one class in one stretch, quick classes first.
    counts: Vec<BlockCount>,
    /// For each stretch: calls, the sum of their times in nanoseconds, and its length in seconds.
    totals: Vec<(u64, f64, f64)>,
    /// The share by which a percentile may be wrong because calls are counted in classes.
    resolution: f64,
}

#[derive(Debug, Clone, Copy)]
struct BlockCount {
    class: i32,
    block: usize,
    calls: u64,
}

impl BlockSet {
    /// Stretches that were measured as such.
    pub(super) fn of<'a>(turns: impl IntoIterator<Item = &'a SampleBlock>) -> Self {
        let mut all = Self::default();
        for (stretch, turn) in turns.into_iter().enumerate() {
            let start = all.counts.len();
            for (duration, calls) in turn.response.buckets() {
                let class = class_of(duration);
                match all.counts.get_mut(start..).and_then(<[BlockCount]>::last_mut) {
                    Some(last) if last.class == class => last.calls += calls,
                    _ => all.counts.push(BlockCount { class, block: stretch, calls }),
                }
            }
            let mean = turn.response.mean().map_or(0.0, nanos);
            let calls = turn.response.count();
            all.totals.push((calls, mean * float(calls), turn.elapsed.as_secs_f64()));
            all.resolution = all.resolution.max(turn.response.resolution());
        }
        all.counts.sort_unstable_by_key(|counted| counted.class);
        all
    }

    /// How many there are in which calls were answered.
    pub(super) fn len(&self) -> usize {
        self.totals.iter().filter(|(calls, ..)| *calls > 0).count()
    }

    /// By how much the classes of the histogram may hide a difference in this figure.
    pub(super) fn resolution(&self, statistic: Statistic) -> f64 {
        if statistic.share().is_some() { self.resolution } else { 0.0 }
    }

    pub(super) fn throughput(&self) -> f64 {
        let seconds: f64 = self.totals.iter().map(|(.., seconds)| seconds).sum();
        let calls: u64 = self.totals.iter().map(|(calls, ..)| calls).sum();
        if seconds > 0.0 { float(calls) / seconds } else { 0.0 }
    }

    fn log_statistics(&self, times: &[u32]) -> [Option<f64>; Statistic::ALL.len()] {
        let mut logarithms = [None; Statistic::ALL.len()];
        let (mut calls, mut sum, mut seconds) = (0, 0.0, 0.0);
        for ((n, nanos, length), times) in self.totals.iter().zip(times) {
            calls += n * u64::from(*times);
            sum += nanos * f64::from(*times);
            seconds += length * f64::from(*times);
        }
        if calls == 0 {
            return logarithms;
        }
        let ln = |value: f64| (value.is_finite() && value > 0.0).then(|| value.ln());
        logarithms[Statistic::Mean.index()] = ln(sum / float(calls));
        logarithms[Statistic::Throughput.index()] = ln(float(calls) / seconds);
        let mut ranks = Statistic::ALL
            .iter()
            .filter_map(|statistic| Some((statistic.index(), statistic.share()?)))
            .map(|(index, share)| (index, share * float(calls)))
            .peekable();
        let mut passed = 0.0;
        for counted in &self.counts {
            passed += float(counted.calls) * f64::from(times[counted.block]);
            while let Some((index, _)) = ranks.next_if(|(_, rank)| passed >= *rank) {
                logarithms[index] = Some(f64::from(counted.class) / CLASSES);
            }
            if ranks.peek().is_none() {
                break;
            }
        }
        logarithms
    }
}

/// A timeline as a few stretches of about equal length; the last one ends with the run.
pub fn blocks(timeline: &[TimelineSlice], elapsed: Duration) -> Vec<SampleBlock> {
    let each = timeline.len().div_ceil(MAX_BLOCKS).max(1);
    let block = |slice: TimelineSlice| SampleBlock {
        elapsed: slice.lasting.min(elapsed.saturating_sub(slice.from)),
        ok: slice.ok,
        failed: slice.failed,
        response: slice.response,
    };
    let blocks = timeline.chunks(each).filter_map(TimelineSlice::joined).map(block);
    blocks.filter(|block| !block.elapsed.is_zero()).collect()
}

/// Between which values, in nanoseconds, a figure of a run lies with 95 of 100 chances; `None` if the
/// run was too short to tell.
pub fn range(target: &TargetReport, statistic: Statistic) -> Option<(f64, f64)> {
    let blocks = BlockSet::of(&blocks(&target.timeline, target.elapsed));
    if blocks.len() < MIN_BLOCKS {
        return None;
    }
    let errors = standard_errors(&blocks, &blocks, Pairing::Independent, BenchPlan::default().seed);
    // Two draws of one run differ by √2 of what each varies by.
    let error = errors[statistic.index()]? / std::f64::consts::SQRT_2;
    let reach = (error * student_quantile(0.95, blocks.len())).exp();
    let value = statistic.of(&target.response, target.throughput)?;
    Some((value / reach, value * reach))
}

pub(super) fn standard_errors(
    a: &BlockSet,
    b: &BlockSet,
    pairing: Pairing,
    seed: u64,
) -> [Option<f64>; Statistic::ALL.len()] {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut differences: [Vec<f64>; Statistic::ALL.len()] = std::array::from_fn(|_| Vec::new());
    let (mut of_a, mut of_b) = (vec![0; a.totals.len()], vec![0; b.totals.len()]);
    for _ in 0..RESAMPLES {
        resample(&mut random, &mut of_a);
        match pairing {
            Pairing::Paired => of_b.clone_from(&of_a),
            Pairing::Independent => resample(&mut random, &mut of_b),
        }
        let drawn = a.log_statistics(&of_a).into_iter().zip(b.log_statistics(&of_b));
        for (differences, (a, b)) in differences.iter_mut().zip(drawn) {
            differences.extend(a.zip(b).map(|(a, b)| b - a));
        }
    }
    // The bootstrap sees too little variance in few stretches, by this factor.
    let stretches = float_len(a.len().min(b.len()));
    let factor = (stretches / (stretches - 1.0).max(1.0)).sqrt();
    differences.map(|differences| {
        (differences.len() == RESAMPLES).then(|| deviation(&differences) * factor)
    })
}

/// So many standard errors are within an interval of this level, when as many stretches were
/// looked at: the quantile of Student's distribution.
pub(super) fn student_quantile(level: f64, stretches: usize) -> f64 {
    let z = normal_quantile(f64::midpoint(1.0, level));
    let freedom = float_len(stretches.saturating_sub(1).max(1));
    // The Cornish-Fisher expansion: within a hundredth from four degrees of freedom on.
    let first = (z.powi(3) + z) / (4.0 * freedom);
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * freedom.powi(2));
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z)
        / (384.0 * freedom.powi(3));
    z + first + second + third
}

fn resample(random: &mut fastrand::Rng, times: &mut [u32]) {
    times.fill(0);
    for _ in 0..times.len() {
        times[random.usize(..times.len())] += 1;
    }
}

fn deviation(values: &[f64]) -> f64 {
    let count = float_len(values.len());
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (squares / (count - 1.0).max(1.0)).sqrt()
}

/// Where this share of the normal distribution lies below; for shares from a half to 1 - 1e-9.
fn normal_quantile(share: f64) -> f64 {
    let (mut low, mut high) = (0.0, 6.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if normal_share(middle) < share { low = middle } else { high = middle }
    }
    low
}

/// The share of the normal distribution below `x`, by its series around 0.
fn normal_share(x: f64) -> f64 {
    let (mut term, mut sum, mut odd) = (x, x, 1.0);
    while term.abs() > 1e-16 {
        odd += 2.0;
        term *= x * x / odd;
        sum += term;
    }
    0.5 + sum * (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt()
}

#[expect(clippy::cast_possible_truncation, reason = "the logarithm of a duration is below 50")]
fn class_of(duration: Duration) -> i32 {
    (nanos(duration).max(1.0).ln() * CLASSES).round() as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fixtures;
    use crate::util::histogram::Durations;

    #[test]
    fn the_quantiles_of_student_are_those_of_the_tables() {
        for (level, stretches, table) in
            [(0.95, 5, 2.776), (0.95, 10, 2.262), (0.95, 1_000, 1.962), (0.99, 10, 3.250)]
        {
            let reach = student_quantile(level, stretches);
            assert!((reach - table).abs() < 0.02, "{level} {stretches}: {reach}, not {table}");
        }
    }

    #[test]
    fn drawn_once_each_stretches_give_the_figures_of_the_whole() {
        let mut whole = Durations::default();
        let turns: Vec<SampleBlock> = (1..=4_u64)
            .map(|turn| {
                let mut response = Durations::default();
                for call in 1..=500 {
                    let duration = Duration::from_micros(turn * 100 + call);
                    response.record(duration);
                    whole.record(duration);
                }
                SampleBlock { elapsed: Duration::from_secs(1), ok: 500, failed: 0, response }
            })
            .collect();
        let drawn = BlockSet::of(&turns).log_statistics(&[1; 4]);
        for statistic in Statistic::ALL {
            let expected = statistic.of(&whole, 500.0).unwrap().ln();
            let error = drawn[statistic.index()].unwrap();
            assert!((error - expected).abs() < 0.002, "{}: {error} {expected}", statistic.name());
        }
    }

    #[test]
    fn a_timeline_becomes_a_few_stretches_that_end_with_the_run() {
        let slice = Duration::from_millis(100);
        let timeline: Vec<TimelineSlice> = (0..50)
            .map(|number| TimelineSlice {
                from: slice * number,
                lasting: slice,
                ok: 1,
                failed: 0,
                response: Durations::coarse(),
            })
            .collect();
        let stretches = blocks(&timeline, Duration::from_millis(4_950));
        assert_eq!(stretches.len(), 17);
        assert_eq!(stretches.iter().map(|turn| turn.ok).sum::<u64>(), 50);
        let elapsed: Duration = stretches.iter().map(|turn| turn.elapsed).sum();
        assert_eq!(elapsed, Duration::from_millis(4_950));
    }

    #[test]
    fn a_figure_has_a_range_from_five_stretches_on() {
        let of = |calls: usize| {
            // Two in each tenth of a second, which is one stretch.
            fixtures::target("a", vec![Duration::from_millis(50); calls])
        };
        assert_eq!(range(&of(7), Statistic::Mean), None);
        let (low, high) = range(&of(9), Statistic::Mean).unwrap();
        assert!(low <= 50e6 && 50e6 <= high && high - low < 1e6, "{low} {high}");
    }

    #[test]
    fn a_stretch_without_calls_or_without_length_gives_no_figures() {
        assert!(BlockSet::default().throughput().abs() < f64::EPSILON);
        let block = |times: &[Duration]| {
            let mut response = Durations::default();
            for time in times {
                response.record(*time);
            }
            let ok = response.count();
            SampleBlock { elapsed: Duration::ZERO, ok, failed: 0, response }
        };
        let blocks = BlockSet::of(&[block(&[]), block(&[Duration::ZERO])]);
        assert_eq!(blocks.len(), 1);
        let drawn = blocks.log_statistics(&[1, 1]);
        for statistic in [Statistic::Mean, Statistic::Throughput] {
            assert_eq!(drawn[statistic.index()], None, "{}", statistic.name());
        }
    }
}
