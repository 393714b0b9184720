//! Describing a schema and a tool as text.

use serde_json::Value;

use super::example::{resolve, type_of};
use super::retry::max_retries;
use crate::model::{Annotations, ToolDefinition};
use crate::util::json;

/// The most alternatives of a type that are shown. Alternatives may refer to each other, so that
/// few lines of schema can stand for billions of them.
const MAX_CHOICES: usize = 20;

/// A type as text: `string`, `list of integer`, `"a" | "b"`; external callers pass 0 as `depth`.
pub fn type_name(root: &Value, schema: &Value, depth: usize) -> String {
    const MAX_DEPTH: usize = 3;
    let schema = resolve(root, schema, 0);
    let named = |value: &Value| json::compact(value);
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        let names = choices.iter().take(MAX_CHOICES).map(named).collect();
        return either(names, choices.len());
    }
    if let Some(value) = schema.get("const") {
        return named(value);
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(branches) = schema.get(key).and_then(Value::as_array) {
            if depth >= MAX_DEPTH {
                return "any".to_owned();
            }
            let mut names: Vec<String> = Vec::new();
            for branch in branches.iter().take(MAX_CHOICES) {
                let name = type_name(root, branch, depth + 1);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            return either(names, branches.len());
        }
    }
    match schema.get("type") {
        Some(Value::Array(names)) => {
            let shown = names.iter().take(MAX_CHOICES).filter_map(Value::as_str);
            either(shown.map(str::to_owned).collect(), names.len())
        }
        _ => match type_of(schema) {
            Some("array") => match schema.get("items") {
                Some(items) if depth < MAX_DEPTH => {
                    format!("list of {}", type_name(root, items, depth + 1))
                }
                _ => "list".to_owned(),
            },
            Some(name) => name.to_owned(),
            None => "any".to_owned(),
        },
    }
}

/// One of these; `all` is how many there are, shown or not.
fn either(mut names: Vec<String>, all: usize) -> String {
    if all > MAX_CHOICES {
        names.push(format!("{} more", all - MAX_CHOICES));
    }
    names.join(" | ")
}

/// The constraints of a schema besides its type, as text.
pub fn limits(schema: &Value) -> String {
    let mut limits = Vec::new();
    let get = |key: &str| schema.get(key).map(json::compact);
    let mut range = |unit: &str, low: &str, high: &str| match (get(low), get(high)) {
        (Some(low), Some(high)) => limits.push(format!("{low}..{high}{unit}")),
        (Some(low), None) => limits.push(format!("at least {low}{unit}")),
        (None, Some(high)) => limits.push(format!("at most {high}{unit}")),
        (None, None) => {}
    };
    range("", "minimum", "maximum");
    range(" characters", "minLength", "maxLength");
    range(" items", "minItems", "maxItems");
    for (key, relation) in [
        ("exclusiveMinimum", "above"),
        ("exclusiveMaximum", "below"),
        ("multipleOf", "multiple of"),
    ] {
        if let Some(value) = get(key) {
            limits.push(format!("{relation} {value}"));
        }
    }
    for key in ["format", "pattern"] {
        if let Some(value) = schema.get(key).and_then(Value::as_str) {
            limits.push(format!("{key} {value}"));
        }
    }
    if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
        limits.push("no duplicate items".to_owned());
    }
    limits.join(", ")
}

/// How often a failed attempt is repeated; `asks` when a person is asked before each call.
pub fn retries(tool: &ToolDefinition, asks: bool) -> String {
    match (tool.retries, max_retries(tool, asks, None)) {
        (0, _) => "none".to_owned(),
        (count, 0) => format!("{count}, but it is not marked safe to repeat: none are made"),
        (_, count) => count.to_string(),
    }
}

pub fn claims(annotations: &Annotations) -> Vec<&'static str> {
    let pick = |value: Option<bool>, yes, no| value.map(|v| if v { yes } else { no });
    [
        pick(annotations.read_only, "changes nothing", "changes something"),
        pick(annotations.destructive, "may destroy something", "destroys nothing"),
        pick(annotations.idempotent, "safe to repeat", "not safe to repeat"),
        pick(annotations.open_world, "reaches outside", "reaches nothing outside"),
    ]
    .into_iter()
    .flatten()
    .collect()
}
