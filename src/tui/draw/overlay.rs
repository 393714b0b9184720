//! What lies over everything else.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Clear;

use super::pane;
use super::words::Words;
use crate::tui::keys::PLACES;
use crate::tui::layout;
use crate::tui::state::{Overlay, PendingApproval, State};
use crate::tui::theme::Meaning;

pub(super) fn draw(frame: &mut Frame<'_>, words: &Words<'_>, state: &State, area: Rect) {
    if let Some(pending) = state.inbox.approvals.front() {
        return approval(frame, words, state, pending, area);
    }
    match state.shell.overlay {
        Some(Overlay::Help(from)) => {
            let place = layout::window(area, 72, area.height.saturating_sub(4));
            frame.render_widget(Clear, place);
            let inner = pane::open(frame, words, place, "Help", true);
            pane::scrolled(frame, words, inner, &help(words, state), from);
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

/// All keys, from the table that also says what they do.
fn help(words: &Words<'_>, state: &State) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for place in PLACES {
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

fn approval(
    frame: &mut Frame<'_>,
    words: &Words<'_>,
    state: &State,
    pending: &PendingApproval,
    area: Rect,
) {
    let place = layout::window(area, 76, area.height.saturating_sub(4).min(24));
    frame.render_widget(Clear, place);
    let title = format!("Approval needed  1 of {}", state.inbox.approvals.len());
    let keys = if state.inbox.takes_an_answer(state.shell.now) {
        words.line(Meaning::Key, "Enter deny    y allow once    Esc deny")
    } else {
        words.line(Meaning::Dim, "one moment: what was typed ahead is no answer")
    };
    let inner = pane::open(frame, words, place, &title, true);
    let asked = &pending.asked;
    let mut lines = vec![
        words.line(Meaning::Name, asked.tool.name.full()),
        words.fact("why", &asked.reason),
        Line::default(),
        keys,
        Line::default(),
    ];
    let arguments = serde_json::Value::Object(asked.arguments.clone());
    lines.push(words.line(Meaning::Title, "arguments"));
    lines.extend(words.lines(Meaning::Plain, &format!("{arguments:#}")));
    lines.push(Line::default());
    lines.push(words.line(Meaning::Title, "what would be done"));
    match &asked.preview {
        Ok(said) => lines.extend(words.lines(Meaning::Plain, said)),
        Err(why) => lines.push(words.line(Meaning::Doubt, format!("cannot be shown: {why}"))),
    }
    pane::scrolled(frame, words, inner, &lines, pending.scroll);
}
