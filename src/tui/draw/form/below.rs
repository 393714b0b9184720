//! The notes below the selected field of a form: its accepted values, its errors so far, the
//! choices it has; and how many rows that and its text take.

use jiff::civil::Date;
use ratatui::text::Line;

use crate::host::form::{FieldInput, FieldKind, FormNode};
use crate::tui::draw::styler::Styler;
use crate::tui::state::{SchemaForm, TextArea, fresh_draft, is_date};
use crate::tui::theme::StyleRole;
use crate::util::text;

/// How many choices are listed below a field at once.
const CHOICES: usize = 6;
/// How many rows a text of several lines gets while it is written.
const TEXT_ROWS: usize = 8;

pub(super) fn draft(form: &SchemaForm, node: &FormNode) -> TextArea {
    form.written().cloned().unwrap_or_else(|| fresh_draft(node))
}

pub(super) fn text_rows(form: &SchemaForm, node: &FormNode) -> usize {
    let lines = match form.written() {
        Some(text) => text.lines().len(),
        None => node.text().map_or(1, |text| text.split('\n').count()),
    };
    if node.field.secret { 1 } else { lines.clamp(1, TEXT_ROWS) }
}

pub(super) fn choice_rows(node: &FormNode) -> usize {
    let choices = match &node.field.kind {
        FieldKind::Choice(choices) => choices.len(),
        FieldKind::Boolean => 2,
        FieldKind::Variants(titles) => titles.len(),
        _ => 0,
    };
    choices.min(CHOICES)
}

pub(super) fn rows_below(form: &SchemaForm, node: &FormNode) -> usize {
    1 + usize::from(form.draft_problem().is_some()) + choices_seen(node).len()
}

/// The notes below the selected field: accepted values, errors so far, choices.
pub(super) fn below(
    styler: &Styler<'_>,
    form: &SchemaForm,
    node: &FormNode,
    width: u16,
) -> Vec<Line<'static>> {
    let mut said = hint(node);
    if let Some(text) = form.written().filter(|text| text.lines().len() > 1) {
        said = format!("{said}  line {} of {}", text.row() + 1, text.lines().len());
    }
    let said = text::safe_line(&said);
    let mut lines = vec![styler.line(StyleRole::Dim, text::cut(&said, usize::from(width)))];
    let problem = form.draft_problem();
    lines.extend(problem.map(|said| styler.line(StyleRole::Error, format!("    ! {said}"))));
    for (title, is_chosen) in choices_seen(node) {
        let (mark, meaning) =
            if is_chosen { ("> ", StyleRole::Selected) } else { ("  ", StyleRole::Plain) };
        lines.push(Line::from(vec![
            styler.span(StyleRole::Key, format!("    {mark}")),
            styler.span(meaning, title),
        ]));
    }
    lines
}

/// The choices of a field that are listed below it, and which of them is taken: those that begin
/// with what was typed, around the one that is taken.
fn choices_seen(node: &FormNode) -> Vec<(String, bool)> {
    let titles: Vec<&str> = match &node.field.kind {
        FieldKind::Choice(choices) => choices.iter().map(|choice| choice.title.as_str()).collect(),
        FieldKind::Boolean => vec!["false", "true"],
        FieldKind::Variants(titles) => titles.iter().map(String::as_str).collect(),
        _ => return Vec::new(),
    };
    let (begun, taken) = match &node.input {
        FieldInput::Text(text) => (text.to_lowercase(), None),
        FieldInput::Choice(at) => (String::new(), Some(*at)),
        _ => (String::new(), None),
    };
    let begins = |title: &str| title.to_lowercase().starts_with(&begun);
    let found: Vec<(String, bool)> = titles
        .into_iter()
        .enumerate()
        .filter(|(_, title)| begins(title))
        .map(|(at, title)| (title.to_owned(), taken == Some(at)))
        .collect();
    let chosen = found.iter().position(|(_, is_chosen)| *is_chosen).unwrap_or(0);
    let first = chosen.saturating_sub(CHOICES / 2).min(found.len().saturating_sub(CHOICES));
    found.into_iter().skip(first).take(CHOICES).collect()
}

/// The type of a field with its limits, and its description.
fn hint(node: &FormNode) -> String {
    let field = &node.field;
    let list = |titles: &[&str]| {
        let more = if titles.len() > CHOICES { " | …" } else { "" };
        format!("{}{more}", titles[..titles.len().min(CHOICES)].join(" | "))
    };
    let day = || node.text()?.parse::<Date>().ok().map(|day| day.strftime("%A").to_string());
    let takes = match (&node.input, &field.kind) {
        (FieldInput::Json(_), _) => "JSON".to_owned(),
        (_, FieldKind::Choice(choices)) => format!("one of {}", choices.len()),
        (_, FieldKind::MultiChoice(choices)) => {
            let titles: Vec<&str> = choices.iter().map(|choice| choice.title.as_str()).collect();
            list(&titles)
        }
        (_, FieldKind::Boolean) => "true | false".to_owned(),
        (_, FieldKind::Variants(titles)) => format!("one of {} forms", titles.len()),
        _ if is_date(node) => day().unwrap_or_else(|| field.expectation()),
        _ => field.expectation(),
    };
    let null = if field.nullable { ", or null" } else { "" };
    let text = field.description.as_deref().unwrap_or_default();
    let title = if field.title == field.key { "" } else { field.title.as_str() };
    let about = [title, text.lines().next().unwrap_or_default()];
    let about: Vec<&str> = about.into_iter().filter(|part| !part.is_empty()).collect();
    let gap = if about.is_empty() { "" } else { "  " };
    format!("    {takes}{null}{gap}{}", about.join(": "))
}
