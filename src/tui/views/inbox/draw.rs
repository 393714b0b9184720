//! Draws the inbox: questions, and the answer being written.

use crate::model::{CallId, QuestionBody};
use crate::tui::event::AskId;
use crate::tui::prelude::*;
use crate::tui::views::form;
use crate::tui::views::inbox::held::HoldDraft;
use crate::tui::views::inbox::{AnswerDraft, PendingQuestion};

const MAX_SERVER_TEXT_CHARS: usize = 4_000;
const WINDOW_WIDTH: u16 = 72;

pub fn draw(pen: &mut Pen<'_>, state: &AppState, shown: Pane, area: Rect) {
    if shown == Pane::Questions {
        return list(pen, state, area);
    }
    let Some(pending) = state.inbox.chosen() else {
        let inner = pen.open(area, "Question");
        let text = "Questions from servers and approvals appear here. Those of a call you are waiting for also \
                    open as a window.";
        let lines = if state.inbox.is_empty() { pen.lines(Role::Dim, text) } else { Vec::new() };
        return pen.paragraph(inner, &lines);
    };
    let asks = || format!("{} asks", pending.question.server);
    let title = pending.hold.as_ref().map_or_else(asks, HoldDraft::title);
    let inner = pen.window(area, &title, Role::Question);
    question(pen, state, pending, inner);
}

/// The question as it comes, before somebody answers it.
pub fn window(pen: &mut Pen<'_>, state: &AppState, id: AskId, area: Rect) {
    let Some(pending) = state.inbox.questions.iter().find(|pending| pending.id == id) else {
        return;
    };
    let mut lines = request(pen.styler, state, pending);
    lines.push(Line::default());
    lines.push(pen.line(Role::Key, "Enter answer   Esc later"));
    let width = WINDOW_WIDTH.min(area.width);
    let rows = lines.iter().map(|line| wrap(line, usize::from(width.saturating_sub(4))).len());
    let height = cells(rows.sum::<usize>() + 2);
    let most = area.height.saturating_sub(4).max(5);
    let title = format!("{} asks", pending.question.server);
    let inner = pen.ask_over(area, (width, height.min(most)), &title, Role::Question);
    // A long question is cut here, and never the keys.
    let keys = lines.pop().unwrap_or_default();
    let [above, below] = bottom(inner, 1);
    pen.paragraph(above, &lines);
    pen.put(keys, below);
}

fn list(pen: &mut Pen<'_>, state: &AppState, area: Rect) {
    let inbox = &state.inbox;
    let title = format!("Inbox {}", inbox.len());
    let inner = pen.open(area, &title);
    if inbox.is_empty() {
        let keys = [("1", "tools: a server may ask"), ("", "something during a call")];
        let lines = pen.empty("No questions.", &keys, inner.height);
        return pen.paragraph(inner, &lines);
    }
    let inner = pen.filter(inner, &inbox.list.filter, None);
    let [above, rows] = top(inner, inbox.approvals.len().min(3));
    for (pending, place) in inbox.approvals.iter().zip(above.rows()) {
        let (role, kind) = match pending.prompt.held {
            Some(_) => (Role::Question, "stopped"),
            None => (Role::Warning, "approval"),
        };
        let text = format!("  {kind}  {}", pending.prompt.tool.name.full());
        pen.put(pen.line(role, text), place);
    }
    if !inbox.questions.is_empty() {
        let styler = pen.styler;
        let width = usize::from(rows.width);
        pen.filtered(rows, &inbox.list, |at| row(styler, state, &inbox.questions[at], width));
    }
}

/// One question: who asks, its kind, how long it has waited, and its first line.
fn row(styler: Styler, state: &AppState, pending: &PendingQuestion, width: usize) -> Line<'static> {
    let body = &pending.question.body;
    let waited = pending.time_waiting(state.context.now).as_secs();
    let mut spans = vec![
        styler.plain(styler.cell(&pending.question.server, 12) + " "),
        styler.plain(format!("{:<9}", pending.kind())),
        styler.dim(format!("{:>4} ", format!("{waited}s"))),
    ];
    // Behind the pointer.
    let room = width.saturating_sub(2 + spans.iter().map(Span::width).sum::<usize>());
    let message = styler.cell(&text::cut(body.message(), 200), room);
    spans.push(styler.plain(message.trim_end()));
    Line::from(spans)
}

