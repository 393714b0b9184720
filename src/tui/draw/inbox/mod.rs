//! Draws the inbox: questions, and the answer being written.

#[cfg(test)]
mod tests;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;

use super::styler::Styler;
use super::wrap::wrap;
use super::{form, pane, scroll_text};
use crate::host::questions::sampling::{ConversationLine, conversation};
use crate::host::questions::url_review::UrlReview;
use crate::model::{CallId, QuestionBody};
use crate::tui::state::{AnswerDraft, AppState, Pane, PendingQuestion, TextArea};
use crate::tui::theme::StyleRole;
use crate::util::text;

const MAX_SERVER_TEXT_CHARS: usize = 4_000;
const LINES: usize = 400;

pub(super) fn draw(
    frame: &mut Frame<'_>,
    words: &Styler<'_>,
    state: &AppState,
    shown: Pane,
    area: Rect,
) {
    let focused = state.context.focus == shown;
    if shown == Pane::Questions {
        return list(frame, words, state, focused, area);
    }
    let Some(pending) = state.inbox.chosen() else {
        pane::open(frame, words, area, "Question", focused);
        return;
    };
    let title = format!("{} asks", pending.question.server);
    let inner = pane::window(frame, words, area, &title, StyleRole::Question);
    question(frame, words, state, pending, focused, inner);
}

fn list(frame: &mut Frame<'_>, words: &Styler<'_>, state: &AppState, focused: bool, area: Rect) {
    let inbox = &state.inbox;
    let title = format!("Inbox {}", inbox.len());
    let inner = pane::open(frame, words, area, &title, focused);
    if inbox.is_empty() {
        let said = "No questions. Servers can ask for input during calls.";
        return pane::paragraph(frame, words, inner, &[words.line(StyleRole::Dim, said)]);
    }
    let mut places = (inner.y..inner.bottom()).map(|y| Rect { y, height: 1, ..inner });
    for (pending, place) in inbox.approvals.iter().zip(places.by_ref().take(3)) {
        let said = format!("  approval  {}", pending.prompt.tool.name.full());
        frame.render_widget(words.line(StyleRole::Warning, said), place);
    }
    let height = places.len();
    let first = inbox.list.first(height, inbox.questions.len());
    let seen = inbox.questions.iter().enumerate().skip(first);
    for ((at, pending), place) in seen.zip(places) {
        let is_chosen = at == inbox.list.chosen();
        frame.render_widget(row(words, state, pending, is_chosen, focused), place);
    }
}

/// One question: who asks, its kind, how long it has waited, and its first line.
fn row(
    words: &Styler<'_>,
    state: &AppState,
    pending: &PendingQuestion,
    is_chosen: bool,
    focused: bool,
) -> Line<'static> {
    let pointer = if is_chosen { words.theme.pointer() } else { "  " };
    let name = text::cut(&pending.question.server, 12).into_owned();
    let pad = " ".repeat(13_usize.saturating_sub(text::width(&name)));
    let named = match (is_chosen, focused) {
        (true, true) => StyleRole::Selected,
        (true, false) => StyleRole::SelectedUnfocused,
        _ => StyleRole::Plain,
    };
    let waited = pending.time_waiting(state.context.now).as_secs();
    let said = text::cut(pending.question.body.message(), 200).into_owned();
    Line::from(vec![
        words.span(named, format!("{pointer}{name}{pad}")),
        words.span(StyleRole::Plain, format!("{:<9}", pending.question.body.kind())),
        words.span(StyleRole::Dim, format!("{:>4} ", format!("{waited}s"))),
        words.span(StyleRole::Plain, said),
    ])
}

fn question(
    frame: &mut Frame<'_>,
    words: &Styler<'_>,
    state: &AppState,
    pending: &PendingQuestion,
    focused: bool,
    area: Rect,
) {
    let mut asked = facts(words, state, pending);
    let server = &pending.question.server;
    match &pending.question.body {
        QuestionBody::Form { message, .. } | QuestionBody::Url { message, .. } => {
            asked.extend(quoted_lines(words, message));
        }
        QuestionBody::Sampling { params } => asked.extend(conversation_lines(words, params)),
    }
    let position = &state.inbox.position;
    match (&pending.answer, &pending.question.body) {
        (AnswerDraft::OpenUrl(visit), QuestionBody::Url { url, .. }) => {
            asked.extend(address(words, url, visit));
            scroll_text::draw_lines(frame, words, &asked, position, area);
        }
        (AnswerDraft::Form(answer), _) => {
            if answer.asks_for_secret() {
                let said = format!(
                    "! this looks like a request for a secret: what you type is sent to '{server}', and forms \
                     are not meant for that"
                );
                asked.insert(0, words.line(StyleRole::Warning, said));
            }
            let (above, below) = parts(&asked, area);
            scroll_text::draw_lines(frame, words, &asked, position, above);
            form::inside(frame, words, answer, focused, below);
        }
        (AnswerDraft::Text(text), _) => {
            let (above, below) = parts(&asked, area);
            scroll_text::draw_lines(frame, words, &asked, position, above);
            reply(frame, words, server, text, focused, below);
        }
        (AnswerDraft::OpenUrl(_), _) => {
            scroll_text::draw_lines(frame, words, &asked, position, area);
        }
    }
}

