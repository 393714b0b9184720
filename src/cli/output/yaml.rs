//! YAML output: block style, sanitised.

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::util::text;

pub fn document(value: &Value) -> String {
    let options =
        serde_yaml::ser_options! { compact_list_indent: false, folded_wrap_chars: usize::MAX };
    // Every value of JSON is one of YAML.
    serde_yaml::to_string_with_options(&SafeValue(value), options).unwrap_or_default()
}

/// A value whose texts can be shown in a terminal.
struct SafeValue<'a>(&'a Value);

impl Serialize for SafeValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Number(number) => match (number.as_i128(), number.as_f64()) {
                (Some(integer), _) => serializer.serialize_i128(integer),
                (None, Some(float)) => serializer.serialize_f64(float),
                (None, None) => serializer.serialize_str(number.as_str()),
            },
            Value::String(text) => serializer.serialize_str(&text::safe(text)),
            Value::Array(items) => serializer.collect_seq(items.iter().map(SafeValue)),
            Value::Object(members) => serializer.collect_map(
                members.iter().map(|(name, member)| (text::safe(name), SafeValue(member))),
            ),
        }
    }
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
        escape: ␛[2J
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
