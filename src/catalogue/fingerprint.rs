//! Fingerprints: the content hash of a definition, which pins compare.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Map, Number, Value};
use sha2::{Digest as _, Sha256};

use crate::model::{ToolDefinition, ToolSchema};
use crate::util::hex::hex;

/// `sha256:` and 64 hexadecimal digits over the canonical JSON of name, title, description,
/// input schema, output schema and annotations.
///
/// The name is the tool's own, without its component: renaming a server changes nothing about
/// its tools. For a tool of a server the annotations are hashed as they were sent, unknown hints
/// included.
pub fn fingerprint(tool: &ToolDefinition) -> String {
    hash(&content(tool))
}

/// The parts that are hashed, by their names in MCP; a part that is not there has no key.
pub fn content(tool: &ToolDefinition) -> Value {
    let mut content = Map::new();
    content.insert("name".into(), tool.name.tool().into());
    let mut add = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            content.insert(key.to_owned(), value);
        }
    };
    add("title", tool.title.clone().map(Value::String));
    add("description", tool.description.clone().map(Value::String));
    let read = |schema: &ToolSchema| Arc::unwrap_or_clone(schema.read());
    add("inputSchema", Some(read(&tool.input_schema)));
    add("outputSchema", tool.output_schema.as_ref().map(read));
    add("annotations", annotations(tool));
    Value::Object(content)
}

/// `sha256:` and 64 hexadecimal digits over the canonical JSON of `value`.
pub fn hash(value: &Value) -> String {
    format!("sha256:{}", hex(&Sha256::digest(canonical(value).as_bytes())))
}

fn annotations(tool: &ToolDefinition) -> Option<Value> {
    if let Some(raw) = tool.raw_value() {
        return raw.get("annotations").cloned();
    }
    let hints = &tool.annotations;
    let mut out = Map::new();
    if let Some(title) = &hints.title {
        out.insert("title".into(), title.clone().into());
    }
    for (key, hint) in [
        ("readOnlyHint", hints.read_only),
        ("destructiveHint", hints.destructive),
        ("idempotentHint", hints.idempotent),
        ("openWorldHint", hints.open_world),
    ] {
        if let Some(hint) = hint {
            out.insert(key.into(), hint.into());
        }
    }
    (!out.is_empty()).then_some(Value::Object(out))
}

/// JSON in the style of RFC 8785: keys sorted by their UTF-16 code units, no white space, numbers
/// in their shortest form.
///
/// It departs from the RFC in one point: an integer beyond 2⁵³ keeps all its digits, since two
/// schemas that differ only there are different.
pub fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort_unstable_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
            out.push('{');
            for (i, key) in keys.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                quote(key, out);
                out.push(':');
                if let Some(member) = map.get(key) {
                    write(member, out);
                }
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Number(n) => number(n, out),
        Value::String(text) => quote(text, out),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Null => out.push_str("null"),
    }
}

fn quote(text: &str, out: &mut String) {
    // serde_json escapes exactly what RFC 8785 asks for; a string cannot fail to be written.
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}

fn number(n: &Number, out: &mut String) {
    let text = n.to_string();
    let digits = text.strip_prefix('-').unwrap_or(&text);
    if digits.bytes().all(|b| b.is_ascii_digit()) {
        out.push_str(if digits == "0" { "0" } else { &text });
        return;
    }
    match n.as_f64() {
        Some(0.0) => out.push('0'),
        Some(v) if v.is_finite() && (1e-6..1e21).contains(&v.abs()) => {
            let _ignored = write!(out, "{v}");
        }
        Some(v) if v.is_finite() => {
            let text = format!("{v:e}");
            match text.split_once('e') {
                Some((mantissa, exponent)) if !exponent.starts_with('-') => {
                    let _ignored = write!(out, "{mantissa}e+{exponent}");
                }
                _ => out.push_str(&text),
            }
        }
        _ => out.push_str(&text),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::model::{Origin, ToolName, ToolSource};

    fn tool() -> ToolDefinition {
        let mut tool = ToolDefinition::new(
            ToolName::of("server", "echo"),
            ToolSource::Mcp,
            "mcp",
            Origin::Server("server".into()),
        );
        tool.description = Some("Says it again".into());
        tool
    }

    #[test]
    fn canonical_json_is_that_of_the_rfc() {
        let value: Value = serde_json::from_str(
            r#"{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001,-0,1.0],
                "string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}"#,
        )
        .unwrap();
        assert_eq!(
            canonical(&value),
            r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27,0,1],"string":"€$\u000f\nA'B\"\\\\\"/"}"#
        );
    }

    #[test]
    fn keys_are_sorted_by_utf_16() {
        // U+1F600 is a surrogate pair (D83D …) and so comes before U+FB33, unlike in UTF-8.
        assert_eq!(canonical(&json!({"\u{fb33}": 1, "\u{1f600}": 2})), "{\"😀\":2,\"\u{fb33}\":1}");
    }

    #[test]
    fn large_integers_keep_their_digits() {
        let one: Value = serde_json::from_str("9007199254740993").unwrap();
        assert_eq!(canonical(&one), "9007199254740993");
    }

    #[test]
    fn every_part_that_is_told_to_a_model_counts() {
        let plain = fingerprint(&tool());
        assert!(plain.starts_with("sha256:") && plain.len() == 7 + 64);
        let changes: [fn(&mut ToolDefinition); 5] = [
            |t| t.title = Some("Echo".into()),
            |t| t.description = Some("Says it again.".into()),
            |t| t.input_schema = json!({"type": "object", "x": 1}).into(),
            |t| t.output_schema = Some(json!({}).into()),
            |t| t.annotations.read_only = Some(true),
        ];
        for change in changes {
            let mut changed = tool();
            change(&mut changed);
            assert_ne!(fingerprint(&changed), plain);
        }
        let mut renamed = tool();
        renamed.name = ToolName::of("other", "echo");
        assert_eq!(fingerprint(&renamed), plain);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::vec((any::<String>(), inner), 0..5)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    fn reversed(value: &Value) -> Value {
        match value {
            Value::Object(map) => {
                Value::Object(map.iter().rev().map(|(k, v)| (k.clone(), reversed(v))).collect())
            }
            Value::Array(items) => Value::Array(items.iter().map(reversed).collect()),
            other => other.clone(),
        }
    }

    proptest! {
        #[test]
        fn the_order_of_keys_does_not_count(value in any_json()) {
            prop_assert_eq!(hash(&reversed(&value)), hash(&value));
        }

        #[test]
        fn canonical_json_means_the_same(value in any_json()) {
            let back: Value = serde_json::from_str(&canonical(&value)).unwrap();
            prop_assert_eq!(canonical(&back), canonical(&value));
        }
    }
}
