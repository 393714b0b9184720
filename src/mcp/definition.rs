//! Parsing one item of `tools/list` into a definition, or an error.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::item_error::ItemError;
use super::listing::{ListSpec, Listable};
use crate::model::{
    Annotations, Origin, ToolDefinition, ToolName, ToolSchema, ToolSource, ToolStatus,
};
use crate::util::text::{is_invisible, safe_line, truncate};
use crate::util::{json, schema};

/// The longest name a tool may have (SEP-986).
const NAME_LIMIT: usize = 128;
/// Larger or deeper schemas are kept and shown, but arguments are not checked against them.
const SCHEMA_BYTES: u64 = 1 << 20;

const OTHER_TYPES: [&str; 6] = ["array", "boolean", "integer", "null", "number", "string"];

impl Listable for ToolDefinition {
    const LIST: ListSpec = ListSpec {
        method: "tools/list",
        field: "tools",
        capability: "tools",
        singular: "tool",
        is_method_optional: false,
    };

    fn read(
        server: &str,
        raw: Box<RawValue>,
        item: Value,
        modern: bool,
    ) -> Result<Self, ItemError> {
        read(server, raw, item, modern)
    }

    fn key(&self) -> &str {
        self.name.tool()
    }
}

fn read(
    server: &str,
    raw: Box<RawValue>,
    item: Value,
    modern: bool,
) -> Result<ToolDefinition, ItemError> {
    let Value::Object(mut map) = item else {
        return Err(ItemError::NotAnObject { item: "tool", value: abbreviated(&item) });
    };
    let name = match map.get("name") {
        Some(Value::String(name)) => name.clone(),
        Some(other) => return Err(ItemError::ToolNameNotText(abbreviated(other))),
        None => return Err(ItemError::NoKey { item: "tool", key: "name".to_owned() }),
    };
    check_name(&name)?;
    let bad = |member: &str, value: &Value| ItemError::InvalidMember {
        item: "tool",
        name: name.clone(),
        member: member.to_owned(),
        value: abbreviated(value),
    };
    let schema = match map.get("inputSchema") {
        Some(schema @ Value::Object(object)) => match object.get("type") {
            None => schema,
            Some(Value::String(kind)) if !OTHER_TYPES.contains(&kind.as_str()) => schema,
            Some(other) => return Err(bad("the type of its inputSchema", other)),
        },
        Some(other) => return Err(bad("its inputSchema", other)),
        None => return Err(ItemError::NoInputSchema(name)),
    };
    if modern {
        super::headers::check(schema)
            .map_err(|flaw| ItemError::InvalidHeader { tool: name.clone(), flaw })?;
    }
    let text = |map: &Map<String, Value>, key: &str| match map.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(bad(&format!("its {key}"), other)),
    };
    let mut tool = ToolDefinition::new(
        ToolName::of(server, &name),
        ToolSource::Mcp,
        "mcp",
        Origin::Server(server.to_owned()),
    );
    tool.title = text(&map, "title")?;
    tool.description = text(&map, "description")?;
    tool.annotations = annotations(map.get("annotations"));
    if tool.title.is_none() {
        tool.title.clone_from(&tool.annotations.title);
    }
    // Moved, not copied: a list may hold thousands. A larger one is not looked into.
    let local = |mut schema: Value| {
        if !json::is_longer_than(&schema, SCHEMA_BYTES) {
            schema::localize(&mut schema);
        }
        ToolSchema::from(schema)
    };
    tool.input_schema = local(map.remove("inputSchema").unwrap_or_default());
    match map.remove("outputSchema") {
        None | Some(Value::Null) => {}
        Some(schema @ Value::Object(_)) => tool.output_schema = Some(local(schema)),
        Some(other) => return Err(bad("its outputSchema", &other)),
    }
    add_warnings(&mut tool);
    tool.touches.push(format!("whatever the server '{server}' can reach"));
    tool.raw = Some(Arc::from(raw));
    Ok(tool)
}