fn parts(asked: &[Line<'static>], area: Rect) -> (Rect, Rect) {
    let width = usize::from(area.width);
    let needed: usize = asked.iter().map(|line| wrap(line, width).len()).sum();
    let most = usize::from(area.height) * 2 / 5;
    let height = u16::try_from(needed.min(most.max(1))).unwrap_or(1);
    let [above, below] =
        Layout::vertical([Constraint::Length(height), Constraint::Fill(1)]).areas(area);
    (above, below)
}

/// For which call, for how long, and how long there is.
fn facts(words: &Styler<'_>, state: &AppState, pending: &PendingQuestion) -> Vec<Line<'static>> {
    let question = &pending.question;
    let call = match &question.call {
        Some(call) => call_label(state, call),
        None => "unknown call".to_owned(),
    };
    let round = question.round.filter(|round| *round > 1);
    let round = round.map_or_else(String::new, |round| format!(", round {round}"));
    let now = state.context.now;
    let waited = pending.time_waiting(now).as_secs();
    let waits = match pending.time_left(now) {
        Some(left) => {
            format!("{waited}s; the call times out in {}s", left.as_secs())
        }
        None => format!("{waited}s"),
    };
    vec![words.fact("during", format!("{call}{round}")), words.fact("waits", waits)]
}

fn call_label(state: &AppState, call: &CallId) -> String {
    let made = state.context.calls.running().find(|made| made.id.as_ref() == Some(call));
    made.map_or_else(|| format!("call {}", call.0), |made| made.tool.clone())
}

/// Text from a server, behind a mark that the text cannot suppress.
fn quoted_lines(words: &Styler<'_>, said: &str) -> Vec<Line<'static>> {
    let said = text::shorten(said.trim(), MAX_SERVER_TEXT_CHARS);
    let lines = said.lines().map(|line| {
        Line::from(vec![words.span(StyleRole::Dim, "| "), words.span(StyleRole::Plain, line)])
    });
    lines.collect()
}

fn conversation_lines(words: &Styler<'_>, params: &serde_json::Value) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for part in conversation(params) {
        if lines.len() > LINES {
            lines.truncate(LINES);
            lines.push(words.line(StyleRole::Dim, "… and more"));
            break;
        }
        match part {
            ConversationLine::Role(role) => {
                let role = format!("{}:", text::shorten(role, 20));
                lines.push(words.line(StyleRole::Dim, role));
            }
            ConversationLine::Text(said) => lines.extend(quoted_lines(words, said)),
            ConversationLine::NonText(kind) => {
                let kind = format!("| [{}]", text::shorten(kind, 40));
                lines.push(words.line(StyleRole::Dim, kind));
            }
            ConversationLine::Note(said) => lines.push(words.line(StyleRole::Dim, said)),
        }
    }
    lines
}

/// The full address, warnings about it, and that it is not opened automatically.
fn address(words: &Styler<'_>, url: &str, visit: &UrlReview) -> Vec<Line<'static>> {
    let mut lines = vec![Line::default(), words.line(StyleRole::Name, url)];
    lines.extend(
        visit.warnings.iter().map(|odd| words.line(StyleRole::Warning, format!("! {odd}"))),
    );
    if let Some(host) = &visit.host {
        lines.push(words.fact("host", host));
    }
    lines.push(Line::default());
    let said =
        "Not opened automatically. Press y to copy the address and visit it if you trust it.";
    lines.push(words.line(StyleRole::Plain, said));
    lines.push(words.line(StyleRole::Dim, "Press F5 once you have visited it."));
    lines
}

fn reply(
    frame: &mut Frame<'_>,
    words: &Styler<'_>,
    server: &str,
    text: &TextArea,
    focused: bool,
    area: Rect,
) {
    let [above, below] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    let said = format!("Sent to '{server}' as the model's answer:");
    frame.render_widget(words.line(StyleRole::Dim, said), above);
    form::lines(frame, words, text, focused, below);
}
