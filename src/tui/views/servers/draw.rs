//! Draws the servers view.

use crate::model::{ServerState, ServerStatus};
use crate::present::messages;
use crate::present::server::state_label;
use crate::tui::prelude::*;
use crate::tui::views::servers::activity::ServerToolLists;
use crate::tui::widgets::table::{ColumnSpec, TableLayout};

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

/// What comes between the state and the process or address, which takes what is left.
const COLUMNS: [ColumnSpec<ServerCell>; 8] = [
    ColumnSpec::new(" TRANSPORT", 11, 5, |_, server| server.transport.to_owned()),
    ColumnSpec::new(" PROTOCOL", 11, 3, |_, server| server.protocol.clone().unwrap_or_else(none)),
    ColumnSpec::new("TOOLS", 8, 1, tools),
    ColumnSpec::new("PING p50/p95", 16, 8, pings),
    ColumnSpec::new("CALLS", 6, 2, |state, server| calls(state, server).0),
    ColumnSpec::new("ERR%", 6, 6, |state, server| calls(state, server).1),
    ColumnSpec::new("RESTARTS", 10, 9, |_, server| server.starts.saturating_sub(1).to_string()),
    ColumnSpec::new("UP", 9, 7, |_, server| server.uptime.map_or_else(none, clock)),
];

/// The least width of the last column, the process ID or the address.
const LAST: usize = 10;
const STATE: usize = 13;

pub fn list(pen: &mut Pen<'_>, state: &AppState, area: Rect) {
    let servers = &state.servers;
    let title = format!("Servers {}", servers.rows.len());
    let inner = pen.open(area, &title);
    if servers.rows.is_empty() {
        let text = "No servers. Define them in mcp.yaml, or take those of your editor:\n\
                    toolhost import";
        return pen.paragraph(inner, &pen.lines(Role::Dim, text));
    }
    let inner = pen.filter(inner, &servers.find, None);
    let [head, rows] = top(inner, 1);
    let width = usize::from(inner.width);
    let name = if width >= 100 { 16 } else { 14 };
    let first = name + STATE;
    let layout = TableLayout { first, ..TableLayout::of(&COLUMNS, width, 2 + first + LAST) };
    let title = pen.cell("NAME", name) + "STATE";
    pen.put(layout.heading(pen.styler, &title, "  PID/URL"), head);
    let styler = pen.styler;
    pen.list(rows, servers.list, servers.rows.len(), |at| {
        row(styler, state, &servers.rows[at], name, &layout)
    });
}

fn row(
    styler: Styler,
    state: &AppState,
    server: &ServerStatus,
    name: usize,
    layout: &TableLayout<ServerCell>,
) -> Line<'static> {
    let padded = |text: &str, cells: usize| styler.cell(text, cells - 1) + " ";
    let (dot, meaning) = dot(server);
    let word = format!("{dot} {}", server.state.as_str());
    let mut spans = vec![
        styler.span(Role::of_server(&server.name), padded(&server.name, name)),
        styler.span(meaning, padded(&word, STATE)),
    ];
    if let Some(error) = state.servers.error(server) {
        let text = format!("{}: {}", error.kind().as_str(), messages::in_one_line(error));
        spans.push(styler.span(Role::Error, text));
    } else {
        spans.extend(layout.cells(styler, |column| ((column.what)(state, server), Role::Plain)));
        let process = server.pid.map(|pid| pid.to_string());
        let last = process.unwrap_or_else(|| address(&server.endpoint));
        spans.push(styler.plain(format!("  {last}")));
    }
    Line::from(spans)
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
