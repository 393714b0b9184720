//! The chosen tool.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use serde_json::Value;

use super::words::Words;
use super::{pane, stats};
use crate::host::example::{command_line, resolve};
use crate::host::limits::Limits;
use crate::host::wording::{claims, limits, retries, type_name};
use crate::model::{Origin, Pinned, ToolDefinition, ToolStatus};
use crate::tui::state::{Pane, Side, State};
use crate::tui::theme::Meaning;
use crate::util::text::shorten;
use crate::util::units::show_duration;

/// How many arguments are listed.
const ARGUMENTS: usize = 100;
/// The most characters of what a tool says about itself; its other sides show all.
const SAID: usize = 4_000;

pub(super) fn draw(frame: &mut Frame<'_>, words: &Words<'_>, state: &State, area: Rect) {
    let focused = state.shell.focus == Pane::Detail;
    let Some(row) = state.tools.catalogue.chosen() else {
        pane::open(frame, words, area, "Tool", focused);
        return;
    };
    let portrait = &state.tools.portrait;
    if portrait.side != Side::Detail {
        let title = format!("{}  {}", row.name, portrait.side.title());
        let inner = pane::open(frame, words, area, &title, focused);
        return pane::document(frame, words, inner, &portrait.text, state.tools.detail_scroll);
    }
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
    if let Some(title) = tool.title.as_deref().or(tool.annotations.title.as_deref()) {
        lines.push(words.line(Meaning::Title, shorten(title, SAID)));
    }
    if let Some(said) = &tool.description {
        lines.extend(words.lines(Meaning::Plain, &shorten(said, SAID)));
    }
    state_of(words, tool, &mut lines);
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
    let facts = [
        ("category", tool.category.as_deref()),
        ("version", tool.version.as_deref()),
        ("speed", Some(tool.speed.as_str())),
        ("safety", Some(tool.safety.as_str())),
    ];
    let said = facts.into_iter().filter_map(|(name, value)| Some((name, value?)));
    lines.extend(said.map(|(name, value)| words.fact(name, shorten(value, SAID))));
    if tool.requires_approval {
        lines.push(words.fact("approval", "a person is asked before each call"));
    }
    let limits = Limits::of(tool, None);
    let (attempt, total) = (show_duration(limits.attempt), show_duration(limits.total));
    lines.push(words.fact("limits", format!("{attempt} an attempt, {total} in all")));
    if tool.retries > 0 {
        lines.push(words.fact("retries", retries(tool)));
    }
    let claimed = claims(&tool.annotations);
    if !claimed.is_empty() {
        lines.push(words.fact("it claims", claimed.join(", ")));
    }
    if !matches!(tool.pinned, Pinned::No) {
        lines.push(words.fact("pin", tool.pinned.as_str()));
    }
    if !tool.calls.is_empty() {
        lines.push(words.fact("calls", tool.calls.join(", ")));
    }
    for touched in &tool.touches {
        lines.push(words.fact("touches", touched));
    }
    lines.push(words.fact("example", shorten(&command_line(tool), SAID)));
    lines
}

/// What is wrong or doubtful: how it differs from what was declared or pinned, what the scan found.
fn state_of(words: &Words<'_>, tool: &ToolDefinition, lines: &mut Vec<Line<'static>>) {
    let word = match tool.status {
        ToolStatus::Drifted => Some("what the server offers differs from the declaration"),
        ToolStatus::Changed => Some("it differs from its pin"),
        ToolStatus::Unchecked => Some("its schema cannot be used: arguments are not checked"),
        ToolStatus::Untrusted => Some("not trusted yet"),
        ToolStatus::Live | ToolStatus::Declared | ToolStatus::Unavailable => None,
    };
    if let Some(word) = word {
        lines.push(words.line(Meaning::Doubt, format!("~ {word}")));
    }
    if let Pinned::Changed(fault) = &tool.pinned {
        lines.extend(fault.detail_lines().iter().map(|said| words.line(Meaning::Plain, said)));
        let hint = fault.hint_text().map(|hint| words.line(Meaning::Dim, format!("hint: {hint}")));
        lines.extend(hint);
    }
    for warning in &tool.warnings {
        lines.push(words.line(Meaning::Doubt, format!("! {}", shorten(warning, SAID))));
    }
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
            words
                .span(Meaning::Dim, format!("  {}", shorten(&type_name(schema, property, 0), 200))),
        ];
        let bounds = limits(property);
        if !bounds.is_empty() {
            spans.push(words.span(Meaning::Dim, format!(", {}", shorten(&bounds, 200))));
        }
        if let Some(default) = property.get("default") {
            spans.push(words.span(Meaning::Dim, format!(", {default} unless given")));
        }
        lines.push(Line::from(spans));
        if let Some(said) = property.get("description").and_then(Value::as_str) {
            lines.push(words.line(Meaning::Plain, format!("    {}", shorten(said, SAID))));
        }
    }
    let hidden = properties.len().saturating_sub(ARGUMENTS);
    if hidden > 0 {
        lines.push(words.line(Meaning::Dim, format!("  and {hidden} more; d shows them")));
    }
    lines
}
