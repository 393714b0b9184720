//! The top of a schema of arguments. Providers want a plain object there, so what a reference, a
//! union or an intersection at the top says about properties is gathered into it.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::util::schema;

/// Keywords that may not stand at the top.
const NOT_AT_TOP: [&str; 6] = ["allOf", "anyOf", "oneOf", "enum", "const", "not"];

const MAX_REFERENCES: usize = 16;

pub(super) fn object_at_top(schema: &Value, downgrades: &mut Vec<String>) -> Map<String, Value> {
    let mut top = gathered(schema, schema, MAX_REFERENCES, downgrades);
    if let Some(Value::Object(definitions)) = top.remove("definitions") {
        let all = top.entry("$defs").or_insert_with(|| json!({}));
        if let Value::Object(all) = all {
            for (name, definition) in definitions {
                all.entry(name).or_insert(definition);
            }
        }
    }
    // A model must send an object, whatever else the schema would take.
    top.insert("type".to_owned(), json!("object"));
    top.entry("properties").or_insert_with(|| json!({}));
    top
}

/// A schema with what the references, unions and intersections at its top say of properties.
fn gathered(
    schema: &Value,
    root: &Value,
    references: usize,
    downgrades: &mut Vec<String>,
) -> Map<String, Value> {
    let mut top = schema.as_object().cloned().unwrap_or_default();
    if references > 0
        && let Some(inner) = schema::referenced(root, schema)
    {
        let inner = gathered(inner, root, references - 1, downgrades);
        top.remove("$ref");
        add_part(&mut top, inner, true);
    }
    for keyword in NOT_AT_TOP {
        let Some(value) = top.remove(keyword) else { continue };
        let parts = match &value {
            Value::Array(parts) if matches!(keyword, "allOf" | "anyOf" | "oneOf") => {
                parts.as_slice()
            }
            _ => &[],
        };
        let parts: Vec<_> = parts
            .iter()
            .map(|part| gathered(part, root, references.saturating_sub(1), downgrades))
            .collect();
        let in_all = keyword == "allOf";
        let common = required_by_each(&parts);
        for part in parts {
            add_part(&mut top, part, in_all);
        }
        if !in_all {
            require(&mut top, common);
            let downgrade = format!("'{keyword}' at the top of the schema is left out");
            downgrades.push(downgrade);
        }
    }
    top
}

/// Adds the properties of one part of the whole, and what it requires when that always holds.
/// What is said already stays.
fn add_part(top: &mut Map<String, Value>, part: Map<String, Value>, always_holds: bool) {
    for (keyword, value) in part {
        match (keyword.as_str(), value) {
            ("properties" | "$defs" | "definitions", Value::Object(more)) => {
                let properties = top.entry(keyword).or_insert_with(|| json!({}));
                if let Value::Object(properties) = properties {
                    for (name, schema) in more {
                        properties.entry(name).or_insert(schema);
                    }
                }
            }
            ("required", Value::Array(names)) if always_holds => {
                require(top, names.iter().filter_map(Value::as_str).map(str::to_owned).collect());
            }
            // Said of one part, they may be wrong of the whole.
            ("required" | "additionalProperties" | "unevaluatedProperties", _) => {}
            (_, value) if always_holds => {
                top.entry(keyword).or_insert(value);
            }
            _ => {}
        }
    }
}

fn require(top: &mut Map<String, Value>, names: BTreeSet<String>) {
    if names.is_empty() {
        return;
    }
    let required = top.entry("required").or_insert_with(|| json!([]));
    if let Value::Array(required) = required {
        let missing: Vec<_> = names.into_iter().map(Value::from).collect();
        for name in missing {
            if !required.contains(&name) {
                required.push(name);
            }
        }
    }
}

fn required_by_each(parts: &[Map<String, Value>]) -> BTreeSet<String> {
    let required = |part: &Map<String, Value>| -> BTreeSet<String> {
        let names = part.get("required").and_then(Value::as_array);
        names.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut parts = parts.iter().map(required);
    let first = parts.next().unwrap_or_default();
    parts.fold(first, |common, names| common.intersection(&names).cloned().collect())
}
