//! The form a server asks a person to fill in, as fields.
//!
//! Owns: reading a requested schema (elicitation: a flat object of simple values, with titled and
//! untitled choices of one or many) into [`Field`]s, reading what was typed into a field's value,
//! defaults, and whether an answer fits. What a field cannot be asked as is asked as JSON. Never
//! does: ask.

use std::sync::Arc;

use serde_json::{Map, Value};
use url::Url;

use crate::audit::mask;
use crate::host::validate::{Checker, Path, Violation};
use crate::model::JsonObject;

/// How many fields a form may have.
const FIELDS: usize = 64;
/// How many choices a field may have.
const CHOICES: usize = 500;

/// A form.
#[derive(Debug, Clone)]
pub struct Questionnaire {
    /// Its fields, in the order of the schema.
    pub fields: Vec<Field>,
    schema: Arc<Value>,
}

/// One field.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// The property.
    pub key: String,
    /// Its title, or the property's name.
    pub title: String,
    /// What the server says about it.
    pub description: Option<String>,
    /// What it takes.
    pub kind: Kind,
    /// Whether it has to be filled in.
    pub required: bool,
    /// What it is when nothing is typed.
    pub default: Option<Value>,
    /// Whether it seems to ask for something that nobody should see or send lightly.
    pub secret: bool,
    schema: Arc<Value>,
}

/// What a field takes.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Text.
    Text,
    /// A number, whole or not.
    Number {
        /// Whether it has to be whole.
        whole: bool,
    },
    /// Yes or no.
    Flag,
    /// One of these.
    One(Vec<Choice>),
    /// Any of these.
    Many(Vec<Choice>),
    /// Anything else, as JSON.
    Json,
}

/// One of several values.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// What is sent.
    pub value: Value,
    /// What is shown.
    pub title: String,
}

impl Questionnaire {
    /// Reads a requested schema.
    ///
    /// # Errors
    /// Why nobody can be asked to fill it in.
    pub fn of(schema: &Value) -> Result<Self, String> {
        if !matches!(schema.get("type").and_then(Value::as_str), None | Some("object")) {
            return Err("its form is not an object".to_owned());
        }
        let nothing = Map::new();
        let properties = match schema.get("properties") {
            None => &nothing,
            Some(Value::Object(properties)) => properties,
            Some(_) => return Err("its form has properties that are no object".to_owned()),
        };
        if properties.len() > FIELDS {
            return Err(format!("its form has {} fields, more than {FIELDS}", properties.len()));
        }
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let field = |(key, schema): (&String, &Value)| {
            Field::of(key, schema, required.contains(&key.as_str()))
        };
        let fields = properties.iter().map(field).collect();
        Ok(Self { fields, schema: Arc::new(schema.clone()) })
    }

    /// What the form is when nobody touches it.
    pub fn defaults(&self) -> JsonObject {
        let default = |field: &Field| Some((field.key.clone(), field.default.clone()?));
        self.fields.iter().filter_map(default).collect()
    }

    /// What does not fit in a whole answer; nothing when it can be sent.
    pub async fn faults(&self, answer: &JsonObject) -> Vec<String> {
        let value = Value::Object(answer.clone());
        let checker = Checker::compile(&self.schema).await;
        let mut faults: Vec<Violation> = match checker.check(&value).await {
            Ok(faults) => faults,
            Err(why) => vec![Violation::new(Path::default(), why)],
        };
        for field in &self.fields {
            if let Some(value) = answer.get(&field.key)
                && let Err(why) = field.check_format(value)
            {
                faults.push(Violation::new(Path::default().key(&field.key), why));
            }
        }
        faults.iter().map(ToString::to_string).collect()
    }
}

impl Field {
    fn of(key: &str, schema: &Value, required: bool) -> Self {
        let text = |name: &str| schema.get(name).and_then(Value::as_str).map(str::to_owned);
        let kind = kind(schema);
        Self {
            key: key.to_owned(),
            title: text("title").filter(|title| !title.trim().is_empty()).unwrap_or(key.to_owned()),
            description: text("description"),
            required,
            default: schema.get("default").cloned(),
            secret: kind == Kind::Text && (mask::is_marked(schema) || mask::names_secret(key)),
            kind,
            schema: Arc::new(schema.clone()),
        }
    }

