//! Draws overlays: what lies over every view.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Clear;

use super::styler::Styler;
use super::{approval, palette, pane, running_calls, scroll_text, trust, windows};
use crate::tui::keys::{KEY_TABLES, KeyTable};
use crate::tui::layout;
use crate::tui::state::{AppState, Overlay};
use crate::tui::theme::StyleRole;

pub(super) fn draw(frame: &mut Frame<'_>, styler: &Styler<'_>, state: &AppState, area: Rect) {
    if let Some(pending) = state.inbox.approvals.front() {
        return approval::draw(frame, styler, state, pending, area);
    }
    if let Some(window) = &state.trust.window {
        return trust::draw(frame, styler, state, window, area);
    }
    match &state.context.overlay {
        Some(Overlay::Palette(window)) => palette::draw(frame, styler, window, area),
        Some(Overlay::Running(list)) => running_calls::list(frame, styler, state, *list, area),
        Some(Overlay::Help(position)) => {
            let place = layout::window(area, 72, area.height.saturating_sub(4));
            frame.render_widget(Clear, place);
            let inner = pane::open(frame, styler, place, "Help", true);
            scroll_text::draw_lines(frame, styler, &help(styler, state), position, inner);
        }
        Some(Overlay::ConfirmQuit) => {
            let place = layout::window(area, 52, 5);
            frame.render_widget(Clear, place);
            let running = state.context.calls.running().count();
            let calls = if running == 1 { "1 call".to_owned() } else { format!("{running} calls") };
            let (title, text) = match (running, state.bench.is_running()) {
                (0, true) => ("A benchmark is running", "Quitting stops it.".to_owned()),
                (0, false) if state.tools.form.is_some() => {
                    ("Quit?", "What is filled in would be lost.".to_owned())
                }
                (0, false) => ("Quit?", "Nothing is running.".to_owned()),
                (_, true) => (
                    "Calls and a benchmark are running",
                    format!("Quitting stops the benchmark and {calls}."),
                ),
                _ => ("Calls are running", format!("Quitting cancels {calls}.")),
            };
            let inner = pane::open(frame, styler, place, title, true);
            let lines = vec![
                styler.line(StyleRole::Plain, text),
                styler.line(StyleRole::Key, "y quit   Esc stay"),
            ];
            pane::paragraph(frame, styler, inner, &lines);
        }
        Some(Overlay::Problems) => windows::problems(frame, styler, state, area),
        Some(Overlay::Pin) => {
            if let Some(window) = &state.pin_window {
                windows::pin(frame, styler, state, window, area);
            }
        }
        Some(Overlay::SaveCall(window)) => windows::save_call(frame, styler, window, area),
        None => {}
    }
}

/// All keys, from the table that also says what they do: those that hold here first.
fn help(styler: &Styler<'_>, state: &AppState) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if !state.context.problems.is_empty() {
        lines.push(styler.line(StyleRole::Title, "Settings problems"));
        lines.extend(state.context.problems.iter().map(|text| styler.line(StyleRole::Error, text)));
        lines.push(Line::default());
    }
    let here = state.view_key_contexts();
    let rank = |place: &&KeyTable| {
        here.iter().position(|when| *when == place.context).unwrap_or(usize::MAX)
    };
    let mut places: Vec<&KeyTable> = KEY_TABLES.iter().collect();
    places.sort_by_key(rank);
    for place in places {
        lines.push(styler.line(StyleRole::Title, place.title));
        let bindings = state.context.keys.bindings(place.context);
        for binding in bindings.iter().filter(|binding| !binding.about.is_empty()) {
            let same = bindings.iter().filter(|other| other.action == binding.action);
            let keys: Vec<String> = same.map(|same| same.key.to_string()).collect();
            lines.push(Line::from(vec![
                styler.span(StyleRole::Key, format!("  {:<16}", keys.join(" "))),
                styler.span(StyleRole::Plain, binding.about),
            ]));
        }
        lines.push(Line::default());
    }
    lines.push(styler.line(StyleRole::Title, "Tool list marks"));
    for (mark, text) in [
        ("A", "asks for approval before a call"),
        ("~", "differs from its declaration or pin"),
        ("!", "slower than declared; see its details"),
        ("x", "unavailable; see its details"),
    ] {
        lines.push(Line::from(vec![
            styler.span(StyleRole::Key, format!("  {mark:<16}")),
            styler.span(StyleRole::Plain, text),
        ]));
    }
    lines
}
