//! JSON Schemas as a dialect takes them.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::names::NameRule;
use super::schema_top::object_at_top;
use crate::util::schema;

const SCHEMA_MAPS: [&str; 4] = ["properties", "patternProperties", "$defs", "dependentSchemas"];
const SCHEMA_LISTS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
const SCHEMAS: [&str; 11] = [
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
];

/// Which schemas a dialect takes, beside that a plain object stands at the top.
#[derive(Debug, Clone, Copy)]
pub(super) struct SchemaSubset {
    /// The only keywords it takes, and none beside a `$ref`; all of draft 2020-12 when `None`.
    pub(super) keywords: Option<&'static [&'static str]>,
    /// What it allows in names of properties; anything when `None`.
    pub(super) property_names: Option<NameRule>,
}

#[derive(Debug)]
pub(super) struct AdaptedSchema {
    pub(super) schema: Value,
    pub(super) own_names: HashMap<String, String>,
    pub(super) downgrades: Vec<String>,
}

impl SchemaSubset {
    /// Writes a schema for the dialect. Forms of older drafts become those of 2020-12, which the
    /// providers check against; one schema that they refuse would fail the whole request.
    pub(super) fn apply(self, schema: &Value) -> AdaptedSchema {
        let mut adapter =
            Adapter { subset: self, own_names: HashMap::new(), downgrades: Vec::new() };
        let top = object_at_top(schema, &mut adapter.downgrades);
        let mut adapted = Value::Object(adapter.schema(&top, ""));
        adapter.remove_dangling_references(&mut adapted);
        if !jsonschema::draft202012::meta::is_valid(&adapted) {
            adapter.downgrades = vec!["its schema is invalid and is left out".to_owned()];
            adapter.own_names.clear();
            adapted = json!({ "type": "object", "properties": {} });
        }
        let Adapter { own_names, downgrades, .. } = adapter;
        AdaptedSchema { schema: adapted, own_names, downgrades }
    }
}

struct Adapter {
    subset: SchemaSubset,
    own_names: HashMap<String, String>,
    downgrades: Vec<String>,
}

impl Adapter {
    fn takes(&self, keyword: &str) -> bool {
        self.subset.keywords.is_none_or(|keywords| keywords.contains(&keyword))
    }

    fn schema(&mut self, schema: &Map<String, Value>, place: &str) -> Map<String, Value> {
        let mut adapted = Map::new();
        let schema = self.in_known_forms(schema);
        let is_bare = self.subset.keywords.is_some() && schema.contains_key("$ref");
        for (keyword, value) in schema {
            let at = format!("{place}/{keyword}");
            if !self.takes(&keyword) || (is_bare && !keyword.starts_with('$')) {
                self.downgrades.push(format!("'{at}' is left out"));
                continue;
            }
            let value = self.keyword(&keyword, value, &at);
            adapted.insert(keyword, value);
        }
        if may_be_array(&adapted) && !adapted.contains_key("items") && self.takes("items") {
            // Says nothing, and without it OpenAI refuses the tool.
            adapted.insert("items".to_owned(), json!({}));
        }
        adapted
    }

    fn keyword(&mut self, keyword: &str, value: Value, at: &str) -> Value {
        match value {
            value if schema::DATA.contains(&keyword) => value,
            Value::Object(named) if SCHEMA_MAPS.contains(&keyword) => {
                let each = named.iter().map(|(name, inner)| {
                    let inner = self.schema(&as_object(inner), &format!("{at}/{name}"));
                    let name = if keyword == "properties" {
                        self.property_name(name)
                    } else {
                        name.clone()
                    };
                    (name, Value::Object(inner))
                });
                Value::Object(each.collect())
            }
            Value::Array(schemas) if SCHEMA_LISTS.contains(&keyword) => {
                let each = schemas.iter().enumerate();
                let each = each.map(|(n, inner)| {
                    Value::Object(self.schema(&as_object(inner), &format!("{at}/{n}")))
                });
                Value::Array(each.collect())
            }
            Value::Object(inner) if SCHEMAS.contains(&keyword) => {
                Value::Object(self.schema(&inner, at))
            }
            Value::Array(names) if keyword == "required" => {
                let each = names.into_iter().map(|name| match name {
                    Value::String(name) => Value::String(self.property_name(&name)),
                    other => other,
                });
                Value::Array(each.collect())
            }
            other => other,
        }
    }