    /// What may be typed, in words.
    pub fn expectation(&self) -> String {
        let mut words = match &self.kind {
            Kind::Text => self.format().map_or_else(|| "text".to_owned(), str::to_owned),
            Kind::Number { whole: true } => "a whole number".to_owned(),
            Kind::Number { whole: false } => "a number".to_owned(),
            Kind::Flag => "yes or no".to_owned(),
            Kind::One(_) => "one of these".to_owned(),
            Kind::Many(_) => "any of these, with commas between".to_owned(),
            Kind::Json => "JSON".to_owned(),
        };
        for (key, before, after) in [
            ("minLength", "at least", "characters"),
            ("maxLength", "at most", "characters"),
            ("minimum", "at least", ""),
            ("maximum", "at most", ""),
            ("minItems", "at least", "of them"),
            ("maxItems", "at most", "of them"),
        ] {
            if let Some(bound @ Value::Number(_)) = self.schema.get(key) {
                let after = match after {
                    "characters" if bound == 1 => "character",
                    other => other,
                };
                words.push_str(format!(", {before} {bound} {after}").trim_end());
            }
        }
        words
    }

    /// Reads what was typed: `None` leaves the field out.
    ///
    /// # Errors
    /// What was expected.
    pub async fn read(&self, typed: &str) -> Result<Option<Value>, String> {
        let trimmed = typed.trim();
        if trimmed.is_empty() {
            return match &self.default {
                Some(default) => Ok(Some(default.clone())),
                None if self.required => Err("this has to be filled in".to_owned()),
                None => Ok(None),
            };
        }
        let value = self.understand(typed, trimmed)?;
        self.check_format(&value)?;
        let faults = Checker::compile(&self.schema).await.check(&value).await;
        match faults.as_deref() {
            Ok([first, ..]) => Err(match first.path.0.as_slice() {
                [] => first.message.clone(),
                _ => first.to_string(),
            }),
            // What cannot be checked here is for the server to judge.
            Ok([]) | Err(_) => Ok(Some(value)),
        }
    }

    fn understand(&self, typed: &str, trimmed: &str) -> Result<Value, String> {
        match &self.kind {
            // Two quotes are the way to say "no text" where Enter takes the default.
            Kind::Text if trimmed == "\"\"" => Ok(Value::String(String::new())),
            Kind::Text => Ok(Value::String(typed.to_owned())),
            Kind::Number { whole } => {
                let expected = if *whole { "a whole number" } else { "a number" };
                let number: serde_json::Number =
                    serde_json::from_str(trimmed).map_err(|_| format!("this is not {expected}"))?;
                if *whole && !number.is_i64() && !number.is_u64() {
                    return Err(format!("this is not {expected}"));
                }
                Ok(Value::Number(number))
            }
            Kind::Flag => match trimmed.to_lowercase().as_str() {
                "y" | "yes" | "true" => Ok(Value::Bool(true)),
                "n" | "no" | "false" => Ok(Value::Bool(false)),
                _ => Err("type yes or no".to_owned()),
            },
            Kind::One(choices) => chosen(choices, trimmed),
            Kind::Many(choices) => {
                let words = trimmed.split(',').map(str::trim).filter(|word| !word.is_empty());
                let mut values = Vec::new();
                for word in words {
                    let value = chosen(choices, word)?;
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
                Ok(Value::Array(values))
            }
            Kind::Json => {
                serde_json::from_str(trimmed).map_err(|why| format!("this is not JSON: {why}"))
            }
        }
    }

    fn format(&self) -> Option<&'static str> {
        match self.schema.get("format").and_then(Value::as_str)? {
            "email" => Some("an e-mail address"),
            "uri" => Some("an address (URI)"),
            "date" => Some("a date such as 2026-07-28"),
            "date-time" => Some("a moment such as 2026-07-28T12:00:00Z"),
            _ => None,
        }
    }

    /// The formats that forms know; checkers of schemas take them for notes.
    fn check_format(&self, value: &Value) -> Result<(), String> {
        let (Some(text), Some(expected)) = (value.as_str(), self.format()) else { return Ok(()) };
        let fits = match self.schema.get("format").and_then(Value::as_str) {
            Some("email") => is_mail_address(text),
            Some("uri") => Url::parse(text).is_ok(),
            Some("date") => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
            Some("date-time") => text.parse::<jiff::Timestamp>().is_ok(),
            _ => true,
        };
        if fits { Ok(()) } else { Err(format!("must be {expected}")) }
    }
}

