//! Whether a call may be made: what would be done, and what may be answered.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::Clear;
use serde_json::Value;

use super::pane;
use super::words::Words;
use crate::catalogue::fingerprint;
use crate::model::ToolStatus;
use crate::tui::keys::When;
use crate::tui::layout;
use crate::tui::state::{PendingApproval, Shows, State};
use crate::tui::theme::Meaning;

pub(super) fn draw(
    frame: &mut Frame<'_>,
    words: &Words<'_>,
    state: &State,
    pending: &PendingApproval,
    area: Rect,
) {
    let place = layout::window(area, 76, area.height.saturating_sub(4).clamp(5, 30));
    frame.render_widget(Clear, place);
    let title = format!("Approval needed  1 of {}", state.inbox.approvals.len());
    let inner = pane::open(frame, words, place, &title, true);
    let answers = answers(words, state);
    let height = u16::try_from(answers.len()).unwrap_or(u16::MAX);
    // Where there is little room what is asked goes before what can be answered.
    let height = height.min(inner.height.saturating_sub(4)).max(1);
    let [above, below] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(height)]).areas(inner);
    let lines = match pending.shows {
        Shows::Request => request(words, pending),
        Shows::Definition => definition(words, pending),
    };
    pane::scrolled(frame, words, above, &lines, pending.scroll);
    let seen: Vec<Line<'static>> = answers.into_iter().take(usize::from(height)).collect();
    pane::scrolled(frame, words, below, &seen, 0);
}

/// The answers, from the table of keys; none while what was typed ahead may still come in.
fn answers(words: &Words<'_>, state: &State) -> Vec<Line<'static>> {
    if !state.inbox.takes_an_answer(state.shell.now) {
        return vec![words.line(Meaning::Dim, "one moment: what was typed ahead is no answer")];
    }
    let shown = state.shell.keys.bindings(When::Approval).iter();
    let answers = shown.filter_map(|binding| {
        let word = binding.word?;
        Some(Line::from(vec![
            words.span(Meaning::Key, format!("{:>5} ", binding.key.to_string())),
            words.span(Meaning::Plain, word),
        ]))
    });
    answers.collect()
}

fn request(words: &Words<'_>, pending: &PendingApproval) -> Vec<Line<'static>> {
    let asked = &pending.asked;
    let tool = &asked.tool;
    let mut lines =
        vec![words.line(Meaning::Name, tool.name.full()), words.fact("why", &asked.reason)];
    let status = match tool.status {
        ToolStatus::Changed => Some("its definition differs from its pin"),
        ToolStatus::Drifted => Some("its definition differs from the one in the file"),
        ToolStatus::Unchecked => Some("its arguments cannot be checked"),
        ToolStatus::Live
        | ToolStatus::Declared
        | ToolStatus::Unavailable
        | ToolStatus::Untrusted => None,
    };
    if let Some(status) = status {
        lines.push(words.line(Meaning::Doubt, format!("! {status}")));
    }
    if !pending.changed.is_empty() {
        let parts = pending.changed.join(", ");
        let said = format!("! changed since it was last allowed here: {parts}");
        lines.push(words.line(Meaning::Doubt, said));
    }
    lines.extend(tool.warnings.iter().map(|said| words.line(Meaning::Doubt, format!("! {said}"))));
    lines.extend(tool.touches.iter().map(|touched| words.fact("touches", touched)));
    let arguments = Value::Object(asked.arguments.clone());
    let size = arguments.to_string().len();
    lines.push(Line::default());
    lines.push(words.line(Meaning::Title, format!("arguments ({size} bytes)")));
    lines.extend(words.lines(Meaning::Plain, &format!("{arguments:#}")));
    lines.push(Line::default());
    lines.push(words.line(Meaning::Title, "what would be done"));
    match &asked.preview {
        Ok(said) => lines.extend(words.lines(Meaning::Plain, said)),
        Err(why) => lines.push(words.line(Meaning::Doubt, format!("cannot be shown: {why}"))),
    }
    lines
}

fn definition(words: &Words<'_>, pending: &PendingApproval) -> Vec<Line<'static>> {
    let tool = &pending.asked.tool;
    let mut lines = vec![
        words.line(Meaning::Name, tool.name.full()),
        words.line(Meaning::Dim, "what it says about itself"),
        Line::default(),
    ];
    if let Some(said) = &tool.description {
        lines.extend(words.lines(Meaning::Plain, said));
        lines.push(Line::default());
    }
    let content = format!("{:#}", fingerprint::content(tool));
    lines.extend(words.lines(Meaning::Plain, &content));
    lines
}
