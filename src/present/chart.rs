//! Sparklines and bars.

use crate::present::{Line, Page, Role};
use crate::util::histogram::{Durations, logarithmic};
use crate::util::units::{float, show_count, show_duration};

/// The most bars of a histogram.
const CLASSES: usize = 10;
/// From little to much; each is one cell wide.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Numbers reduced to at most `cells`: the maximum of each group of neighbours.
pub fn downsample(numbers: &[f64], cells: usize) -> Vec<f64> {
    if cells == 0 || numbers.is_empty() {
        return Vec::new();
    }
    let each = numbers.len().div_ceil(cells);
    numbers.chunks(each).map(|chunk| chunk.iter().copied().fold(0.0, f64::max)).collect()
}

/// Numbers as a line of at most `cells` marks; the maximum is the highest mark, and nothing is a
/// blank.
pub fn sparkline(numbers: &[f64], cells: usize) -> String {
    let fitted = downsample(numbers, cells);
    let most = fitted.iter().copied().fold(0.0, f64::max);
    fitted.iter().map(|number| mark(to_eighths(*number, most, LEVELS.len()))).collect()
}

/// The mark of so many eighths, of which no more than a whole is seen.
pub fn mark(eighths: usize) -> char {
    eighths.checked_sub(1).map_or(' ', |level| LEVELS[level.min(LEVELS.len() - 1)])
}

/// How many eighths of the greatest number a number fills of so many; at least one when it is
/// anything.
pub fn to_eighths(number: f64, most: f64, all: usize) -> usize {
    if most > 0.0 { filled(number / most, all) } else { 0 }
}

/// A bar that fills a share of `cells` cells; a value above zero gets at least one.
pub fn bar(share: f64, cells: usize) -> String {
    "█".repeat(filled(share, cells))
}

/// `[####......]  40 %`
pub fn progress(share: f64, cells: usize) -> Line {
    let full = filled(share, cells);
    Line::styled(Role::Success, format!("[{}", "#".repeat(full)))
        .then(Role::Dim, ".".repeat(cells - full))
        .then(Role::Success, "]")
        .then(Role::Plain, format!(" {:>3.0} %", share * 100.0))
}

/// The distribution of durations: a bar for each class of them. A single class is none.
pub fn histogram(durations: &Durations, width: Option<usize>) -> Page {
    let Some(spread) = logarithmic(durations, CLASSES) else { return Page::default() };
    let longer = (spread.beyond > 0).then(|| ("longer".to_owned(), spread.beyond));
    let classes = spread.classes.iter();
    let classes = classes.map(|(limit, count)| (format!("to {}", show_duration(*limit)), *count));
    let rows: Vec<(String, u64)> = classes.chain(longer).collect();
    if rows.iter().filter(|(_, count)| *count > 0).count() < 2 {
        return Page::default();
    }
    let room = width.unwrap_or(80).saturating_sub(2 + 13 + 9).clamp(4, 40);
    let row = |(name, count): (String, u64)| {
        let share = float(count) / float(spread.highest_count().max(1));
        let line = Line::styled(Role::Dim, format!("{name:>12} ")).indented(2);
        let shown = if count > 0 { format!(" {}", show_count(count)) } else { String::new() };
        line.then(Role::Success, bar(share, room)).then(Role::Plain, shown)
    };
    rows.into_iter().map(row).collect()
}

/// How many of `cells` cells a share of 0 to 1 fills.
pub fn filled(share: f64, cells: usize) -> usize {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_rises_to_the_greatest_number_and_shows_what_is_little() {
        assert_eq!(sparkline(&[0.0, 1.0, 50.0, 100.0], 4), " ▁▄█");
        assert_eq!(sparkline(&[1.0, 0.0, 4.0, 4.0], 2), "▂█");
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
}
