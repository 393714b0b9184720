//! Latencies: percentiles, mean and extremes.

use std::time::Duration;

use crate::present::{Line, Page, Role, Table, TableColumn};
use crate::util::histogram::Durations;
use crate::util::units::show_duration;

const PERCENTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];

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
