//! The tabs of a tool's details, and the text of two of them.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::host::describe::{limits, type_name};
use crate::host::example::resolve;
use crate::model::ToolDefinition;
use crate::present;
use crate::tui::prelude::*;
use crate::tui::views::tools::list::ToolRow;
use crate::tui::views::{stats, tools};
use crate::tui::widgets::list::after;
use crate::tui::widgets::scroll_text::TextLimits;
use crate::util::json as json_text;
use crate::util::units::show_duration;

const DEPTH: usize = 8;
const PROPERTIES: usize = 2_000;
const LIMITS: TextLimits =
    TextLimits { lines: 100_000, bytes: usize::MAX, notice: "The rest is not shown." };

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DetailTab {
    #[default]
    Detail,
    Schema,
    /// The definition as the source sent it.
    Raw,
}

impl DetailTab {
    const ALL: [Self; 3] = [Self::Detail, Self::Schema, Self::Raw];

    pub fn title(self) -> &'static str {
        match self {
            Self::Detail => "docs",
            Self::Schema => "schema",
            Self::Raw => "definition",
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
        self.tab = after(&DetailTab::ALL, self.tab);
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
    page.line(Role::Title, "input");
    SchemaOutline { root: &tool.input_schema, left: PROPERTIES, page: &mut page }.whole();
    if let Some(schema) = &tool.output_schema {
        page.gap();
        page.line(Role::Title, "output");
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
    page.text(Role::Plain, &json_text::pretty(&tool.raw_value().unwrap_or_else(own)));
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
            self.page.line(Role::Dim, format!("  {}", type_name(root, root, 0)));
        }
    }

    fn inside(&mut self, schema: &Value, depth: usize) {
        let schema = resolve(self.root, schema, 0);
        let indent = "  ".repeat(depth);
        if depth > DEPTH {
            return self.page.line(Role::Dim, format!("{indent}deeper levels are not shown"));
        }
        let required = schema.get("required").and_then(Value::as_array);
        for (key, property) in
            schema.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            let Some(left) = self.left.checked_sub(1) else {
                return self.page.line(Role::Dim, format!("{indent}The rest is not shown."));
            };
            self.left = left;
            let is_required =
                required.is_some_and(|all| all.iter().any(|name| name == key.as_str()));
            let resolved = resolve(self.root, property, 0);
            let mut text = format!(
                "{indent}{} {key}  {}",
                if is_required { '*' } else { ' ' },
                type_name(self.root, property, 0)
            );
            let bounds = limits(resolved);
            if !bounds.is_empty() {
                text = format!("{text}  ({bounds})");
            }
            if let Some(default) = resolved.get("default") {
                text = format!("{text}  = {}", json_text::compact(default));
            }
            self.page.line(Role::Plain, text);
            // Beside a `$ref` the property may have words of its own, which are nearer to the point.
            let about = property.get("description").or_else(|| resolved.get("description"));
            if let Some(about) = about.and_then(Value::as_str) {
                for line in about.lines() {
                    self.page.line(Role::Dim, format!("{indent}    {line}"));
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
            self.page.line(Role::Dim, format!("{indent}  no other properties"));
        }
    }

    /// A part without a name of its own, left out when it is empty.
    fn within(&mut self, title: &str, schema: &Value, depth: usize) {
        let resolved = resolve(self.root, schema, 0);
        let holds = ["properties", "items", "anyOf", "oneOf", "allOf"];
        if holds.iter().any(|key| resolved.get(key).is_some()) && self.left > 0 {
            self.left -= 1;
            self.page.line(Role::Dim, format!("{}  {title}:", "  ".repeat(depth)));
            self.inside(resolved, depth + 1);
        }
    }
}

pub fn draw(pen: &mut Pen<'_>, state: &AppState, area: Rect) {
    let focused = state.context.focus == Pane::Detail;
    let Some(row) = state.tools.catalogue.chosen() else {
        let group = tools::draw::group_lines(pen.styler, state, &state.tools.catalogue);
        let (title, lines) = group.unwrap_or_else(|| ("Tool".to_owned(), nothing(pen.styler)));
        let inner = pen.open(area, &title, focused);
        return pen.paragraph(inner, &lines);
    };
    let detail = &state.tools.detail;
    let tabs = DetailTab::ALL.map(|tab| {
        if tab == detail.tab { format!("[{}]", tab.title()) } else { tab.title().to_owned() }
    });
    let inner = pen.open(area, &format!("{}  {}", row.name, tabs.join(" ")), focused);
    if detail.tab != DetailTab::Detail {
        return pen.text(&detail.text, inner);
    }
    chips(pen, state, row, area);
    let width = Some(usize::from(inner.width));
    let mut lines = pen.document(&present::tool::about(&row.tool, "", None, width));
    if let Some((usage, window)) = state.stats.usage_of(&row.tool) {
        lines.insert(0, stats::draw::line_of(pen.styler, usage, window));
    }
    if let Some(slower) = state.stats.exceeded_speed_of(&row.tool) {
        let (speed, limit) = (slower.speed.as_str(), slower.speed.default_timeout());
        let (limit, p95) = (show_duration(limit), show_duration(slower.p95));
        let text = format!("! slower than declared: p95 {p95}, {speed} is up to {limit}");
        lines.insert(0, pen.line(Role::Warning, text));
    }
    pen.page(&lines, &detail.position, inner);
}

/// What the tool does to the world, at the right end of the frame.
pub fn chips(pen: &mut Pen<'_>, state: &AppState, row: &ToolRow, area: Rect) {
    let is_slow = state.stats.exceeded_speed_of(&row.tool).is_some();
    let mut marks = tools::draw::marks(row, is_slow);
    if row.tool.annotations.read_only == Some(true) {
        marks.insert(0, (Role::Success, "RO"));
    }
    if row.tool.annotations.open_world == Some(true) {
        marks.push((Role::Question, "NET"));
    }
    let mut spans = Vec::new();
    for (role, word) in marks {
        spans.extend([pen.plain(" "), pen.chip(role, word)]);
    }
    let line = Line::from(spans);
    let width = u16::try_from(line.width()).unwrap_or(u16::MAX);
    let taken = u16::try_from(row.name.len()).unwrap_or(u16::MAX).saturating_add(36);
    if pen.frames && area.width > width.saturating_add(taken) {
        pen.put(line, Rect { x: area.right() - width - 2, width, height: 1, ..area });
    }
}

fn nothing(styler: Styler) -> Vec<Line<'static>> {
    let text = "Choose a tool on the left; / finds one by a few letters.\n\
                Enter fills in its arguments and runs it.";
    styler.lines(Role::Dim, text)
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
