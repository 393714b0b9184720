//! A server's form (elicitation schema) as fields to ask for.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::host::form::{self, ResolvedSchema};
pub use crate::host::form::{FieldChoice, FieldKind, FormField};
use crate::host::validate::SchemaChecker;
use crate::model::JsonObject;

const FIELDS: usize = 64;

/// Why a person cannot be asked to fill in a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FormSchemaError {
    /// The schema is not that of an object.
    #[error("its form is not an object")]
    NotAnObject,
    /// Its `properties` are not an object.
    #[error("`properties` of its form must be an object")]
    Properties,
    #[error("its form has {0} fields, more than {FIELDS}")]
    TooManyFields(usize),
}

#[derive(Debug, Clone)]
pub struct Questionnaire {
    pub fields: Vec<FormField>,
    schema: Arc<Value>,
}

impl Questionnaire {
    pub fn of(schema: &Value) -> Result<Self, FormSchemaError> {
        if !matches!(schema.get("type").and_then(Value::as_str), None | Some("object")) {
            return Err(FormSchemaError::NotAnObject);
        }
        let nothing = Map::new();
        let properties = match schema.get("properties") {
            None => &nothing,
            Some(Value::Object(properties)) => properties,
            Some(_) => return Err(FormSchemaError::Properties),
        };
        if properties.len() > FIELDS {
            return Err(FormSchemaError::TooManyFields(properties.len()));
        }
        let schema = Arc::new(schema.clone());
        let mut fields = form::fields(&ResolvedSchema::of(&schema), FIELDS);
        for kind in fields.iter_mut().map(|field| &mut field.kind) {
            use FieldKind::{Any, Constant, Json, List, Object, Variants};
            // One line holds these as JSON only.
            if matches!(kind, Any | Constant(_) | List | Object | Variants(_)) {
                *kind = Json;
            }
        }
        Ok(Self { fields, schema })
    }

    /// The values of the form when every field keeps its default.
    pub fn defaults(&self) -> JsonObject {
        form::defaults(&self.fields)
    }

    /// The schema violations of a whole answer; empty when it can be sent.
    pub async fn violations(&self, answer: &JsonObject) -> Vec<String> {
        form::validate(&self.schema, answer).await.iter().map(ToString::to_string).collect()
    }
}

/// Parses the input for a field: `None` leaves it out.
///
/// # Errors
/// What is wrong with it, for the person who typed it.
pub async fn read(field: &FormField, typed: &str) -> Result<Option<Value>, String> {
    let trimmed = typed.trim();
    if trimmed.is_empty() {
        return match &field.default {
            Some(default) => Ok(Some(default.clone())),
            None if field.required => Err("this must be filled in".to_owned()),
            None => Ok(None),
        };
    }
    let value = parse_value(field, typed, trimmed)?;
    let schema = Arc::new(field.schema.value().clone());
    let errors = SchemaChecker::with_formats(&schema).await.check(&value).await;
    match errors.as_deref() {
        Ok([first, ..]) if first.path.0.is_empty() => Err(first.message.clone()),
        Ok([first, ..]) => Err(first.to_string()),
        // What cannot be checked here is left to the server.
        Ok([]) | Err(_) => Ok(Some(value)),
    }
}

