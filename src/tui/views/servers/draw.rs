//! Draws the servers view.

use std::collections::VecDeque;

use ratatui::layout::{Constraint, Layout};
use serde_json::Value;

use crate::model::{ServerState, ServerStatus};
use crate::present::server::state_label;
use crate::present::{TableColumn, TableLayout, messages};
use crate::tui::prelude::*;
use crate::tui::views::servers::ServerTab;
use crate::tui::views::servers::activity::{ServerActivity, ServerToolLists};
use crate::tui::views::trace;
use crate::tui::views::trace::draw::TraceColumns;
use crate::util::timestamp;

pub fn dot(server: &ServerStatus) -> (&'static str, Role) {
    let dot = match server.state {
        ServerState::Ready => "●",
        ServerState::Failed(_) => "✗",
        ServerState::Starting => "◐",
        ServerState::Idle | ServerState::Closed | ServerState::Untrusted(_) => "○",
    };
    (dot, state_label(&server.state))
}

/// A time that goes on: `41:07`, `1:02:33`.
pub fn clock(time: std::time::Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

type ServerCell = fn(&AppState, &ServerStatus) -> String;

/// What comes between the state and the process or address, and how many cells it takes.
fn columns() -> [(TableColumn, usize, ServerCell); 8] {
    let text = |title, rank| TableColumn::new(title).droppable(rank);
    let number = |title, rank| text(title, rank).right();
    [
        (text("TRANSPORT", 5), 10, |_, server| server.transport.to_string()),
        (text("PROTOCOL", 3), 10, |_, server| server.protocol.clone().unwrap_or_else(none)),
        (number("TOOLS", 1), 7, tools),
        (number("PING p50/p95", 8), 15, pings),
        (number("CALLS", 2), 5, |state, server| calls(state, server).0),
        (number("ERR%", 6), 5, |state, server| calls(state, server).1),
        (number("RESTARTS", 9), 8, |_, server| server.starts.saturating_sub(1).to_string()),
        (number("UP", 7), 8, |_, server| server.uptime.map_or_else(none, clock)),
    ]
}

/// The least width of the last column, the process ID or the address.
const LAST: usize = 10;
const STATE: usize = 12;

pub fn list(pen: &mut Pen<'_>, state: &AppState, area: Rect) {
    let servers = &state.servers;
    let title = format!("Servers {}", shown_of(servers.list.found().len(), servers.rows.len()));
    let inner = pen.open(area, &title);
    if servers.rows.is_empty() {
        let text = "No servers. Define them in mcp.yaml, or take those of your editor:\n\
                    toolhost import";
        return pen.paragraph(inner, &pen.lines(Role::Dim, text));
    }
    let inner = pen.filter(inner, &servers.list.filter, None);
    let [head, rows] = top(inner, 1);
    let width = usize::from(inner.width);
    let widest = servers.rows.iter().map(|server| text::width(&server.name)).max().unwrap_or(0);
    // Columns go before names are cut.
    let name = TableColumn::new("NAME").shrinks_last_to(if width >= 100 { 15 } else { 13 });
    let first = [(name, widest.min(40)), (TableColumn::new("STATE"), STATE)].into_iter();
    let last = (TableColumn::new("PID/URL").shrinks_to(LAST), width);
    let between = columns();
    let columns = between.iter().map(|(column, cells, _)| (column.clone(), *cells));
    let layout = TableLayout::of(first.chain(columns).chain([last]), Some(width.saturating_sub(2)));
    pen.put(pen.titles(&layout), head);
    let styler = pen.styler;
    pen.filtered(rows, &servers.list, |at| {
        row(styler, state, &servers.rows[at], &between, &layout, width.saturating_sub(2))
    });
}

fn row(
    styler: Styler,
    state: &AppState,
    server: &ServerStatus,
    between: &[(TableColumn, usize, ServerCell)],
    layout: &TableLayout,
    width: usize,
) -> Line<'static> {
    let (dot, meaning) = dot(server);
    let word = format!("{dot} {}", server.state.as_str());
    let mut cells = vec![
        present::Line::styled(Role::of_server(&server.name), &server.name),
        present::Line::styled(meaning, word),
    ];
    if let Some(error) = state.servers.error(server) {
        let text = format!("  {}: {}", error.kind().as_str(), messages::in_one_line(error));
        let mut row = styler.row(layout, cells);
        let room = width.saturating_sub(row.width());
        row.push_span(styler.span(Role::Error, styler.cell(&text, room)));
        return row;
    }
    cells.extend(between.iter().map(|(.., cell)| cell(state, server).into()));
    let process = server.pid.map(|pid| pid.to_string());
    cells.push(process.unwrap_or_else(|| address(&server.endpoint)).into());
    styler.row(layout, cells)
}

