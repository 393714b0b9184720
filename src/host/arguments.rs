//! Whether arguments fit a tool, and what to tell a person when they do not.
//!
//! Owns: the rule about unknown keys, the fault that lists all problems, the example call. The
//! checking itself is in `validate`.

use serde_json::Value;

use super::validate::{Path, Violation};
use crate::model::{Fault, JsonObject, Phase, ToolDefinition};

/// Keywords that may allow properties which `properties` does not list.
const OPENING: [&str; 11] = [
    "patternProperties",
    "unevaluatedProperties",
    "propertyNames",
    "$ref",
    "$dynamicRef",
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "dependentSchemas",
    "dependencies",
];

/// How many optional properties an example shows when none is required.
const EXAMPLE_OPTIONAL: usize = 2;

/// Arguments that the schema does not speak of, although it lists properties and does not say
/// that others are allowed. JSON Schema alone would let them pass; a person has mistyped them.
pub fn unknown_keys(arguments: &JsonObject, schema: &Value) -> Vec<Violation> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    let open = schema.get("additionalProperties").is_some()
        || OPENING.iter().any(|keyword| schema.get(keyword).is_some());
    if open {
        return Vec::new();
    }
    let root = Path::default();
    let known = || properties.keys().map(String::as_str);
    arguments
        .keys()
        .filter(|key| !properties.contains_key(*key))
        .map(|key| Violation::unknown(&root, key, known()))
        .collect()
}

/// The fault that lists every problem and shows how a call looks.
pub fn misfit(tool: &ToolDefinition, problems: &[Violation]) -> Fault {
    let count = match problems.len() {
        1 => "1 problem".to_owned(),
        n => format!("{n} problems"),
    };
    let name = tool.name.full();
    let fault = Fault::usage(format!("{count} with the arguments of '{name}'"))
        .phase(Phase::Call)
        .details(problems.iter().map(ToString::to_string))
        .hint(format!("for example: {}", example_call(tool)));
    match tool.name.component() {
        Some(server) if tool.kind == "mcp" => fault.server(server),
        _ => fault,
    }
}

/// A command line that calls the tool: its required arguments, with values its schema suggests.
pub fn example_call(tool: &ToolDefinition) -> String {
    let schema = &*tool.input_schema;
    let mut line = format!("toolhost call {}", quoted(&tool.name.full()));
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return line;
    };
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let wanted = properties.iter().filter(|(key, _)| required.contains(&key.as_str()));
    let mut shown: Vec<_> = wanted.collect();
    if shown.is_empty() {
        shown.extend(properties.iter().take(EXAMPLE_OPTIONAL));
    }
    for (key, property) in shown {
        line.push(' ');
        line.push_str(&quoted(&example_word(key, property, schema)));
    }
    line
}

/// `key=text` for texts, `key:=json` for everything else.
fn example_word(key: &str, property: &Value, root: &Value) -> String {
    match example_value(property, root) {
        Value::String(text) => format!("{key}={text}"),
        other => format!("{key}:={other}"),
    }
}

fn example_value(property: &Value, root: &Value) -> Value {
    let property = property
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|target| root.pointer(target.strip_prefix('#')?))
        .unwrap_or(property);
    let first = |keyword: &str| property.get(keyword).and_then(|v| v.get(0)).cloned();
    if let Some(value) = first("examples")
        .or_else(|| property.get("default").filter(|v| !v.is_null()).cloned())
        .or_else(|| property.get("const").cloned())
        .or_else(|| first("enum"))
    {
        return value;
    }
    let branch = ["anyOf", "oneOf"].iter().find_map(|k| property.get(k)?.get(0));
    let kind = [Some(property), branch]
        .into_iter()
        .flatten()
        .filter_map(|schema| schema.get("type"))
        .find_map(|kind| kind.as_str().or_else(|| kind.get(0)?.as_str()));
    match kind {
        Some("integer" | "number") => property.get("minimum").cloned().unwrap_or_else(|| 1.into()),
        Some("boolean") => true.into(),
        Some("array") => Value::Array(Vec::new()),
        Some("object") => Value::Object(JsonObject::new()),
        Some("null") => Value::Null,
        _ => "TEXT".into(),
    }
}

/// One word of a shell's command line.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::model::{Origin, Source, ToolName};

    fn tool(schema: Value) -> ToolDefinition {
        let mut tool = ToolDefinition::new(
            ToolName::of("notes", "write"),
            Source::Internal,
            "storage",
            Origin::Server(String::new()),
        );
        tool.input_schema = Arc::new(schema);
        tool
    }

    fn object(value: &Value) -> JsonObject {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn unknown_keys_are_told_where_the_schema_is_closed_by_its_silence() {
        let arguments = object(&json!({"mesage": 1, "zzz": 2}));
        let schema = json!({"properties": {"message": {}}});
        let told: Vec<String> =
            unknown_keys(&arguments, &schema).iter().map(ToString::to_string).collect();
        assert_eq!(told, ["mesage: is not known; did you mean 'message'?", "zzz: is not known"]);
        for open in [
            json!({"type": "object"}),
            json!({"properties": {"message": {}}, "additionalProperties": true}),
            json!({"properties": {"message": {}}, "patternProperties": {"z": {}}}),
            json!({"properties": {"message": {}}, "anyOf": [{}]}),
        ] {
            assert!(unknown_keys(&arguments, &open).is_empty(), "{open}");
        }
    }

    #[test]
    fn the_fault_lists_everything_and_shows_a_call() {
        let tool = tool(json!({
            "properties": {"key": {"type": "string"}, "ttl": {"type": "integer", "minimum": 5}},
            "required": ["key", "ttl"]
        }));
        let problems = [
            Violation::required(&Path::default(), "key"),
            Violation::new(Path::default().key("ttl"), "must be integer, not string"),
        ];
        let fault = misfit(&tool, &problems);
        assert_eq!(fault.message(), "2 problems with the arguments of 'notes-write'");
        assert_eq!(fault.detail_lines(), ["key: is required", "ttl: must be integer, not string"]);
        assert_eq!(
            fault.hint_text(),
            Some("for example: toolhost call notes-write key=TEXT ttl:=5")
        );
    }

    #[test]
    fn examples_take_what_the_schema_offers_and_survive_a_shell() {
        let tool = tool(json!({"properties": {
            "mode": {"enum": ["it's", "b"]},
            "list": {"type": "array", "default": ["a b"]},
            "more": {}
        }}));
        assert_eq!(
            example_call(&tool),
            r#"toolhost call notes-write 'mode=it'\''s' 'list:=["a b"]'"#
        );
    }
}
