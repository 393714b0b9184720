//! A histogram of durations, from which percentiles are computed, and their distribution in a few buckets
//! for display.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::units::float;

/// The longest duration that is told apart from longer ones.
pub const LONGEST: Duration = Duration::from_hours(1);

const VERSION: u8 = 1;

/// How many samples have to lie beyond a percentile before it says something.
const MIN_SAMPLES_BEYOND: f64 = 10.0;

/// Durations, counted by size to three significant digits; count, sum and extremes are exact.
#[derive(Debug, Clone)]
pub struct Durations {
    counts: Histogram<u64>,
    min: u64,
    max: u64,
    sum: u128,
    squares: f64,
}

impl Default for Durations {
    fn default() -> Self {
        Self::with_digits(3)
    }
}

impl Durations {
    /// A histogram that takes a tenth of the room and is exact to two digits: for one of many.
    pub fn coarse() -> Self {
        Self::with_digits(2)
    }

    fn with_digits(digits: u8) -> Self {
        #[expect(clippy::expect_used, reason = "any number of digits up to five is fine")]
        let counts = Histogram::new(digits).expect("a histogram of few digits");
        let mut empty = Self { counts, min: u64::MAX, max: 0, sum: 0, squares: 0.0 };
        // Grows with the longest duration, so that an empty one costs little.
        empty.counts.auto(true);
        empty
    }

    /// Counts one duration; less than 1 ns counts as 1 ns.
    pub fn record(&mut self, duration: Duration) {
        self.record_many(duration, 1);
    }

    /// Counts a duration so many times.
    pub fn record_many(&mut self, duration: Duration, times: u64) {
        if times == 0 {
            return;
        }
        let nanos = nanos(duration);
        // Within the bounds, and growing is on: it cannot fail.
        let _counted = self.counts.record_n(nanos.max(1), times);
        self.min = self.min.min(nanos);
        self.max = self.max.max(nanos);
        self.sum += u128::from(nanos) * u128::from(times);
        let seconds = duration.as_secs_f64();
        let times = float(times);
        self.squares += seconds * seconds * times;
    }

    /// Adds what another one counted.
    pub fn merge(&mut self, other: &Self) {
        // Growing is on: it cannot fail.
        let _added = self.counts.add(&other.counts);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// Forgets everything; keeps the room.
    pub fn clear(&mut self) {
        self.counts.reset();
        (self.min, self.max, self.sum, self.squares) = (u64::MAX, 0, 0, 0.0);
    }

    /// How many durations were recorded.
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// The shortest duration; `None` without any.
    pub fn min(&self) -> Option<Duration> {
        (self.count() > 0).then(|| Duration::from_nanos(self.min))
    }

    /// The longest duration; `None` without any.
    pub fn max(&self) -> Option<Duration> {
        (self.count() > 0).then(|| Duration::from_nanos(self.max))
    }

    /// The exact arithmetic mean; `None` without any duration.
    pub fn mean(&self) -> Option<Duration> {
        let mean = self.sum.checked_div(u128::from(self.count()))?;
        u64::try_from(mean).ok().map(Duration::from_nanos)
    }

    /// The standard deviation of the sample; zero for a single duration.
    pub fn stddev(&self) -> Option<Duration> {
        #[expect(clippy::cast_precision_loss, reason = "a statistic")]
        let (count, sum) = (self.count() as f64, self.sum as f64 / 1e9);
        if count == 0.0 {
            return None;
        }
        let variance = (self.squares - sum * sum / count) / (count - 1.0).max(1.0);
        Duration::try_from_secs_f64(variance.max(0.0).sqrt()).ok()
    }

    /// The duration that this share (0 to 1) of all does not exceed.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        (self.count() > 0).then(|| {
            let nanos = self.counts.value_at_quantile(share.clamp(0.0, 1.0));
            Duration::from_nanos(nanos.clamp(self.min, self.max))
        })
    }

    /// Whether enough was counted for this quantile to say something: ten samples beyond it.
    pub fn is_reliable_at(&self, share: f64) -> bool {
        let count = float(self.count());
        // Half a sample of room: 1000 × (1 − 0.99) is a little less than 10 in floating point.
        count * (1.0 - share) >= MIN_SAMPLES_BEYOND - 0.5
    }

    /// The share by which a quantile may be off, because durations are counted in classes.
    pub fn resolution(&self) -> f64 {
        0.1_f64.powi(i32::from(self.counts.sigfig()))
    }

    /// The longest duration of each class and how many it has, short ones first, empty ones left out.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        self.counts
            .iter_recorded()
            .map(|class| (Duration::from_nanos(class.value_iterated_to()), class.count_at_value()))
    }

    /// How many are not longer than this one.
    pub fn count_up_to(&self, duration: Duration) -> u64 {
        self.counts.count_between(0, nanos(duration))
    }

    /// Writes it down, in a few bytes for each class that has any.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION, self.counts.sigfig()];
        if self.count() == 0 {
            return out;
        }
        put(&mut out, u128::from(self.min));
        put(&mut out, u128::from(self.max));
        put(&mut out, self.sum);
        out.extend(self.squares.to_le_bytes());
        let mut before = 0;
        for class in self.counts.iter_recorded() {
            put(&mut out, u128::from(class.value_iterated_to() - before));
            put(&mut out, u128::from(class.count_at_value()));
            before = class.value_iterated_to();
        }
        out
    }

    /// Reads what [`Durations::encode`] wrote; `None` for anything else.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let written = EncodedHistogram::read(bytes)?;
        let mut read = Self::with_digits(written.digits);
        for (value, count) in &written.buckets {
            // Its bounds were checked, and growing is on: it cannot fail.
            let _counted = read.counts.record_n(*value, *count);
        }
        (read.min, read.max) = (written.min, written.max);
        (read.sum, read.squares) = (written.sum, written.squares);
        Some(read)
    }
}