    fn property_name(&mut self, name: &str) -> String {
        let Some(rule) = self.subset.property_names else { return name.to_owned() };
        let allowed = rule.apply(name);
        if allowed != name && self.own_names.insert(allowed.clone(), name.to_owned()).is_none() {
            self.downgrades.push(format!("the property '{name}' is named '{allowed}' there"));
        }
        allowed
    }

    /// One level of a schema, in the forms of draft 2020-12 and of the keywords that are taken.
    fn in_known_forms(&self, schema: &Map<String, Value>) -> Map<String, Value> {
        let mut schema = schema.clone();
        // Which draft it was is over now.
        schema.remove("$schema");
        if let Some(Value::Array(_)) = schema.get("items") {
            let rest = schema.remove("additionalItems");
            if let Some(tuple) = schema.remove("items") {
                schema.insert("prefixItems".to_owned(), tuple);
            }
            schema.extend(rest.map(|rest| ("items".to_owned(), rest)));
        }
        for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")]
        {
            if let Some(Value::Bool(is_exclusive)) = schema.get(exclusive) {
                let limit = if *is_exclusive { schema.remove(bound) } else { None };
                schema.remove(exclusive);
                schema.extend(limit.map(|limit| (exclusive.to_owned(), limit)));
            }
        }
        if !self.takes("const")
            && let Some(only) = schema.remove("const")
        {
            schema.insert("enum".to_owned(), json!([only]));
        }
        if !self.takes("allOf")
            && let Some(Value::Array(parts)) = schema.get("allOf")
            && let [Value::Object(part)] = parts.as_slice()
        {
            let part = part.clone();
            schema.remove("allOf");
            for (keyword, value) in part {
                schema.entry(keyword).or_insert(value);
            }
        }
        if let Some(Value::String(reference)) = schema.get_mut("$ref")
            && let Some(name) = reference.strip_prefix("#/definitions/")
        {
            *reference = format!("#/$defs/{name}");
        }
        schema
    }

    /// Takes out references that lead nowhere: to other documents, which no provider reads, and to
    /// what was left out.
    fn remove_dangling_references(&mut self, schema: &mut Value) {
        let root = schema.clone();
        schema::for_each(schema, &mut String::new(), &mut |place, keywords| {
            if let Some(Value::String(to)) = keywords.get("$ref")
                && !leads_somewhere(to, &root)
            {
                self.downgrades.push(format!("the reference '{place}/$ref' is left out"));
                keywords.remove("$ref");
            }
        });
    }
}

/// A schema in its long form: `true` and `false` are schemas too, but not to every reader.
fn as_object(schema: &Value) -> Map<String, Value> {
    match schema {
        Value::Object(schema) => schema.clone(),
        Value::Bool(false) => Map::from_iter([("not".to_owned(), json!({}))]),
        _ => Map::new(),
    }
}

fn may_be_array(schema: &Map<String, Value>) -> bool {
    match schema.get("type") {
        Some(Value::String(only)) => only == "array",
        Some(Value::Array(types)) => types.iter().any(|one| one == "array"),
        _ => false,
    }
}

fn leads_somewhere(reference: &str, root: &Value) -> bool {
    match reference.strip_prefix('#') {
        Some(pointer) if pointer.starts_with('/') => schema::target(root, reference).is_some(),
        // The whole schema, or an anchor in it.
        Some(_) => true,
        None => false,
    }
}
