//! Sparklines, columns, bars and axis labels.

use unicode_width::UnicodeWidthStr as _;

use crate::util::number::float;

/// From little to much, one cell each.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The eight heights of a sparkline in ASCII, from low to high.
const ASCII: [char; 8] = ['_', '.', '-', ':', '=', '+', '*', '#'];

fn levels(ascii: bool) -> [char; 8] {
    if ascii { ASCII } else { BLOCKS }
}

/// Numbers reduced to at most `cells`: the maximum of each group of neighbours.
pub(super) fn downsample(numbers: &[f64], cells: usize) -> Vec<f64> {
    if cells == 0 || numbers.is_empty() {
        return Vec::new();
    }
    let each = numbers.len().div_ceil(cells);
    numbers.chunks(each).map(|chunk| chunk.iter().copied().fold(0.0, f64::max)).collect()
}

/// Numbers as a line of at most `cells` marks; the maximum is the highest mark, and nothing is
/// a blank.
pub(super) fn sparkline(numbers: &[f64], cells: usize, ascii: bool) -> String {
    let fitted = downsample(numbers, cells);
    let most = fitted.iter().copied().fold(0.0, f64::max);
    let marks = levels(ascii);
    let mark = |number: &f64| match to_eighths(*number, most, 8) {
        0 => ' ',
        level => marks[level.min(8) - 1],
    };
    fitted.iter().map(mark).collect()
}

/// Counts as columns of this many rows, the top row first; each column is `wide` cells.
pub(super) fn columns(counts: &[u64], height: usize, wide: usize, ascii: bool) -> Vec<String> {
    let most = float(counts.iter().copied().max().unwrap_or(0));
    let marks = levels(ascii);
    let filled: Vec<usize> =
        counts.iter().map(|count| to_eighths(float(*count), most, height * 8)).collect();
    let row = |row: usize| {
        let below = (height - 1 - row) * 8;
        let cell = |filled: &usize| match filled.saturating_sub(below) {
            0 => ' ',
            level => marks[level.min(8) - 1],
        };
        filled.iter().flat_map(|filled| std::iter::repeat_n(cell(filled), wide)).collect()
    };
    (0..height).map(row).collect()
}

/// A bar of exactly `cells` cells between brackets, of which a share from 0 to 1 is full.
pub(super) fn progress(share: f64, cells: usize) -> String {
    let room = cells.saturating_sub(2);
    let full = to_eighths(share.clamp(0.0, 1.0), 1.0, room * 8).div_ceil(8).min(room);
    format!("[{}{}]", "#".repeat(full), ".".repeat(room - full))
}

/// Labels below an axis of this many cells, each starting as near to its place as the others leave
/// room; what finds none is left out. Earlier ones are more important.
pub(super) fn labels(places: &[(usize, &str)], cells: usize) -> String {
    let mut taken: Vec<(usize, usize, &str)> = Vec::new();
    for (at, label) in places {
        let width = label.width();
        let Some(last) = cells.checked_sub(width) else { continue };
        let from = (*at).min(last);
        let free = |(other, end, _): &(usize, usize, &str)| from > *end || from + width < *other;
        if taken.iter().all(free) {
            taken.push((from, from + width, label));
        }
    }
    taken.sort_unstable();
    let mut line = String::new();
    for (from, _, label) in taken {
        line.push_str(&" ".repeat(from.saturating_sub(line.width())));
        line.push_str(label);
    }
    line
}

/// How many eighths of the greatest number a number fills of so many; at least one when it is
/// anything.
fn to_eighths(number: f64, most: f64, all: usize) -> usize {
    if number.is_nan() || number <= 0.0 || most <= 0.0 || all == 0 {
        return 0;
    }
    let share = (number / most).clamp(0.0, 1.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "as many as a screen has cells"
    )]
    let filled = (share * all as f64).round() as usize;
    filled.clamp(1, all)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_rises_to_the_greatest_number_and_shows_what_is_little() {
        assert_eq!(sparkline(&[0.0, 1.0, 50.0, 100.0], 4, false), " ▁▄█");
        assert_eq!(sparkline(&[0.0, 1.0, 50.0, 100.0], 4, true), " _:#");
        assert_eq!(sparkline(&[1.0, 0.0, 4.0, 4.0], 2, false), "▂█");
        assert_eq!(sparkline(&[f64::NAN, 0.0], 9, false), "  ");
        assert_eq!(sparkline(&[], 9, false), "");
        assert_eq!(sparkline(&[1.0], 0, false), "");
    }

    #[test]
    fn columns_stand_on_their_axis() {
        assert_eq!(columns(&[0, 1, 8, 16], 2, 1, false), ["   █", " ▁██"]);
        assert_eq!(columns(&[4, 2], 1, 2, true), ["##::"]);
        assert_eq!(columns(&[4], 0, 2, true), [""; 0]);
        assert_eq!(columns(&[], 2, 2, true), ["", ""]);
    }

    #[test]
    fn a_bar_is_full_when_all_is_done_and_never_empty_after_the_beginning() {
        assert_eq!(progress(0.0, 6), "[....]");
        assert_eq!(progress(0.01, 6), "[#...]");
        assert_eq!(progress(1.0, 6), "[####]");
        assert_eq!(progress(f64::NAN, 6), "[....]");
        assert_eq!(progress(0.5, 1), "[]");
    }

    #[test]
    fn labels_keep_out_of_each_others_way() {
        assert_eq!(labels(&[(0, "1 ms"), (18, "9 s"), (8, "p50")], 20), "1 ms    p50      9 s");
        assert_eq!(labels(&[(3, "p50"), (4, "p99")], 20), "   p50");
        assert_eq!(labels(&[(0, "too long")], 3), "");
    }

    proptest! {
        #[test]
        fn nothing_leaves_its_room(
            numbers in prop::collection::vec(0..1_000_u64, 0..80), cells in 0..60_usize,
            height in 0..9_usize, at in 0..90_usize,
        ) {
            let floats: Vec<f64> = numbers.iter().copied().map(float).collect();
            prop_assert!(sparkline(&floats, cells, true).chars().count() <= cells);
            let drawn = columns(&numbers, height, 1, true);
            prop_assert_eq!(drawn.len(), height);
            if height > 0 {
                let shown = drawn[height - 1].chars().filter(|c| *c != ' ').count();
                prop_assert_eq!(shown, numbers.iter().filter(|n| **n > 0).count());
            }
            prop_assert!(labels(&[(at, "p50"), (at / 2, "p99")], cells).len() <= cells);
            prop_assert!(progress(0.3, cells).len() <= cells.max(2));
        }
    }
}
