//! Parsing one item of `tools/list` into a definition, or an error.

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use super::listing::{ListSpec, Listable};
use super::offering_items::ItemFields;
use crate::model::{
    Annotations, Error, Origin, ToolDefinition, ToolName, ToolSchema, ToolSource, ToolStatus,
};
use crate::util::text::{is_invisible, truncate};
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

    fn read(server: &str, raw: Box<RawValue>, item: Value, modern: bool) -> Result<Self, Error> {
        let fields = ItemFields::of("a tool", &item)?;
        let name = fields.name("name", NAME_LIMIT)?;
        if name.chars().any(char::is_whitespace) {
            return Err(fields.unshowable("name", name));
        }
        let schema = match item.get("inputSchema") {
            Some(schema @ Value::Object(object)) => match object.get("type") {
                None => schema,
                Some(Value::String(kind)) if !OTHER_TYPES.contains(&kind.as_str()) => schema,
                Some(other) => {
                    return Err(fields.invalid(name, "the type of its inputSchema", other));
                }
            },
            Some(other) => return Err(fields.invalid(name, "its inputSchema", other)),
            None => return Err(Error::protocol(format!("tool \"{name}\" has no inputSchema"))),
        };
        if modern {
            super::headers::check(schema)
                .map_err(|error| error.context(&format!("tool \"{name}\"")))?;
        }
        let mut tool = Self::new(
            ToolName::of(server, name),
            ToolSource::Mcp,
            "mcp",
            Origin::Server(server.to_owned()),
        );
        tool.title = fields.text("title", name)?;
        tool.description = fields.text("description", name)?;
        tool.annotations = annotations(item.get("annotations"));
        if tool.title.is_none() {
            tool.title.clone_from(&tool.annotations.title);
        }
        match item.get("outputSchema") {
            None | Some(Value::Null | Value::Object(_)) => {}
            Some(other) => return Err(fields.invalid(name, "its outputSchema", other)),
        }
        // Moved, not copied: a list may hold thousands. A larger one is not looked into.
        let mut item = item;
        let mut take = |key: &str| {
            let mut schema = item.get_mut(key).map(Value::take).unwrap_or_default();
            if !json::is_longer_than(&schema, SCHEMA_BYTES) {
                schema::localize(&mut schema);
            }
            schema
        };
        let input = take("inputSchema");
        add_warnings(&mut tool, &input);
        tool.input_schema = input.into();
        tool.output_schema =
            Some(take("outputSchema")).filter(Value::is_object).map(ToolSchema::from);
        tool.requires_task = item["execution"]["taskSupport"] == "required";
        tool.touches.push(format!("whatever the server '{server}' can reach"));
        tool.raw = Some(Arc::from(raw));
        Ok(tool)
    }

    fn key(&self) -> &str {
        self.name.tool()
    }
}

fn add_warnings(tool: &mut ToolDefinition, input_schema: &Value) {
    if input_schema.get("type").and_then(Value::as_str) != Some("object") {
        tool.warnings.push("its inputSchema does not say \"type\": \"object\"".to_owned());
    }
    if json::is_longer_than(input_schema, SCHEMA_BYTES) {
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

    fn parsed(server: &str, item: &Value) -> Result<ToolDefinition, Error> {
        Listable::read(server, serde_json::value::to_raw_value(item).unwrap(), item.clone(), false)
    }

    #[test]
    fn a_tool_keeps_everything_it_came_with() {
        let item = json!({ "name": "t", "inputSchema": { "type": "object" }, "x-vendor": 1,
            "annotations": { "destructiveHint": true }, "execution": { "taskSupport": "required" } });
        let tool = parsed("srv", &item).unwrap();
        assert_eq!(tool.name.full(), "srv-t");
        assert_eq!(tool.annotations.destructive, Some(true));
        assert_eq!(tool.annotations.read_only, None);
        assert!(tool.requires_task);
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
