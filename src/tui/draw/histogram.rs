//! Draws a histogram of durations over an axis.

use std::time::Duration;

use ratatui::text::Line;

use super::chart;
use super::styler::Styler;
use crate::bench::distribution::Distribution;
use crate::tui::theme::StyleRole;
use crate::util::units::show_duration;

/// Cells before the columns: the highest count.
const MARGIN: usize = 7;
/// The highest it gets: more rows tell nothing more.
const HIGHEST: usize = 12;

/// Durations as columns in at most this many cells and lines, with the marked ones. With
/// fewer than four lines only the columns and their ends are left, in one line or two.
pub(super) fn lines(
    styler: &Styler<'_>,
    spread: &Distribution,
    marks: &[(&str, Duration)],
    width: usize,
    height: usize,
) -> Vec<Line<'static>> {
    let ascii = styler.theme.ascii;
    let ends =
        (show_duration(spread.from), spread.classes.last().map(|(to, _)| show_duration(*to)));
    let to = ends.1.unwrap_or_default();
    if height < 4 {
        let cells = width.saturating_sub(ends.0.len() + to.len() + 2);
        let (counts, wide) = shaped(spread, cells);
        let mut drawn = chart::columns(&counts, 1, wide, ascii);
        return vec![Line::from(vec![
            styler.span(StyleRole::Dim, format!("{} ", ends.0)),
            styler.span(StyleRole::Success, drawn.pop().unwrap_or_default()),
            styler.span(StyleRole::Dim, format!(" {to}")),
        ])];
    }
    let (counts, wide) = shaped(spread, width.saturating_sub(MARGIN));
    let cells = counts.len() * wide;
    let rows = (height - 3).clamp(1, HIGHEST);
    let most = counts.iter().max().copied().unwrap_or(0);
    let mut lines = Vec::new();
    for (at, row) in chart::columns(&counts, rows, wide, ascii).into_iter().enumerate() {
        let count = if at == 0 { most.to_string() } else { String::new() };
        let edge = if ascii { "|" } else { "│" };
        lines.push(Line::from(vec![
            styler.span(StyleRole::Dim, format!("{count:>5} {edge}")),
            styler.span(StyleRole::Success, row),
        ]));
    }
    let (corner, dash) = if ascii { ("+", "-") } else { ("└", "─") };
    let margin = " ".repeat(MARGIN - 1);
    lines.push(styler.line(StyleRole::Dim, format!("{margin}{corner}{}", dash.repeat(cells))));
    let named: Vec<(usize, String)> = marks
        .iter()
        .map(|(name, time)| (place(spread, *time) * wide, format!("^{name}")))
        .collect();
    // Of marks at one place the last one is the most important: it tells what most did not exceed.
    let named: Vec<(usize, &str)> = named
        .iter()
        .rev()
        .map(|(at, name)| (scaled(*at, spread, &counts), name.as_str()))
        .collect();
    let below = chart::labels(&named, cells + 6);
    lines.push(styler.line(StyleRole::Key, format!("{margin} {below}")));
    let middle = spread.classes.get(spread.classes.len() / 2);
    let middle = middle.map(|(to, _)| show_duration(*to)).unwrap_or_default();
    let last = cells.saturating_sub(to.len());
    let axis = chart::labels(&[(0, &ends.0), (last, &to), (cells / 2, &middle)], cells);
    let beyond =
        if spread.beyond > 0 { format!("  {} longer", spread.beyond) } else { String::new() };
    lines.push(styler.line(StyleRole::Dim, format!("{margin} {axis}{beyond}")));
    lines
}

fn shaped(spread: &Distribution, cells: usize) -> (Vec<u64>, usize) {
    let counts: Vec<u64> = spread.classes.iter().map(|(_, count)| *count).collect();
    if counts.is_empty() || cells == 0 {
        return (Vec::new(), 1);
    }
    let each = counts.len().div_ceil(cells);
    let merged: Vec<u64> = counts.chunks(each).map(|chunk| chunk.iter().sum()).collect();
    let wide = (cells / merged.len()).clamp(1, 3);
    (merged, wide)
}

fn place(spread: &Distribution, time: Duration) -> usize {
    spread.classes.iter().position(|(to, _)| time <= *to).unwrap_or(spread.classes.len())
}

fn scaled(at: usize, spread: &Distribution, drawn: &[u64]) -> usize {
    at * drawn.len() / spread.classes.len().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::distribution::logarithmic;
    use crate::tui::theme::{ColourScheme, Theme};
    use crate::util::histogram::Durations;

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
        let lines = lines(&Styler::new(&theme), spread, &marks, width, height);
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
            let widest = shown(&spread, width, 8).iter().map(String::len).max().unwrap();
            assert!(widest <= width + 12, "{width}: {:#?}", shown(&spread, width, 8));
        }
    }

    #[test]
    fn columns_stand_over_an_axis_with_marks() {
        insta::assert_snapshot!(shown(&sample(), 40, 8).join("\n"));
    }
}
