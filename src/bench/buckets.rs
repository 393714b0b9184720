//! A histogram condensed into a few buckets for display.

use std::time::Duration;

use crate::util::histogram::Durations;
use crate::util::number::float_len;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// Longer than this (the first one: or as long).
    pub from: Duration,
    pub to: Duration,
    pub count: u64,
}

/// So many classes at most of equal ratio; none when there is nothing.
pub fn of(durations: &Durations, most: usize) -> Vec<Bucket> {
    let (Some(low), Some(high)) = (durations.min(), durations.max()) else { return Vec::new() };
    let (first, last) = (seconds(low), seconds(high));
    let mut buckets = Vec::with_capacity(most);
    let (mut from, mut below) = (low, 0);
    for at in 1..=most {
        let share = float_len(at) / float_len(most);
        let to = match Duration::try_from_secs_f64(first * (last / first).powf(share)) {
            Ok(edge) if at < most => edge,
            _ => high,
        };
        if to > from || at == most {
            let up_to = if at == most { durations.count() } else { durations.count_up_to(to) };
            buckets.push(Bucket { from, to, count: up_to.saturating_sub(below) });
            (from, below) = (to, below.max(up_to));
        }
    }
    buckets
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64().max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_of_equal_ratio_and_hold_all() {
        let mut all = Durations::default();
        for millis in [1, 2, 5, 9, 11, 500, 1_000] {
            all.record(Duration::from_millis(millis));
        }
        let buckets = of(&all, 3);
        let counts: Vec<u64> = buckets.iter().map(|bucket| bucket.count).collect();
        assert_eq!(counts, [4, 1, 2]);
        assert_eq!(buckets[1].from, Duration::from_millis(10));
        assert_eq!(buckets[2].to, Duration::from_secs(1));
    }

    #[test]
    fn nothing_and_equal_durations_are_no_trouble() {
        assert!(of(&Durations::default(), 5).is_empty());
        let mut same = Durations::default();
        same.record_many(Duration::from_millis(3), 7);
        assert_eq!(of(&same, 5).iter().map(|bucket| bucket.count).sum::<u64>(), 7);
        let mut zero = Durations::default();
        zero.record(Duration::ZERO);
        assert_eq!(of(&zero, 5).iter().map(|bucket| bucket.count).sum::<u64>(), 1);
    }
}
