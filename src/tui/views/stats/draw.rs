//! Draws the statistics view.

use ratatui::layout::{Constraint, Layout};

use crate::model::ToolSource;
use crate::present::stats::detail::span;
use crate::present::stats::{QUANTILES, quantile, share, time};
use crate::present::{TableColumn, TableLayout};
use crate::stats::Usage;
use crate::stats::comparison::UsageChange;
use crate::stats::summary::SeriesPoint;
use crate::tui::prelude::*;
use crate::tui::views::stats::StatsView;
use crate::tui::widgets::chart::sparkline;
use crate::util::histogram::{linear, logarithmic};

pub fn draw(pen: &mut Pen<'_>, state: &AppState, shown: Pane, area: Rect) {
    let stats = &state.stats;
    let title = if shown == Pane::Usage {
        title(state)
    } else {
        let name = stats.chosen().map_or("", |usage| name_of(usage, stats.by_server));
        format!("Latency  {name}")
    };
    let inner = pen.open(area, &title);
    if shown == Pane::Usage {
        usage_table(pen, state, inner);
    } else {
        latency(pen, state, inner);
    }
}

fn title(state: &AppState) -> String {
    let stats = &state.stats;
    let rows = if stats.by_server { "Servers" } else { "Tools" };
    let mut parts = vec![format!("{rows} by {}", stats.order()), stats.window.title().to_owned()];
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

/// Calls per second; small rates are not rounded to zero.
pub fn per_second(rate: f64) -> String {
    if rate > 0.0 && rate < 0.01 {
        return "<0.01".to_owned();
    }
    crate::bench::formatting::per_second(rate)
}

type StatsCell = fn(&AppState, &Usage) -> present::Line;

/// What stands behind the name of a row, and how many cells it takes.
fn columns(stats: &StatsView) -> [(TableColumn, usize, StatsCell); 13] {
    let widest = |text: fn(&Usage) -> String| {
        stats.rows().iter().map(|usage| text::width(&text(usage))).max().unwrap_or(0)
    };
    // By server it would say the same as the name.
    let sources =
        if stats.by_server { 0 } else { widest(|usage| source(usage).to_owned()).min(20) };
    let column = |title, rank| TableColumn::new(title).droppable(rank);
    let number = |title, rank| column(title, rank).right();
    [
        (column("FROM", 4), sources, |_, usage| present::Line::styled(Role::Dim, source(usage))),
        (number("CALLS", 0), widest(|usage| usage.counts.calls().to_string()), |_, usage| {
            usage.counts.calls().to_string().into()
        }),
        (number("NOW", 9), 3, running),
        (number("OK%", 1), 5, |_, usage| share(&usage.counts)),
        (
            number("ERR", 3),
            widest(|usage| usage.counts.failed().to_string()),
            |_, usage| match usage.counts.failed() {
                0 => present::Line::styled(Role::Dim, "0"),
                failed => present::Line::styled(Role::Error, failed.to_string()),
            },
        ),
        (number("P50", 2), 8, |_, usage| quantile(&usage.counts.durations, 0.5)),
        (number("P90", 10), 8, |_, usage| quantile(&usage.counts.durations, 0.9)),
        (number("P95", 0), 8, |_, usage| quantile(&usage.counts.durations, 0.95)),
        (number("P99", 7), 8, |_, usage| quantile(&usage.counts.durations, 0.99)),
        (number("MAX", 8), 7, |_, usage| time(usage.counts.durations.max()).into()),
        (number("MEAN", 11), 7, |_, usage| time(usage.counts.durations.mean()).into()),
        (number("RATE/S", 5), 7, |state, usage| {
            per_second(state.stats.rate_of(usage).unwrap_or_default()).into()
        }),
        (column("P95 TREND", 6), TREND, |state, usage| {
            let timeline = state.stats.timeline_of(&usage.tool).iter();
            let times = timeline.map(|p| p.p95.map_or(0.0, |p95| p95.as_secs_f64()));
            present::Line::styled(Role::Name, sparkline(&times.collect::<Vec<_>>(), TREND))
        }),
    ]
}

const TREND: usize = 11;
const NAME: usize = 12;

fn source(usage: &Usage) -> &str {
    usage.tool.server.as_deref().unwrap_or(ToolSource::Internal.into())
}

fn running(state: &AppState, usage: &Usage) -> present::Line {
    let is_own = |tool: &str| match &usage.tool.server {
        Some(server) if state.stats.by_server => {
            tool.strip_prefix(server.as_str()).is_some_and(|rest| rest.starts_with('-'))
        }
        _ => tool == usage.tool.name,
    };
    match state.context.calls.running().filter(|call| is_own(&call.tool)).count() {
        0 => present::Line::default(),
        running => present::Line::styled(Role::Warning, running.to_string()),
    }
}

pub fn name_of(usage: &Usage, by_server: bool) -> &str {
    match (by_server, &usage.tool.server) {
        (false, _) => &usage.tool.name,
        (true, Some(server)) => server,
        (true, None) => "(no server)",
    }
}

pub fn usage_table(pen: &mut Pen<'_>, state: &AppState, area: Rect) {
    let stats = &state.stats;
    let area = pen.filter(area, &stats.list.filter, None);
    let mut above = Vec::new();
    if let Some(error) = &stats.error {
        above.push(pen.line(Role::Error, format!("cannot read statistics: {}", error.message())));
        above.extend(error.hint().map(|hint| pen.line(Role::Dim, format!("hint: {hint}"))));
    }
    let problem = stats
        .snapshot
        .as_ref()
        .and_then(|snapshot| state.context.calls.recording_problem("stats", snapshot.is_recording));
    above.extend(problem.map(|problem| pen.line(Role::Warning, problem)));
    if stats.rows().is_empty() {
        match (&stats.snapshot, &stats.error) {
            (Some(_), _) if !above.is_empty() => {}
            (Some(_), _) => {
                let keys = [
                    ("1", "tools: Enter calls one"),
                    ("w", "another window: minutes, hours, all"),
                    ("P", "the calls of all projects"),
                ];
                let missing = "No calls in this window.";
                above.extend(pen.empty(missing, &keys, area.height));
            }
            (None, None) => above.push(pen.line(Role::Dim, "Loading…")),
            (None, Some(_)) => {}
        }
        return pen.paragraph(area, &above);
    }
    let mut y = area.y;
    for line in above.into_iter().take(usize::from(area.height / 3)) {
        pen.put(line, Rect { y, height: 1, ..area });
        y += 1;
    }
    let room = usize::from(area.width).saturating_sub(2);
    let behind = columns(stats);
    // Columns go before the parts of names that tell them apart.
    let names = stats.rows().iter().map(|usage| text::width(name_of(usage, stats.by_server)));
    let widest = names.max().unwrap_or(0).min(36);
    let name = TableColumn::new(if stats.by_server { "SERVER" } else { "TOOL" });
    let name = (name.shrinks_to(NAME.max(widest)), room);
    let columns = behind.iter().map(|(column, cells, _)| (column.clone(), *cells));
    let layout = TableLayout::of(std::iter::once(name).chain(columns), Some(room));
    if y < area.bottom() {
        let head = pen.titles(&layout);
        pen.put(head, Rect { y, height: 1, ..area });
        y += 1;
    }
    let (styler, rows) = (pen.styler, Rect { y, height: area.bottom().saturating_sub(y), ..area });
    pen.filtered(rows, &stats.list, |at| {
        let usage = &stats.rows()[at];
        let name = present::Line::plain(name_of(usage, stats.by_server));
        let cells = behind.iter().map(|(.., cell)| cell(state, usage));
        styler.row(&layout, std::iter::once(name).chain(cells))
    });
}

/// From this width, in columns, the histogram is drawn beside the figures.
const WIDE: u16 = 96;
const KINDS: usize = 8;
const HISTOGRAM_BUCKETS: usize = 48;
/// How many calls a histogram needs to have a shape.
const CHARTED: u64 = 10;

/// How long calls of the chosen row take, and how that changes.
fn latency(pen: &mut Pen<'_>, state: &AppState, area: Rect) {
    let Some(usage) = state.stats.chosen() else {
        let text = "How long calls take, and how that changes.";
        return pen.paragraph(area, &[pen.line(Role::Dim, text)]);
    };
    if area.width >= WIDE {
        let [left, right] =
            Layout::horizontal([Constraint::Percentage(55), Constraint::Fill(1)]).areas(area);
        let left = Rect { width: left.width.saturating_sub(2), ..left };
        let drawn = drawn(pen.styler, state, usage, left.width, left.height);
        pen.paragraph(left, &drawn);
        let mut lines = facts(pen.styler, state, usage, right.width);
        lines.extend(store(pen.styler, state));
        return pen.page(&lines, &state.stats.position, right);
    }
    let mut lines = facts(pen.styler, state, usage, area.width);
    // The histogram takes the lines that are left, and a few in any case.
    let left = area.height.saturating_sub(cells(lines.len())).max(6);
    lines.extend(drawn(pen.styler, state, usage, area.width, left));
    lines.extend(store(pen.styler, state));
    pen.page(&lines, &state.stats.position, area);
}

/// The histogram, with what its axis is.
fn drawn(
    styler: Styler,
    state: &AppState,
    usage: &Usage,
    width: u16,
    height: u16,
) -> Vec<Line<'static>> {
    let durations = &usage.counts.durations;
    let classed = if state.stats.has_linear_buckets { linear } else { logarithmic };
    let Some(spread) = classed(durations, HISTOGRAM_BUCKETS) else {
        return vec![styler.line(Role::Dim, "no successful calls yet")];
    };
    if durations.count() < CHARTED {
        let calls = plural(durations.count(), "call", "calls");
        let text = format!("{calls} so far; the histogram needs {CHARTED}");
        return vec![styler.line(Role::Dim, text)];
    }
    let scale = if state.stats.has_linear_buckets { "linear" } else { "log" };
    let title =
        format!("latency ({scale} scale, H to change), {} calls", show_count(durations.count()));
    let marks: Vec<_> = [QUANTILES[2], QUANTILES[0], QUANTILES[3]]
        .into_iter()
        .filter_map(|(name, share)| Some((name, durations.quantile(share)?)))
        .collect();
    let mut lines = vec![styler.line(Role::Dim, title)];
    let height = usize::from(height).saturating_sub(1);
    lines.extend(chart::lines(styler, &spread, &marks, usize::from(width), height));
    lines
}