fn is_mail_address(text: &str) -> bool {
    let parts = text.rsplit_once('@');
    parts.is_some_and(|(name, host)| {
        !name.is_empty() && !host.is_empty() && !text.contains(|c: char| c.is_whitespace())
    })
}

fn kind(schema: &Value) -> Kind {
    if let Some(choices) = choices(schema) {
        return Kind::One(choices);
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => Kind::Text,
        Some("integer") => Kind::Number { whole: true },
        Some("number") => Kind::Number { whole: false },
        Some("boolean") => Kind::Flag,
        Some("array") => schema.get("items").and_then(choices).map_or(Kind::Json, Kind::Many),
        _ => Kind::Json,
    }
}

/// The values of `enum` (with the older `enumNames`), `oneOf` or `anyOf` of constants.
fn choices(schema: &Value) -> Option<Vec<Choice>> {
    let title = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let simple = |value: &Value| !value.is_object() && !value.is_array();
    let choices: Vec<Choice> = if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let names = schema.get("enumNames").and_then(Value::as_array);
        let name = |at: usize| names.and_then(|names| names.get(at)?.as_str());
        let choice = |(at, value): (usize, &Value)| Choice {
            title: name(at).map_or_else(|| title(value), str::to_owned),
            value: value.clone(),
        };
        values.iter().enumerate().map(choice).collect()
    } else {
        let options = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?;
        let choice = |option: &Value| {
            let value = option.get("const")?.clone();
            let shown = option.get("title").and_then(Value::as_str);
            Some(Choice { title: shown.map_or_else(|| title(&value), str::to_owned), value })
        };
        options.iter().map(choice).collect::<Option<_>>()?
    };
    let usable = !choices.is_empty() && choices.len() <= CHOICES;
    (usable && choices.iter().all(|choice| simple(&choice.value))).then_some(choices)
}

