//! JSON Schemas: the one walk over them, and what their references lead to. Nothing is ever fetched.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};
use url::Url;

use super::percent;

/// Keywords whose value holds schemas under names.
const NAMED: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// Keywords whose value is data, whatever it looks like.
pub const DATA: [&str; 5] = ["enum", "const", "default", "example", "examples"];

/// The address of a schema that has none.
const NO_ADDRESS: &str = "json-schema:///";

/// A schema with more parts that have addresses of their own is left as it is.
const MAX_ADDRESSES: usize = 500;

/// Hands each schema in `schema`, the whole one first, to `look`, with its place as a JSON Pointer.
pub fn for_each(
    schema: &mut Value,
    place: &mut String,
    look: &mut dyn FnMut(&str, &mut Map<String, Value>),
) {
    let length = place.len();
    match schema {
        Value::Array(all) => {
            for (at, one) in all.iter_mut().enumerate() {
                push(place, &at.to_string());
                for_each(one, place, look);
                place.truncate(length);
            }
        }
        Value::Object(keywords) => {
            look(place, keywords);
            for (keyword, value) in keywords {
                push(place, keyword);
                match value {
                    Value::Object(named) if NAMED.contains(&keyword.as_str()) => {
                        let length = place.len();
                        for (name, one) in named {
                            push(place, name);
                            for_each(one, place, look);
                            place.truncate(length);
                        }
                    }
                    _ if DATA.contains(&keyword.as_str()) => {}
                    value => for_each(value, place, look),
                }
                place.truncate(length);
            }
        }
        _ => {}
    }
}

fn push(place: &mut String, segment: &str) {
    place.push('/');
    place.push_str(&segment.replace('~', "~0").replace('/', "~1"));
}

/// The place in `root` that a reference leads to, as a JSON Pointer.
pub fn place<'r>(root: &Value, reference: &'r str) -> Option<Cow<'r, str>> {
    let written = reference.strip_prefix('#')?;
    if root.pointer(written).is_some() {
        return Some(written.into());
    }
    Some(percent::decode(written)).filter(|place| root.pointer(place).is_some()).map(Cow::Owned)
}

/// What a reference leads to in `root`.
pub fn target<'v>(root: &'v Value, reference: &str) -> Option<&'v Value> {
    root.pointer(&place(root, reference)?)
}

/// What the `$ref` of a schema leads to in `root`.
pub fn referenced<'v>(root: &'v Value, schema: &Value) -> Option<&'v Value> {
    target(root, schema.get("$ref")?.as_str()?)
}

/// The types that a schema names, or that its keywords imply.
pub fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ if schema.get("properties").is_some() => vec!["object"],
        _ if schema.get("items").is_some() => vec!["array"],
        _ => Vec::new(),
    }
}

/// Makes every reference to a part of the schema a JSON Pointer from its top, so that nobody has to
/// know about `$id` and `$anchor` to follow one.
pub fn localize(schema: &mut Value) {
    if !has_addresses(schema, true) {
        return;
    }
    let Ok(no_address) = Url::parse(NO_ADDRESS) else { return };
    // The parts with an address of their own, and everything that has a name.
    let mut resources = vec![(String::new(), no_address.clone())];
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let mut is_dynamic = false;
    for_each(schema, &mut String::new(), &mut |place, keywords| {
        let text = |key: &str| keywords.get(key).and_then(Value::as_str);
        is_dynamic |= ["$dynamicRef", "$recursiveRef"].iter().any(|key| text(key).is_some());
        if let Some(id) = text("$id")
            && resources.len() < MAX_ADDRESSES
            && let Ok(address) = base(&resources, place).1.join(id)
        {
            names.entry(name(&address)).or_insert_with(|| place.to_owned());
            // In older dialects it may be an anchor.
            if !id.starts_with('#') {
                resources.push((place.to_owned(), address));
            }
        }
        if let Some(anchor) = text("$anchor")
            && let Ok(address) = base(&resources, place).1.join(&format!("#{anchor}"))
        {
            names.entry(name(&address)).or_insert_with(|| place.to_owned());
        }
    });
    if is_dynamic || resources.len() == MAX_ADDRESSES {
        return;
    }
    names.entry(NO_ADDRESS.to_owned()).or_default();
    for_each(schema, &mut String::new(), &mut |place, keywords| {
        if let Some(Value::String(reference)) = keywords.get_mut("$ref")
            && let (holder, base) = base(&resources, place)
            && let Ok(address) = base.join(reference)
        {
            if let Some(place) = place_of(&names, &address) {
                *reference = format!("#{}", percent::encode(&place, "/$-._~!&'()*+,;=:@"));
            } else if !holder.is_empty() && base.scheme() != no_address.scheme() {
                *reference = address.into();
            }
        }
        if !place.is_empty() {
            keywords.shift_remove("$id");
            keywords.shift_remove("$anchor");
        }
    });
}