/// Below the histogram: percentiles, the kinds of failures, retries, rates over time and the store.
fn facts(styler: Styler, state: &AppState, usage: &Usage, width: u16) -> Vec<Line<'static>> {
    let counts = &usage.counts;
    let durations = &counts.durations;
    let mut lines = Vec::new();
    let mut figures = Vec::new();
    for (name, share) in QUANTILES {
        figures.push(styler.dim(format!("{name} ")));
        figures.extend(styler.styled(&quantile(durations, share)));
        figures.push(styler.plain("  "));
    }
    if durations.count() > 0 {
        lines.push(Line::from(figures));
        let [max, mean, deviation] =
            [durations.max(), durations.mean(), durations.stddev()].map(time);
        let text = format!("max {max}  mean {mean}  deviation {deviation}");
        lines.push(styler.line(Role::Plain, text));
    }
    lines.extend(over_time(styler, state, usage, width));
    lines.extend(since_before(styler, state, usage));
    if counts.failed() > 0 {
        let kinds = counts.failures_by_count();
        let parts: Vec<String> =
            kinds.iter().take(KINDS).map(|(kind, count)| format!("{kind} {count}")).collect();
        lines.push(labelled(styler, "failed", Role::Error, &parts.join("  ")));
    }
    if counts.cancelled > 0 {
        let text = format!("{} cancelled, not counted as errors", show_count(counts.cancelled));
        lines.push(styler.line(Role::Dim, text));
    }
    lines.extend(callers(styler, state, usage));
    if counts.retries() > 0 {
        let text = format!("{} retries, {} recovered", counts.retries(), counts.recovered);
        lines.push(styler.line(Role::Plain, text));
    }
    if durations.count() > 0 && QUANTILES.iter().any(|(_, share)| !durations.is_reliable_at(*share))
    {
        lines.push(styler.line(Role::Dim, "? too few calls for a reliable percentile"));
    }
    lines
}