fn address(endpoint: &str) -> String {
    endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest).to_owned()
}

fn none() -> String {
    "-".to_owned()
}

/// How many, how many of them are not what was declared (`~`), and whether all ask (`A`).
fn tools(state: &AppState, server: &ServerStatus) -> String {
    let advertised = state.servers.tool_lists.get(&server.name);
    let mut text = server.tools.map_or_else(none, |count| count.to_string());
    if let Some(count @ 1..) = advertised.map(ServerToolLists::differing) {
        text = format!("{text} ~{count}");
    }
    if advertised.is_some_and(ServerToolLists::asks_always) {
        text.push_str(" A");
    }
    text
}

fn pings(state: &AppState, server: &ServerStatus) -> String {
    let past = state.servers.activity.get(&server.name);
    let within = |percent| past?.ping_within(percent);
    match (within(50), within(95)) {
        (Some(half), Some(most)) => format!("{}/{}", show_duration(half), show_duration(most)),
        _ => none(),
    }
}

fn calls(state: &AppState, server: &ServerStatus) -> (String, String) {
    let (all, failed) = state.context.calls.server_counts(&server.name);
    let rate = match all {
        0 => none(),
        // Never more calls than are remembered.
        all => format!("{}.{}", failed * 100 / all, failed * 1000 / all % 10),
    };
    (all.to_string(), rate)
}

const INSTRUCTIONS: usize = 2_000;
/// The maximum number of lines of a log shown among the facts.
const TAIL: usize = 6;
const MAX_SCANNED_ITEMS: usize = 2_000;
/// From this width, in columns, the trace is drawn beside the facts.
const WIDE: u16 = 100;
/// How wide the history of pings, memory and load is drawn at most.
const SPARKS: usize = 30;

pub fn health(pen: &mut Pen<'_>, state: &AppState, area: Rect) {
    let servers = &state.servers;
    let Some(server) = servers.chosen() else {
        pen.open(area, "Server");
        return;
    };
    let (left, right) = if area.width >= WIDE {
        let share = [Constraint::Percentage(45), Constraint::Fill(1)];
        let [left, right] = Layout::horizontal(share).areas(area);
        (left, Some(right))
    } else {
        (area, None)
    };
    let inner = pen.open_tabs(left, &server.name, &tabs(servers.tab));
    let lines = match servers.tab {
        ServerTab::Log => log(pen.styler, state, server, servers.activity.get(&server.name)),
        ServerTab::Drift => drift(pen.styler, servers.tool_lists.get(&server.name)),
        ServerTab::Health => facts(pen.styler, state, server, usize::from(inner.width)),
    };
    pen.page(&lines, &servers.position, inner);
    if let Some(right) = right {
        pen.focused = false;
        wire(pen, state, server, right);
    }
}

