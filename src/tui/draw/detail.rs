//! The chosen tool.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use serde_json::Value;

use super::words::Words;
use super::{pane, stats};
use crate::host::example::{command_line, resolve, type_of};
use crate::model::{Origin, ToolDefinition};
use crate::tui::state::{Pane, State};
use crate::tui::theme::Meaning;

/// How many arguments are listed.
const ARGUMENTS: usize = 100;

pub(super) fn draw(frame: &mut Frame<'_>, words: &Words<'_>, state: &State, area: Rect) {
    let focused = state.shell.focus == Pane::Detail;
    let Some(row) = state.tools.catalogue.chosen() else {
        pane::open(frame, words, area, "Tool", focused);
        return;
    };
    let inner = pane::open(frame, words, area, &row.name, focused);
    let mut lines = about(words, &row.tool);
    let usage = state.stats.usage_of(&row.name);
    lines.extend(usage.map(|(usage, window)| stats::line_of(words, usage, window)));
    pane::scrolled(frame, words, inner, &lines, state.tools.detail_scroll);
}

fn about(words: &Words<'_>, tool: &ToolDefinition) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if let Some(fault) = &tool.unavailable {
        lines.push(words.line(Meaning::Bad, format!("cannot be called: {}", fault.message())));
    }
    if let Some(said) = &tool.description {
        lines.extend(words.lines(Meaning::Plain, said));
    }
    lines.push(Line::default());
    lines.extend(arguments(words, &tool.input_schema));
    lines.push(Line::default());
    let origin = match &tool.origin {
        Origin::File(place) => format!("{}:{}", place.file.display(), place.line),
        Origin::Server(server) => format!("the server {server}"),
        Origin::Program => "this program".to_owned(),
    };
    lines.push(words.fact("from", format!("{} ({})", origin, tool.kind)));
    lines.push(words.fact("status", tool.status.as_str()));
    lines.push(words.fact("safety", tool.safety.as_str()));
    if tool.requires_approval {
        lines.push(words.fact("approval", "a person is asked before each call"));
    }
    let hints = [
        ("read-only", tool.annotations.read_only),
        ("destructive", tool.annotations.destructive),
        ("idempotent", tool.annotations.idempotent),
        ("open-world", tool.annotations.open_world),
    ];
    let said: Vec<String> = hints
        .into_iter()
        .filter_map(|(hint, value)| Some(format!("{}{hint}", if value? { "" } else { "not " })))
        .collect();
    if !said.is_empty() {
        lines.push(words.fact("it claims", said.join(", ")));
    }
    for touched in &tool.touches {
        lines.push(words.fact("touches", touched));
    }
    for warning in &tool.warnings {
        lines.push(words.line(Meaning::Doubt, format!("! {warning}")));
    }
    lines.push(words.fact("example", command_line(tool)));
    lines
}

fn arguments(words: &Words<'_>, schema: &Value) -> Vec<Line<'static>> {
    let top = resolve(schema, schema, 0);
    let required = top.get("required").and_then(Value::as_array);
    let is_required =
        |key: &str| required.is_some_and(|all| all.iter().any(|name| name.as_str() == Some(key)));
    let properties = top.get("properties").and_then(Value::as_object);
    let Some(properties) = properties.filter(|properties| !properties.is_empty()) else {
        return vec![words.line(Meaning::Dim, "takes no arguments")];
    };
    let mut lines = Vec::new();
    for (key, property) in properties.iter().take(ARGUMENTS) {
        let property = resolve(schema, property, 0);
        let mark = if is_required(key) { "* " } else { "  " };
        let mut spans = vec![
            words.span(Meaning::Key, mark),
            words.span(Meaning::Name, key),
            words.span(Meaning::Dim, format!("  {}", type_of(property).unwrap_or("any"))),
        ];
        if let Some(default) = property.get("default") {
            spans.push(words.span(Meaning::Dim, format!(", {default} unless given")));
        }
        lines.push(Line::from(spans));
        if let Some(said) = property.get("description").and_then(Value::as_str) {
            lines.push(words.line(Meaning::Plain, format!("    {said}")));
        }
    }
    lines
}
