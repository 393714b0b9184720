//! The tabs of a tool's details, and the text of two of them.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::host::describe::{claims, limits, retries, type_name};
use crate::host::example::{command_line, resolve};
use crate::host::limits::CallLimits;
use crate::model::{Origin, PinState, ToolDefinition, ToolStatus};
use crate::tui::prelude::*;
use crate::tui::views::tools::list::ToolRow;
use crate::tui::views::{stats, tools};
use crate::tui::widgets::list::after;
use crate::tui::widgets::scroll_text::TextLimits;
use crate::util::json as json_text;
use crate::util::text::shorten;
use crate::util::units::show_duration;

/// The greatest depth of nested schemas.
const DEPTH: usize = 8;
/// The maximum number of properties that are listed.
const PROPERTIES: usize = 2_000;
/// How much of a schema or definition is shown.
const LIMITS: TextLimits =
    TextLimits { lines: 100_000, bytes: usize::MAX, notice: "The rest is not shown." };

/// From where a tool is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DetailTab {
    /// Description, arguments and facts.
    #[default]
    Detail,
    Schema,
    /// The definition as the source sent it.
    Raw,
}

impl DetailTab {
    pub fn title(self) -> &'static str {
        match self {
            Self::Detail => "detail",
            Self::Schema => "schema",
            Self::Raw => "raw",
        }
    }
}

#[derive(Debug, Default)]
pub struct ToolDetail {
    pub tab: DetailTab,
    /// The schema or the raw definition; empty for the detail, which is made while it is drawn.
    pub text: ScrollText,
    pub position: ScrollPosition,
    source: Option<(Arc<ToolDefinition>, DetailTab)>,
}

impl ToolDetail {
    /// Switches to the next tab; the last leads to the first.
    pub fn next_tab(&mut self) {
        self.tab = after(&[DetailTab::Detail, DetailTab::Schema, DetailTab::Raw], self.tab);
    }

    /// Scrolls by this many rows; negative moves up.
    pub fn scroll(&mut self, by: isize) {
        match self.tab {
            DetailTab::Detail => self.position.scroll(by),
            DetailTab::Schema | DetailTab::Raw => self.text.scroll(by),
        }
    }

    pub fn scroll_to_top(&mut self) {
        self.position.reset();
        self.text.scroll_to_top();
    }

    pub fn refresh(&mut self, tool: Option<&Arc<ToolDefinition>>) {
        let same = match (&self.source, tool) {
            (Some((made_of, side)), Some(tool)) => Arc::ptr_eq(made_of, tool) && *side == self.tab,
            (None, None) => true,
            _ => false,
        };
        if same {
            return;
        }
        self.source = tool.map(|tool| (Arc::clone(tool), self.tab));
        self.text = match (tool, self.tab) {
            (None, _) | (_, DetailTab::Detail) => ScrollText::default(),
            (Some(tool), DetailTab::Schema) => schemas(tool),
            (Some(tool), DetailTab::Raw) => raw(tool),
        };
    }
}

fn schemas(tool: &ToolDefinition) -> ScrollText {
    let mut page = ScrollText::with_limits(LIMITS);
    page.line(StyleRole::Title, "input");
    SchemaOutline { root: &tool.input_schema, left: PROPERTIES, page: &mut page }.whole();
    if let Some(schema) = &tool.output_schema {
        page.gap();
        page.line(StyleRole::Title, "output");
        SchemaOutline { root: schema, left: PROPERTIES, page: &mut page }.whole();
    }
    page
}

fn raw(tool: &ToolDefinition) -> ScrollText {
    let own = || {
        json!({
            "name": tool.name.full(),
            "title": tool.title,
            "description": tool.description,
            "inputSchema": *tool.input_schema,
            "outputSchema": tool.output_schema.as_deref(),
        })
    };
    let mut page = ScrollText::with_limits(LIMITS);
    page.text(StyleRole::Plain, &json_text::pretty(&tool.raw_value().unwrap_or_else(own)));
    page
}

