//! A histogram condensed into a few buckets for display.

use std::time::Duration;

use crate::util::histogram::Durations;

/// A class of durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// Longer than this (the first one: or as long).
    pub from: Duration,
    pub to: Duration,
    pub count: u64,
}

/// So many classes at most of equal ratio between two durations; none when there is nothing.
pub fn between(durations: &Durations, low: Duration, high: Duration, most: usize) -> Vec<Bucket> {
    if durations.count() == 0 || most == 0 {
        return Vec::new();
    }
    let (first, last) = (seconds(low), seconds(high).max(seconds(low)));
    #[expect(clippy::cast_precision_loss, reason = "a few classes")]
    let edge = |at: usize| {
        let share = at as f64 / most as f64;
        Duration::try_from_secs_f64(first * (last / first).powf(share)).unwrap_or(high)
    };
    let mut buckets = Vec::with_capacity(most);
    let mut before = 0;
    let mut from = low;
    for at in 1..=most {
        let to = if at == most { high } else { edge(at) };
        if to <= from && at < most {
            continue;
        }
        // The ends take what lies beyond them.
        let up_to = if at == most { durations.count() } else { durations.count_up_to(to) };
        buckets.push(Bucket { from, to, count: up_to.saturating_sub(before) });
        before = before.max(up_to);
        from = to;
    }
    buckets
}

pub fn of(durations: &Durations, most: usize) -> Vec<Bucket> {
    match (durations.min(), durations.max()) {
        (Some(low), Some(high)) => between(durations, low, high, most),
        _ => Vec::new(),
    }
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
