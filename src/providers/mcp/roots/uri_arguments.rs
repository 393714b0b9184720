//! Which arguments are URIs, by their schema.

use std::collections::HashSet;

use serde_json::Value;

use crate::util::schema;

pub(super) struct UriArgument<'a> {
    /// Its place among the arguments, such as `files[2].uri`.
    pub(super) path: String,
    /// The address as the caller gave it.
    pub(super) text: &'a str,
    pub(super) allows_relative: bool,
    pub(super) allows_other_text: bool,
}

/// One step: this schema applies to this value.
struct PendingSchema<'a> {
    schema: &'a Value,
    value: &'a Value,
    path: String,
    choice: bool,
}

/// The addresses in the argument `key` of a tool with this input schema.
pub(super) fn addresses<'a>(root: &'a Value, key: &str, value: &'a Value) -> Vec<UriArgument<'a>> {
    let mut collected = Vec::new();
    let mut visited: HashSet<(*const Value, *const Value)> = HashSet::new();
    let mut left: Vec<PendingSchema<'a>> = Vec::new();
    // The argument is a property of an object that is not at hand as a value.
    let mut tops = vec![root];
    let mut visited_schemas: HashSet<*const Value> = HashSet::new();
    while let Some(schema) = tops.pop() {
        if !visited_schemas.insert(std::ptr::from_ref(schema)) {
            continue;
        }
        tops.extend(applicable_schemas(root, schema).map(|(schema, _)| schema));
        for schema in of_property(schema, key) {
            left.push(PendingSchema { schema, value, path: key.to_owned(), choice: false });
        }
    }
    while let Some(step) = left.pop() {
        if !visited.insert((std::ptr::from_ref(step.schema), std::ptr::from_ref(step.value))) {
            continue;
        }
        let PendingSchema { schema, value, path, choice } = step;
        let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
        if let (Some(text), "uri" | "iri" | "uri-reference" | "iri-reference") =
            (value.as_str(), format)
        {
            let relative = format.ends_with("-reference");
            collected.push(UriArgument {
                path: path.clone(),
                text,
                allows_relative: relative,
                allows_other_text: choice,
            });
        }
        for (schema, branches) in applicable_schemas(root, schema) {
            let choice = choice || branches.is_some_and(|all| accepts_plain_text(all, value));
            left.push(PendingSchema { schema, value, path: path.clone(), choice });
        }
        match value {
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    for schema in of_item(schema, at) {
                        left.push(PendingSchema {
                            schema,
                            value: item,
                            path: format!("{path}[{at}]"),
                            choice,
                        });
                    }
                }
            }
            Value::Object(members) => {
                for (key, member) in members {
                    for schema in of_property(schema, key) {
                        left.push(PendingSchema {
                            schema,
                            value: member,
                            path: format!("{path}.{key}"),
                            choice,
                        });
                    }
                }
            }
            _ => {}
        }
    }
    collected
}

fn applicable_schemas<'a>(
    root: &'a Value,
    schema: &'a Value,
) -> impl Iterator<Item = (&'a Value, Option<&'a [Value]>)> {
    let reference = ["$ref", "$dynamicRef", "$recursiveRef"]
        .into_iter()
        .filter_map(|key| schema.get(key)?.as_str())
        .filter_map(|reference| schema::target(root, reference));
    let single = ["if", "then", "else"].into_iter().filter_map(|key| schema.get(key));
    let dependent = schema.get("dependentSchemas").and_then(Value::as_object);
    let dependent = dependent.into_iter().flat_map(|all| all.values());
    let all = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
    let branches = ["anyOf", "oneOf"].into_iter().filter_map(|key| schema.get(key)?.as_array());
    let branches = branches.flat_map(|all| all.iter().map(move |one| (one, Some(all.as_slice()))));
    reference.chain(single).chain(dependent).chain(all).map(|one| (one, None)).chain(branches)
}

fn of_property<'a>(schema: &'a Value, key: &str) -> Vec<&'a Value> {
    let mut collected: Vec<&Value> = Vec::new();
    collected.extend(schema.get("properties").and_then(|all| all.get(key)));
    if let Some(patterns) = schema.get("patternProperties").and_then(Value::as_object) {
        // A pattern that cannot be read is taken to fit.
        let fits = |pattern: &str| {
            let built = regex::RegexBuilder::new(pattern).size_limit(1 << 20).build();
            built.is_ok_and(|regex| regex.is_match(key)) || regex::Regex::new(pattern).is_err()
        };
        collected.extend(patterns.iter().filter(|(pattern, _)| fits(pattern)).map(|(_, one)| one));
    }
    if collected.is_empty() {
        collected.extend(schema.get("additionalProperties"));
    }
    collected.extend(schema.get("unevaluatedProperties"));
    collected
}

fn of_item(schema: &Value, at: usize) -> Vec<&Value> {
    let mut collected = Vec::new();
    let listed =
        schema.get("prefixItems").or_else(|| schema.get("items")).and_then(Value::as_array);
    match listed.map(|all| all.get(at)) {
        Some(Some(one)) => collected.push(one),
        Some(None) => collected.extend(schema.get("additionalItems")),
        None => {}
    }
    collected.extend(schema.get("items").filter(|items| !items.is_array()));
    collected.extend(schema.get("contains"));
    collected.extend(schema.get("unevaluatedItems"));
    collected
}

/// Whether one of the branches accepts the value as text that is not an address.
fn accepts_plain_text(branches: &[Value], value: &Value) -> bool {
    branches.iter().any(|branch| {
        let listed = branch.get("enum").and_then(Value::as_array);
        let literal =
            branch.get("const") == Some(value) || listed.is_some_and(|all| all.contains(value));
        let plain = branch.get("type").and_then(Value::as_str) == Some("string")
            && ["format", "enum", "const", "pattern"].iter().all(|key| branch.get(key).is_none());
        literal || plain
    })
}
