//! `inspect` of a tool.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::host::attempt::CallLimits;
pub use crate::host::describe::claims;
use crate::host::describe::{limits, retries, type_name};
use crate::host::example::{self, resolve, type_of};
use crate::host::policy::Decision;
use crate::model::{Origin, PinState, ToolDefinition, ToolStatus};
use crate::present::{Line, Page, Role, Table, TableColumn, caret, messages};
use crate::util::units::show_duration;
use crate::util::{json, text};

/// Maximum number of parameters to show; `-o json` shows all.
const MAX_PARAMETERS: usize = 200;
const TYPE_CELLS: usize = 20;
const MAX_EXAMPLE: usize = 4_000;

/// Everything about a tool and the rules for calling it, for people.
pub fn page(
    tool: &ToolDefinition,
    fingerprint: &str,
    decision: Option<&Decision>,
    width: Option<usize>,
) -> Page {
    let mut page = Page::default();
    let mut title = Line::styled(Role::Name, tool.name.full());
    let display = tool.title.as_deref().or(tool.annotations.title.as_deref());
    if let Some(text) = display.filter(|text| *text != tool.name.tool()) {
        title.push(Role::Plain, format!("  {text}"));
    }
    page.push(title);
    if tool.description.is_some() {
        page.blank_line();
    }
    page.append(about(tool, fingerprint, decision, width));
    page
}

/// The same without its name, which stands above.
pub fn about(
    tool: &ToolDefinition,
    fingerprint: &str,
    decision: Option<&Decision>,
    width: Option<usize>,
) -> Page {
    let mut page = Page::default();
    if let Some(description) = &tool.description {
        page.paragraph(Role::Plain, 2, description, width);
    }
    status(&mut page, tool, width);
    parameters(&mut page, &tool.input_schema, width);
    if let Some(schema) = &tool.output_schema {
        page.heading("Result");
        properties(&mut page, schema, width);
    }
    facts(&mut page, tool, (fingerprint, decision), width);
    page.heading("Example");
    let example = example::command_line(tool);
    page.push(Line::plain(text::shorten(&example, MAX_EXAMPLE)).indented(2));
    page
}

fn facts(
    page: &mut Page,
    tool: &ToolDefinition,
    (fingerprint, decision): (&str, Option<&Decision>),
    width: Option<usize>,
) {
    page.heading("Facts");
    let mut fact = |key: &str, value: &str| page.field(key, Role::Plain, value, width);
    let source = tool.source.as_str();
    let kind = if tool.kind == source { "" } else { &tool.kind };
    fact("source", [source, kind].join(" ").trim_end());
    fact("origin", &origin(&tool.origin));
    fact("category", tool.category.as_deref().unwrap_or_default());
    fact("version", tool.version.as_deref().unwrap_or_default());
    fact("scope", tool.scope.as_str());
    fact("speed", tool.speed.as_str());
    fact("safety", tool.safety.as_str());
    fact("timeout", &show_duration(timeout(tool)));
    let asks =
        matches!(decision, Some(Decision::Ask(_))) || decision.is_none() && tool.requires_approval;
    fact("retries", &retries(tool, asks));
    for (index, used) in tool.credentials.iter().enumerate() {
        fact(if index == 0 { "credentials" } else { "" }, &used.to_string());
    }
    for (index, touch) in tool.touches.iter().enumerate() {
        fact(if index == 0 { "touches" } else { "" }, touch);
    }
    fact("claims", &claims(&tool.annotations).join(", "));
    fact("calls", &tool.calls.join(", "));
    match decision {
        None if asks => fact("approval", "asks before each call"),
        None => {}
        Some(Decision::Allow(why)) => {
            // Without a matching rule there is nothing to show.
            if let Some(rule) = why.strip_prefix("allowed: ") {
                page.field("approval", Role::Plain, &format!("allowed by {rule}"), width);
            }
        }
        Some(Decision::Ask(why)) => {
            let text = format!("asks before each call: {why}");
            page.field("approval", Role::Warning, &text, width);
        }
        Some(Decision::Deny(why)) => {
            page.field("approval", Role::Error, &format!("calls are refused by {why}"), width);
        }
    }
    if !matches!(tool.pin_state, PinState::NotPinned) {
        let label =
            if matches!(tool.pin_state, PinState::Matches) { Role::Plain } else { Role::Warning };
        page.field("pin", label, tool.pin_state.as_str(), width);
    }
    // Never wrapped, so that it can be copied.
    page.field("fingerprint", Role::Dim, fingerprint, None);
    if let Some(program) = tool.program() {
        page.field("program", Role::Dim, &format!("@{program}"), None);
    }
}

