//! Typed access to a call's arguments.
//!
//! The host checks arguments against the schema first; these messages are seen only when an entry
//! brings its own schema or checking was switched off.
//!
//! The properties of an input schema, for kinds that place arguments by type.

use serde_json::{Value, json};

use crate::model::{Diagnostic, Error, JsonObject, SourceLocation};
use crate::util::spelling::did_you_mean;

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

/// The schema of a text.
pub(super) fn text(about: &str) -> Value {
    json!({ "type": "string", "description": about })
}

/// The schema of a switch that is off when it is not given.
pub(super) fn flag(about: &str) -> Value {
    json!({ "type": "boolean", "default": false, "description": about })
}

/// The schema of an object with these members and no others.
pub(super) fn object_schema(properties: Value, required: &[&str]) -> Value {
    let mut schema = json!({ "type": "object" });
    schema["properties"] = properties;
    schema["required"] = required.into();
    schema["additionalProperties"] = false.into();
    schema
}

/// The arguments of a call, and defaults for those that it does not give.
pub(super) fn with_defaults(arguments: &JsonObject, defaults: &[(String, Value)]) -> JsonObject {
    let mut arguments = arguments.clone();
    for (name, value) in defaults {
        if !arguments.contains_key(name) {
            arguments.insert(name.clone(), value.clone());
        }
    }
    arguments
}

#[derive(Debug)]
pub(super) struct SchemaProperties {
    pub(super) names: Vec<String>,
    pub(super) required: Vec<String>,
    pub(super) defaults: Vec<(String, Value)>,
    pub(super) allows_additional: bool,
}

impl SchemaProperties {
    pub(super) fn of(schema: &Value) -> Self {
        let properties = schema.get("properties").and_then(Value::as_object);
        let texts = |value: Option<&Value>| -> Vec<String> {
            let items = value.and_then(Value::as_array).into_iter().flatten();
            items.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Self {
            names: properties.map(|map| map.keys().cloned().collect()).unwrap_or_default(),
            required: texts(schema.get("required")),
            defaults: properties
                .into_iter()
                .flatten()
                .filter_map(|(name, schema)| Some((name.clone(), schema.get("default")?.clone())))
                .filter(|(_, value)| !value.is_null())
                .collect(),
            // With a composed schema the names may stand anywhere; only the call can tell.
            allows_additional: ["allOf", "anyOf", "oneOf", "$ref", "patternProperties"]
                .iter()
                .any(|key| schema.get(key).is_some()),
        }
    }

    pub(super) fn is_required(&self, name: &str) -> bool {
        self.required.iter().any(|required| required == name)
            || self.defaults.iter().any(|(default, _)| default == name)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.allows_additional || self.names.iter().any(|property| property == name)
    }

    pub(super) fn unknown_name_hint(&self, name: &str) -> String {
        if self.names.is_empty() {
            let example = format!("{{ properties: {{ {name}: {{ type: string }} }} }}");
            return format!("declare it, as in parameters_schema: {example}");
        }
        did_you_mean(name, self.names.iter().map(String::as_str))
            .unwrap_or_else(|| format!("the schema has {}", self.names.join(", ")))
    }

    /// What is wrong with a placeholder for the property `name`, written as `shown`. With a remedy,
    /// calls without it will be refused.
    pub(super) fn check(
        &self,
        name: &str,
        shown: &str,
        remedy: Option<&str>,
        place: &SourceLocation,
    ) -> Option<Diagnostic> {
        if !self.has(name) {
            let message = format!("'{{{shown}}}' is not a property of the schema");
            let diagnostic = Diagnostic::error(message).with_hint(self.unknown_name_hint(name));
            return Some(diagnostic.with_location(place.clone()));
        }
        let remedy = remedy.filter(|_| !self.is_required(name) && !self.allows_additional)?;
        let diagnostic = Diagnostic::warning(format!("calls without '{name}' will be refused"));
        Some(
            diagnostic
                .with_hint(format!("make it required, {remedy}"))
                .with_location(place.clone()),
        )
    }
}
