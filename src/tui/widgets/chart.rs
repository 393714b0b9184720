//! Sparklines, columns, bars and axis labels.

use unicode_width::UnicodeWidthStr as _;

pub use crate::present::chart::sparkline;
use crate::present::chart::{downsample, mark, to_eighths};
use crate::tui::prelude::*;
use crate::util::histogram::Distribution;

/// Counts as columns of this many rows, the top row first; each column is `wide` cells, and one of
/// `most` reaches the top.
pub fn columns(counts: &[u64], most: f64, height: usize, wide: usize) -> Vec<String> {
    let filled: Vec<usize> =
        counts.iter().map(|count| to_eighths(float(*count), most, height * 8)).collect();
    let row = |row: usize| {
        let below = (height - 1 - row) * 8;
        let cell = |filled: &usize| mark(filled.saturating_sub(below));
        filled.iter().flat_map(|filled| std::iter::repeat_n(cell(filled), wide)).collect()
    };
    (0..height).map(row).collect()
}

/// A bar of exactly `cells` cells, of which a share from 0 to 1 is full: the full part, and the rest.
pub fn progress(share: f64, cells: usize) -> [String; 2] {
    let full = to_eighths(share.clamp(0.0, 1.0), 1.0, cells * 8).div_ceil(8).min(cells);
    ["━".repeat(full), "─".repeat(cells - full)]
}

/// The dots of a cell from its bottom, on its left and on its right.
const DOTS: [[u32; 4]; 2] = [[0x40, 0x04, 0x02, 0x01], [0x80, 0x20, 0x10, 0x08]];

/// Numbers over time as a curve of dots in this many cells, the newest at the right, over an axis
/// that begins at nothing and ends at a round number. Where there is room for one line only, it stands
/// behind the label.
pub fn curve(
    styler: Styler,
    label: &str,
    numbers: &[f64],
    show: &dyn Fn(f64) -> String,
    width: usize,
    height: usize,
) -> Vec<Line<'static>> {
    let room = width.saturating_sub(MARGIN);
    let fitted = downsample(numbers, room * 2);
    if height < 3 || room < 4 || fitted.is_empty() || styler.theme.ascii {
        let drawn = sparkline(numbers, width.saturating_sub(label.width().max(MARGIN)));
        return vec![Line::from(vec![
            styler.dim(format!("{label:MARGIN$}")),
            styler.span(Role::Success, drawn),
        ])];
    }
    let rows = height - 1;
    let top = round_up(fitted.iter().copied().fold(0.0, f64::max));
    let at = |dot: usize| fitted[dot * fitted.len() / (room * 2)];
    let dots: Vec<usize> = (0..room * 2).map(|dot| to_eighths(at(dot), top, rows * 4)).collect();
    let mut lines = Vec::new();
    for row in 0..rows {
        let below = (rows - 1 - row) * 4;
        let cell = |pair: &[usize]| {
            let lit = pair.iter().zip(DOTS).map(|(level, dots)| {
                let filled = level.saturating_sub(below).min(4);
                dots[..filled].iter().sum::<u32>()
            });
            char::from_u32(0x2800 + lit.sum::<u32>()).unwrap_or(' ')
        };
        let label = match row {
            0 => show(top),
            _ if rows >= 4 && row == rows / 2 && rows.is_multiple_of(2) => show(top / 2.0),
            _ => String::new(),
        };
        lines.push(Line::from(vec![
            styler.span(Role::Dim, format!("{label:>5} │")),
            styler.span(Role::Success, dots.chunks(2).map(cell).collect::<String>()),
        ]));
    }
    let margin = " ".repeat(MARGIN - 1);
    let axis = format!("{margin}└{}", "─".repeat(dots.len().div_ceil(2)));
    lines.push(styler.line(Role::Dim, axis));
    lines
}

/// The least of 1, 2 and 5 and their multiples by ten that is not less.
fn round_up(number: f64) -> f64 {
    if number <= 0.0 || !number.is_finite() {
        return 1.0;
    }
    let decade = 10_f64.powf(number.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade);
    steps.into_iter().find(|step| *step >= number).unwrap_or(number)
}

