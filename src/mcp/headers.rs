//! `x-mcp-header`: arguments that are also sent as HTTP headers (revision 2026-07-28).

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::model::Error;

const KEY: &str = "x-mcp-header";

/// Refuses annotations that no header can follow.
pub fn check(schema: &Value) -> Result<(), Error> {
    let mut names = HashSet::new();
    for (property, schema) in properties(schema) {
        let Some(value) = schema.get(KEY) else { continue };
        let refused = |what: &str| Err(Error::protocol(format!("{KEY} of \"{property}\" {what}")));
        let Some(name) = value.as_str() else { return refused("is not text") };
        if name.is_empty() || !name.bytes().all(is_token) {
            return refused(&format!("is not a header name: {name:?}"));
        }
        let kind = schema.get("type").and_then(Value::as_str);
        if !matches!(kind, Some("string" | "integer" | "boolean")) {
            return refused("is on a type that cannot be a header");
        }
        // Upper and lower case are the same.
        if !names.insert(name.to_ascii_lowercase()) {
            return Err(Error::protocol(format!("{KEY} {name:?} is used twice")));
        }
    }
    Ok(())
}

/// Whether calls with this schema have headers at all.
pub fn are_wanted(schema: &Value) -> bool {
    check(schema).is_ok() && properties(schema).any(|(_, schema)| schema.get(KEY).is_some())
}

/// The headers of a call with these arguments; absent and null arguments have none.
pub fn for_call(schema: &Value, arguments: &Map<String, Value>) -> Vec<(String, String)> {
    properties(schema)
        .filter_map(|(property, schema)| {
            let name = schema.get(KEY)?.as_str()?;
            let value = match arguments.get(property)? {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                Value::Bool(flag) => flag.to_string(),
                _ => return None,
            };
            Some((format!("Mcp-Param-{name}"), value))
        })
        .collect()
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// Characters of an HTTP field name (RFC 9110, token).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(property: &Value) -> Value {
        json!({ "properties": { "region": property } })
    }

    #[test]
    fn invalid_annotations_are_refused() {
        for property in [
            json!({ "type": "string", "x-mcp-header": "Bad Name" }),
            json!({ "type": "string", "x-mcp-header": "X\r\nEvil: 1" }),
            json!({ "type": "number", "x-mcp-header": "Ratio" }),
            json!({ "type": "string", "x-mcp-header": 3 }),
        ] {
            assert!(check(&schema(&property)).is_err(), "{property}");
        }
        let twice = json!({ "properties": {
            "a": { "type": "string", "x-mcp-header": "R" }, "b": { "type": "string", "x-mcp-header": "r" } } });
        assert!(check(&twice).is_err());
    }

    #[test]
    fn a_call_carries_its_arguments_as_headers() {
        let schema = schema(&json!({ "type": "string", "x-mcp-header": "Region" }));
        assert!(check(&schema).is_ok());
        let arguments = json!({ "region": "eu", "other": 1 });
        let headers = for_call(&schema, arguments.as_object().unwrap());
        assert_eq!(headers, [("Mcp-Param-Region".to_owned(), "eu".to_owned())]);
    }
}
