//! The arguments while they are filled in.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;

use super::pane;
use super::words::Words;
use crate::tui::state::{Field, FieldState, Form};
use crate::tui::theme::Meaning;

pub(super) fn draw(
    frame: &mut Frame<'_>,
    words: &Words<'_>,
    form: &Form,
    focused: bool,
    area: Rect,
) {
    let title = format!("Arguments  {}", form.tool);
    let inner = pane::open(frame, words, area, &title, focused);
    let [fields, foot] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(3)]).areas(inner);
    if form.fields.is_empty() {
        frame.render_widget(words.line(Meaning::Dim, "it takes no arguments; F5 calls it"), fields);
    }
    let widest =
        form.fields.iter().map(|field| field.key.chars().count()).max().unwrap_or(0).min(24);
    // Each field has a line, the one that is filled in has what is said about it below.
    let height = usize::from(fields.height).saturating_sub(1);
    let first = form.at.saturating_sub(height.saturating_sub(1));
    let mut y = fields.y;
    for (at, field) in form.fields.iter().enumerate().skip(first) {
        if y >= fields.bottom() {
            break;
        }
        let is_current = at == form.at;
        let (line, cursor) = row(words, field, widest, is_current && focused);
        let place = Rect { y, height: 1, ..fields };
        frame.render_widget(line, place);
        if let Some(at) = cursor {
            let x = place.x + u16::try_from(at).unwrap_or(0).min(place.width.saturating_sub(1));
            frame.set_cursor_position((x, place.y));
        }
        y += 1;
        if is_current && y < fields.bottom() {
            let place = Rect { y, height: 1, ..fields };
            let said = field.about.as_deref().unwrap_or_default();
            let said = format!("    {} {}", field.kind, said.lines().next().unwrap_or_default());
            frame.render_widget(words.line(Meaning::Dim, said), place);
            y += 1;
        }
    }
    let sends = serde_json::Value::Object(form.arguments()).to_string();
    let mut lines = vec![Line::from(vec![
        words.span(Meaning::Dim, "sends "),
        words.span(Meaning::Plain, sends),
    ])];
    if let Some(problem) = &form.problem {
        lines.insert(0, words.line(Meaning::Bad, format!("! {problem}")));
    }
    pane::scrolled(frame, words, foot, &lines, 0);
}

/// One field, and where the cursor is in it.
fn row(
    words: &Words<'_>,
    field: &Field,
    widest: usize,
    is_current: bool,
) -> (Line<'static>, Option<usize>) {
    let mark = if field.is_required { "* " } else { "  " };
    let key = words.span(if is_current { Meaning::Chosen } else { Meaning::Name }, &field.key);
    let pad = " ".repeat(widest.saturating_sub(key.width()) + 2);
    let mut spans = vec![words.span(Meaning::Key, mark), key, words.span(Meaning::Plain, pad)];
    let mut cursor = None;
    match field.state {
        FieldState::Unset => {
            let said = match &field.default {
                Some(default) => format!("(unset, the tool takes {default})"),
                None => "(unset)".to_owned(),
            };
            cursor = Some(spans.iter().map(ratatui::text::Span::width).sum());
            spans.push(words.span(Meaning::Dim, said));
        }
        FieldState::Null => spans.push(words.span(Meaning::Doubt, "null")),
        FieldState::Written if !field.choices.is_empty() => {
            spans.push(words.span(Meaning::Plain, format!("< {} >", field.line.text())));
        }
        FieldState::Written => {
            let (before, behind) = field.line.split();
            spans.push(words.span(Meaning::Plain, before));
            cursor = Some(spans.iter().map(ratatui::text::Span::width).sum());
            spans.push(words.span(Meaning::Plain, behind));
        }
    }
    (Line::from(spans), cursor.filter(|_| is_current))
}
