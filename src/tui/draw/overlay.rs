//! What lies over everything else.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Clear;

use super::words::Words;
use super::{approval, palette, pane, running, trust};
use crate::tui::keys::{PLACES, Place};
use crate::tui::layout;
use crate::tui::state::{Overlay, State};
use crate::tui::theme::Meaning;

pub(super) fn draw(frame: &mut Frame<'_>, words: &Words<'_>, state: &State, area: Rect) {
    if let Some(pending) = state.inbox.approvals.front() {
        return approval::draw(frame, words, state, pending, area);
    }
    if let Some(window) = &state.trust.window {
        return trust::draw(frame, words, state, window, area);
    }
    match &state.shell.overlay {
        Some(Overlay::Palette(window)) => palette::draw(frame, words, window, area),
        Some(Overlay::Jump) => palette::jump(frame, words, state, area),
        Some(Overlay::Running(list)) => running::list(frame, words, state, *list, area),
        Some(Overlay::Help(from)) => {
            let place = layout::window(area, 72, area.height.saturating_sub(4));
            frame.render_widget(Clear, place);
            let inner = pane::open(frame, words, place, "Help", true);
            pane::scrolled(frame, words, inner, &help(words, state), *from);
        }
        Some(Overlay::Leave) => {
            let place = layout::window(area, 52, 5);
            frame.render_widget(Clear, place);
            let running = state.shell.calls.running().count();
            let (title, said) = match (running, state.bench.is_running()) {
                (0, true) => ("A benchmark is running", "it ends with the console".to_owned()),
                (_, true) => (
                    "Calls and a benchmark are running",
                    format!("{running} calls; all end with the console"),
                ),
                _ => ("Calls are running", format!("{running} running; they end with the console")),
            };
            let inner = pane::open(frame, words, place, title, true);
            let lines = vec![
                words.line(Meaning::Plain, said),
                words.line(Meaning::Key, "y leave   Esc stay"),
            ];
            pane::scrolled(frame, words, inner, &lines, 0);
        }
        None => {}
    }
}

/// All keys, from the table that also says what they do: those that hold here first.
fn help(words: &Words<'_>, state: &State) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if !state.shell.problems.is_empty() {
        lines.push(words.line(Meaning::Title, "what is wrong with the settings"));
        lines.extend(state.shell.problems.iter().map(|said| words.line(Meaning::Bad, said)));
        lines.push(Line::default());
    }
    let here = state.places_below();
    let rank =
        |place: &&Place| here.iter().position(|when| *when == place.when).unwrap_or(usize::MAX);
    let mut places: Vec<&Place> = PLACES.iter().collect();
    places.sort_by_key(rank);
    for place in places {
        lines.push(words.line(Meaning::Title, place.title));
        let bindings = state.shell.keys.bindings(place.when);
        for binding in bindings.iter().filter(|binding| !binding.about.is_empty()) {
            let same = bindings.iter().filter(|other| other.action == binding.action);
            let keys: Vec<String> = same.map(|same| same.key.to_string()).collect();
            lines.push(Line::from(vec![
                words.span(Meaning::Key, format!("  {:<16}", keys.join(" "))),
                words.span(Meaning::Plain, binding.about),
            ]));
        }
        lines.push(Line::default());
    }
    lines.push(words.line(Meaning::Title, "marks in the catalogue"));
    for (mark, said) in [
        ("A", "a person is asked before a call"),
        ("~", "differs from what was declared or pinned"),
        ("x", "cannot be called; the detail says why"),
    ] {
        lines.push(Line::from(vec![
            words.span(Meaning::Key, format!("  {mark:<16}")),
            words.span(Meaning::Plain, said),
        ]));
    }
    lines
}
