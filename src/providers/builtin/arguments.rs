//! Typed access to a call's arguments.
//!
//! The host checks arguments against the schema first; these messages are seen only when an entry
//! brings its own schema or checking was switched off.

use serde_json::Value;

use crate::model::{Error, JsonObject, ToolResult};

#[derive(Clone, Copy)]
pub(super) struct BuiltinArguments<'a>(pub(super) &'a JsonObject);

impl BuiltinArguments<'_> {
    pub(super) fn text(self, key: &str) -> Result<String, Error> {
        self.optional_text(key)?.ok_or_else(|| Error::usage(format!("'{key}' is missing")))
    }

    /// The text under `key`, if there is one; null counts as absent.
    pub(super) fn optional_text(self, key: &str) -> Result<Option<String>, Error> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(Error::usage(format!("'{key}' must be text"))),
        }
    }

    pub(super) fn number(self, key: &str) -> Result<Option<f64>, Error> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value
                .as_f64()
                .map(Some)
                .ok_or_else(|| Error::usage(format!("'{key}' must be a number"))),
        }
    }

    /// Whether the switch `key` is on; off when it is not given.
    pub(super) fn flag(self, key: &str) -> Result<bool, Error> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(false),
            Some(value) => value
                .as_bool()
                .ok_or_else(|| Error::usage(format!("'{key}' must be true or false"))),
        }
    }

    /// One of a fixed set of words under `key`; the first of them by default.
    pub(super) fn word<'w>(self, key: &str, choices: &[&'w str]) -> Result<&'w str, Error> {
        let text = self.optional_text(key)?;
        let word = match &text {
            Some(text) => choices.iter().find(|word| *word == text),
            None => choices.first(),
        };
        word.copied().ok_or_else(|| {
            Error::usage(format!(
                "'{key}' must be one of {}, found '{}'",
                choices.join(", "),
                text.unwrap_or_default()
            ))
        })
    }

    /// A value under `key`, or as JSON text under `text_key`; a refusal when that is no JSON.
    pub(super) fn json(
        self,
        key: &str,
        text_key: &str,
    ) -> Result<Option<Result<Value, ToolResult>>, Error> {
        match (self.0.get(key), self.optional_text(text_key)?) {
            (Some(_), Some(_)) => {
                Err(Error::usage(format!("only one of '{key}' and '{text_key}' can be given")))
            }
            (Some(value), None) => Ok(Some(Ok(value.clone()))),
            (None, Some(text)) => Ok(Some(serde_json::from_str(&text).map_err(|error| {
                ToolResult::failure(format!("'{text_key}' is not JSON: {error}"))
            }))),
            (None, None) => Ok(None),
        }
    }
}
