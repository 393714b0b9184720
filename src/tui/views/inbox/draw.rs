//! Draws the inbox: questions, and the answer being written.

use crate::host::questions::sampling::{ConversationLine, conversation};
use crate::host::questions::url_review::UrlReview;
use crate::model::{CallId, QuestionBody};
use crate::tui::prelude::*;
use crate::tui::views::form;
use crate::tui::views::inbox::question::{AnswerDraft, PendingQuestion};
use crate::tui::widgets::empty;
use crate::tui::widgets::input::TextArea;
use crate::tui::widgets::page::wrap;
use crate::tui::widgets::pane;
use crate::util::text;

const MAX_SERVER_TEXT_CHARS: usize = 4_000;
const LINES: usize = 400;

pub fn draw(pen: &mut Pen<'_>, state: &AppState, shown: Pane, area: Rect) {
    let focused = state.context.focus == shown;
    if shown == Pane::Questions {
        return list(pen, state, focused, area);
    }
    let Some(pending) = state.inbox.chosen() else {
        pen.open(area, "Question", focused);
        return;
    };
    let title = format!("{} asks", pending.question.server);
    let inner = pen.window(area, &title, Role::Question);
    question(pen, state, pending, focused, inner);
}

fn list(pen: &mut Pen<'_>, state: &AppState, focused: bool, area: Rect) {
    let inbox = &state.inbox;
    let title = format!("Inbox {}", inbox.len());
    let inner = pen.open(area, &title, focused);
    if inbox.is_empty() {
        let keys = [("1", "tools: a server may ask something during a call")];
        let lines = empty::lines(pen.styler, "No questions.", &keys, inner.height);
        return pen.paragraph(inner, &lines);
    }
    let asked = inbox.approvals.len().min(3);
    for (pending, place) in inbox.approvals.iter().take(asked).zip(inner.rows()) {
        let text = format!("  approval  {}", pending.prompt.tool.name.full());
        pen.put(pen.line(Role::Warning, text), place);
    }
    let asked = u16::try_from(asked).unwrap_or(0).min(inner.height);
    let rows = Rect { y: inner.y + asked, height: inner.height - asked, ..inner };
    let styler = pen.styler;
    pen.list(rows, inbox.list, inbox.questions.len(), |at| {
        let mark = pane::mark(at == inbox.list.chosen(), focused);
        row(styler, state, &inbox.questions[at], mark)
    });
}

/// One question: who asks, its kind, how long it has waited, and its first line.
fn row(
    styler: Styler,
    state: &AppState,
    pending: &PendingQuestion,
    mark: Option<Role>,
) -> Line<'static> {
    let pointer = if mark.is_some() { styler.theme.pointer() } else { "  " };
    let name = text::cut(&pending.question.server, 12).into_owned();
    let pad = " ".repeat(13_usize.saturating_sub(text::width(&name)));
    let waited = pending.time_waiting(state.context.now).as_secs();
    let text = text::cut(pending.question.body.message(), 200).into_owned();
    Line::from(vec![
        styler.span(mark.unwrap_or(Role::Plain), format!("{pointer}{name}{pad}")),
        styler.plain(format!("{:<9}", pending.question.body.kind())),
        styler.dim(format!("{:>4} ", format!("{waited}s"))),
        styler.plain(text),
    ])
}

fn question(
    pen: &mut Pen<'_>,
    state: &AppState,
    pending: &PendingQuestion,
    focused: bool,
    area: Rect,
) {
    let mut asked = facts(pen.styler, state, pending);
    let server = &pending.question.server;
    match &pending.question.body {
        QuestionBody::Form { message, .. } | QuestionBody::Url { message, .. } => {
            asked.extend(quoted_lines(pen.styler, message));
        }
        QuestionBody::Sampling { params } => asked.extend(conversation_lines(pen.styler, params)),
    }
    let position = &state.inbox.position;
    match (&pending.answer, &pending.question.body) {
        (AnswerDraft::OpenUrl(visit), QuestionBody::Url { url, .. }) => {
            asked.extend(address(pen.styler, url, visit));
            pen.page(&asked, position, area);
        }
        (AnswerDraft::Form(answer), _) => {
            if answer.asks_for_secret() {
                let said = format!(
                    "! this looks like a request for a secret: what you type is sent to '{server}', and forms \
                     are not meant for that"
                );
                asked.insert(0, pen.line(Role::Warning, said));
            }
            let (above, below) = parts(&asked, area);
            pen.page(&asked, position, above);
            form::draw::inside(pen, answer, focused, below);
        }
        (AnswerDraft::Text(text), _) => {
            let (above, below) = parts(&asked, area);
            pen.page(&asked, position, above);
            reply(pen, server, text, focused, below);
        }
        (AnswerDraft::OpenUrl(_), _) => {
            pen.page(&asked, position, area);
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
fn facts(styler: Styler, state: &AppState, pending: &PendingQuestion) -> Vec<Line<'static>> {
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
    vec![styler.fact("during", format!("{call}{round}")), styler.fact("waits", waits)]
}

fn call_label(state: &AppState, call: &CallId) -> String {
    let made = state.context.calls.running().find(|made| made.id.as_ref() == Some(call));
    made.map_or_else(|| format!("call {}", call.0), |made| made.tool.clone())
}

/// Text from a server, behind a mark that the text cannot suppress.
fn quoted_lines(styler: Styler, text: &str) -> Vec<Line<'static>> {
    let text = text::shorten(text.trim(), MAX_SERVER_TEXT_CHARS);
    let lines = text.lines().map(|line| Line::from(vec![styler.dim("| "), styler.plain(line)]));
    lines.collect()
}

fn conversation_lines(styler: Styler, params: &serde_json::Value) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for part in conversation(params) {
        if lines.len() > LINES {
            lines.truncate(LINES);
            lines.push(styler.line(Role::Dim, "… and more"));
            break;
        }
        match part {
            ConversationLine::Role(role) => {
                let role = format!("{}:", text::shorten(role, 20));
                lines.push(styler.line(Role::Dim, role));
            }
            ConversationLine::Text(text) => lines.extend(quoted_lines(styler, text)),
            ConversationLine::NonText(kind) => {
                let kind = format!("| [{}]", text::shorten(kind, 40));
                lines.push(styler.line(Role::Dim, kind));
            }
            ConversationLine::Note(text) => lines.push(styler.line(Role::Dim, text)),
        }
    }
    lines
}

/// The full address, warnings about it, and that it is not opened automatically.
fn address(styler: Styler, url: &str, visit: &UrlReview) -> Vec<Line<'static>> {
    let mut lines = vec![Line::default(), styler.line(Role::Name, url)];
    lines.extend(visit.warnings.iter().map(|odd| styler.line(Role::Warning, format!("! {odd}"))));
    if let Some(host) = &visit.host {
        lines.push(styler.fact("host", host));
    }
    lines.push(Line::default());
    let text =
        "Not opened automatically. Press y to copy the address and visit it if you trust it.";
    lines.push(styler.line(Role::Plain, text));
    lines.push(styler.line(Role::Dim, "Press F5 once you have visited it."));
    lines
}

fn reply(pen: &mut Pen<'_>, server: &str, text: &TextArea, focused: bool, area: Rect) {
    let [above, below] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    let said = format!("Sent to '{server}' as the model's answer:");
    pen.put(pen.line(Role::Dim, said), above);
    form::draw::lines(pen, text, focused, below);
}