/// Which other clients called since the console was opened.
fn callers(styler: Styler, state: &AppState, usage: &Usage) -> Option<Line<'static>> {
    let clients = &state.live.of(&usage.tool.name)?.clients;
    let text = clients.iter().map(|(client, count)| format!("{client} {}", show_count(*count)));
    let text = text.collect::<Vec<_>>().join("  ");
    (!text.is_empty()).then(|| labelled(styler, "clients", Role::Name, &text))
}

fn labelled(styler: Styler, label: &str, role: Role, text: &str) -> Line<'static> {
    Line::from(vec![styler.dim(format!("{label:<8}")), styler.span(role, text)])
}

/// What changed since the period of equal length before the window.
fn since_before(styler: Styler, state: &AppState, usage: &Usage) -> Option<Line<'static>> {
    let earlier = state.stats.snapshot.as_ref()?.earlier.as_ref()?;
    let before = earlier.iter().find(|before| before.tool == usage.tool);
    let before = before.map(|before| before.counts.clone()).unwrap_or_default();
    let change = UsageChange { now: &usage.counts, before: &before };
    let figures = [
        ("calls", change.calls().relative_text()),
        ("errors", change.error_share().points_text()),
        ("p50", change.quantile(0.5).relative_text()),
        ("p95", change.quantile(0.95).relative_text()),
    ];
    let changes = figures.into_iter().filter(|(_, text)| !text.is_empty());
    let changes: Vec<String> = changes.map(|(name, text)| format!("{name} {text}")).collect();
    Some(labelled(styler, "change", Role::Plain, &changes.join("  ")))
}

