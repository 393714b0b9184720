//! Bounding the size and danger of a schema before it is compiled.

use serde_json::Value;

use super::unchecked::UncheckedReason;
use super::{MAX_BYTES, MAX_DEPTH, MAX_NODES};
use crate::util::schema;

/// A schema that unfolds to at most this size, references included, is checked quickly.
const CHEAP: usize = 2_000;

/// Maximum length and number of patterns that are compiled without precautions.
const CHEAP_PATTERNS: usize = 20;

/// Whether compiling a schema or checking with it may take long; why it is not used at all.
pub fn is_expensive(schema: &Value) -> Result<bool, UncheckedReason> {
    if !(schema.is_object() || schema.is_boolean()) {
        return Err(UncheckedReason::NotASchema);
    }
    let mut walk = SchemaWalk::default();
    walk.visit(schema, 0)?;
    let mut left = CHEAP;
    Ok(walk.patterns > CHEAP_PATTERNS
        || walk.dynamic
        || (walk.references && !expands_within(schema, schema, 0, &mut left))
        || walk.nodes > CHEAP)
}

#[derive(Default)]
struct SchemaWalk {
    bytes: usize,
    nodes: usize,
    patterns: usize,
    references: bool,
    dynamic: bool,
}

impl SchemaWalk {
    fn visit(&mut self, value: &Value, depth: usize) -> Result<(), UncheckedReason> {
        if depth > MAX_DEPTH {
            return Err(UncheckedReason::TooDeep);
        }
        self.bytes += 2;
        match value {
            Value::Object(map) => {
                self.nodes += 1;
                for (key, member) in map {
                    self.bytes += key.len() + 4;
                    match key.as_str() {
                        "$ref" => self.references = true,
                        "$dynamicRef" | "$recursiveRef" => self.dynamic = true,
                        "pattern" => self.patterns += 1,
                        "patternProperties" => {
                            self.patterns += member.as_object().map_or(0, serde_json::Map::len);
                        }
                        // Quadratic in the value.
                        "uniqueItems" | "contains" => self.dynamic |= *member != Value::Bool(false),
                        _ => {}
                    }
                    self.visit(member, depth + 1)?;
                }
            }
            Value::Array(items) => {
                self.nodes += 1;
                // Some dialects compare each with each.
                self.dynamic |= items.len() > CHEAP;
                for item in items {
                    self.visit(item, depth + 1)?;
                }
            }
            Value::String(text) => self.bytes += text.len(),
            Value::Number(_) => self.bytes += 8,
            Value::Bool(_) | Value::Null => self.bytes += 3,
        }
        if self.nodes > MAX_NODES {
            return Err(UncheckedReason::TooManyNodes);
        }
        if self.bytes > MAX_BYTES {
            return Err(UncheckedReason::TooLarge);
        }
        Ok(())
    }
}

/// Whether a schema with all its references replaced by what they mean stays below `left` nodes.
/// A recursive one, and one that doubles with each reference, does not.
fn expands_within(value: &Value, root: &Value, depth: usize, left: &mut usize) -> bool {
    if *left == 0 || depth > MAX_DEPTH {
        return false;
    }
    match value {
        Value::Object(map) => {
            *left -= 1;
            map.iter().all(|(key, member)| match (key.as_str(), member.as_str()) {
                ("$ref", Some(reference)) => schema::target(root, reference)
                    // A target that is not there is found out by the compiler.
                    .is_none_or(|target| expands_within(target, root, depth + 1, left)),
                // Definitions count where they are used.
                ("$defs" | "definitions", _) => true,
                _ => expands_within(member, root, depth + 1, left),
            })
        }
        Value::Array(items) => {
            *left -= 1;
            items.iter().all(|item| expands_within(item, root, depth + 1, left))
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(depth: usize) -> Value {
        (0..depth).fold(json!({}), |inner, _| json!({ "items": inner }))
    }

    #[test]
    fn limits_are_kept() {
        assert!(is_expensive(&nested(MAX_DEPTH)).is_ok());
        assert!(is_expensive(&nested(MAX_DEPTH + 1)).is_err());
        let wide: Vec<Value> = (0..MAX_NODES).map(|_| json!({})).collect();
        assert!(is_expensive(&json!({ "anyOf": wide })).is_err());
        assert!(is_expensive(&json!({ "description": "x".repeat(MAX_BYTES) })).is_err());
        assert!(is_expensive(&json!(3)).is_err());
    }

    #[test]
    fn ordinary_schemas_are_not_suspicious() {
        let schema = json!({
            "type": "object",
            "properties": {
                "who": {"$ref": "#/$defs/Person"},
                "note": {"anyOf": [{"type": "string", "pattern": "^a"}, {"type": "null"}]}
            },
            "$defs": {"Person": {"type": "object", "properties": {"name": {"type": "string"}}}}
        });
        assert!(!is_expensive(&schema).unwrap());
    }

    #[test]
    fn recursion_and_doubling_are_suspicious() {
        let tree = json!({"$ref": "#/$defs/T", "$defs": {"T": {"items": {"$ref": "#/$defs/T"}}}});
        assert!(is_expensive(&tree).unwrap());
        let mut definitions = serde_json::Map::new();
        for i in 0..30 {
            let next = json!({"$ref": format!("#/$defs/d{}", i + 1)});
            definitions.insert(format!("d{i}"), json!({ "anyOf": [next, next] }));
        }
        definitions.insert("d30".into(), json!({}));
        let bomb = json!({"$ref": "#/$defs/d0", "$defs": definitions});
        assert!(is_expensive(&bomb).unwrap());
    }
}
