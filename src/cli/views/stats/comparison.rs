//! Statistics of a period compared with the period before it.

use super::{StatsRows, name_cell, shared_names};
use crate::cli::output::table::{Table, TableColumn};
use crate::cli::output::{SpanStyle, StyledLine, StyledPage};
use crate::cli::records::local_time;
use crate::stats::comparison::{FigureChange, PeriodComparison, UsageChange};
use crate::util::units::show_duration;

/// A row for each tool or server that was called in either period, and one for all of them.
pub fn table(comparison: &PeriodComparison, rows: StatsRows, width: Option<usize>) -> StyledPage {
    let first = match rows {
        StatsRows::Tools => "TOOL",
        StatsRows::Servers => "SERVER",
    };
    let number = |title: &str| TableColumn::new(title).right();
    let mut table = Table::new([
        TableColumn::new(first).shrinks_to(10),
        number("CALLS"),
        number("CHANGE"),
        number("ERROR%"),
        number("CHANGE"),
        number("P50").droppable(3),
        number("CHANGE").droppable(3),
        number("P95").droppable(2),
        number("CHANGE").droppable(2),
    ]);
    let shared = shared_names(comparison.changes.iter().map(|change| &change.tool));
    for change in &comparison.changes {
        table.row(row(name_cell(&change.tool, rows, &shared), change));
    }
    if comparison.changes.len() > 1 {
        table.row(row(StyledLine::styled(SpanStyle::Dim, "(total)"), &comparison.total));
    }
    table.layout(width)
}

fn row(name: StyledLine, change: &UsageChange) -> [StyledLine; 9] {
    let (errors, p50, p95) = (change.error_share(), change.quantile(0.5), change.quantile(0.95));
    let calls = change.calls();
    [
        name,
        StyledLine::plain(change.now.calls().to_string()),
        StyledLine::plain(calls.relative_text()),
        StyledLine::plain(percent(&errors)),
        judged(&errors, errors.points_text()),
        StyledLine::plain(time(&p50)),
        judged(&p50, p50.relative_text()),
        StyledLine::plain(time(&p95)),
        judged(&p95, p95.relative_text()),
    ]
}

/// The change of a figure for which less is better.
fn judged(figure: &FigureChange, text: String) -> StyledLine {
    let style = match figure.difference() {
        Some(change) if change > 0.0 => SpanStyle::Warning,
        Some(change) if change < 0.0 => SpanStyle::Success,
        _ => SpanStyle::Dim,
    };
    StyledLine::styled(style, text)
}

fn percent(share: &FigureChange) -> String {
    share.now.map(|share| format!("{:.1}", share * 100.0)).unwrap_or_default()
}

fn time(figure: &FigureChange) -> String {
    let time = figure.now.and_then(|now| std::time::Duration::try_from_secs_f64(now).ok());
    time.map(show_duration).unwrap_or_default()
}

/// What the figures are compared with.
pub fn remarks(comparison: &PeriodComparison) -> Vec<StyledLine> {
    let at = |time: std::time::Duration| local_time(time.as_secs_f64());
    let (from, until) = (at(comparison.from), at(comparison.until));
    let mut lines = vec![StyledLine::styled(
        SpanStyle::Dim,
        format!("compared with {from} to {until}, {} calls", comparison.total.before.calls()),
    )];
    if !comparison.is_complete {
        let words = "part of that period is no longer kept (stats: { retention: … })";
        lines.push(StyledLine::styled(SpanStyle::Warning, words));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::tests::{shown, usage};
    use super::*;
    use crate::stats::Summary;

    #[test]
    fn a_table_tells_what_grew_and_what_was_not_there() {
        let mut worse = usage("web-search", Some("web"), 120);
        worse.counts.add_failures("timeout", 30);
        let later = Summary { tools: vec![worse], ..Summary::default() };
        let earlier = Summary {
            tools: vec![usage("gone", None, 4), usage("web-search", Some("web"), 100)],
            ..Summary::default()
        };
        let comparison = PeriodComparison::new(&later, &earlier, false);
        let text = shown(&table(&comparison, StatsRows::Tools, None));
        let row = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert!(row("web-search").starts_with("web-search 150 +50% 20.0 +20.0 pp"), "{text}");
        assert!(row("gone").starts_with("gone 0 -100%"), "{text}");
        assert!(row("(total)").starts_with("(total) 150 +44%"), "{text}");
        let narrow = table(&comparison, StatsRows::Tools, Some(50));
        assert!(narrow.lines().iter().all(|line| line.width() <= 50), "{}", shown(&narrow));
        assert!(shown(&narrow).contains("ERROR%"));
        assert_eq!(remarks(&comparison).len(), 1);
    }
}
