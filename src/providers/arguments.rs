//! Typed access to a call's arguments.
//!
//! The host checks arguments against the schema first; these messages are seen only when an entry
//! brings its own schema or checking was switched off.

use serde_json::Value;

use crate::model::{Error, JsonObject};

#[derive(Clone, Copy)]
pub(super) struct Arguments<'a>(pub(super) &'a JsonObject);

impl<'a> Arguments<'a> {
    /// What `read` makes of an argument, which must be `expected`; null counts as absent.
    fn optional<T>(
        self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        match self.0.get(name).filter(|value| !value.is_null()) {
            None => Ok(None),
            Some(value) => read(value)
                .map(Some)
                .ok_or_else(|| Error::usage(format!("'{name}' must be {expected}"))),
        }
    }

    pub(super) fn text(self, name: &str) -> Result<&'a str, Error> {
        self.optional_text(name)?.ok_or_else(|| Error::usage(format!("'{name}' is missing")))
    }

    pub(super) fn optional_text(self, name: &str) -> Result<Option<&'a str>, Error> {
        self.optional(name, "text", Value::as_str)
    }

    pub(super) fn number(self, name: &str) -> Result<Option<f64>, Error> {
        self.optional(name, "a number", Value::as_f64)
    }

    /// Whether a switch is on; off when it is not given.
    pub(super) fn flag(self, name: &str) -> Result<bool, Error> {
        Ok(self.optional(name, "true or false", Value::as_bool)?.unwrap_or_default())
    }

    /// A whole number that is at least `least`.
    pub(super) fn count(self, name: &str, least: u64) -> Result<Option<u64>, Error> {
        let expected = format!("a whole number, {least} or more");
        self.optional(name, &expected, |value| whole(value).filter(|count| *count >= least))
    }

    /// One of a fixed set of words; the first of them by default.
    pub(super) fn word<'w>(self, name: &str, choices: &[&'w str]) -> Result<&'w str, Error> {
        let text = self.optional_text(name)?;
        let word = match text {
            Some(text) => choices.iter().find(|word| **word == text),
            None => choices.first(),
        };
        word.copied().ok_or_else(|| {
            let (choices, text) = (choices.join(", "), text.unwrap_or_default());
            Error::usage(format!("'{name}' must be one of {choices}, found '{text}'"))
        })
    }

    /// A value under `name`, or as JSON text under `text_name`.
    pub(super) fn json(self, name: &str, text_name: &str) -> Result<Option<Value>, Error> {
        match (self.0.get(name), self.optional_text(text_name)?) {
            (Some(_), Some(_)) => {
                let message = format!("only one of '{name}' and '{text_name}' can be given");
                Err(Error::usage(message))
            }
            (Some(value), None) => Ok(Some(value.clone())),
            (None, Some(text)) => serde_json::from_str(text)
                .map_err(|error| Error::tool(format!("'{text_name}' is not JSON: {error}"))),
            (None, None) => Ok(None),
        }
    }
}

/// A whole number, which may be written with a fraction of zero.
fn whole(value: &Value) -> Option<u64> {
    let number = value.as_f64().filter(|number| *number >= 0.0 && number.fract() == 0.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative and whole; what is too large becomes the largest"
    )]
    value.as_u64().or(number.map(|number| number as u64))
}