fn wire(pen: &mut Pen<'_>, state: &AppState, server: &ServerStatus, area: Rect) {
    let inner = pen.open(area, &format!("Trace  {}  (T)", server.name));
    let columns = TraceColumns::of(usize::from(inner.width), state).without_server();
    let newest = state.trace.newest_of(&server.name, MAX_SCANNED_ITEMS);
    let lines: Vec<Line<'static>> = newest
        .take(usize::from(inner.height))
        .map(|item| trace::draw::row(pen.styler, item, columns))
        .collect();
    for (y, line) in (inner.y..inner.bottom()).zip(lines.into_iter().rev()) {
        pen.put(line, Rect { y, height: 1, ..inner });
    }
}

/// What the server logged, then what it wrote to its standard error, the newest first.
fn log(
    styler: Styler,
    state: &AppState,
    server: &ServerStatus,
    past: Option<&ServerActivity>,
) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if let Some(log) = past.map(|past| &past.log).filter(|log| !log.is_empty()) {
        lines.push(styler.line(Role::Title, "log"));
        lines.extend(log.iter().rev().map(|(level, text)| log_line(styler, level, text)));
    }
    // What a process wrote that is gone is in the trace.
    let written: Vec<&str> = match server.stderr_tail.as_slice() {
        [] => state.trace.stderr_of(&server.name, MAX_SCANNED_ITEMS).collect(),
        tail => tail.iter().rev().map(String::as_str).collect(),
    };
    if !written.is_empty() {
        lines.push(styler.line(Role::Title, "stderr"));
        lines.extend(written.into_iter().map(|text| styler.line(Role::Plain, text)));
    }
    if lines.is_empty() {
        lines.push(styler.line(Role::Dim, "No log messages and nothing on stderr yet."));
    }
    lines
}

fn log_line(styler: Styler, level: &str, text: &str) -> Line<'static> {
    Line::from(vec![styler.dim(format!("{level} ")), styler.plain(text)])
}

fn drift(styler: Styler, advertised: Option<&ServerToolLists>) -> Vec<Line<'static>> {
    let declared = advertised.filter(|advertised| !advertised.declared.is_empty());
    let Some(advertised) = declared else {
        let text = "No tools declared. Declare them with provides_tools in mcp.yaml.";
        return vec![styler.line(Role::Dim, text)];
    };
    if advertised.advertised.is_none() {
        return vec![styler.line(Role::Dim, "Tools not listed yet. Press c to connect.")];
    }
    advertised.lines().iter().map(|(role, text)| styler.line(*role, text)).collect()
}

/// Everything about a server, where it stands alone.
pub fn facts(
    styler: Styler,
    state: &AppState,
    server: &ServerStatus,
    width: usize,
) -> Vec<Line<'static>> {
    let past = state.servers.activity.get(&server.name);
    let advertised = state.servers.tool_lists.get(&server.name);
    let mut lines = Vec::new();
    let now = state.context.now;
    let since = server.uptime.filter(|_| !now.is_zero()).map(|up| {
        let then = timestamp::time_of_day(now.saturating_sub(up));
        format!(" since {then} ({})", clock(up))
    });
    let role = present::server::state_label(&server.state);
    let title = format!("{}{}", server.state.as_str(), since.unwrap_or_default());
    lines.push(styler.line(role, title));
    if let Some(error) = state.servers.error(server) {
        lines.extend(styler.document(&present::messages::failure(error)));
    }
    lines.extend(server.description.as_ref().map(|text| styler.line(Role::Plain, text)));
    let mut page = Page::default();
    present::server::facts(&mut page, server, Some(width));
    let mut fact = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            page.field(name, Role::Plain, &value, Some(width));
        }
    };
    fact("mem trend", usage(past.map(|past| &past.memory), show_size));
    fact("cpu trend", usage(past.map(|past| &past.cpu), |share| format!("{share} %")));
    fact("can", server.capabilities.as_ref().map(capabilities));
    fact("pings", ping_times(past));
    fact("", history(past));
    fact("log level", past.and_then(|past| past.level).map(str::to_owned));
    let differing = advertised.map_or(0, ServerToolLists::differing);
    let drift = || format!("{differing} tools differ from their declaration or pin (d)");
    fact("drift", (differing > 0).then(drift));
    for (at, text) in server.permissions.lines().into_iter().enumerate() {
        fact(if at == 0 { "may use" } else { "" }, Some(text));
    }
    for (at, used) in server.credentials.iter().enumerate() {
        fact(if at == 0 { "credentials" } else { "" }, Some(used.to_string()));
    }
    lines.extend(styler.document(&page));
    for warning in &server.warnings {
        lines.push(styler.line(Role::Warning, format!("! {warning}")));
    }
    tails(styler, server, past, &mut lines);
    if let Some(text) = &server.instructions {
        lines.push(styler.line(Role::Title, "instructions"));
        lines.extend(styler.lines(Role::Plain, &shorten(text, INSTRUCTIONS)));
    }
    lines
}

