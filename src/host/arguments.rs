//! Coercing command-line words to typed JSON arguments, and validating arguments against a tool's schema,
//! with helpful errors.

use std::collections::HashMap;

use serde_json::Value;

use super::example;
use super::request::ArgumentWord;
use super::validate::{ValuePath, ValuePathSegment, Violation};
use crate::model::{Error, ErrorPhase, JsonObject, ToolDefinition};
use crate::util::{base64, schema};

/// Keywords that may allow properties which `properties` does not list.
const OPEN_SCHEMA_KEYWORDS: [&str; 11] = [
    "patternProperties",
    "unevaluatedProperties",
    "propertyNames",
    "$ref",
    "$dynamicRef",
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "dependentSchemas",
    "dependencies",
];

/// Arguments that the schema does not speak of, although it lists properties and does not say
/// that others are allowed. JSON Schema alone would let them pass; a person has mistyped them.
pub fn unknown_keys(arguments: &JsonObject, schema: &Value) -> Vec<Violation> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    let open = schema.get("additionalProperties").is_some()
        || OPEN_SCHEMA_KEYWORDS.iter().any(|keyword| schema.get(keyword).is_some());
    if open {
        return Vec::new();
    }
    let root = ValuePath::default();
    let names = || properties.keys().map(String::as_str);
    arguments
        .keys()
        .filter(|key| !properties.contains_key(*key))
        .map(|key| Violation::unknown(&root, key, names()))
        .collect()
}

/// The error that lists every problem, in the order of the schema, and shows how a call looks. It
/// names no server: none was asked.
pub fn invalid_arguments(tool: &ToolDefinition, problems: &[Violation]) -> Error {
    let properties = tool.input_schema.get("properties").and_then(Value::as_object);
    let ranks: HashMap<&str, usize> = properties
        .into_iter()
        .flatten()
        .zip(0..)
        .map(|((name, _), at)| (name.as_str(), at))
        .collect();
    let rank = |problem: &Violation| {
        let Some(ValuePathSegment::Key(key)) = problem.path.0.first() else { return 0 };
        ranks.get(key.as_str()).copied().unwrap_or(usize::MAX)
    };
    let mut problems: Vec<&Violation> = problems.iter().collect();
    problems.sort_by_cached_key(|problem| rank(problem));
    let count = match problems.len() {
        1 => "1 problem".to_owned(),
        n => format!("{n} problems"),
    };
    let name = tool.name.full();
    Error::usage(format!("{count} with the arguments of '{name}'"))
        .with_phase(ErrorPhase::Call)
        .with_details(problems.iter().map(ToString::to_string))
        .with_hint(format!("for example: {}", example::command_line(tool)))
}

/// How many references and alternatives are followed to find out what a property wants.
const MAX_STEPS: usize = 64;

pub fn coerce(pairs: &[ArgumentWord], schema: &Value) -> Result<JsonObject, Vec<Violation>> {
    let mut arguments = JsonObject::new();
    let mut twice = Vec::new();
    for word in pairs {
        let property = schema.get("properties").and_then(|p| p.get(word.key()));
        let (key, value) =
            (word.key(), coerce_word(word, property.unwrap_or(&Value::Null), schema));
        if arguments.insert(key.to_owned(), value).is_some() {
            twice.push(Violation::new(ValuePath::default().key(key), "is given twice"));
        }
    }
    if twice.is_empty() { Ok(arguments) } else { Err(twice) }
}

/// The value of a word for a property; of `Null` nothing is known.
pub fn coerce_word(word: &ArgumentWord, property: &Value, root: &Value) -> Value {
    match word {
        ArgumentWord::Json { value, .. } => value.clone(),
        ArgumentWord::Text { value, .. } => coerce_text(value, property, root),
        ArgumentWord::File { base64, media_type, .. } => {
            let mut wants = AcceptedValues::default();
            wants.collect(property, root);
            if wants.is_data_url {
                let media_type = wants.media_type.unwrap_or(media_type);
                return format!("data:{media_type};base64,{base64}").into();
            }
            let text = base64::decode(base64).and_then(|bytes| String::from_utf8(bytes).ok());
            match text.filter(|_| !wants.is_base64) {
                Some(text) => coerce_text(&text, property, root),
                None => base64.as_str().into(),
            }
        }
    }
}