struct EncodedHistogram {
    digits: u8,
    min: u64,
    max: u64,
    sum: u128,
    squares: f64,
    /// The longest duration of each class, in nanoseconds, and how many it has.
    buckets: Vec<(u64, u64)>,
}

impl EncodedHistogram {
    fn read(bytes: &[u8]) -> Option<Self> {
        let [VERSION, digits @ 1..=5, rest @ ..] = bytes else { return None };
        let (min, classes) = (u64::MAX, Vec::new());
        let mut read =
            Self { digits: *digits, min, max: 0, sum: 0, squares: 0.0, buckets: classes };
        if rest.is_empty() {
            return Some(read);
        }
        let mut rest = rest;
        read.min = u64::try_from(take(&mut rest)?).ok()?;
        read.max = u64::try_from(take(&mut rest)?).ok()?;
        read.sum = take(&mut rest)?;
        let (squares, classes) = rest.split_first_chunk::<8>()?;
        read.squares = f64::from_le_bytes(*squares);
        rest = classes;
        let (mut value, mut all): (u64, u64) = (0, 0);
        while !rest.is_empty() {
            value = value.checked_add(u64::try_from(take(&mut rest)?).ok()?)?;
            let count = u64::try_from(take(&mut rest)?).ok()?;
            all = all.checked_add(count)?;
            if value > nanos(LONGEST) * 2 {
                return None;
            }
            read.buckets.push((value, count));
        }
        // Every number is within what so many durations can be, so that sums of sums stay bounded.
        let possible = all > 0
            && all < 1 << 48
            && read.min <= read.max
            && read.max <= nanos(LONGEST)
            && read.sum <= u128::from(all) * u128::from(nanos(LONGEST))
            && read.squares.is_finite();
        possible.then_some(read)
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.min(LONGEST).as_nanos()).unwrap_or(u64::MAX)
}

/// Seven bits a byte, low ones first; the high bit says that more follow.
fn put(out: &mut Vec<u8>, mut number: u128) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

fn take(bytes: &mut &[u8]) -> Option<u128> {
    let mut number = 0;
    for shift in (0..126).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u128::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Durations in classes, short ones first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    pub from: Duration,
    pub classes: Vec<(Duration, u64)>,
    /// How many are longer than the last class.
    pub beyond: u64,
    pub longest: Duration,
}

/// Durations in so many classes of equal ratio; the longest few of a thousand are left out of them,
/// so that one outlier does not flatten all others. `None` without a duration.
pub fn logarithmic(durations: &Durations, classes: usize) -> Option<Distribution> {
    let (low, high) = range(durations)?;
    #[expect(clippy::cast_precision_loss, reason = "as many classes as a screen is wide")]
    let factor = (high / low).powf(1.0 / classes.max(1) as f64);
    classed(durations, classes, high, low, |limit| limit * factor)
}

pub fn linear(durations: &Durations, classes: usize) -> Option<Distribution> {
    let (low, high) = range(durations)?;
    #[expect(clippy::cast_precision_loss, reason = "as many classes as a screen is wide")]
    let step = (high - low) / classes.max(1) as f64;
    classed(durations, classes, high, low, |limit| limit + step)
}

fn range(durations: &Durations) -> Option<(f64, f64)> {
    let nanos = |duration: Duration| duration.as_secs_f64().max(1e-9) * 1e9;
    let (from, to) = (nanos(durations.min()?), nanos(durations.quantile(0.999)?));
    Some((from, to.max(from * 1.001)))
}

fn classed(
    durations: &Durations,
    classes: usize,
    high: f64,
    low: f64,
    next: impl Fn(f64) -> f64,
) -> Option<Distribution> {
    let mut counts = Vec::with_capacity(classes);
    let (mut limit, mut below) = (low, 0);
    for class in 1..=classes.max(1) {
        limit = if class == classes { high } else { next(limit) };
        let limit = Duration::try_from_secs_f64(limit / 1e9).unwrap_or(Duration::MAX);
        let up_to = durations.count_up_to(limit).max(below);
        counts.push((limit, up_to - below));
        below = up_to;
    }
    let beyond = durations.count().saturating_sub(below);
    let longest = durations.max()?;
    Some(Distribution { from: durations.min()?, classes: counts, beyond, longest })
}

