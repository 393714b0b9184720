//! One schema violation, as text.

use std::fmt;

use serde_json::Value;

use crate::util::spelling::nearest;
use crate::util::text::truncate;

const OPTIONS_SHOWN: usize = 10;

/// The longest text of a schema that is quoted, in characters.
const QUOTE: usize = 120;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValuePathSegment {
    /// Into the property with this name.
    Key(String),
    /// Into the item with this number, from 0.
    Index(usize),
}

/// Where in a value: `user.tags[2]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ValuePath(pub Vec<ValuePathSegment>);

impl ValuePath {
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.with(ValuePathSegment::Key(key.to_owned()))
    }

    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.with(ValuePathSegment::Index(index))
    }

    pub fn of<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(value, |at, step| match step {
            ValuePathSegment::Key(key) => at.get(key),
            ValuePathSegment::Index(index) => at.get(index),
        })
    }

    /// The path with a point between all steps, positions among them: `user.tags.2`.
    pub fn dotted(&self) -> String {
        let step = |step: &ValuePathSegment| match step {
            ValuePathSegment::Key(key) => key.clone(),
            ValuePathSegment::Index(index) => index.to_string(),
        };
        self.0.iter().map(step).collect::<Vec<_>>().join(".")
    }

    fn with(&self, step: ValuePathSegment) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }
}

impl fmt::Display for ValuePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("(value)");
        }
        for (i, step) in self.0.iter().enumerate() {
            match step {
                ValuePathSegment::Index(index) => write!(f, "[{index}]")?,
                ValuePathSegment::Key(key) if is_simple(key) => {
                    f.write_str(if i > 0 { "." } else { "" })?;
                    f.write_str(key)?;
                }
                ValuePathSegment::Key(key) => write!(f, "[{}]", Value::from(key.as_str()))?,
            }
        }
        Ok(())
    }
}

fn is_simple(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$'))
}

/// One thing that does not fit. Never quotes the value, which may be a secret or very long.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The value that breaks the rule; empty for the whole value.
    pub path: ValuePath,
    pub message: String,
}

impl Violation {
    /// Something that does not fit at `path`.
    pub fn new(path: ValuePath, message: impl Into<String>) -> Self {
        Self { path, message: message.into() }
    }

    /// A property of the object at `path` that has no place there.
    pub fn unknown<'a>(
        path: &ValuePath,
        key: &str,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let message = match nearest(key, names) {
            Some(near) => format!("is not known; did you mean '{near}'?"),
            None => "is not known".to_owned(),
        };
        Self::new(path.key(key), message)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

pub(super) fn must_be_one_of(options: &[Value], value: &Value) -> String {
    let mut shown: Vec<String> =
        options.iter().take(OPTIONS_SHOWN).map(|v| quote(&v.to_string())).collect();
    if options.len() > OPTIONS_SHOWN {
        shown.push(format!("{} more", options.len() - OPTIONS_SHOWN));
    }
    let shown = shown.join(", ");
    let texts = options.iter().filter_map(Value::as_str);
    match value.as_str().and_then(|text| nearest(text, texts)) {
        Some(near) => {
            let near = quote(&Value::from(near).to_string());
            format!("must be one of {shown}; did you mean {near}?")
        }
        None => format!("must be one of {shown}"),
    }
}

pub(super) fn must_be(constant: &Value) -> String {
    format!("must be {}", quote(&constant.to_string()))
}

/// Too many or too few of something: `must have at least 3 items`.
pub(super) fn count(comparison: &str, limit: u64, of: &str) -> String {
    let plural = if limit == 1 { "" } else { "s" };
    format!("must have {comparison} {limit} {of}{plural}")
}

/// Text of a schema, cut to what a line can bear.
pub(super) fn quote(text: &str) -> String {
    truncate(text, QUOTE)
}

pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_i64() || n.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_read_like_code() {
        let path = ValuePath::default().key("a").index(2).key("b c").key("d");
        assert_eq!(path.to_string(), "a[2][\"b c\"].d");
        assert_eq!(ValuePath::default().to_string(), "(value)");
    }

    #[test]
    fn long_lists_of_options_are_cut() {
        let options: Vec<Value> = (0..40).map(Value::from).collect();
        let message = must_be_one_of(&options, &Value::Null);
        assert_eq!(message, "must be one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 30 more");
    }

    #[test]
    fn the_nearest_option_is_suggested_and_the_value_never_quoted() {
        let options = ["lima", "oslo"].map(Value::from);
        let message = |value: &str| must_be_one_of(&options, &value.into());
        assert_eq!(message("Oslo"), r#"must be one of "lima", "oslo"; did you mean "oslo"?"#);
        assert_eq!(message("hunter2"), r#"must be one of "lima", "oslo""#);
    }
}
