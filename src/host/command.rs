//! Writing an operation as the equivalent toolhost command line.

use serde_json::Value;

use crate::model::JsonObject;
use crate::util::json;
use crate::util::text::{is_invisible, shell_quote};

pub fn call(tool: &str, arguments: &JsonObject) -> String {
    call_of_words(tool, arguments, word)
}

/// The same, where `word` writes each argument.
pub(super) fn call_of_words(
    tool: &str,
    arguments: &JsonObject,
    word: impl Fn(&str, &Value) -> String,
) -> String {
    let mut line = format!("toolhost call {}", operand(tool));
    for word in words(arguments, word) {
        line.push(' ');
        line.push_str(&shell_quote(&word));
    }
    line
}

/// The arguments as words of a command line, before a shell's quoting: `key=value` and `key:=json`,
/// or one JSON object where a key cannot be written so.
pub fn argument_words(arguments: &JsonObject) -> Vec<String> {
    words(arguments, word)
}

fn words(arguments: &JsonObject, word: impl Fn(&str, &Value) -> String) -> Vec<String> {
    if !arguments.keys().all(|key| is_plain_key(key)) {
        return vec![json::compact(arguments)];
    }
    arguments.iter().map(|(key, value)| word(key, value)).collect()
}

/// The command that makes a call of the past again; what was secret is asked for.
pub fn rerun(id: &str) -> String {
    format!("toolhost history rerun {}", operand(id))
}

pub fn read(server: &str, uri: &str) -> String {
    format!("toolhost resources read --server {} {}", shell_quote(server), operand(uri))
}

/// The command that fills in a prompt; its arguments are texts.
pub fn prompt(name: &str, arguments: &JsonObject) -> String {
    let mut line = format!("toolhost prompts get {}", operand(name));
    for (key, value) in arguments {
        line.push(' ');
        let text = value.as_str().map_or_else(|| json::compact(value), str::to_owned);
        let at = if text.starts_with('@') { "@" } else { "" };
        line.push_str(&shell_quote(&format!("{key}={at}{text}")));
    }
    line
}

/// An argument as a word. Only as JSON does a value keep its type.
fn word(key: &str, value: &Value) -> String {
    match value {
        Value::String(text) if is_plain_text(text) => {
            let at = if text.starts_with('@') { "@" } else { "" };
            format!("{key}={at}{text}")
        }
        other => format!("{key}:={}", json::compact(other)),
    }
}

/// Whether a text stays that text for every schema: no schema makes a number of `milk`.
fn is_plain_text(text: &str) -> bool {
    !has_hidden(text) && serde_json::from_str::<Value>(text).is_err()
}

/// Whether a key can stand before `=` without being read as something else.
fn is_plain_key(key: &str) -> bool {
    !key.is_empty()
        && !key.starts_with(['-', '@'])
        && !key.trim_start().starts_with('{')
        && !key.ends_with(':')
        && !key.contains('=')
        && !has_hidden(key)
}

/// Whether a text has a character that only survives being printed and copied as JSON.
pub(super) fn has_hidden(text: &str) -> bool {
    text.contains(|c: char| c.is_control() || is_invisible(c))
}

/// A name that is never parsed as an option, even if it starts with `-`.
fn operand(name: &str) -> String {
    if name.starts_with('-') { format!("-- {}", shell_quote(name)) } else { shell_quote(name) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::cli::raw_arguments::{RawArguments, read as read_words};
    use crate::host::arguments::coerce;
    use crate::host::request::CallArguments;

    fn object(value: &Value) -> JsonObject {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn arguments_are_words_where_that_says_the_same() {
        let arguments = json!({
            "text": "it's milk", "n": 3, "digits": "3", "at": "@home", "on": true, "none": null,
            "lines": "a\nb", "list": [1, "x"],
        });
        assert_eq!(
            call("notes-add", &object(&arguments)),
            r#"toolhost call notes-add 'text=it'\''s milk' n:=3 'digits:="3"' at=@@home on:=true none:=null 'lines:="a\nb"' 'list:=[1,"x"]'"#
        );
        assert_eq!(call("clock", &JsonObject::new()), "toolhost call clock");
        assert_eq!(call("x", &object(&json!({ "a=b": 1 }))), r#"toolhost call x '{"a=b":1}'"#);
    }

    #[test]
    fn resources_prompts_and_replays_have_their_commands() {
        assert_eq!(
            read("files", "file:///a b;rm -rf $HOME"),
            "toolhost resources read --server files 'file:///a b;rm -rf $HOME'"
        );
        let arguments = object(&json!({ "name": "O'Brien", "mail": "@x" }));
        assert_eq!(
            prompt("demo-greet", &arguments),
            r"toolhost prompts get demo-greet 'name=O'\''Brien' mail=@@x"
        );
        assert_eq!(rerun("-1"), "toolhost history rerun -- -1");
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[ -~é\u{202e}\n]{0,12}".prop_map(Value::from),
            "-?[0-9]{1,3}|true|null|\\{\\}|@x".prop_map(Value::from),
        ];
        leaf.prop_recursive(2, 8, 3, |inner| {
            prop::collection::vec(inner, 0..3).prop_map(Value::from)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_shell_and_the_program_read_the_same_arguments_back(
            arguments in prop::collection::btree_map("[ -~]{1,6}", any_json(), 0..4)
        ) {
            let arguments: JsonObject = arguments.into_iter().collect();
            let line = call("t", &arguments);
            prop_assert!(!line.chars().any(|c| c.is_control() || is_invisible(c)), "{line:?}");
            let script = line.replacen("toolhost call t", r"printf '%s\0'", 1);
            let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            let stdout = String::from_utf8(output.stdout).unwrap();
            let words: Vec<String> =
                stdout.split_terminator('\0').filter(|word| !word.is_empty()).map(str::to_owned).collect();
            prop_assert!(words.iter().all(|word| !word.starts_with('-')), "{line}");
            let sources = RawArguments { words, json_option: None, cwd: "/nonexistent".into() };
            let back = match read_words(&sources, &mut std::io::empty()).unwrap() {
                CallArguments::Object(object) => object,
                // The schema that makes the most of a text.
                CallArguments::Words(words) => {
                    let types = json!({ "type": ["integer", "boolean", "array", "object", "null", "string"] });
                    let properties: JsonObject =
                        arguments.keys().map(|key| (key.clone(), types.clone())).collect();
                    coerce(&words, &json!({ "properties": properties })).unwrap()
                }
            };
            prop_assert_eq!(back, arguments);
        }
    }
}