fn add_warnings(tool: &mut ToolDefinition) {
    if tool.input_schema.get("type").and_then(Value::as_str) != Some("object") {
        tool.warnings.push("its inputSchema does not say \"type\": \"object\"".to_owned());
    }
    if json::is_longer_than(&*tool.input_schema, SCHEMA_BYTES) {
        tool.status = ToolStatus::Unchecked;
        tool.warnings
            .push("its inputSchema is larger than 1 MiB; arguments are not checked".into());
    }
    tool.warnings.extend(invisible_characters_warning([&tool.title, &tool.description]));
    let name = tool.name.tool();
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c)) {
        tool.warnings.push("its name has characters beyond A-Z a-z 0-9 _ - . /".to_owned());
    }
}

pub(super) fn invisible_characters_warning<'a>(
    texts: impl IntoIterator<Item = &'a Option<String>>,
) -> Option<String> {
    let count = texts
        .into_iter()
        .flatten()
        .flat_map(|text| text.chars())
        .filter(|c| is_invisible(*c) || (c.is_control() && !matches!(c, '\n' | '\t' | '\r')))
        .count();
    (count > 0).then(|| format!("its text contains {count} invisible or control characters"))
}

/// Refuses names that could be mistaken for something else or cannot be shown unchanged.
fn check_name(name: &str) -> Result<(), ItemError> {
    let count = name.chars().count();
    if count == 0 {
        Err(ItemError::EmptyToolName)
    } else if count > NAME_LIMIT {
        Err(ItemError::ToolNameTooLong { count, limit: NAME_LIMIT })
    } else if name.chars().any(|c| c.is_control() || c.is_whitespace() || is_invisible(c)) {
        Err(ItemError::UnshowableToolName(safe_line(name).to_string()))
    } else {
        Ok(())
    }
}

fn annotations(value: Option<&Value>) -> Annotations {
    let flag = |key: &str| value.and_then(|v| v.get(key)).and_then(Value::as_bool);
    Annotations {
        title: value.and_then(|v| v.get("title")).and_then(Value::as_str).map(str::to_owned),
        read_only: flag("readOnlyHint"),
        destructive: flag("destructiveHint"),
        idempotent: flag("idempotentHint"),
        open_world: flag("openWorldHint"),
    }
}

pub(super) fn abbreviated(value: &Value) -> String {
    truncate(&value.to_string(), 60)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(server: &str, item: &Value) -> Result<ToolDefinition, ItemError> {
        read(server, serde_json::value::to_raw_value(item).unwrap(), item.clone(), false)
    }

    #[test]
    fn a_tool_keeps_everything_it_came_with() {
        let item = json!({ "name": "t", "inputSchema": { "type": "object" }, "x-vendor": 1,
            "annotations": { "destructiveHint": true } });
        let tool = parsed("srv", &item).unwrap();
        assert_eq!(tool.name.full(), "srv-t");
        assert_eq!(tool.annotations.destructive, Some(true));
        assert_eq!(tool.annotations.read_only, None);
        assert_eq!(tool.raw_value(), Some(item));
    }

    #[test]
    fn malformed_items_say_what_is_wrong() {
        let schema = json!({ "type": "object" });
        for (item, expected) in [
            (json!(7), "not an object"),
            (json!({ "inputSchema": schema }), "no name"),
            (json!({ "name": 3, "inputSchema": schema }), "not text"),
            (json!({ "name": "", "inputSchema": schema }), "empty name"),
            (json!({ "name": "a\nb", "inputSchema": schema }), "cannot be shown"),
            (json!({ "name": "x".repeat(10_000), "inputSchema": schema }), "10000 characters"),
            (json!({ "name": "t" }), "no inputSchema"),
            (json!({ "name": "t", "inputSchema": true }), "inputSchema is true"),
            (json!({ "name": "t", "inputSchema": { "type": "array" } }), "type of its inputSchema"),
            (json!({ "name": "t", "description": 1, "inputSchema": schema }), "description is 1"),
        ] {
            let reason = parsed("s", &item).unwrap_err().to_string();
            assert!(reason.contains(expected), "{reason}");
        }
    }

    #[test]
    fn odd_but_usable_tools_carry_a_warning() {
        let item = json!({ "name": "näme", "description": "a\u{202e}b", "inputSchema": {} });
        let tool = parsed("s", &item).unwrap();
        assert_eq!(tool.warnings.len(), 3, "{:?}", tool.warnings);
    }
}
