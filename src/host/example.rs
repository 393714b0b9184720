//! Generating an example call from a tool's schema.

use std::cell::Cell;
use std::collections::HashSet;

use serde_json::{Value, json};

use super::command;
use crate::model::{JsonObject, ToolDefinition};
use crate::util::{json, schema};

const MAX_DEPTH: usize = 6;
const MAX_VALUES: usize = 64;

/// The arguments of an example call: those the schema itself gives as an example, else the required
/// ones, or the first when none is required.
pub fn arguments(schema: &Value) -> JsonObject {
    let top = resolve(schema, schema, 0);
    let sketch = ExampleBuilder { root: schema, left: Cell::new(MAX_VALUES) };
    let whole = top.get("examples").and_then(|examples| examples.get(0)?.as_object());
    whole.cloned().unwrap_or_else(|| sketch.object(top, 0))
}

/// The command line of an example call with [`arguments`].
pub fn command_line(definition: &ToolDefinition) -> String {
    let schema = &*definition.input_schema;
    format_command(&definition.name.full(), schema, &arguments(schema)) + &definition.command_end()
}

/// The command line of a call with `arguments`; the schema says which of them need not be JSON.
pub fn format_command(tool: &str, schema: &Value, arguments: &JsonObject) -> String {
    let properties = resolve(schema, schema, 0).get("properties");
    let is_text = |key: &str| {
        properties.and_then(|p| p.get(key)).is_some_and(|property| {
            let property = resolve(schema, property, 0);
            let choice = property.get("enum").or_else(|| property.get("const")).is_some();
            type_of(property).map_or(choice, |kind| kind == "string")
        })
    };
    command::call_of_words(tool, arguments, |key, value| match value {
        Value::String(text) if command::has_hidden(text) => {
            format!("{key}:={}", json::compact(value))
        }
        Value::String(text) if text.starts_with('@') => format!("{key}=@{text}"),
        Value::String(text) if is_text(key) => format!("{key}={text}"),
        Value::Number(_) | Value::Bool(_) => format!("{key}={value}"),
        other => format!("{key}:={}", json::compact(other)),
    })
}

struct ExampleBuilder<'s> {
    root: &'s Value,
    /// How many values may still be made.
    left: Cell<usize>,
}

impl ExampleBuilder<'_> {
    /// A value that fits `schema`, as far as the common keywords say.
    fn value(&self, schema: &Value, depth: usize) -> Value {
        let schema = resolve(self.root, schema, 0);
        let first = |key: &str| schema.get(key).and_then(|list| list.get(0));
        let one = |key: &str| schema.get(key).filter(|value| !value.is_null());
        let sample = first("examples").or_else(|| one("example")).or_else(|| one("default"));
        if let Some(value) = sample.or_else(|| one("const")).or_else(|| first("enum")) {
            return value.clone();
        }
        let left = self.left.get();
        if depth >= MAX_DEPTH || left == 0 {
            return Value::Null;
        }
        self.left.set(left - 1);
        for key in ["allOf", "anyOf", "oneOf"] {
            if let Some(first) = schema.get(key).and_then(|list| list.get(0)) {
                return self.value(first, depth + 1);
            }
        }
        match type_of(schema) {
            Some("string") => Value::String(text(schema)),
            Some("integer" | "number") => bound(schema).unwrap_or_else(|| json!(1)),
            Some("boolean") => json!(true),
            Some("null") => Value::Null,
            Some("array") => match schema.get("items") {
                Some(items) if depth + 1 < MAX_DEPTH => json!([self.value(items, depth + 1)]),
                _ => json!([]),
            },
            Some("object") => Value::Object(self.object(schema, depth + 1)),
            _ => json!("value"),
        }
    }

    fn object(&self, schema: &Value, depth: usize) -> JsonObject {
        let mut map = JsonObject::new();
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return map;
        };
        let required: HashSet<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        // An example without any argument would teach nothing.
        let only_first = required.is_empty() && depth == 0;
        for (index, (key, property)) in properties.iter().enumerate() {
            let is_included = required.contains(key.as_str()) || (only_first && index == 0);
            if is_included && depth < MAX_DEPTH && self.left.get() > 0 {
                map.insert(key.clone(), self.value(property, depth));
            }
        }
        map
    }
}

/// Follows `$ref`s within the schema; an unresolvable or circular one is left unchanged.
pub fn resolve<'s>(root: &'s Value, schema: &'s Value, hops: usize) -> &'s Value {
    match schema::referenced(root, schema) {
        Some(target) if hops < MAX_DEPTH => resolve(root, target, hops + 1),
        _ => schema,
    }
}

/// The first type of a schema that is not `null`, if it names or implies one.
pub fn type_of(schema: &Value) -> Option<&str> {
    let types = schema::types(schema);
    let value = types.iter().find(|name| **name != "null");
    value.or(types.first()).copied()
}

fn bound(schema: &Value) -> Option<Value> {
    ["minimum", "maximum"].into_iter().find_map(|key| schema.get(key).cloned())
}