/// The choice with this number, value or title, in this order.
fn chosen(choices: &[Choice], typed: &str) -> Result<Value, String> {
    let by_number = typed.parse::<usize>().ok().and_then(|n| choices.get(n.checked_sub(1)?));
    let by_value = || choices.iter().find(|choice| choice.value.as_str() == Some(typed));
    let by_title = || choices.iter().find(|choice| choice.title.eq_ignore_ascii_case(typed));
    let found = by_number.or_else(by_value).or_else(by_title);
    found
        .map(|choice| choice.value.clone())
        .ok_or_else(|| format!("type a number from 1 to {}, or one of the values", choices.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn one(schema: &Value, required: bool) -> Field {
        Field::of("f", schema, required)
    }

    async fn read(schema: &Value, typed: &str) -> Result<Option<Value>, String> {
        one(schema, true).read(typed).await
    }

    #[tokio::test]
    async fn what_is_typed_becomes_what_the_schema_says() {
        for (schema, typed, expected) in [
            (json!({ "type": "string" }), "12", json!("12")),
            (json!({ "type": "string" }), "\"\"", json!("")),
            (json!({ "type": "integer" }), " 12 ", json!(12)),
            (json!({ "type": "number" }), "1.5", json!(1.5)),
            (json!({ "type": "boolean" }), "Yes", json!(true)),
            (json!({ "enum": ["red", "green"] }), "2", json!("green")),
            (json!({ "enum": ["red", "green"] }), "red", json!("red")),
            (json!({ "type": "string", "enum": ["r"], "enumNames": ["Red"] }), "RED", json!("r")),
            (
                json!({ "oneOf": [{ "const": "r", "title": "Red" }, { "const": "g" }] }),
                "Red",
                json!("r"),
            ),
            (
                json!({ "type": "array", "items": { "enum": ["a", "b", "c"] } }),
                "3, a,3",
                json!(["c", "a"]),
            ),
            (
                json!({ "type": "array", "items": { "anyOf": [{ "const": "a", "title": "A" }] } }),
                "1",
                json!(["a"]),
            ),
            (json!({ "type": "object" }), "{\"a\": 1}", json!({ "a": 1 })),
            (json!({ "type": "string", "format": "email" }), "a@b.example", json!("a@b.example")),
            (json!({ "type": "string", "format": "date" }), "2026-07-28", json!("2026-07-28")),
        ] {
            assert_eq!(read(&schema, typed).await, Ok(Some(expected)), "{schema} {typed:?}");
        }
    }

    #[tokio::test]
    async fn what_does_not_fit_says_what_is_expected() {
        for (schema, typed, words) in [
            (json!({ "type": "integer" }), "1.5", "whole number"),
            (json!({ "type": "integer", "minimum": 3 }), "2", "at least 3"),
            (json!({ "type": "number" }), "many", "a number"),
            (json!({ "type": "boolean" }), "perhaps", "yes or no"),
            (json!({ "type": "string", "minLength": 3 }), "ab", "at least 3"),
            (json!({ "type": "string", "pattern": "^[a-z]+$" }), "A1", "pattern"),
            (json!({ "type": "string", "format": "email" }), "ab", "e-mail"),
            (json!({ "type": "string", "format": "uri" }), "not one", "URI"),
            (json!({ "type": "string", "format": "date" }), "28.7.2026", "date"),
            (json!({ "type": "string", "format": "date-time" }), "2026-07-28", "moment"),
            (json!({ "enum": ["red", "green"] }), "3", "1 to 2"),
            (
                json!({ "type": "array", "items": { "enum": ["a", "b"] }, "minItems": 2 }),
                "a",
                "at least 2",
            ),
            (json!({ "type": "object" }), "{", "not JSON"),
            (json!({ "type": "string" }), "", "filled in"),
        ] {
            let why = read(&schema, typed).await.unwrap_err();
            assert!(why.contains(words), "{schema} {typed:?}: {why}");
        }
    }

    #[tokio::test]
    async fn nothing_is_the_default_or_leaves_it_out() {
        let schema = json!({ "type": "string", "default": "x" });
        assert_eq!(one(&schema, true).read(" ").await, Ok(Some(json!("x"))));
        assert_eq!(one(&json!({ "type": "string" }), false).read("").await, Ok(None));
    }

    #[tokio::test]
    async fn a_whole_answer_is_checked_and_defaults_are_known() {
        let schema = json!({ "type": "object", "required": ["name"], "properties": {
            "name": { "type": "string" },
            "mail": { "type": "string", "format": "email" },
            "size": { "type": "integer", "default": 3 } } });
        let form = Questionnaire::of(&schema).unwrap();
        assert_eq!(form.defaults(), *json!({ "size": 3 }).as_object().unwrap());
        let faults = async |answer: Value| form.faults(answer.as_object().unwrap()).await;
        assert!(faults(json!({ "name": "Ada" })).await.is_empty());
        assert_eq!(faults(json!({})).await, ["name: is required"]);
        assert_eq!(faults(json!({ "name": "Ada", "mail": "x" })).await.len(), 1);
        assert_eq!(faults(json!({ "name": 1 })).await, ["name: must be string, not integer"]);
    }

    #[test]
    fn what_asks_for_a_secret_is_known_by_its_name_or_its_mark() {
        let secret = |key: &str, schema: Value| Field::of(key, &schema, true).secret;
        assert!(secret("password", json!({ "type": "string" })));
        assert!(secret("apiKey", json!({ "type": "string" })));
        assert!(secret("f", json!({ "type": "string", "format": "password" })));
        assert!(!secret("name", json!({ "type": "string" })));
    }

    #[test]
    fn forms_that_nobody_could_fill_in_are_refused() {
        let many: Map<String, Value> = (0..100).map(|n| (n.to_string(), json!({}))).collect();
        for schema in [
            json!({ "type": "array" }),
            json!({ "type": "object", "properties": [] }),
            json!({ "type": "object", "properties": many }),
        ] {
            assert!(Questionnaire::of(&schema).is_err(), "{schema}");
        }
        assert!(Questionnaire::of(&json!({})).unwrap().fields.is_empty());
    }

    proptest! {
        #[test]
        fn no_typing_panics_and_what_is_read_fits(typed in any::<String>(), at in 0_usize..6) {
            let schemas = [
                json!({ "type": "string", "maxLength": 5 }),
                json!({ "type": "integer", "minimum": 0 }),
                json!({ "type": "boolean" }),
                json!({ "enum": ["a", "b"] }),
                json!({ "type": "array", "items": { "enum": ["a", "b"] } }),
                json!({ "type": "object" }),
            ];
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let field = one(&schemas[at], false);
            if let Ok(Some(value)) = runtime.block_on(field.read(&typed)) {
                let whole = json!({ "type": "object", "properties": { "f": schemas[at] } });
                let form = Questionnaire::of(&whole).unwrap();
                let answer = JsonObject::from_iter([("f".to_owned(), value)]);
                prop_assert_eq!(runtime.block_on(form.faults(&answer)), [""; 0]);
            }
        }
    }
}
