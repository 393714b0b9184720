//! Validating arguments against a tool's schema, with helpful errors.

use std::collections::HashMap;

use serde_json::Value;

use super::example;
use super::validate::{ValuePath, ValuePathSegment, Violation};
use crate::model::{Error, ErrorPhase, JsonObject, ToolDefinition};

/// Keywords that may allow properties which `properties` does not list.
const OPEN_SCHEMA_KEYWORDS: [&str; 11] = [
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

/// Arguments that the schema does not speak of, although it lists properties and does not say
/// that others are allowed. JSON Schema alone would let them pass; a person has mistyped them.
pub fn unknown_keys(arguments: &JsonObject, schema: &Value) -> Vec<Violation> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    let open = schema.get("additionalProperties").is_some()
        || OPEN_SCHEMA_KEYWORDS.iter().any(|keyword| schema.get(keyword).is_some());
    if open {
        return Vec::new();
    }
    let root = ValuePath::default();
    let names = || properties.keys().map(String::as_str);
    arguments
        .keys()
        .filter(|key| !properties.contains_key(*key))
        .map(|key| Violation::unknown(&root, key, names()))
        .collect()
}

/// The error that lists every problem, in the order of the schema, and shows how a call looks. It
/// names no server: none was asked.
pub fn invalid_arguments(tool: &ToolDefinition, problems: &[Violation]) -> Error {
    let properties = tool.input_schema.get("properties").and_then(Value::as_object);
    let ranks: HashMap<&str, usize> = properties
        .into_iter()
        .flatten()
        .zip(0..)
        .map(|((name, _), at)| (name.as_str(), at))
        .collect();
    let rank = |problem: &Violation| {
        let Some(ValuePathSegment::Key(key)) = problem.path.0.first() else { return 0 };
        ranks.get(key.as_str()).copied().unwrap_or(usize::MAX)
    };
    let mut problems: Vec<&Violation> = problems.iter().collect();
    problems.sort_by_cached_key(|problem| rank(problem));
    let count = match problems.len() {
        1 => "1 problem".to_owned(),
        n => format!("{n} problems"),
    };
    let name = tool.name.full();
    Error::usage(format!("{count} with the arguments of '{name}'"))
        .with_phase(ErrorPhase::Call)
        .with_details(problems.iter().map(ToString::to_string))
        .with_hint(format!("for example: {}", example::command_line(tool)))
}

#[cfg(test)]
mod tests {

    use serde_json::json;

    use super::*;
    use crate::model::{Origin, ToolName, ToolSource};

    fn tool(schema: Value) -> ToolDefinition {
        let mut tool = ToolDefinition::new(
            ToolName::of("notes", "write"),
            ToolSource::Internal,
            "storage",
            Origin::Server(String::new()),
        );
        tool.input_schema = schema.into();
        tool
    }

    fn object(value: &Value) -> JsonObject {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn unknown_keys_are_told_where_the_schema_is_closed_by_its_silence() {
        let arguments = object(&json!({"mesage": 1, "zzz": 2}));
        let schema = json!({"properties": {"message": {}}});
        let lines: Vec<String> =
            unknown_keys(&arguments, &schema).iter().map(ToString::to_string).collect();
        assert_eq!(lines, ["mesage: is not known; did you mean 'message'?", "zzz: is not known"]);
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
    fn the_error_lists_everything_and_shows_a_call() {
        let tool = tool(json!({
            "properties": {"key": {"type": "string"}, "ttl": {"type": "integer", "minimum": 5}},
            "required": ["key", "ttl"]
        }));
        let problems = [
            Violation::new(ValuePath::default().key("extra"), "is not known"),
            Violation::new(ValuePath::default().key("ttl"), "must be integer, not string"),
            Violation::new(ValuePath::default().key("key"), "is required"),
        ];
        let error = invalid_arguments(&tool, &problems);
        assert_eq!(error.message(), "3 problems with the arguments of 'notes-write'");
        assert_eq!(
            error.details(),
            ["key: is required", "ttl: must be integer, not string", "extra: is not known"]
        );
        assert_eq!(error.hint(), Some("for example: toolhost call notes-write key=text ttl=5"));
    }
}
