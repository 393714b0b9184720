//! The distribution of durations, in a few buckets for display.

use std::time::Duration;

use crate::util::histogram::Durations;

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
    use super::*;

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