pub fn coerce_text(text: &str, property: &Value, root: &Value) -> Value {
    let mut wants = AcceptedValues::default();
    wants.collect(property, root);
    let parsed = || serde_json::from_str::<Value>(text).ok();
    let as_text = Value::from(text);
    if !wants.values.is_empty() {
        if wants.values.contains(&&as_text) {
            return as_text;
        }
        if let Some(value) = parsed().filter(|value| wants.values.contains(&value)) {
            return value;
        }
    }
    for kind in wants.types.iter().filter(|kind| **kind != "string") {
        if let Some(value) = parsed().filter(|value| is_of_type(value, kind)) {
            return value;
        }
    }
    as_text
}

/// What a property's schema accepts, as far as it says so plainly.
#[derive(Default)]
struct AcceptedValues<'a> {
    types: Vec<&'a str>,
    values: Vec<&'a Value>,
    is_base64: bool,
    is_data_url: bool,
    media_type: Option<&'a str>,
    steps: usize,
}

impl<'a> AcceptedValues<'a> {
    fn collect(&mut self, part: &'a Value, root: &'a Value) {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return;
        }
        self.types.extend(schema::types(part));
        self.is_base64 |= part["contentEncoding"] == "base64";
        self.is_data_url |= part["format"] == "data-url" || part["format"] == "data-uri";
        self.media_type = part["contentMediaType"].as_str().or(self.media_type);
        self.values.extend(part.get("const"));
        self.values.extend(part.get("enum").and_then(Value::as_array).into_iter().flatten());
        if let Some(target) = schema::referenced(root, part) {
            self.collect(target, root);
        }
        for keyword in ["anyOf", "oneOf", "allOf"] {
            for branch in part.get(keyword).and_then(Value::as_array).into_iter().flatten() {
                self.collect(branch, root);
            }
        }
    }
}