/// The end of its log and of its standard error.
fn tails(
    styler: Styler,
    server: &ServerStatus,
    past: Option<&ServerActivity>,
    lines: &mut Vec<Line<'static>>,
) {
    let logged = past.into_iter().flat_map(|past| &past.log);
    let logged = logged.map(|(level, text)| log_line(styler, level, text)).collect();
    let written = server.stderr_tail.iter().map(|text| styler.line(Role::Plain, text)).collect();
    for (name, all) in [("log", logged), ("stderr", written)] {
        let all: Vec<Line<'static>> = all;
        if all.is_empty() {
            continue;
        }
        let title = format!("{name}: {} (l shows all)", plural(all.len(), "line", "lines"));
        lines.push(styler.line(Role::Title, title));
        let hidden = all.len().saturating_sub(TAIL);
        lines.extend(all.into_iter().skip(hidden));
    }
}

/// The capabilities of a server on one line, such as `tools(listChanged) logging`.
fn capabilities(all: &Value) -> String {
    const MOST: usize = 30;
    let one = |(name, value): (&String, &Value)| {
        let parts = value.as_object().into_iter().flatten();
        let on = parts.filter(|(_, value)| **value != Value::Bool(false));
        let on: Vec<&str> = on.map(|(part, _)| part.as_str()).take(MOST).collect();
        if on.is_empty() { name.clone() } else { format!("{name}({})", on.join(" ")) }
    };
    let all = all.as_object().into_iter().flatten().take(MOST);
    shorten(&all.map(one).collect::<Vec<_>>().join(" "), INSTRUCTIONS).into_owned()
}

fn ping_times(past: Option<&ServerActivity>) -> Option<String> {
    let past = past?;
    let newest = show_duration(*past.pings.back()?);
    let (half, most) = (past.ping_within(50)?, past.ping_within(95)?);
    Some(format!("{newest}  p50 {}  p95 {}", show_duration(half), show_duration(most)))
}

/// Recent ping times and the longest; a single ping is not shown as history.
fn history(past: Option<&ServerActivity>) -> Option<String> {
    let nanos = |took: &Duration| u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
    let pings: VecDeque<u64> = past?.pings.iter().map(nanos).collect();
    trend(&pings, |nanos| show_duration(Duration::from_nanos(nanos)))
}

/// How much of something a process used over time: the newest sample, and the most.
fn usage(samples: Option<&VecDeque<u64>>, show: impl Fn(u64) -> String) -> Option<String> {
    let newest = show(*samples?.back()?);
    Some(format!("{newest}  {}", trend(samples?, show)?))
}

/// Numbers over time and the most; a single one is none.
fn trend(samples: &VecDeque<u64>, show: impl Fn(u64) -> String) -> Option<String> {
    let most = *samples.iter().max().filter(|_| samples.len() > 1)?;
    let hidden = samples.len().saturating_sub(SPARKS);
    let numbers: Vec<f64> = samples.iter().skip(hidden).copied().map(float).collect();
    Some(format!("{}  max {}", chart::sparkline(&numbers, SPARKS), show(most)))
}