fn text(schema: &Value) -> String {
    let sample = match schema.get("format").and_then(Value::as_str) {
        Some("date-time") => "2026-01-31T12:00:00Z",
        Some("date") => "2026-01-31",
        Some("time") => "12:00:00Z",
        Some("duration") => "PT1M",
        Some("email" | "idn-email") => "someone@example.com",
        Some("uri" | "url" | "iri") => "https://example.com/",
        Some("hostname") => "example.com",
        Some("ipv4") => "192.0.2.1",
        Some("ipv6") => "2001:db8::1",
        Some("uuid") => "00000000-0000-4000-8000-000000000000",
        _ => "text",
    };
    let at_least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0).min(64);
    let at_most = schema.get("maxLength").and_then(Value::as_u64).unwrap_or(u64::MAX);
    let mut sample = sample.to_owned();
    while (sample.chars().count() as u64) < at_least {
        sample.push('x');
    }
    sample.chars().take(usize::try_from(at_most).unwrap_or(usize::MAX)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Origin, ToolName, ToolSource};

    fn line(schema: Value) -> String {
        let origin = Origin::Server("s".to_owned());
        let mut tool = ToolDefinition::new(ToolName::of("s", "t"), ToolSource::Mcp, "mcp", origin);
        tool.input_schema = schema.into();
        command_line(&tool)
    }

    #[test]
    fn required_arguments_are_filled() {
        let schema = json!({
            "type": "object",
            "required": ["q", "n", "tags", "on", "where"],
            "properties": {
                "q": { "type": "string", "examples": ["it's rust"] },
                "n": { "type": "integer", "minimum": 10 },
                "tags": { "type": "array", "items": { "type": "string" } },
                "on": { "type": "boolean" },
                "where": {
                    "type": "object",
                    "required": ["city"],
                    "properties": { "city": { "enum": ["Oslo", "Rome"] } }
                },
                "optional": { "type": "string" }
            }
        });
        assert_eq!(
            line(schema),
            r#"toolhost call s-t 'q=it'\''s rust' n=10 'tags:=["text"]' on=true 'where:={"city":"Oslo"}'"#
        );
    }

    #[test]
    fn what_the_author_shows_comes_first() {
        let schema = json!({
            "properties": {
                "a": { "type": "integer", "default": 7, "examples": [3] },
                "b": { "enum": ["x", "y"], "default": "y" },
                "c": { "enum": ["x", "y"] }
            },
            "required": ["a", "b", "c"]
        });
        assert_eq!(line(schema), "toolhost call s-t a=3 b=y c=x");
        let whole = json!({
            "properties": { "a": { "type": "string" }, "b": { "type": "integer" } },
            "required": ["a"],
            "examples": [{ "a": "hi", "b": 2 }]
        });
        assert_eq!(line(whole), "toolhost call s-t a=hi b=2");
    }

    #[test]
    fn a_text_of_several_lines_can_be_copied() {
        let schema = json!({ "properties": { "a": { "type": "string", "examples": ["x\ny"] } } });
        assert_eq!(line(schema), r#"toolhost call s-t 'a:="x\ny"'"#);
    }

    #[test]
    fn what_nobody_sees_is_escaped_in_texts_lists_and_names() {
        let example = |value: Value| line(json!({ "examples": [value] }));
        let text = "a\u{202e}b\u{200b}";
        let escaped = r"a\u202eb\u200b";
        assert_eq!(
            example(json!({ "a": text, "list": [text] })),
            format!(r#"toolhost call s-t 'a:="{escaped}"' 'list:=["{escaped}"]'"#)
        );
        assert_eq!(
            example(json!({ text: 1 })),
            format!(r#"toolhost call s-t '{{"{escaped}":1}}'"#)
        );
    }

    #[test]
    fn without_required_arguments_the_first_is_shown() {
        let schema = json!({ "properties": { "a": { "type": "string" }, "b": {} } });
        assert_eq!(line(schema), "toolhost call s-t a=text");
        assert_eq!(line(json!({ "type": "object" })), "toolhost call s-t");
        assert_eq!(line(json!(true)), "toolhost call s-t");
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let schema = json!({
            "type": "object", "required": ["tree", "loop"],
            "properties": {
                "tree": { "$ref": "#/$defs/node" },
                "loop": { "$ref": "#/$defs/circle" }
            },
            "$defs": {
                "node": { "type": "object", "required": ["child"],
                          "properties": { "child": { "$ref": "#/$defs/node" } } },
                "circle": { "$ref": "#/$defs/circle" }
            }
        });
        assert!(line(schema).starts_with("toolhost call s-t 'tree:={"));
    }

    #[test]
    fn a_wide_schema_that_refers_to_itself_stays_small() {
        let keys: Vec<String> = (0..40).map(|n| format!("k{n}")).collect();
        let properties: JsonObject =
            keys.iter().map(|k| (k.clone(), json!({ "$ref": "#" }))).collect();
        let schema = json!({ "type": "object", "required": keys, "properties": properties });
        assert!(line(schema).len() < 10_000);
    }
}
