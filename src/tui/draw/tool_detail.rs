//! Draws the selected tool.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use serde_json::Value;

use super::styler::Styler;
use super::{pane, scroll_text, stats, tool_list};
use crate::host::describe::{claims, limits, retries, type_name};
use crate::host::example::{command_line, resolve};
use crate::host::limits::CallLimits;
use crate::model::{Origin, PinState, ToolDefinition, ToolStatus};
use crate::tui::state::{AppState, DetailTab, Pane, ToolRow};
use crate::tui::theme::StyleRole;
use crate::util::text::shorten;
use crate::util::units::show_duration;

/// The maximum number of arguments that are listed.
const ARGUMENTS: usize = 100;
/// The maximum number of characters of a tool's description; its other tabs show all.
const MAX_DESCRIPTION_CHARS: usize = 4_000;

pub(super) fn draw(frame: &mut Frame<'_>, styler: &Styler<'_>, state: &AppState, area: Rect) {
    let focused = state.context.focus == Pane::Detail;
    let Some(row) = state.tools.catalogue.chosen() else {
        let group = tool_list::group_lines(styler, state, &state.tools.catalogue);
        let (title, lines) = group.unwrap_or_else(|| ("Tool".to_owned(), nothing(styler)));
        let inner = pane::open(frame, styler, area, &title, focused);
        return pane::paragraph(frame, styler, inner, &lines);
    };
    let detail = &state.tools.detail;
    if detail.tab != DetailTab::Detail {
        let title = format!("{}  {}", row.name, detail.tab.title());
        let inner = pane::open(frame, styler, area, &title, focused);
        return scroll_text::draw(frame, styler, &detail.text, inner);
    }
    let inner = pane::open(frame, styler, area, &row.name, focused);
    chips(frame, styler, state, row, area);
    let mut lines = about(styler, &row.tool);
    let usage = state.stats.usage_of(&row.tool);
    lines.extend(usage.map(|(usage, window)| stats::line_of(styler, usage, window)));
    if let Some(slower) = state.stats.exceeded_speed_of(&row.tool) {
        let (speed, limit) = (slower.speed.as_str(), slower.speed.default_timeout());
        let (limit, p95) = (show_duration(limit), show_duration(slower.p95));
        let text = format!("! slower than declared: p95 {p95}, {speed} is up to {limit}");
        lines.insert(0, styler.line(StyleRole::Warning, text));
    }
    scroll_text::draw_lines(frame, styler, &lines, &detail.position, inner);
}

/// What the tool does to the world, at the right end of the frame.
pub(super) fn chips(
    frame: &mut Frame<'_>,
    styler: &Styler<'_>,
    state: &AppState,
    row: &ToolRow,
    area: Rect,
) {
    let is_slow = state.stats.exceeded_speed_of(&row.tool).is_some();
    let mut marks = tool_list::marks(row, is_slow);
    if row.tool.annotations.read_only == Some(true) {
        marks.insert(0, (StyleRole::Success, "RO"));
    }
    if row.tool.annotations.open_world == Some(true) {
        marks.push((StyleRole::Question, "NET"));
    }
    let mut spans = Vec::new();
    for (role, word) in marks {
        spans.extend([styler.span(StyleRole::Plain, " "), styler.chip(role, word)]);
    }
    let line = Line::from(spans);
    let width = u16::try_from(line.width()).unwrap_or(u16::MAX);
    let taken = u16::try_from(row.name.len()).unwrap_or(u16::MAX).saturating_add(8);
    if styler.frames && area.width > width.saturating_add(taken) {
        frame.render_widget(line, Rect { x: area.right() - width - 2, width, height: 1, ..area });
    }
}