/// Writes a JSON schema as an indented list of properties.
struct SchemaOutline<'a> {
    root: &'a Value,
    left: usize,
    page: &'a mut ScrollText,
}

impl SchemaOutline<'_> {
    fn whole(&mut self) {
        let root = self.root;
        let before = self.page.len();
        self.inside(root, 1);
        if self.page.len() == before {
            self.page.line(StyleRole::Dim, format!("  {}", type_name(root, root, 0)));
        }
    }

    fn inside(&mut self, schema: &Value, depth: usize) {
        let schema = resolve(self.root, schema, 0);
        let indent = "  ".repeat(depth);
        if depth > DEPTH {
            return self.page.line(StyleRole::Dim, format!("{indent}deeper levels are not shown"));
        }
        let required = schema.get("required").and_then(Value::as_array);
        for (key, property) in
            schema.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            let Some(left) = self.left.checked_sub(1) else {
                return self.page.line(StyleRole::Dim, format!("{indent}The rest is not shown."));
            };
            self.left = left;
            let wanted = required.is_some_and(|all| all.iter().any(|name| name == key.as_str()));
            let resolved = resolve(self.root, property, 0);
            let mut text = format!(
                "{indent}{} {key}  {}",
                if wanted { '*' } else { ' ' },
                type_name(self.root, property, 0)
            );
            let bounds = limits(resolved);
            if !bounds.is_empty() {
                text = format!("{text}  ({bounds})");
            }
            if let Some(default) = resolved.get("default") {
                text = format!("{text}  = {}", json_text::compact(default));
            }
            self.page.line(StyleRole::Plain, text);
            // Beside a `$ref` the property may have words of its own, which are nearer to the point.
            let about = property.get("description").or_else(|| resolved.get("description"));
            if let Some(about) = about.and_then(Value::as_str) {
                for line in about.lines() {
                    self.page.line(StyleRole::Dim, format!("{indent}    {line}"));
                }
            }
            self.inside(resolved, depth + 1);
        }
        if let Some(items) = schema.get("items") {
            self.within("each item", items, depth);
        }
        for key in ["anyOf", "oneOf", "allOf"] {
            let branches = schema.get(key).and_then(Value::as_array);
            for (number, branch) in branches.into_iter().flatten().enumerate().take(20) {
                self.within(&format!("{key} {}", number + 1), branch, depth);
            }
        }
        if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
            self.page.line(StyleRole::Dim, format!("{indent}  no other properties"));
        }
    }

    /// A part without a name of its own, left out when it is empty.
    fn within(&mut self, title: &str, schema: &Value, depth: usize) {
        let resolved = resolve(self.root, schema, 0);
        let holds = ["properties", "items", "anyOf", "oneOf", "allOf"];
        if holds.iter().any(|key| resolved.get(key).is_some()) && self.left > 0 {
            self.left -= 1;
            self.page.line(StyleRole::Dim, format!("{}  {title}:", "  ".repeat(depth)));
            self.inside(resolved, depth + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::tests::tool;

    #[test]
    fn a_schema_that_holds_itself_ends() {
        let schema = json!({
            "type": "object",
            "required": ["value"],
            "properties": {
                "value": { "type": "string", "maxLength": 5, "description": "what it holds" },
                "left": { "$ref": "#" },
                "right": { "$ref": "#" },
            },
        });
        let tool = Arc::new(tool("tree", schema));
        let mut detail = ToolDetail::default();
        detail.next_tab();
        detail.refresh(Some(&tool));
        let text = detail.text.to_text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "  * value  string  (at most 5 characters)");
        assert_eq!(lines[2], "      what it holds");
        assert!(lines.iter().any(|line| line.trim() == "deeper levels are not shown"));
        assert!(lines.len() < PROPERTIES * 3, "{}", lines.len());
        detail.next_tab();
        detail.refresh(Some(&tool));
        assert!(detail.text.to_text().contains("\"inputSchema\""));
    }
}

/// The maximum number of arguments that are listed.
const ARGUMENTS: usize = 100;
/// The maximum number of characters of a tool's description; its other tabs show all.
const MAX_DESCRIPTION_CHARS: usize = 4_000;

pub fn draw(pen: &mut Pen<'_>, state: &AppState, area: Rect) {
    let focused = state.context.focus == Pane::Detail;
    let Some(row) = state.tools.catalogue.chosen() else {
        let group = tools::draw::group_lines(pen, state, &state.tools.catalogue);
        let (title, lines) = group.unwrap_or_else(|| ("Tool".to_owned(), nothing(pen)));
        let inner = pen.open(area, &title, focused);
        return pen.paragraph(inner, &lines);
    };
    let detail = &state.tools.detail;
    if detail.tab != DetailTab::Detail {
        let title = format!("{}  {}", row.name, detail.tab.title());
        let inner = pen.open(area, &title, focused);
        return pen.text(&detail.text, inner);
    }
    let inner = pen.open(area, &row.name, focused);
    chips(pen, state, row, area);
    let mut lines = about(pen, &row.tool);
    let usage = state.stats.usage_of(&row.tool);
    lines.extend(usage.map(|(usage, window)| stats::draw::line_of(pen, usage, window)));
    if let Some(slower) = state.stats.exceeded_speed_of(&row.tool) {
        let (speed, limit) = (slower.speed.as_str(), slower.speed.default_timeout());
        let (limit, p95) = (show_duration(limit), show_duration(slower.p95));
        let text = format!("! slower than declared: p95 {p95}, {speed} is up to {limit}");
        lines.insert(0, pen.line(StyleRole::Warning, text));
    }
    pen.page(&lines, &detail.position, inner);
}

/// What the tool does to the world, at the right end of the frame.
pub fn chips(pen: &mut Pen<'_>, state: &AppState, row: &ToolRow, area: Rect) {
    let is_slow = state.stats.exceeded_speed_of(&row.tool).is_some();
    let mut marks = tools::draw::marks(row, is_slow);
    if row.tool.annotations.read_only == Some(true) {
        marks.insert(0, (StyleRole::Success, "RO"));
    }
    if row.tool.annotations.open_world == Some(true) {
        marks.push((StyleRole::Question, "NET"));
    }
    let mut spans = Vec::new();
    for (role, word) in marks {
        spans.extend([pen.plain(" "), pen.chip(role, word)]);
    }
    let line = Line::from(spans);
    let width = u16::try_from(line.width()).unwrap_or(u16::MAX);
    let taken = u16::try_from(row.name.len()).unwrap_or(u16::MAX).saturating_add(8);
    if pen.frames && area.width > width.saturating_add(taken) {
        pen.put(line, Rect { x: area.right() - width - 2, width, height: 1, ..area });
    }
}

fn nothing(styler: &Styler) -> Vec<Line<'static>> {
    let text = "Choose a tool on the left; / finds one by a few letters.\n\
                Enter fills in its arguments and runs it.";
    styler.lines(StyleRole::Dim, text)
}

fn about(styler: &Styler, tool: &ToolDefinition) -> Vec<Line<'static>> {
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
fn state_of(styler: &Styler, tool: &ToolDefinition, lines: &mut Vec<Line<'static>>) {
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

fn arguments(styler: &Styler, schema: &Value) -> Vec<Line<'static>> {
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
            styler.dim(format!("  {}", shorten(&type_name(schema, property, 0), 200))),
        ];
        let bounds = limits(property);
        if !bounds.is_empty() {
            spans.push(styler.dim(format!(", {}", shorten(&bounds, 200))));
        }
        if let Some(default) = property.get("default") {
            spans.push(styler.dim(format!(", default {default}")));
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
