//! Draws the statistics view.

use crate::present::stats::time;
use crate::stats::Usage;
use crate::tui::prelude::*;
use crate::tui::views::stats::latency;
use crate::tui::widgets::chart::sparkline;
use crate::tui::widgets::table::{ColumnSpec, TableLayout};
use crate::util::histogram::Durations;

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
        latency::draw(pen, state, inner);
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

/// A percentile, and how it is to be seen: one of too few calls is dim, and marked.
pub fn quantile(durations: &Durations, share: f64) -> (String, Role) {
    cell(&present::stats::quantile(durations, share))
}

fn cell(line: &present::Line) -> (String, Role) {
    let first = line.spans().first().map(|(role, text)| (text.clone(), *role));
    first.unwrap_or((String::new(), Role::Dim))
}

type StatsCell = fn(&AppState, &Usage, usize) -> (String, Role);

const SOURCE: &str = " FROM";

const COLUMNS: [ColumnSpec<StatsCell>; 13] = [
    ColumnSpec::new(SOURCE, 10, 4, |_, usage, _| (source(usage).to_owned(), Role::Dim)),
    ColumnSpec::new("CALLS", 7, 0, |_, usage, _| (usage.counts.calls().to_string(), Role::Plain)),
    ColumnSpec::new("NOW", 5, 9, running),
    ColumnSpec::new("OK%", 7, 1, |_, usage, _| cell(&present::stats::share(&usage.counts))),
    ColumnSpec::new("ERR", 6, 3, |_, usage, _| match usage.counts.failed() {
        0 => ("0".to_owned(), Role::Dim),
        failed => (failed.to_string(), Role::Error),
    }),
    ColumnSpec::new("P50", 9, 2, |_, usage, _| quantile(&usage.counts.durations, 0.5)),
    ColumnSpec::new("P90", 9, 10, |_, usage, _| quantile(&usage.counts.durations, 0.9)),
    ColumnSpec::new("P95", 9, 0, |_, usage, _| quantile(&usage.counts.durations, 0.95)),
    ColumnSpec::new("P99", 9, 7, |_, usage, _| quantile(&usage.counts.durations, 0.99)),
    ColumnSpec::new("MAX", 9, 8, |_, u, _| (time(u.counts.durations.max()), Role::Plain)),
    ColumnSpec::new("MEAN", 9, 11, |_, u, _| (time(u.counts.durations.mean()), Role::Plain)),
    ColumnSpec::new("RATE/S", 8, 5, |state, usage, _| {
        (per_second(state.stats.rate_of(usage).unwrap_or_default()), Role::Plain)
    }),
    ColumnSpec::new(" P95 TREND", 12, 6, |state, usage, width| {
        let timeline = state.stats.timeline_of(&usage.tool).iter();
        let times = timeline.map(|p| p.p95.map_or(0.0, |p95| p95.as_secs_f64()));
        (sparkline(&times.collect::<Vec<_>>(), width - 1), Role::Name)
    }),
];

const NAME: usize = 12;

fn source(usage: &Usage) -> &str {
    usage.tool.server.as_deref().unwrap_or("local")
}

fn running(state: &AppState, usage: &Usage, _: usize) -> (String, Role) {
    let is_own = |tool: &str| match &usage.tool.server {
        Some(server) if state.stats.by_server => {
            tool.strip_prefix(server.as_str()).is_some_and(|rest| rest.starts_with('-'))
        }
        _ => tool == usage.tool.name,
    };
    match state.context.calls.running().filter(|call| is_own(&call.tool)).count() {
        0 => (String::new(), Role::Dim),
        running => (running.to_string(), Role::Warning),
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
    let area = pen.filter(area, &stats.find, None);
    let mut above = Vec::new();
    if let Some(error) = &stats.error {
        above.push(pen.line(Role::Error, format!("cannot read statistics: {}", error.message())));
        above.extend(error.hint().map(|hint| pen.line(Role::Dim, format!("hint: {hint}"))));
    }
    if stats.rows().is_empty() {
        match (&stats.snapshot, &stats.error) {
            (Some(_), _) => {
                let keys = [
                    ("1", "tools: Enter calls one"),
                    ("w", "another window: minutes, hours, all"),
                    ("P", "the calls of all projects"),
                ];
                let missing = "No calls in this window.";
                above.extend(empty::lines(pen.styler, missing, &keys, area.height));
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
    let mut all: Vec<ColumnSpec<StatsCell>> =
        COLUMNS.into_iter().filter(|c| !(stats.by_server && c.title == SOURCE)).collect();
    let sources = stats.rows().iter().map(|usage| text::width(source(usage)) + 1);
    let longest = sources.max().unwrap_or(0).clamp(10, 20);
    all.iter_mut().filter(|c| c.title == SOURCE).for_each(|c| c.width = longest);
    // Columns go before the parts of names that tell them apart.
    let names = stats.rows().iter().map(|usage| text::width(name_of(usage, stats.by_server)));
    let widest = names.max().unwrap_or(0).min(36);
    let layout = TableLayout::of(&all, room, NAME.max(widest));
    if y < area.bottom() {
        let name = if stats.by_server { "SERVER" } else { "TOOL" };
        pen.put(layout.heading(pen.styler, name, ""), Rect { y, height: 1, ..area });
        y += 1;
    }
    let (styler, rows) = (pen.styler, Rect { y, height: area.bottom().saturating_sub(y), ..area });
    pen.list(rows, stats.list, stats.rows().len(), |at| {
        let usage = &stats.rows()[at];
        let name = styler.cell(name_of(usage, stats.by_server), layout.first);
        let cells = layout.cells(styler, |column| (column.what)(state, usage, column.width));
        std::iter::once(styler.plain(name)).chain(cells).collect()
    });
}