/// The status of a tool in a line; `None` for one that is as it should be.
pub fn status_line(tool: &ToolDefinition) -> Option<Line> {
    let (label, text) = match tool.status {
        ToolStatus::Live => return None,
        ToolStatus::Declared => (Role::Dim, "declared in the file; its server was not contacted"),
        ToolStatus::Drifted => {
            (Role::Warning, "what the server offers differs from the declaration")
        }
        ToolStatus::Changed => (Role::Warning, "differs from its pin"),
        ToolStatus::Unavailable => (Role::Error, "cannot be called"),
        ToolStatus::Untrusted => {
            (Role::Warning, "part of a project that is not trusted yet; it cannot run")
        }
        ToolStatus::Unchecked => {
            (Role::Warning, "its schema cannot be used, so arguments are not checked")
        }
    };
    Some(Line::styled(label, tool.status.as_str()).then(Role::Plain, format!(": {text}")))
}

fn status(page: &mut Page, tool: &ToolDefinition, width: Option<usize>) {
    let line = status_line(tool);
    if line.is_none() && tool.warnings.is_empty() && tool.unavailable_reason.is_none() {
        return;
    }
    page.heading("Status");
    if let Some(line) = line {
        page.push(line.indented(2));
    }
    if let Some(error) = &tool.unavailable_reason {
        page.paragraph(Role::Plain, 2, &error.to_string(), width);
        if let Some(hint) = error.hint() {
            page.hint(hint);
        }
    }
    if let PinState::Changed(error) = &tool.pin_state {
        messages::evidence(page, error);
    }
    for warning in &tool.warnings {
        page.push(Line::styled(Role::Warning, "warning: ").then(Role::Plain, warning).indented(2));
    }
}

fn parameters(page: &mut Page, schema: &Value, width: Option<usize>) {
    page.heading("Parameters");
    properties(page, schema, width);
    if resolve(schema, schema, 0).get("additionalProperties") == Some(&Value::Bool(false)) {
        page.push(Line::styled(Role::Dim, "no other arguments are accepted").indented(2));
    }
}

/// The properties of an object schema: a row for each, its description below in full.
fn properties(page: &mut Page, root: &Value, width: Option<usize>) {
    let schema = resolve(root, root, 0);
    let empty = Map::new();
    let map = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    if map.is_empty() {
        let text = match type_of(schema) {
            Some("object") | None => "none".to_owned(),
            Some(_) => type_name(root, schema, 0),
        };
        page.push(Line::styled(Role::Dim, text).indented(2));
        return;
    }
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let mut table = Table::new([
        TableColumn::new("NAME").shrinks_to(12),
        TableColumn::new("TYPE").shrinks_to(12),
        TableColumn::new("REQUIRED"),
        TableColumn::new("DEFAULT").shrinks_to(8).droppable(2),
        TableColumn::new("LIMITS").shrinks_to(12).droppable(1),
    ]);
    for (name, property) in map.iter().take(MAX_PARAMETERS) {
        let resolved = resolve(root, property, 0);
        let is_required = required.contains(&name.as_str());
        // A long type would be cut in its column, so it moves below where there is room.
        let full = type_name(root, property, 0);
        let short = match type_of(resolved) {
            _ if text::width(&full) <= TYPE_CELLS => full.as_str(),
            Some(kind) => kind,
            None => "choice",
        };
        table.row([
            Line::styled(Role::Name, name),
            Line::plain(short),
            Line::styled(Role::Warning, if is_required { "yes" } else { "" }),
            Line::plain(resolved.get("default").map(json::compact).unwrap_or_default()),
            Line::styled(Role::Dim, limits(resolved)),
        ]);
        let room = width.map(|w| w.saturating_sub(4));
        let mut details = Page::default();
        if short != full {
            details.paragraph(Role::Dim, 0, &full, room);
        }
        // A property with a `$ref` may have its own description, which is more specific.
        let description = property.get("description").or_else(|| resolved.get("description"));
        if let Some(text) = description.and_then(Value::as_str) {
            details.paragraph(Role::Plain, 0, text, room);
        }
        table.details(&details);
    }
    page.append(table.layout(width.map(|w| w.saturating_sub(2))).indented(2));
    let hidden = map.len().saturating_sub(MAX_PARAMETERS);
    if hidden > 0 {
        page.push(Line::styled(Role::Dim, format!("and {hidden} more, see -o json")).indented(2));
    }
}