impl Distribution {
    /// The classes, and what is longer as another one.
    pub fn all(&self) -> impl Iterator<Item = (Duration, u64)> {
        let longer = (self.beyond > 0).then_some((self.longest, self.beyond));
        self.classes.iter().copied().chain(longer)
    }

    pub fn highest_count(&self) -> u64 {
        self.classes.iter().map(|(_, count)| *count).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(nanos: &[u64]) -> Durations {
        let mut all = Durations::default();
        for nanos in nanos {
            all.record(Duration::from_nanos(*nanos));
        }
        all
    }

    #[test]
    fn nothing_has_no_percentiles() {
        let none = Durations::default();
        assert_eq!((none.min(), none.mean(), none.quantile(0.5)), (None, None, None));
        assert_eq!(Durations::decode(&none.encode()).map(|read| read.count()), Some(0));
    }

    #[test]
    fn mean_and_deviation_are_exact() {
        let all = of(&[1_000, 2_000, 3_000, 4_000]);
        assert_eq!(all.mean(), Some(Duration::from_nanos(2_500)));
        assert_eq!(all.stddev().map(|s| s.as_nanos()), Some(1_291));
        assert_eq!(all.quantile(0.5), Some(Duration::from_micros(2)));
    }

    #[test]
    fn a_percentile_needs_ten_samples_beyond_it() {
        let all = of(&vec![1_000; 1_000]);
        assert!(all.is_reliable_at(0.99));
        assert!(!all.is_reliable_at(0.999));
    }

    #[test]
    fn what_is_longer_than_the_longest_counts_as_that() {
        let all = of(&[1, u64::MAX]);
        assert_eq!(all.max(), Some(LONGEST));
        assert_eq!(all.count(), 2);
    }

    proptest! {
        #[test]
        #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "all are small")]
        fn quantiles_are_within_a_thousandth(mut nanos in prop::collection::vec(1_u64..10_000_000_000, 1..300)) {
            let all = of(&nanos);
            nanos.sort_unstable();
            for share in [0.0, 0.25, 0.5, 0.9, 0.99, 1.0] {
                let rank = ((share * nanos.len() as f64).ceil() as usize).clamp(1, nanos.len());
                let exact = nanos[rank - 1] as f64;
                let read = all.quantile(share).unwrap().as_nanos() as f64;
                prop_assert!((read - exact).abs() <= exact / 1000.0 + 1.0, "{share}: {read} for {exact}");
            }
        }

        #[test]
        fn merging_is_counting_together(left in prop::collection::vec(1_u64..u64::MAX, 0..50), right in prop::collection::vec(1_u64..1_000_000, 0..50)) {
            let mut merged = of(&left);
            merged.merge(&of(&right));
            let together = of(&[left, right].concat());
            prop_assert_eq!(merged.count(), together.count());
            prop_assert_eq!(merged.mean(), together.mean());
            prop_assert_eq!(merged.quantile(0.9), together.quantile(0.9));
        }

        #[test]
        fn what_is_written_down_comes_back(nanos in prop::collection::vec(1_u64..u64::MAX, 0..100)) {
            let all = of(&nanos);
            let read = Durations::decode(&all.encode()).unwrap();
            prop_assert_eq!(read.encode(), all.encode());
            prop_assert_eq!(read.stddev(), all.stddev());
            let mut twice = all.clone();
            twice.merge(&read);
            prop_assert_eq!(twice.count(), 2 * all.count());
            prop_assert_eq!((twice.mean(), twice.quantile(0.9)), (all.mean(), all.quantile(0.9)));
        }

        #[test]
        fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let read = Durations::decode(&bytes);
            prop_assert!(read.is_none_or(|read| read.quantile(0.5) <= read.max()));
        }
    }

    #[test]
    fn every_duration_is_in_a_class_or_beyond_all() {
        let mut all = Durations::default();
        for micros in 1..=10_000 {
            all.record(Duration::from_micros(micros));
        }
        all.record(Duration::from_secs(30));
        for classes in [1, 2, 7, 40] {
            for spread in [logarithmic(&all, classes), linear(&all, classes)].map(Option::unwrap) {
                let within: u64 = spread.classes.iter().map(|(_, count)| count).sum();
                assert_eq!(within + spread.beyond, all.count(), "{classes}");
                assert_eq!(spread.all().map(|(_, count)| count).sum::<u64>(), all.count());
                assert_eq!(spread.classes.len(), classes);
                assert!(spread.classes.is_sorted_by(|a, b| a.0 < b.0), "{spread:?}");
            }
        }
        let even = linear(&all, 4).unwrap();
        assert!(even.classes.iter().all(|(_, count)| (2_400..=2_600).contains(count)), "{even:?}");
        let spread = logarithmic(&all, 8).unwrap();
        assert!((1..=15).contains(&spread.beyond), "{spread:?}");
        assert_eq!(super::logarithmic(&Durations::default(), 8), None);
    }

    #[test]
    fn equal_durations_have_a_shape_too() {
        let mut all = Durations::default();
        all.record_many(Duration::from_millis(1), 5);
        let spread = logarithmic(&all, 4).unwrap();
        assert_eq!(spread.highest_count(), 5);
        assert_eq!(spread.beyond, 0);
    }
}