fn parse_value(field: &FormField, typed: &str, trimmed: &str) -> Result<Value, String> {
    match &field.kind {
        // Two quotes mean an empty text where Enter takes the default.
        FieldKind::Text if trimmed == "\"\"" => Ok(Value::String(String::new())),
        FieldKind::Text => Ok(Value::String(typed.to_owned())),
        FieldKind::Number { whole } => {
            let number = serde_json::from_str::<serde_json::Number>(trimmed).ok();
            match number {
                Some(number) if !*whole || number.is_i64() || number.is_u64() => {
                    Ok(Value::Number(number))
                }
                _ if *whole => Err("this is not a whole number".to_owned()),
                _ => Err("this is not a number".to_owned()),
            }
        }
        FieldKind::Boolean => match trimmed.to_lowercase().as_str() {
            "y" | "yes" | "true" => Ok(Value::Bool(true)),
            "n" | "no" | "false" => Ok(Value::Bool(false)),
            _ => Err("type yes or no".to_owned()),
        },
        FieldKind::Choice(choices) => parse_choice(choices, trimmed),
        FieldKind::MultiChoice(choices) => {
            let items = trimmed.split(',').map(str::trim).filter(|word| !word.is_empty());
            let mut values = Vec::new();
            for word in items {
                let value = parse_choice(choices, word)?;
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            Ok(Value::Array(values))
        }
        _ => serde_json::from_str(trimmed).map_err(|error| format!("this is not JSON: {error}")),
    }
}

fn parse_choice(choices: &[FieldChoice], typed: &str) -> Result<Value, String> {
    let by_number = typed.parse::<usize>().ok().and_then(|n| choices.get(n.checked_sub(1)?));
    let by_value = || choices.iter().find(|choice| choice.value.as_str() == Some(typed));
    let by_title = || choices.iter().find(|choice| choice.title.eq_ignore_ascii_case(typed));
    let choice = by_number.or_else(by_value).or_else(by_title);
    choice
        .map(|choice| choice.value.clone())
        .ok_or_else(|| format!("type a number from 1 to {}, or one of the values", choices.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn one(schema: &Value, required: bool) -> FormField {
        FormField::of("f", ResolvedSchema::of(&Arc::new(schema.clone())), required)
    }

    async fn read(schema: &Value, typed: &str) -> Result<Option<Value>, String> {
        super::read(&one(schema, true), typed).await
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
            assert_eq!(read(&schema, typed).await.unwrap(), Some(expected), "{schema} {typed:?}");
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
            (json!({ "type": "string", "format": "email" }), "ab", "email"),
            (json!({ "type": "string", "format": "uri" }), "not one", "URI"),
            (json!({ "type": "string", "format": "date" }), "28.7.2026", "date"),
            (json!({ "type": "string", "format": "date-time" }), "2026-07-28", "a time"),
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
        assert_eq!(read(&schema, " ").await.unwrap(), Some(json!("x")));
        let field = one(&json!({ "type": "string" }), false);
        assert_eq!(super::read(&field, "").await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_whole_answer_is_checked_and_defaults_are_known() {
        let schema = json!({ "type": "object", "required": ["name"], "properties": {
            "name": { "type": "string" },
            "mail": { "type": "string", "format": "email" },
            "size": { "type": "integer", "default": 3 } } });
        let form = Questionnaire::of(&schema).unwrap();
        assert_eq!(form.defaults(), *json!({ "size": 3 }).as_object().unwrap());
        let errors = async |answer: Value| form.violations(answer.as_object().unwrap()).await;
        assert!(errors(json!({ "name": "Ada" })).await.is_empty());
        assert_eq!(errors(json!({})).await, ["name: is required"]);
        assert_eq!(errors(json!({ "name": "Ada", "mail": "x" })).await.len(), 1);
        assert_eq!(errors(json!({ "name": 1 })).await, ["name: must be string, not integer"]);
    }

    #[test]
    fn what_asks_for_a_secret_is_known_by_its_name_or_its_mark() {
        let secret = |key: &str, schema: Value| {
            FormField::of(key, ResolvedSchema::of(&Arc::new(schema)), true).secret
        };
        assert!(secret("password", json!({ "type": "string" })));
        assert!(secret("apiKey", json!({ "type": "string" })));
        assert!(secret("f", json!({ "type": "string", "format": "password" })));
        assert!(!secret("name", json!({ "type": "string" })));
    }

    #[test]
    fn forms_that_cannot_be_filled_in_are_refused() {
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
            if let Ok(Some(value)) = runtime.block_on(super::read(&field, &typed)) {
                let whole = json!({ "type": "object", "properties": { "f": schemas[at] } });
                let form = Questionnaire::of(&whole).unwrap();
                let answer = JsonObject::from_iter([("f".to_owned(), value)]);
                prop_assert_eq!(runtime.block_on(form.violations(&answer)), [""; 0]);
            }
        }
    }
}
