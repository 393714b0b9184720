//! What the newest call of the chosen tool gave.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::pane;
use super::words::Words;
use crate::host::request::CallOutcome;
use crate::model::Fault;
use crate::tui::state::{Pane, State};
use crate::tui::theme::Meaning;
use crate::util::units::show_duration;

pub(super) fn draw(frame: &mut Frame<'_>, words: &Words<'_>, state: &State, area: Rect) {
    let focused = state.shell.focus == Pane::Result;
    let tool = match (&state.tools.form, state.tools.catalogue.chosen()) {
        (Some(form), _) => Some(form.tool.as_str()),
        (None, Some(row)) => Some(row.name.as_str()),
        (None, None) => None,
    };
    let Some(call) = tool.and_then(|tool| state.shell.calls.newest_of(tool)) else {
        let inner = pane::open(frame, words, area, "Result", focused);
        return frame.render_widget(words.line(Meaning::Dim, "not called yet"), inner);
    };
    let (title, lines) = match &call.outcome {
        None => {
            let said = "waiting for the answer; ^C stops it";
            ("Result  running".to_owned(), vec![words.line(Meaning::Dim, said)])
        }
        Some(Ok(outcome)) => {
            let word = if outcome.fault().is_some() { "failed" } else { "ok" };
            let took = show_duration(outcome.metadata.duration);
            (format!("Result  {word} {took}"), ended(words, outcome))
        }
        Some(Err(fault)) => ("Result  not called".to_owned(), failed(words, fault)),
    };
    let inner = pane::open(frame, words, area, &title, focused);
    pane::scrolled(frame, words, inner, &lines, state.tools.result_scroll);
}

fn ended(words: &Words<'_>, outcome: &CallOutcome) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if let Some(fault) = outcome.fault() {
        lines.extend(failed(words, fault));
    }
    if let Ok(result) = &outcome.result {
        match (&result.structured, &result.output) {
            (Some(structured), _) => {
                lines.extend(words.lines(Meaning::Plain, &format!("{structured:#}")));
            }
            (None, serde_json::Value::String(text)) => {
                lines.extend(words.lines(Meaning::Plain, text));
            }
            (None, output) => lines.extend(words.lines(Meaning::Plain, &format!("{output:#}"))),
        }
        for warning in &result.warnings {
            lines.push(words.line(Meaning::Doubt, format!("! {warning}")));
        }
    }
    lines
}

fn failed(words: &Words<'_>, fault: &Fault) -> Vec<Line<'static>> {
    let kind = fault.kind().as_str();
    let mut lines = vec![words.line(Meaning::Bad, format!("{kind}: {}", fault.message()))];
    lines.extend(fault.detail_lines().iter().map(|said| words.line(Meaning::Plain, said)));
    lines.extend(fault.hint_text().map(|hint| words.line(Meaning::Dim, format!("hint: {hint}"))));
    lines
}
