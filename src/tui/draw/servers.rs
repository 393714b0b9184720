//! The servers, and how the chosen one is.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::pane;
use super::words::Words;
use crate::model::{Fault, ServerState, ServerStatus};
use crate::tui::state::{Pane, State};
use crate::tui::theme::Meaning;
use crate::util::text;
use crate::util::units::{show_duration, show_size};

pub(super) fn list(frame: &mut Frame<'_>, words: &Words<'_>, state: &State, area: Rect) {
    let servers = &state.servers;
    let focused = state.shell.focus == Pane::Servers;
    let title = format!("Servers {}", servers.rows.len());
    let inner = pane::open(frame, words, area, &title, focused);
    if servers.rows.is_empty() {
        let said = "no servers; mcp.yaml names them";
        return frame.render_widget(words.line(Meaning::Dim, said), inner);
    }
    let height = usize::from(inner.height);
    let first = servers.list.first(height, servers.rows.len());
    for (at, server) in servers.rows.iter().enumerate().skip(first).take(height) {
        let y = inner.y + u16::try_from(at - first).unwrap_or(0);
        let chosen = at == servers.list.chosen();
        let line = row(words, server, servers.faults.get(&server.name), chosen, focused);
        frame.render_widget(line, Rect { y, height: 1, ..inner });
    }
}

/// One server; why it is out of service stands in its row.
fn row(
    words: &Words<'_>,
    server: &ServerStatus,
    fault: Option<&Fault>,
    chosen: bool,
    focused: bool,
) -> Line<'static> {
    let pointer = if chosen { words.theme.pointer() } else { "  " };
    let name = text::cut(&server.name, 20).into_owned();
    let pad = " ".repeat(22_usize.saturating_sub(text::width(&name)));
    let named = match (chosen, focused) {
        (true, true) => Meaning::Chosen,
        (true, false) => Meaning::Marked,
        _ => Meaning::Plain,
    };
    let (word, meaning) = state_of(server);
    let said = match (&server.state, fault) {
        (ServerState::Failed(fault), _) | (_, Some(fault)) => fault.message().to_owned(),
        _ => server.endpoint.clone(),
    };
    Line::from(vec![
        words.span(named, format!("{pointer}{name}{pad}")),
        words.span(meaning, format!("{word:<9}")),
        words.span(Meaning::Plain, format!("{:<7}", server.transport)),
        words.span(Meaning::Plain, format!("{:<12}", server.protocol.as_deref().unwrap_or("-"))),
        words.span(Meaning::Dim, said),
    ])
}

fn state_of(server: &ServerStatus) -> (&'static str, Meaning) {
    let meaning = match server.state {
        ServerState::Ready => Meaning::Good,
        ServerState::Failed(_) => Meaning::Bad,
        ServerState::Starting => Meaning::Doubt,
        ServerState::Idle | ServerState::Closed => Meaning::Dim,
    };
    (server.state.as_str(), meaning)
}

pub(super) fn health(frame: &mut Frame<'_>, words: &Words<'_>, state: &State, area: Rect) {
    let focused = state.shell.focus == Pane::Health;
    let Some(server) = state.servers.chosen() else {
        pane::open(frame, words, area, "Server", focused);
        return;
    };
    let inner = pane::open(frame, words, area, &server.name, focused);
    let fault = state.servers.faults.get(&server.name);
    pane::scrolled(frame, words, inner, &about(words, server, fault), state.servers.scroll);
}

fn about(words: &Words<'_>, server: &ServerStatus, fault: Option<&Fault>) -> Vec<Line<'static>> {
    let (word, meaning) = state_of(server);
    let mut lines = vec![words.line(meaning, word)];
    let failed = match &server.state {
        ServerState::Failed(fault) => Some(fault),
        _ => fault,
    };
    if let Some(fault) = failed {
        lines.push(words.line(Meaning::Bad, fault.message()));
        lines.extend(fault.detail_lines().iter().map(|said| words.line(Meaning::Plain, said)));
        if let Some(hint) = fault.hint_text() {
            lines.push(words.line(Meaning::Dim, format!("hint: {hint}")));
        }
    }
    lines.push(words.fact("endpoint", &server.endpoint));
    if let Some(protocol) = &server.protocol {
        lines.push(words.fact("protocol", protocol));
    }
    if let Some(pid) = server.pid {
        let memory = server.memory.map(|bytes| format!(", {}", show_size(bytes)));
        lines.push(words.fact("process", format!("{pid}{}", memory.unwrap_or_default())));
    }
    for (name, time) in [("connect", server.connect), ("ping", server.ping)] {
        if let Some(time) = time {
            lines.push(words.fact(name, show_duration(time)));
        }
    }
    if let Some(said) = &server.instructions {
        lines.push(Line::default());
        lines.extend(words.lines(Meaning::Plain, said));
    }
    if !server.stderr_tail.is_empty() {
        lines.push(Line::default());
        lines.push(words.line(Meaning::Title, "its standard error"));
        lines.extend(server.stderr_tail.iter().map(|said| words.line(Meaning::Dim, said)));
    }
    lines
}