pub(super) fn is_of_type(value: &Value, kind: &str) -> bool {
    match kind {
        "number" => value.is_number(),
        "integer" => value.as_number().is_some_and(|n| {
            n.is_i64() || n.is_u64() || n.as_f64().is_some_and(|v| v.fract() == 0.0)
        }),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::model::{Origin, ToolName, ToolSource};

    fn tool(schema: Value) -> ToolDefinition {
        let mut tool = ToolDefinition::new(
            ToolName::of("notes", "write"),
            ToolSource::Internal,
            "storage",
            Origin::Server(String::new()),
        );
        tool.input_schema = schema.into();
        tool
    }

    fn object(value: &Value) -> JsonObject {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn unknown_keys_are_told_where_the_schema_is_closed_by_its_silence() {
        let arguments = object(&json!({"mesage": 1, "zzz": 2}));
        let schema = json!({"properties": {"message": {}}});
        let lines: Vec<String> =
            unknown_keys(&arguments, &schema).iter().map(ToString::to_string).collect();
        assert_eq!(lines, ["mesage: is not known; did you mean 'message'?", "zzz: is not known"]);
        for open in [
            json!({"type": "object"}),
            json!({"properties": {"message": {}}, "additionalProperties": true}),
            json!({"properties": {"message": {}}, "patternProperties": {"z": {}}}),
            json!({"properties": {"message": {}}, "anyOf": [{}]}),
        ] {
            assert!(unknown_keys(&arguments, &open).is_empty(), "{open}");
        }
    }

    #[test]
    fn the_error_lists_everything_and_shows_a_call() {
        let tool = tool(json!({
            "properties": {"key": {"type": "string"}, "ttl": {"type": "integer", "minimum": 5}},
            "required": ["key", "ttl"]
        }));
        let problems = [
            Violation::new(ValuePath::default().key("extra"), "is not known"),
            Violation::new(ValuePath::default().key("ttl"), "must be integer, not string"),
            Violation::new(ValuePath::default().key("key"), "is required"),
        ];
        let error = invalid_arguments(&tool, &problems);
        assert_eq!(error.message(), "3 problems with the arguments of 'notes-write'");
        assert_eq!(
            error.details(),
            ["key: is required", "ttl: must be integer, not string", "extra: is not known"]
        );
        assert_eq!(error.hint(), Some("for example: toolhost call notes-write key=text ttl=5"));
    }

    fn one(text: &str, property: &Value) -> Value {
        let schema = json!({
            "properties": { "key": property },
            "$defs": { "Count": {"type": "integer"}, "Loop": {"$ref": "#/$defs/Loop"} }
        });
        let pairs = [ArgumentWord::Text { key: "key".into(), value: text.into() }];
        coerce(&pairs, &schema).unwrap().remove("key").unwrap()
    }

    #[test]
    fn a_string_stays_a_string() {
        for text in ["12", "true", "null", "{}", "\"quoted\"", ""] {
            assert_eq!(one(text, &json!({"type": "string"})), json!(text));
        }
    }

    #[test]
    fn other_types_are_read_as_json() {
        assert_eq!(one("12", &json!({"type": "integer"})), json!(12));
        assert_eq!(one("1.5", &json!({"type": "number"})), json!(1.5));
        assert_eq!(one("true", &json!({"type": "boolean"})), json!(true));
        assert_eq!(one("null", &json!({"type": "null"})), json!(null));
        assert_eq!(one("[1,\"a\"]", &json!({"type": "array"})), json!([1, "a"]));
        assert_eq!(one("{\"a\":1}", &json!({"properties": {}})), json!({"a": 1}));
    }

    #[test]
    fn what_does_not_fit_stays_a_text() {
        assert_eq!(one("twelve", &json!({"type": "integer"})), json!("twelve"));
        assert_eq!(one("1.5", &json!({"type": "integer"})), json!("1.5"));
        assert_eq!(one("yes", &json!({"type": "boolean"})), json!("yes"));
        assert_eq!(one("12", &json!({})), json!("12"));
        assert_eq!(one("12", &json!(true)), json!("12"));
    }

    #[test]
    fn a_union_takes_the_first_type_that_the_text_is() {
        let union = json!({"type": ["string", "integer", "null"]});
        assert_eq!(one("12", &union), json!(12));
        assert_eq!(one("null", &union), json!(null));
        assert_eq!(one("12x", &union), json!("12x"));
        let optional = json!({"anyOf": [{"type": "boolean"}, {"type": "null"}]});
        assert_eq!(one("false", &optional), json!(false));
    }

    #[test]
    fn listed_values_decide() {
        assert_eq!(one("1", &json!({"enum": [1, 2]})), json!(1));
        assert_eq!(one("1", &json!({"enum": ["1", 1]})), json!("1"));
        assert_eq!(one("true", &json!({"const": true})), json!(true));
        assert_eq!(one("3", &json!({"enum": [1, 2]})), json!("3"));
    }

    #[test]
    fn references_are_followed_and_loops_end() {
        assert_eq!(one("12", &json!({"$ref": "#/$defs/Count"})), json!(12));
        assert_eq!(one("12", &json!({"$ref": "#/$defs/Loop"})), json!("12"));
    }

    #[test]
    fn a_file_is_text_or_base64_as_it_and_the_schema_say() {
        let file = |bytes: &[u8], property: &Value| {
            let word = ArgumentWord::File {
                key: "key".into(),
                base64: base64::encode(bytes),
                media_type: "image/png".into(),
            };
            coerce_word(
                &word,
                property,
                &json!({ "$defs": { "B": { "contentEncoding": "base64" } } }),
            )
        };
        let (text, binary) = (&b"12"[..], &b"\x89PNG\0"[..]);
        assert_eq!(file(text, &json!({ "type": "string" })), json!("12"));
        assert_eq!(file(text, &json!({ "type": "integer" })), json!(12));
        assert_eq!(file(text, &json!({ "contentEncoding": "base64" })), json!("MTI="));
        assert_eq!(file(text, &json!({ "$ref": "#/$defs/B" })), json!("MTI="));
        for property in
            [json!(null), json!({ "type": "string" }), json!({ "contentMediaType": "a/b" })]
        {
            assert_eq!(file(binary, &property), json!("iVBORwA="), "{property}");
        }
        let url = |property| file(binary, &property);
        assert_eq!(url(json!({ "format": "data-url" })), json!("data:image/png;base64,iVBORwA="));
        let named = json!({ "format": "data-uri", "contentMediaType": "a/b" });
        assert_eq!(url(named), json!("data:a/b;base64,iVBORwA="));
    }

    #[test]
    fn a_key_given_twice_is_told() {
        let pairs = [
            ArgumentWord::Text { key: "a".into(), value: "1".into() },
            ArgumentWord::Json { key: "a".into(), value: json!(2) },
        ];
        let problems = coerce(&pairs, &json!({})).unwrap_err();
        assert_eq!(problems[0].to_string(), "a: is given twice");
    }

    proptest! {
        #[test]
        fn an_unknown_property_keeps_its_text(text in any::<String>()) {
            let pairs = [ArgumentWord::Text { key: "k".into(), value: text.clone() }];
            let arguments = coerce(&pairs, &json!({"type": "object"})).unwrap();
            prop_assert_eq!(&arguments["k"], &json!(text));
        }

        #[test]
        fn large_integers_keep_their_digits(number in any::<u128>()) {
            prop_assert_eq!(one(&number.to_string(), &json!({"type": "integer"})).to_string(), number.to_string());
        }
    }
}
