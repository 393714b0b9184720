//! The values of an argument listed in its schema: choices, booleans, the default.

use serde_json::Value;

use crate::config::secrets::names_secret;
use crate::host::example::{resolve, type_of};

const MAX_VALUES: usize = 50;

pub(super) fn of_property(root: &Value, key: &str, property: &Value) -> Vec<String> {
    let property = resolve(root, property, 0);
    if names_secret(key) || property.get("writeOnly").is_some_and(|is| is == true) {
        return Vec::new();
    }
    let mut values: Vec<String> = property.get("default").and_then(word).into_iter().collect();
    choices(root, property, &mut values);
    // An optional choice is one of several schemas, such as a choice or null.
    for key in ["anyOf", "oneOf", "allOf"] {
        let parts = property.get(key).and_then(Value::as_array);
        for part in parts.into_iter().flatten().take(MAX_VALUES) {
            choices(root, resolve(root, part, 0), &mut values);
        }
    }
    values.truncate(MAX_VALUES);
    values
}

fn choices(root: &Value, schema: &Value, values: &mut Vec<String>) {
    let schema = resolve(root, schema, 0);
    let listed = schema.get("enum").and_then(Value::as_array);
    let yes_or_no = [Value::Bool(true), Value::Bool(false)];
    let is_bool = type_of(schema) == Some("boolean") && listed.is_none();
    let named = listed.into_iter().flatten().chain(schema.get("const"));
    for value in named.chain(yes_or_no.iter().filter(|_| is_bool)).take(MAX_VALUES) {
        values.extend(word(value).filter(|text| !values.contains(text)));
    }
}

/// A value that can be written after `key=`: not a list, object or null, and not a text that starts
/// with the `@` of a file.
fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.starts_with('@') => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn choices_yes_or_no_and_defaults_are_values() {
        let root = json!({ "$defs": { "Unit": { "enum": ["metric", "imperial"] } } });
        for (property, values) in [
            (json!({ "enum": ["a", "b"], "default": "b" }), &["b", "a"][..]),
            (json!({ "type": "boolean" }), &["true", "false"]),
            (json!({ "type": "integer", "default": 12 }), &["12"]),
            (json!({ "$ref": "#/$defs/Unit" }), &["metric", "imperial"]),
            (
                json!({ "anyOf": [{ "$ref": "#/$defs/Unit" }, { "type": "null" }] }),
                &["metric", "imperial"],
            ),
            (json!({ "oneOf": [{ "const": 1, "title": "one" }, { "const": 2 }] }), &["1", "2"]),
            (json!({ "enum": [null, ["x"], "@file", 3] }), &["3"]),
            (json!({ "type": "string" }), &[]),
        ] {
            assert_eq!(of_property(&root, "unit", &property), values, "{property}");
        }
        assert!(of_property(&root, "api_key", &json!({ "default": "hunter2" })).is_empty());
    }
}