fn question(pen: &mut Pen<'_>, state: &AppState, pending: &PendingQuestion, area: Rect) {
    let mut lines = request(pen.styler, state, pending);
    let server = &pending.question.server;
    let position = &state.inbox.position;
    match (&pending.answer, &pending.question.body) {
        (AnswerDraft::OpenUrl, QuestionBody::Url { url, .. }) => {
            lines.push(Line::default());
            lines.extend(pen.document(&present::question::address(url)));
            lines.push(Line::default());
            let text = "Not opened automatically. Press y to copy the address and visit it if you trust \
                        it.\nPress F5 once you have visited it.";
            lines.extend(pen.lines(Role::Plain, text));
            pen.page(&lines, position, area);
        }
        (AnswerDraft::Form(answer), _) => {
            if answer.asks_for_secret() {
                let warning = pen.document(&present::question::secret_warning(server));
                lines.splice(0..0, warning);
            }
            let [above, below] = parts(&lines, area);
            pen.page(&lines, position, above);
            form::draw::inside(pen, answer, below);
        }
        (AnswerDraft::Text(text), _) => {
            let [above, below] = parts(&lines, area);
            pen.page(&lines, position, above);
            let heading = pending.hold.as_ref().map_or_else(
                || format!("Sent to '{server}' as the model's answer:"),
                |hold| hold.heading().to_owned(),
            );
            reply(pen, heading, text, below);
        }
        (AnswerDraft::OpenUrl, _) => {
            pen.page(&lines, position, area);
        }
    }
}

/// What is asked, and for which call.
fn request(styler: Styler, state: &AppState, pending: &PendingQuestion) -> Vec<Line<'static>> {
    if let Some(hold) = &pending.hold {
        return styler.document(&present::breakpoint::page(&hold.held));
    }
    let mut lines = facts(styler, state, pending);
    match &pending.question.body {
        QuestionBody::Form { message, .. } | QuestionBody::Url { message, .. } => {
            let mut page = Page::default();
            page.text(Role::Plain, 2, &text::shorten(message.trim(), MAX_SERVER_TEXT_CHARS));
            lines.extend(quoted(styler, &page));
        }
        QuestionBody::Sampling { params } => {
            lines.extend(quoted(styler, &present::question::conversation(params)));
        }
    }
    lines
}

fn parts(lines: &[Line<'static>], area: Rect) -> [Rect; 2] {
    let width = usize::from(area.width);
    let needed: usize = lines.iter().map(|line| wrap(line, width).len()).sum();
    let most = usize::from(area.height) * 2 / 5;
    top(area, needed.min(most.max(1)))
}

/// For which call, for how long, and how long there is.
fn facts(styler: Styler, state: &AppState, pending: &PendingQuestion) -> Vec<Line<'static>> {
    let question = &pending.question;
    let call = question.call.as_ref().map(|call| call_label(state, call));
    let call = call.unwrap_or_else(|| "unknown call".to_owned());
    let round = question.round.filter(|round| *round > 1);
    let round = round.map_or_else(String::new, |round| format!(", round {round}"));
    let now = state.context.now;
    let waited = pending.time_waiting(now).as_secs();
    let waits = match pending.time_left(now) {
        Some(left) => format!("{waited}s; the call times out in {}s", left.as_secs()),
        None => format!("{waited}s"),
    };
    vec![styler.fact("during", format!("{call}{round}")), styler.fact("waits", waits)]
}

fn call_label(state: &AppState, call: &CallId) -> String {
    let made = state.context.calls.running().find(|made| made.id.as_ref() == Some(call));
    made.map_or_else(|| format!("call {}", call.0), |made| made.tool.clone())
}

/// Text from a server, behind a mark that the text cannot suppress.
fn quoted(styler: Styler, page: &Page) -> Vec<Line<'static>> {
    let is_theirs = |line: &present::Line| {
        line.spans().iter().any(|(role, text)| *role == Role::Plain && !text.trim().is_empty())
    };
    let mut lines = styler.document(page);
    for (line, theirs) in lines.iter_mut().zip(page.lines()) {
        if let Some(first) = line.spans.first_mut().filter(|_| is_theirs(theirs)) {
            // In place of the indent of the document.
            let text = first.content.strip_prefix("  ").unwrap_or(&first.content).to_owned();
            first.content = text.into();
            line.spans.insert(0, styler.dim("| "));
        }
    }
    lines
}

fn reply(pen: &mut Pen<'_>, heading: String, text: &TextInput, area: Rect) {
    let [above, below] = top(area, 1);
    pen.put(pen.line(Role::Dim, heading), above);
    form::draw::lines(pen, text, below);
}
