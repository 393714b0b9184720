//! JSON Schemas as a dialect takes them.

use serde_json::{Map, Value, json};

/// Keywords that may not stand at the top of a schema of arguments.
const NOT_AT_TOP: [&str; 5] = ["oneOf", "anyOf", "allOf", "enum", "not"];

/// Keywords whose value is a map of schemas by name.
const SCHEMA_MAPS: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];
/// Keywords whose value is data, whatever it looks like.
const DATA: [&str; 5] = ["enum", "const", "default", "example", "examples"];

/// Which schemas a dialect takes.
#[derive(Debug, Clone, Copy)]
pub(super) enum SchemaSubset {
    /// All of JSON Schema, with a plain object at the top.
    ObjectAtTop,
    /// Only these keywords, with a plain object at the top.
    Keywords(&'static [&'static str]),
}

impl SchemaSubset {
    /// The schema without what the dialect does not take; what was left out is told in `downgrades`.
    pub(super) fn apply(self, schema: &Value, downgrades: &mut Vec<String>) -> Value {
        let mut top = schema.as_object().cloned().unwrap_or_default();
        for keyword in NOT_AT_TOP {
            if top.remove(keyword).is_some() {
                downgrades.push(format!("'{keyword}' at the top of the schema is left out"));
            }
        }
        top.insert("type".into(), json!("object"));
        top.entry("properties").or_insert_with(|| json!({}));
        match self {
            Self::ObjectAtTop => Value::Object(top),
            Self::Keywords(known) => {
                let mut dropped = Vec::new();
                let kept = keep_known(&top, known, "", &mut dropped);
                downgrades.extend(dropped);
                Value::Object(kept)
            }
        }
    }
}

fn keep_known(
    schema: &Map<String, Value>,
    known: &[&str],
    path: &str,
    dropped: &mut Vec<String>,
) -> Map<String, Value> {
    let mut kept = Map::new();
    for (keyword, value) in schema {
        let place = format!("{path}/{keyword}");
        if !known.contains(&keyword.as_str()) {
            dropped.push(format!("'{place}' is left out"));
            continue;
        }
        let value = match value {
            _ if DATA.contains(&keyword.as_str()) => value.clone(),
            Value::Object(named) if SCHEMA_MAPS.contains(&keyword.as_str()) => {
                let each = named.iter().map(|(name, inner)| {
                    (name.clone(), keep_in(inner, known, &format!("{place}/{name}"), dropped))
                });
                Value::Object(each.collect())
            }
            other => keep_in(other, known, &place, dropped),
        };
        kept.insert(keyword.clone(), value);
    }
    kept
}

fn keep_in(value: &Value, known: &[&str], path: &str, dropped: &mut Vec<String>) -> Value {
    match value {
        Value::Object(schema) => Value::Object(keep_known(schema, known, path, dropped)),
        Value::Array(schemas) => {
            let each = schemas.iter().enumerate();
            Value::Array(
                each.map(|(n, inner)| keep_in(inner, known, &format!("{path}/{n}"), dropped))
                    .collect(),
            )
        }
        plain => plain.clone(),
    }
}
