//! The shape of figures in a few cells: sparklines and bars.
//!
//! Owns: how numbers become marks. Nothing that is above zero is drawn as nothing.

use std::time::Duration;

use crate::util::histogram::Durations;

/// From little to much; each is one cell wide.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Numbers as a line of at most `cells` marks, the greatest one as the highest mark. Neighbours are
/// averaged when there are more numbers than cells.
pub(super) fn sparkline(numbers: &[f64], cells: usize) -> String {
    if cells == 0 || numbers.is_empty() {
        return String::new();
    }
    let each = numbers.len().div_ceil(cells);
    #[expect(clippy::cast_precision_loss, reason = "a few numbers for each cell")]
    let means: Vec<f64> =
        numbers.chunks(each).map(|chunk| chunk.iter().sum::<f64>() / chunk.len() as f64).collect();
    let most = means.iter().copied().fold(0.0, f64::max);
    means.iter().map(|mean| level(*mean, most)).collect()
}

fn level(number: f64, most: f64) -> char {
    if number.is_nan() || number <= 0.0 || most <= 0.0 {
        return ' ';
    }
    let share = (number / most).clamp(0.0, 1.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 8")]
    let index = (share * 8.0).ceil() as usize;
    LEVELS[index.clamp(1, LEVELS.len()) - 1]
}

/// A bar of so many of `cells` cells; something above zero has one at least.
pub(super) fn bar(share: f64, cells: usize) -> String {
    "█".repeat(filled(share, cells))
}

/// How many of `cells` cells a share of 0 to 1 fills.
pub(super) fn filled(share: f64, cells: usize) -> usize {
    if share.is_nan() || share <= 0.0 {
        return 0;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "as many cells as a screen is wide"
    )]
    let full = (share.min(1.0) * cells as f64).round() as usize;
    full.max(1).min(cells)
}

/// Durations in classes of which each is longer than the one before by the same factor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spread {
    /// The shortest duration.
    pub from: Duration,
    /// The longest duration of each class, and how many it has.
    pub classes: Vec<(Duration, u64)>,
    /// How many are longer than the last class.
    pub beyond: u64,
}

/// Durations in at most `classes` classes; the longest few of a thousand are left out of them, so
/// that one outlier does not flatten all others.
pub(super) fn spread(durations: &Durations, classes: usize) -> Option<Spread> {
    let (from, to) = (durations.min()?, durations.quantile(0.999)?);
    let nanos = |duration: Duration| duration.as_secs_f64().max(1e-9) * 1e9;
    let (low, high) = (nanos(from), nanos(to).max(nanos(from) * 1.001));
    #[expect(clippy::cast_precision_loss, reason = "as many classes as a screen is wide")]
    let factor = (high / low).powf(1.0 / classes.max(1) as f64);
    let mut found = Vec::with_capacity(classes);
    let mut limit = low;
    let mut below = 0;
    for class in 1..=classes.max(1) {
        limit = if class == classes { high } else { limit * factor };
        let limit = Duration::try_from_secs_f64(limit / 1e9).unwrap_or(Duration::MAX);
        let up_to = durations.count_up_to(limit).max(below);
        found.push((limit, up_to - below));
        below = up_to;
    }
    Some(Spread { from, classes: found, beyond: durations.count().saturating_sub(below) })
}

impl Spread {
    /// The most that one class has.
    pub(super) fn most(&self) -> u64 {
        self.classes.iter().map(|(_, count)| *count).max().unwrap_or(0)
    }

    /// The classes as one line of marks.
    pub(super) fn line(&self) -> String {
        #[expect(clippy::cast_precision_loss, reason = "counts of calls")]
        let counts: Vec<f64> = self.classes.iter().map(|(_, count)| *count as f64).collect();
        sparkline(&counts, counts.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_rises_to_the_greatest_number_and_shows_what_is_little() {
        assert_eq!(sparkline(&[0.0, 1.0, 50.0, 100.0], 4), " ▁▄█");
        assert_eq!(sparkline(&[1.0, 1.0, 4.0, 4.0], 2), "▂█");
        assert_eq!(sparkline(&[f64::NAN, 0.0], 9), "  ");
        assert_eq!(sparkline(&[], 9), "");
        assert_eq!(sparkline(&[1.0], 0), "");
    }

    #[test]
    fn a_bar_is_never_longer_than_its_room_nor_nothing_for_something() {
        for (share, cells) in [(0.0, 0), (0.001, 1), (0.5, 5), (1.0, 10), (7.0, 10)] {
            assert_eq!(filled(share, 10), cells, "{share}");
        }
        assert_eq!(filled(f64::NAN, 10), 0);
    }

    #[test]
    fn every_duration_is_in_a_class_or_beyond_all() {
        let mut all = Durations::default();
        for micros in 1..=10_000 {
            all.record(Duration::from_micros(micros));
        }
        all.record(Duration::from_secs(30));
        for classes in [1, 2, 7, 40] {
            let spread = spread(&all, classes).unwrap();
            let within: u64 = spread.classes.iter().map(|(_, count)| count).sum();
            assert_eq!(within + spread.beyond, all.count(), "{classes}");
            assert_eq!(spread.classes.len(), classes);
        }
        let spread = spread(&all, 8).unwrap();
        assert!((1..=15).contains(&spread.beyond), "{spread:?}");
        assert_eq!(super::spread(&Durations::default(), 8), None);
    }

    #[test]
    fn equal_durations_have_a_shape_too() {
        let mut all = Durations::default();
        all.record_many(Duration::from_millis(1), 5);
        let spread = spread(&all, 4).unwrap();
        assert_eq!(spread.most(), 5);
        assert_eq!(spread.beyond, 0);
    }
}