fn nothing(styler: &Styler<'_>) -> Vec<Line<'static>> {
    let text = "Choose a tool on the left; / finds one by a few letters.\n\
                Enter fills in its arguments and runs it.";
    styler.lines(StyleRole::Dim, text)
}

fn about(styler: &Styler<'_>, tool: &ToolDefinition) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if let Some(error) = &tool.unavailable_reason {
        lines.push(styler.line(StyleRole::Error, format!("unavailable: {}", error.message())));
    }
    if let Some(title) = tool.title.as_deref().or(tool.annotations.title.as_deref()) {
        lines.push(styler.line(StyleRole::Title, shorten(title, MAX_DESCRIPTION_CHARS)));
    }
    if let Some(text) = &tool.description {
        lines.extend(styler.lines(StyleRole::Plain, &shorten(text, MAX_DESCRIPTION_CHARS)));
    }
    state_of(styler, tool, &mut lines);
    lines.push(Line::default());
    lines.extend(arguments(styler, &tool.input_schema));
    lines.push(Line::default());
    let origin = match &tool.origin {
        Origin::File(place) => format!("{}:{}", place.file.display(), place.line),
        Origin::Server(server) => format!("server {server}"),
        Origin::Program => "this program".to_owned(),
    };
    lines.push(styler.fact("from", format!("{} ({})", origin, tool.kind)));
    lines.push(styler.fact("status", tool.status.as_str()));
    let facts = [
        ("category", tool.category.as_deref()),
        ("version", tool.version.as_deref()),
        ("speed", Some(tool.speed.as_str())),
        ("safety", Some(tool.safety.as_str())),
    ];
    let rows = facts.into_iter().filter_map(|(name, value)| Some((name, value?)));
    lines
        .extend(rows.map(|(name, value)| styler.fact(name, shorten(value, MAX_DESCRIPTION_CHARS))));
    if tool.requires_approval {
        lines.push(styler.fact("approval", "asks for approval before each call"));
    }
    let limits = CallLimits::of(tool, None, None);
    let (attempt, total) = (show_duration(limits.attempt), show_duration(limits.total));
    lines.push(styler.fact("limits", format!("{attempt} per attempt, {total} in total")));
    if tool.retries > 0 {
        lines.push(styler.fact("retries", retries(tool, tool.requires_approval)));
    }
    let claimed = claims(&tool.annotations);
    if !claimed.is_empty() {
        lines.push(styler.fact("claims", claimed.join(", ")));
    }
    if !matches!(tool.pin_state, PinState::NotPinned) {
        lines.push(styler.fact("pin", tool.pin_state.as_str()));
    }
    if !tool.calls.is_empty() {
        lines.push(styler.fact("calls", tool.calls.join(", ")));
    }
    for used in tool.credentials.iter() {
        lines.push(styler.fact("credential", used.to_string()));
    }
    for touched in &tool.touches {
        lines.push(styler.fact("touches", touched));
    }
    lines.push(styler.fact("example", shorten(&command_line(tool), MAX_DESCRIPTION_CHARS)));
    lines
}

/// Problems and warnings: how it differs from what was declared or pinned, what the scan found.
fn state_of(styler: &Styler<'_>, tool: &ToolDefinition, lines: &mut Vec<Line<'static>>) {
    let word = match tool.status {
        ToolStatus::Drifted => Some("differs from its declaration"),
        ToolStatus::Changed => Some("differs from its pin"),
        ToolStatus::Unchecked => Some("unusable schema: arguments are not checked"),
        ToolStatus::Untrusted => Some("not trusted yet"),
        ToolStatus::Live | ToolStatus::Declared | ToolStatus::Unavailable => None,
    };
    if let Some(word) = word {
        lines.push(styler.line(StyleRole::Warning, format!("~ {word}")));
    }
    if let PinState::Changed(error) = &tool.pin_state {
        lines.extend(error.details().iter().map(|text| styler.line(StyleRole::Plain, text)));
        let hint = error.hint().map(|hint| styler.line(StyleRole::Dim, format!("hint: {hint}")));
        lines.extend(hint);
    }
    for warning in &tool.warnings {
        lines.push(
            styler
                .line(StyleRole::Warning, format!("! {}", shorten(warning, MAX_DESCRIPTION_CHARS))),
        );
    }
}

fn arguments(styler: &Styler<'_>, schema: &Value) -> Vec<Line<'static>> {
    let top = resolve(schema, schema, 0);
    let required = top.get("required").and_then(Value::as_array);
    let is_required =
        |key: &str| required.is_some_and(|all| all.iter().any(|name| name.as_str() == Some(key)));
    let properties = top.get("properties").and_then(Value::as_object);
    let Some(properties) = properties.filter(|properties| !properties.is_empty()) else {
        return vec![styler.line(StyleRole::Dim, "no arguments")];
    };
    let mut lines = Vec::new();
    for (key, property) in properties.iter().take(ARGUMENTS) {
        let property = resolve(schema, property, 0);
        let mark = if is_required(key) { "* " } else { "  " };
        let mut spans = vec![
            styler.span(StyleRole::Key, mark),
            styler.span(StyleRole::Name, key),
            styler.span(
                StyleRole::Dim,
                format!("  {}", shorten(&type_name(schema, property, 0), 200)),
            ),
        ];
        let bounds = limits(property);
        if !bounds.is_empty() {
            spans.push(styler.span(StyleRole::Dim, format!(", {}", shorten(&bounds, 200))));
        }
        if let Some(default) = property.get("default") {
            spans.push(styler.span(StyleRole::Dim, format!(", default {default}")));
        }
        lines.push(Line::from(spans));
        if let Some(text) = property.get("description").and_then(Value::as_str) {
            lines.push(
                styler.line(
                    StyleRole::Plain,
                    format!("    {}", shorten(text, MAX_DESCRIPTION_CHARS)),
                ),
            );
        }
    }
    let hidden = properties.len().saturating_sub(ARGUMENTS);
    if hidden > 0 {
        lines.push(styler.line(StyleRole::Dim, format!("  and {hidden} more (d shows all)")));
    }
    lines
}
