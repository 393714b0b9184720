//! YAML output: block style, sanitised, quoting everything that could be read as something
//! else.

use std::fmt::Write as _;

use serde_json::Value;

use crate::util::json;
use crate::util::text;

pub fn document(value: &Value) -> String {
    let mut out = String::new();
    node(&mut out, value, 0);
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

/// Writes a value after `key:`, `-` or at the start of the document; `depth` is its nesting.
fn node(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (index, (key, value)) in map.iter().enumerate() {
                if index > 0 || !at_item_start(out) {
                    indent(out, depth);
                }
                out.push_str(&one_line(key));
                out.push(':');
                child(out, value, depth);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                if index > 0 || !at_item_start(out) {
                    indent(out, depth);
                }
                out.push('-');
                if item.as_array().is_some_and(|a| !a.is_empty())
                    || item.as_object().is_some_and(|o| !o.is_empty())
                {
                    out.push(' ');
                    node(out, item, depth + 1);
                } else {
                    child(out, item, depth);
                }
            }
        }
        leaf => {
            out.push_str(&leaf_text(leaf));
            out.push('\n');
        }
    }
}

/// Writes the value of a key: leaves on the same line, collections below it.
fn child(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            node(out, value, depth + 1);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            node(out, value, depth + 1);
        }
        Value::String(text) => {
            out.push(' ');
            let Some((head, lines)) = literal(text) else {
                out.push_str(&one_line(text));
                out.push('\n');
                return;
            };
            out.push_str(head);
            out.push('\n');
            for line in lines {
                if !line.is_empty() {
                    indent(out, depth + 1);
                    out.push_str(&line);
                }
                out.push('\n');
            }
        }
        leaf => {
            out.push(' ');
            out.push_str(&leaf_text(leaf));
            out.push('\n');
        }
    }
}

/// Whether the cursor is right after `- `, where the first entry needs no indentation.
fn at_item_start(out: &str) -> bool {
    out.ends_with("- ")
}

fn indent(out: &mut String, depth: usize) {
    for _ in 0..depth {
        out.push_str("  ");
    }
}

fn leaf_text(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => one_line(text),
        Value::Array(_) => "[]".to_owned(),
        Value::Object(_) => "{}".to_owned(),
    }
}

/// Multi-line text as a literal block, if it can be written that way.
fn literal(value: &str) -> Option<(&'static str, Vec<String>)> {
    let body = value.strip_suffix('\n');
    let head = if body.is_some() { "|" } else { "|-" };
    let body = body.unwrap_or(value);
    let plain = body.contains('\n')
        && !body.starts_with([' ', '\n', '\t'])
        && !body.ends_with('\n')
        && !body.lines().any(|line| line.trim().is_empty() && !line.is_empty())
        && !body.contains('\t');
    plain.then(|| (head, text::safe(body).split('\n').map(str::to_owned).collect()))
}

/// One line of text: plain if it can only be read as that text, otherwise in double quotes.
fn one_line(value: &str) -> String {
    let safe = text::safe(value);
    if is_bare(&safe) {
        return safe.into_owned();
    }
    // A JSON string is a YAML double-quoted scalar.
    let mut out = String::new();
    let _infallible = write!(out, "{}", json::compact(&Value::String(safe.into_owned())));
    out
}

fn is_bare(text: &str) -> bool {
    let mut chars = text.chars();
    let starts_like_a_word = chars.next().is_some_and(|c| c.is_alphabetic() || c == '/');
    let stays_like_one = text.chars().all(|c| {
        c.is_alphanumeric()
            || matches!(c, ' ' | '_' | '-' | '.' | '/' | '(' | ')' | '+' | '=' | ';')
    });
    let reserved = ["null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf"];
    starts_like_a_word
        && stays_like_one
        && !text.ends_with(' ')
        && !reserved.contains(&text.to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn nested_values_are_written_as_blocks() {
        let value = json!({
            "name": "calculator",
            "yes": "no",
            "version": "1.2",
            "schema": { "type": "object", "required": ["a", "b"], "empty": {} },
            "items": [{ "a": 1, "b": null }, [1, [2]], []],
            "text": "two\nlines",
            "escape": "\u{1b}[2J",
        });
        assert_snapshot!(document(&value), @r#"
        name: calculator
        "yes": "no"
        version: "1.2"
        schema:
          type: object
          required:
            - a
            - b
          empty: {}
        items:
          - a: 1
            b: null
          - - 1
            - - 2
          - []
        text: |-
          two
          lines
        escape: "␛[2J"
        "#);
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[ -~\n]{0,20}".prop_map(Value::from),
            "[a-z]{1,5}(\n[a-z ]{0,5}){0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::vec(("[ -~]{1,8}", inner), 0..4)
                    .prop_map(|entries| Value::Object(entries.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(value in any_value()) {
            let written = document(&value);
            let read: serde_json::Value = read(&written);
            prop_assert_eq!(read, value, "{}", written);
        }

        #[test]
        fn nothing_dangerous_is_written(text in any::<String>()) {
            let written = document(&json!({ text.clone(): text }));
            prop_assert!(written.chars().all(|c| c == '\n' || !(c.is_control() || text::is_invisible(c))));
        }
    }

    fn read(text: &str) -> Value {
        serde_yaml::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
    }
}
