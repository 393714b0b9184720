//! Latencies: percentiles, mean, extremes and distribution.

use std::time::Duration;

use crate::present::{Line, Page, Role, Table, TableColumn, chart};
use crate::util::distribution::{self, Distribution};
use crate::util::histogram::Durations;
use crate::util::number::float;
use crate::util::units::{show_count, show_duration};

const PERCENTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];

const ROWS: usize = 10;

/// Latencies in columns, one row for each figure. A percentile with too few calls beyond it is dim
/// and marked with `~`.
pub(super) fn table(columns: &[(&str, &Durations)], width: Option<usize>) -> Page {
    let mut table = Table::new(
        std::iter::once(TableColumn::new(""))
            .chain(columns.iter().map(|(title, _)| TableColumn::new(title).right())),
    );
    let exact = |name: &str, of: &dyn Fn(&Durations) -> Option<Duration>| {
        std::iter::once(Line::styled(Role::Dim, name))
            .chain(columns.iter().map(|(_, times)| cell(of(times), true)))
            .collect::<Vec<_>>()
    };
    table.row(exact("min", &Durations::min));
    for (name, share) in PERCENTILES {
        let cells = columns
            .iter()
            .map(|(_, times)| cell(times.quantile(share), times.is_reliable_at(share)));
        table.row(std::iter::once(Line::styled(Role::Dim, name)).chain(cells));
    }
    table.row(exact("max", &Durations::max));
    table.row(exact("mean", &Durations::mean));
    table.row(exact("deviation", &Durations::stddev));
    table.layout(width.map(|width| width.saturating_sub(2))).indented(2)
}

/// Whether any of these percentiles is marked as unreliable.
pub(super) fn has_doubtful(times: &Durations) -> bool {
    times.count() > 0 && PERCENTILES.iter().any(|(_, share)| !times.is_reliable_at(*share))
}

fn cell(value: Option<Duration>, sure: bool) -> Line {
    match value {
        None => Line::styled(Role::Dim, "-"),
        // The blank takes the place of the mark of an unreliable percentile.
        Some(value) if sure => Line::plain(show_duration(value) + " "),
        Some(value) => Line::styled(Role::Dim, show_duration(value) + "~"),
    }
}

/// The distribution of the latencies: a bar for each bucket.
pub(super) fn histogram(times: &Durations, width: Option<usize>) -> Page {
    let mut page = Page::default();
    let Some(spread) = distribution::logarithmic(times, ROWS) else { return page };
    // A single duration has no distribution.
    if spread.classes.iter().filter(|(_, count)| *count > 0).count()
        + usize::from(spread.beyond > 0)
        < 2
    {
        return page;
    }
    let room = width.unwrap_or(80).saturating_sub(2 + 13 + 9).clamp(4, 40);
    for (limit, count) in &spread.classes {
        page.push(row(&format!("to {}", show_duration(*limit)), *count, &spread, room));
    }
    if spread.beyond > 0 {
        page.push(row("longer", spread.beyond, &spread, room));
    }
    page
}

fn row(name: &str, count: u64, spread: &Distribution, room: usize) -> Line {
    let share = float(count) / float(spread.highest_count().max(1));
    let mut line = Line::styled(Role::Dim, format!("{name:>12} ")).indented(2);
    line.push(Role::Success, chart::bar(share, room));
    if count > 0 {
        line.push(Role::Plain, format!(" {}", show_count(count)));
    }
    line
}