/// Labels below an axis of this many cells, each starting as near to its place as the others leave
/// room; what finds none is left out. Earlier ones are more important.
pub fn labels<T: AsRef<str>>(places: &[(usize, T)], cells: usize) -> String {
    let mut taken: Vec<(usize, usize, &str)> = Vec::new();
    for (at, label) in places {
        let (label, width) = (label.as_ref(), label.as_ref().width());
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

/// Cells before the columns: the highest count.
const MARGIN: usize = 7;
/// The highest it gets: more rows tell nothing more.
const HIGHEST: usize = 12;

/// Durations as columns in at most this many cells and lines, with the marked ones. With
/// fewer than four lines only the columns and their ends are left, in one line or two.
pub fn lines(
    styler: Styler,
    spread: &Distribution,
    marks: &[(&str, Duration)],
    width: usize,
    height: usize,
) -> Vec<Line<'static>> {
    let ends =
        (show_duration(spread.from), spread.classes.last().map(|(to, _)| show_duration(*to)));
    let to = ends.1.unwrap_or_default();
    if height < 4 {
        let cells = width.saturating_sub(ends.0.len() + to.len() + 2);
        let (counts, wide) = shaped(spread, cells);
        let most = float(counts.iter().max().copied().unwrap_or(0));
        let mut drawn = columns(&counts, most, 1, wide);
        return vec![Line::from(vec![
            styler.dim(format!("{} ", ends.0)),
            styler.span(Role::Success, drawn.pop().unwrap_or_default()),
            styler.dim(format!(" {to}")),
        ])];
    }
    let (counts, wide) = shaped(spread, width.saturating_sub(MARGIN));
    let cells = counts.len() * wide;
    let rows = (height - 3).clamp(1, HIGHEST);
    let most = round_up(float(counts.iter().max().copied().unwrap_or(0)));
    let mut lines = Vec::new();
    // What most calls took is green, what few did amber, and the last hundredth red.
    let (slow, slowest) = tail(&counts);
    for (at, row) in columns(&counts, most, rows, wide).into_iter().enumerate() {
        let count = if at == 0 { compact(most) } else { String::new() };
        let cells: Vec<char> = row.chars().collect();
        let part =
            |from: usize, to: usize| cells[from * wide..to * wide].iter().collect::<String>();
        lines.push(Line::from(vec![
            styler.dim(format!("{count:>5} │")),
            styler.span(Role::Success, part(0, slow)),
            styler.span(Role::Warning, part(slow, slowest)),
            styler.span(Role::Error, part(slowest, counts.len())),
        ]));
    }
    let margin = " ".repeat(MARGIN - 1);
    lines.push(styler.line(Role::Dim, format!("{margin}└{}", "─".repeat(cells))));
    let at = |time| place(spread, time) * wide * counts.len() / spread.classes.len().max(1);
    // Of marks at one place the last one is the most important: it tells what most did not exceed.
    let named: Vec<(usize, String)> =
        marks.iter().rev().map(|(name, time)| (at(*time), format!("^{name}"))).collect();
    let below = labels(&named, cells + 6);
    lines.push(styler.line(Role::Key, format!("{margin} {below}")));
    let middle = spread.classes.get(spread.classes.len() / 2);
    let middle = middle.map(|(to, _)| show_duration(*to)).unwrap_or_default();
    let last = cells.saturating_sub(to.len());
    let axis = labels(&[(0, &ends.0), (last, &to), (cells / 2, &middle)], cells);
    let beyond =
        if spread.beyond > 0 { format!("  {} longer", spread.beyond) } else { String::new() };
    lines.push(styler.line(Role::Dim, format!("{margin} {axis}{beyond}")));
    lines
}

fn shaped(spread: &Distribution, cells: usize) -> (Vec<u64>, usize) {
    let counts: Vec<u64> = spread.classes.iter().map(|(_, count)| *count).collect();
    if counts.is_empty() || cells == 0 {
        return (Vec::new(), 1);
    }
    // Columns that are seen beat finer ones.
    let each = counts.len().div_ceil((cells / 2).max(1));
    let merged: Vec<u64> = counts.chunks(each).map(|chunk| chunk.iter().sum()).collect();
    let wide = (cells / merged.len()).clamp(1, 6);
    (merged, wide)
}

/// The first columns of the slowest tenth and of the slowest hundredth.
fn tail(counts: &[u64]) -> (usize, usize) {
    let all: u64 = counts.iter().sum();
    let first_beyond = |share: u64| {
        let mut sum = 0;
        counts
            .iter()
            .take_while(|count| {
                let is_before = sum * 100 < all * share;
                sum += **count;
                is_before
            })
            .count()
    };
    (first_beyond(90), first_beyond(99))
}

/// A round number in at most five cells.
pub fn compact(number: f64) -> String {
    match number {
        n if n >= 1e6 => format!("{}M", n / 1e6),
        n if n >= 1e4 => format!("{}k", n / 1e3),
        n => n.to_string(),
    }
}

fn place(spread: &Distribution, time: Duration) -> usize {
    spread.classes.iter().position(|(to, _)| time <= *to).unwrap_or(spread.classes.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tui::theme::Theme;

    #[test]
    fn columns_stand_on_their_axis() {
        assert_eq!(columns(&[0, 1, 8, 16], 16.0, 2, 1), ["   █", " ▁██"]);
        assert_eq!(columns(&[4, 2], 4.0, 1, 2), ["██▄▄"]);
        assert_eq!(columns(&[4], 4.0, 0, 2), [""; 0]);
        assert_eq!(columns(&[], 1.0, 2, 2), ["", ""]);
    }

    #[test]
    fn a_bar_is_full_when_all_is_done_and_never_empty_after_the_beginning() {
        for (share, full) in [(0.0, 0), (0.01, 1), (0.5, 2), (1.0, 4), (f64::NAN, 0)] {
            assert_eq!(progress(share, 4), ["━".repeat(full), "─".repeat(4 - full)]);
        }
        assert_eq!(progress(0.5, 0), ["", ""]);
    }

    #[test]
    fn axes_end_at_round_numbers() {
        for (number, rounded) in [(0.0, 1.0), (977.0, 1_000.0), (12_870.0, 20_000.0), (0.3, 0.5)] {
            assert!((round_up(number) - rounded).abs() < 1e-9, "{number}: {}", round_up(number));
        }
    }

    #[test]
    fn a_curve_stands_on_its_axis() {
        let theme = Theme::default();
        let show = |number: f64| format!("{number:.0}");
        let numbers: Vec<f64> = (0..40).map(|n| f64::from(n * n)).collect();
        let lines = curve(Styler::new(theme), "", &numbers, &show, 27, 5);
        insta::assert_snapshot!(
            lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        );
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
            prop_assert!(sparkline(&floats, cells).chars().count() <= cells);
            let most = numbers.iter().copied().max().unwrap_or(0);
            let drawn = columns(&numbers, float(most), height, 1);
            prop_assert_eq!(drawn.len(), height);
            if height > 0 {
                let shown = drawn[height - 1].chars().filter(|c| *c != ' ').count();
                prop_assert_eq!(shown, numbers.iter().filter(|n| **n > 0).count());
            }
            prop_assert!(labels(&[(at, "p50"), (at / 2, "p99")], cells).len() <= cells);
            prop_assert_eq!(progress(0.3, cells).concat().chars().count(), cells);
            let theme = Theme::default();
            let show = |number| format!("{number:.0}");
            for label in ["", "calls/s "] {
                for line in curve(Styler::new(theme), label, &floats, &show, cells, height) {
                    prop_assert!(line.width() <= cells.max(MARGIN + 1));
                }
            }
        }
    }
}

#[cfg(test)]
mod histogram_tests {
    use super::*;
    use crate::tui::theme::{ColourScheme, Theme};
    use crate::util::histogram::{Durations, logarithmic};

    fn sample() -> Distribution {
        let mut all = Durations::default();
        for micros in 1..=1_000 {
            all.record(Duration::from_micros(micros));
        }
        logarithmic(&all, 24).unwrap()
    }

    fn shown(spread: &Distribution, width: usize, height: usize) -> Vec<String> {
        let marks = [("p50", Duration::from_micros(500)), ("p99", Duration::from_micros(990))];
        let theme = Theme { palette: ColourScheme::Mono, ascii: true, ..Theme::default() };
        let lines = lines(Styler::new(theme), spread, &marks, width, height);
        lines.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn it_fits_every_room() {
        let spread = sample();
        for width in 0..120 {
            for height in 0..20 {
                let lines = shown(&spread, width, height);
                assert!(lines.len() <= height.max(1), "{width}x{height}: {lines:#?}");
            }
        }
        for width in 30..120 {
            let shown = shown(&spread, width, 8);
            let widest = shown.iter().map(|line| line.width()).max().unwrap();
            assert!(widest <= width + 12, "{width}: {shown:#?}");
        }
    }

    #[test]
    fn columns_stand_over_an_axis_with_marks() {
        insta::assert_snapshot!(shown(&sample(), 40, 8).join("\n"));
    }
}