fn store(styler: Styler, state: &AppState) -> Option<Line<'static>> {
    let snapshot = state.stats.snapshot.as_ref()?;
    let size = snapshot.size.map(|size| format!(", {}", show_size(size))).unwrap_or_default();
    Some(styler.line(Role::Dim, format!("spool   {}{size}", snapshot.place)))
}

fn over_time(styler: Styler, state: &AppState, usage: &Usage, width: u16) -> Vec<Line<'static>> {
    let points = state.stats.timeline_of(&usage.tool);
    let Some(seen) = state.stats.snapshot.as_ref().filter(|_| !points.is_empty()) else {
        return Vec::new();
    };
    let cells = usize::from(width).saturating_sub(26).clamp(4, 60);
    let length = seen.timelines.length;
    let line = |name: &str, meaning, value: &dyn Fn(&SeriesPoint) -> f64, text: String| {
        let numbers: Vec<f64> = points.iter().map(value).collect();
        let drawn = chart::sparkline(&numbers, cells);
        Line::from(vec![
            styler.dim(format!("{name:<8}")),
            styler.span(meaning, format!("{drawn} ")),
            styler.plain(text),
        ])
    };
    let most = points.iter().map(|point| point.calls).max().unwrap_or(0);
    let peak = float(most) / length.as_secs_f64().max(1.0);
    let rate = state.stats.rate_of(usage).unwrap_or_default();
    let text = format!("{}/s, peak {}/s", per_second(rate), per_second(peak));
    let mut lines = vec![line("calls", Role::Success, &|point| float(point.calls), text)];
    if points.iter().any(|point| point.failed > 0) {
        let text = usage.counts.failed().to_string();
        lines.push(line("errors", Role::Error, &|point| float(point.failed), text));
    }
    let high = |point: &SeriesPoint| point.p95.map_or(0.0, |p95| p95.as_secs_f64());
    lines.push(line("p95", Role::Name, &high, String::new()));
    let slices = u32::try_from(points.len()).unwrap_or(u32::MAX);
    let text = format!("        last {}, {} per bar", span(length * slices), span(length));
    lines.push(styler.line(Role::Dim, text));
    lines
}