/// Whether a part has an address, or is referred to by one.
fn has_addresses(schema: &Value, is_top: bool) -> bool {
    match schema {
        Value::Array(all) => all.iter().any(|one| has_addresses(one, false)),
        Value::Object(keywords) => {
            keywords.iter().any(|(key, value)| match (key.as_str(), value) {
                ("$ref", Value::String(to)) => !to.starts_with("#/") && to != "#",
                ("$id", Value::String(_)) => !is_top,
                (_, value) => has_addresses(value, false),
            })
        }
        _ => false,
    }
}

/// The address that references at a place are relative to.
fn base<'r>(resources: &'r [(String, Url)], place: &str) -> &'r (String, Url) {
    let holds = |resource: &&(String, Url)| {
        place.strip_prefix(resource.0.as_str()).is_some_and(|r| r.is_empty() || r.starts_with('/'))
    };
    // An inner one comes after those that hold it; the first holds all.
    resources.iter().rev().find(holds).unwrap_or(&resources[0])
}

fn name(address: &Url) -> String {
    address.as_str().trim_end_matches('#').to_owned()
}

fn place_of(names: &BTreeMap<String, String>, address: &Url) -> Option<String> {
    if let Some(place) = names.get(&name(address)) {
        return Some(place.clone());
    }
    let (whole, fragment) = address.as_str().split_once('#')?;
    let inner = percent::decode(fragment);
    inner.starts_with('/').then(|| names.get(whole).map(|place| format!("{place}{inner}")))?
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_by_address_become_pointers_into_the_schema() {
        let mut schema = json!({
            "$id": "https://e.com/schemas/shape",
            "properties": {
                "a": { "$ref": "address" },
                "p": { "$ref": "/schemas/point" },
                "n": { "$ref": "#/$defs/num" },
                "b": { "$ref": "#flag" },
                "f": { "$ref": "other.json" },
                "$id": { "type": "string" },
                "whole": { "$ref": "https://e.com/schemas/shape#" },
                "odd": { "$ref": "https://e.com/schemas/shape#/$defs/a%20b%7B" }
            },
            "default": { "$id": "x", "$ref": "address" },
            "$defs": {
                "address": { "$id": "address", "properties": { "s": { "$ref": "#/$defs/t" } },
                             "$defs": { "t": { "type": "string" } } },
                "point": { "$id": "/schemas/point", "items": { "$ref": "shape" },
                           "not": { "$ref": "/other.json" } },
                "num": { "type": "integer" },
                "flag": { "$anchor": "flag", "type": "boolean" },
                "a b{": {}
            }
        });
        let before = schema.clone();
        localize(&mut schema);
        let refs = |at: &str| schema.pointer(at).and_then(|one| one["$ref"].as_str()).unwrap();
        for (at, to) in [
            ("/properties/a", "#/$defs/address"),
            ("/properties/p", "#/$defs/point"),
            ("/properties/n", "#/$defs/num"),
            ("/properties/b", "#/$defs/flag"),
            ("/properties/f", "other.json"),
            ("/$defs/point/not", "https://e.com/other.json"),
            ("/properties/whole", "#"),
            ("/properties/odd", "#/$defs/a%20b%7B"),
            ("/$defs/address/properties/s", "#/$defs/address/$defs/t"),
            ("/$defs/point/items", "#"),
        ] {
            assert_eq!(refs(at), to, "{at}");
            let is_inside = to.starts_with('#');
            assert_eq!(target(&schema, to).is_some(), is_inside, "{at}");
        }
        assert_eq!(schema["default"], before["default"]);
        assert_eq!(schema["properties"]["$id"], before["properties"]["$id"]);
    }

    #[test]
    fn what_needs_no_address_stays_as_it_is() {
        for schema in [
            json!({ "$id": "https://e.com/a", "items": { "$ref": "#/$defs/a" }, "$defs": { "a": {} } }),
            json!({ "items": { "$ref": "other.json#/x" } }),
            json!({ "items": { "$id": "x", "$dynamicRef": "#a" } }),
            json!(true),
        ] {
            let mut localized = schema.clone();
            localize(&mut localized);
            assert_eq!(localized, schema);
        }
    }
}