/// The time limit of a call when the caller does not set one.
fn timeout(tool: &ToolDefinition) -> Duration {
    CallLimits::of(tool, None, None).attempt
}

pub(super) fn origin(origin: &Origin) -> String {
    match origin {
        Origin::File(place) => caret::location(place),
        Origin::Server(name) => format!("server '{name}'"),
        Origin::Program => "this program".to_owned(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;
    use crate::catalogue::fingerprint;
    use crate::cli::json::tool::{ToolDetailJson, ToolJson};
    use crate::model::{Error, SourceLocation, ToolName, ToolSchema, ToolSource};
    use crate::present::page::LineRenderer;

    fn place() -> SourceLocation {
        SourceLocation {
            file: Arc::new(PathBuf::from("tools.yaml")),
            line: 7,
            column: 5,
            text: Arc::from(""),
        }
    }

    pub(crate) fn builtin(name: &str, description: &str) -> ToolDefinition {
        let origin = Origin::File(place());
        let mut tool =
            ToolDefinition::new(ToolName::plain(name), ToolSource::Internal, "builtin", origin);
        tool.description = Some(description.to_owned());
        tool
    }

    pub(crate) fn remote(server: &str, name: &str, description: &str) -> ToolDefinition {
        let origin = Origin::Server(server.to_owned());
        let mut tool =
            ToolDefinition::new(ToolName::of(server, name), ToolSource::Mcp, "mcp", origin);
        tool.description = Some(description.to_owned());
        tool
    }

    fn rich() -> ToolDefinition {
        let mut tool = remote(
            "github",
            "search",
            "Searches issues. Every word must occur in the title or in the body of an issue, \
             in any order.\n\nSecond paragraph.",
        );
        tool.title = Some("Search issues".to_owned());
        tool.input_schema = ToolSchema::from(json!({
            "type": "object",
            "required": ["query"],
            "additionalProperties": false,
            "properties": {
                "query": { "type": "string", "minLength": 1, "maxLength": 256,
                           "description": "The words to look for. Quote a phrase to keep it together; a minus sign before a word excludes it." },
                "state": { "enum": ["open", "closed", "merged"], "default": "open" },
                "limit": { "$ref": "#/$defs/Limit" },
                "labels": { "type": "array", "items": { "type": "string" }, "maxItems": 5 },
                "since": { "type": ["string", "null"], "format": "date-time" }
            },
            "$defs": { "Limit": { "type": "integer", "minimum": 1, "maximum": 100 } }
        }));
        tool.output_schema = Some(ToolSchema::from(json!({
            "type": "object", "properties": { "total": { "type": "integer" } }
        })));
        tool.annotations.read_only = Some(true);
        tool.annotations.open_world = Some(true);
        tool.retries = 2;
        tool.touches = vec!["https://api.example.com".to_owned()];
        tool.warnings = vec!["its description contains invisible characters".to_owned()];
        tool.status = ToolStatus::Drifted;
        tool
    }

    fn shown(tool: &ToolDefinition, width: Option<usize>) -> String {
        let decision = crate::host::policy::decide(&[], tool);
        let text = LineRenderer::default().page(&page(
            tool,
            &fingerprint::fingerprint(tool),
            Some(&decision),
            width,
        ));
        text.replace(&fingerprint::fingerprint(tool), "FINGERPRINT")
    }

    #[test]
    fn everything_is_shown_at_80() {
        assert_snapshot!(shown(&rich(), Some(80)), @r#"
        github-search  Search issues

          Searches issues. Every word must occur in the title or in the body of an
          issue, in any order.

          Second paragraph.

        Status
          drifted: what the server offers differs from the declaration
          warning: its description contains invisible characters

        Parameters
          NAME    TYPE            REQUIRED  DEFAULT  LIMITS
          query   string          yes                1..256 characters
            The words to look for. Quote a phrase to keep it together; a minus sign
            before a word excludes it.
          state   choice                    "open"
            "open" | "closed" | "merged"
          limit   integer                            1..100
          labels  list of string                     at most 5 items
          since   string | null                      format date-time
          no other arguments are accepted

        Result
          NAME   TYPE
          total  integer

        Facts
          source       mcp
          origin       server 'github'
          scope        global
          speed        medium
          safety       external
          timeout      60 s
          retries      2, but it is not marked safe to repeat: none are made
          touches      https://api.example.com
          claims       changes nothing, reaches outside
          fingerprint  FINGERPRINT

        Example
          toolhost call github-search query=text
        "#);
    }

    #[test]
    fn everything_is_shown_at_60() {
        assert_snapshot!(shown(&rich(), Some(60)), @r#"
        github-search  Search issues

          Searches issues. Every word must occur in the title or in
          the body of an issue, in any order.

          Second paragraph.

        Status
          drifted: what the server offers differs from the declaration
          warning: its description contains invisible characters

        Parameters
          NAME    TYPE            REQUIRED  DEFAULT  LIMITS
          query   string          yes                1..256 charact…
            The words to look for. Quote a phrase to keep it
            together; a minus sign before a word excludes it.
          state   choice                    "open"
            "open" | "closed" | "merged"
          limit   integer                            1..100
          labels  list of string                     at most 5 items
          since   string | null                      format date-ti…
          no other arguments are accepted

        Result
          NAME   TYPE
          total  integer

        Facts
          source       mcp
          origin       server 'github'
          scope        global
          speed        medium
          safety       external
          timeout      60 s
          retries      2, but it is not marked safe to repeat: none
                       are made
          touches      https://api.example.com
          claims       changes nothing, reaches outside
          fingerprint  FINGERPRINT

        Example
          toolhost call github-search query=text
        "#);
    }

    #[test]
    fn a_tool_without_anything_is_shown_too() {
        let mut tool = builtin("now", "The time");
        tool.status = ToolStatus::Unavailable;
        tool.unavailable_reason =
            Some(Error::denied("not trusted yet").with_hint("run 'toolhost trust'"));
        assert_snapshot!(shown(&tool, Some(120)), @r"
        now

          The time

        Status
          unavailable: cannot be called
          not trusted yet
          hint: run 'toolhost trust'

        Parameters
          none

        Facts
          source       internal builtin
          origin       tools.yaml:7:5
          scope        global
          speed        medium
          safety       native
          timeout      30 s
          retries      none
          fingerprint  FINGERPRINT

        Example
          toolhost call now
        ");
    }

    #[test]
    fn the_json_of_a_closer_look_adds_to_that_of_the_list() {
        let tool = rich();
        let list = serde_json::to_value(ToolJson::from(&tool)).unwrap();
        let decision = Decision::Allow(String::new());
        let detail = ToolDetailJson::from((&tool, &decision, (None, None), &[][..]));
        let detail = serde_json::to_value(detail).unwrap();
        for key in list.as_object().unwrap().keys() {
            assert!(detail.get(key).is_some(), "{key}");
        }
        assert_eq!(detail["origin"], json!({ "server": "github" }));
        assert_eq!(list["annotations"], json!({ "readOnlyHint": true, "openWorldHint": true }));
        assert_eq!(list["timeout_ms"], json!(60000.0));
    }

    #[test]
    fn odd_schemas_are_no_trouble() {
        for schema in [json!(true), json!(null), json!([]), json!({ "type": 5, "properties": [] })]
        {
            let mut tool = builtin("odd", "");
            tool.input_schema = schema.into();
            let _page = shown(&tool, Some(40));
        }
    }
}
