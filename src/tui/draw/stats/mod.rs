//! Draws the statistics view.

mod latency;
mod table;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::pane;
use super::styler::Styler;
use crate::stats::Usage;
use crate::stats::count::CallCounts;
use crate::tui::draw::digits::grouped;
use crate::tui::event::stats::StatsWindow;
use crate::tui::state::{AppState, Pane};
use crate::tui::theme::StyleRole;
use crate::util::histogram::Durations;
use crate::util::units::show_duration;

/// Marks a percentile that too few calls stand behind.
const LOW_SAMPLE_MARK: char = '?';
/// The percentiles that are shown, with their names.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)];

pub(super) fn draw(
    frame: &mut Frame<'_>,
    styler: &Styler<'_>,
    state: &AppState,
    shown: Pane,
    area: Rect,
) {
    let focused = state.context.focus == shown;
    let stats = &state.stats;
    let title = if shown == Pane::Usage {
        title(state)
    } else {
        let name = stats.chosen().map_or("", |usage| table::name_of(usage, stats.by_server));
        format!("Latency  {name}")
    };
    let inner = pane::open(frame, styler, area, &title, focused);
    if shown == Pane::Usage {
        table::draw(frame, styler, state, inner);
    } else {
        latency::draw(frame, styler, state, inner);
    }
}

fn title(state: &AppState) -> String {
    let stats = &state.stats;
    let rows = if stats.by_server { "Servers" } else { "Tools" };
    let mut parts =
        vec![format!("{rows} by {}", stats.column.title()), stats.window.title().to_owned()];
    let running = state.context.calls.running().count();
    if running > 0 {
        parts.push(format!("in flight {running}"));
    }
    parts.extend(state.context.shown_projects.title().map(str::to_owned));
    if stats.is_paused {
        parts.push("PAUSED".to_owned());
    }
    parts.join("  ")
}

pub(super) fn line_of(styler: &Styler<'_>, usage: &Usage, window: StatsWindow) -> Line<'static> {
    let counts = &usage.counts;
    let calls = match counts.calls() {
        1 => "1 call".to_owned(),
        calls => format!("{} calls", grouped(calls)),
    };
    let mut parts = vec![calls, format!("{}% ok", share(counts))];
    if counts.failed() > 0 {
        parts.push(counts.failures_text());
    }
    if counts.cancelled > 0 {
        parts.push(format!("{} cancelled", grouped(counts.cancelled)));
    }
    if counts.durations.count() > 0 {
        let told = [QUANTILES[0], QUANTILES[2]];
        let told = told.map(|(name, at)| format!("{name} {}", quantile(&counts.durations, at).0));
        parts.extend(told);
    }
    styler.fact("used", format!("{} ({})", parts.join(", "), window.title()))
}

/// The percentage of calls that succeeded; 100 only if all did.
fn share(counts: &CallCounts) -> String {
    let Some(share) = counts.success_rate() else { return String::new() };
    let percent = share * 100.0;
    let percent = if counts.failed() > 0 { percent.min(99.9) } else { percent };
    format!("{percent:.1}")
}

/// Calls per second; small rates are not rounded to zero.
fn per_second(rate: f64) -> String {
    if rate > 0.0 && rate < 0.01 {
        return "<0.01".to_owned();
    }
    crate::bench::formatting::per_second(rate)
}

/// A percentile, and how it is to be seen: one of too few calls is dim, and marked.
fn quantile(durations: &Durations, share: f64) -> (String, StyleRole) {
    match durations.quantile(share) {
        None => (String::new(), StyleRole::Dim),
        Some(value) if durations.is_reliable_at(share) => (show_duration(value), StyleRole::Plain),
        Some(value) => (format!("{}{LOW_SAMPLE_MARK}", show_duration(value)), StyleRole::Dim),
    }
}

#[cfg(test)]
mod tests;
