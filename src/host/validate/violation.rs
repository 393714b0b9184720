//! One schema violation, as text.

use std::fmt;

use serde_json::Value;

use crate::util::spelling::nearest;

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

    /// A required property of the object at `path` is missing.
    pub fn required(path: &ValuePath, key: &str) -> Self {
        Self::new(path.key(key), "is required")
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

    pub fn types(path: ValuePath, types: &[&str], value: &Value) -> Self {
        Self::new(path, format!("must be {}, not {}", types.join(" or "), type_of(value)))
    }

    pub fn options(path: ValuePath, options: &[Value], value: &Value) -> Self {
        let mut shown: Vec<String> =
            options.iter().take(OPTIONS_SHOWN).map(|v| quote(&v.to_string())).collect();
        if options.len() > OPTIONS_SHOWN {
            shown.push(format!("{} more", options.len() - OPTIONS_SHOWN));
        }
        let mut message = format!("must be one of {}", shown.join(", "));
        let texts = options.iter().filter_map(Value::as_str);
        if let Some(near) = value.as_str().and_then(|text| nearest(text, texts)) {
            message.push_str("; did you mean ");
            message.push_str(&quote(&Value::from(near).to_string()));
            message.push('?');
        }
        Self::new(path, message)
    }

    pub fn constant(path: ValuePath, constant: &Value) -> Self {
        Self::new(path, format!("must be {}", quote(&constant.to_string())))
    }

    /// A number outside of a bound: `must be at least 3`.
    pub fn bound(path: ValuePath, comparison: &str, limit: &Value) -> Self {
        Self::new(path, format!("must be {comparison} {limit}"))
    }

    /// Too many or too few of something: `must have at least 3 items`.
    pub fn count(path: ValuePath, comparison: &str, limit: u64, of: &str) -> Self {
        let plural = if limit == 1 { "" } else { "s" };
        Self::new(path, format!("must have {comparison} {limit} {of}{plural}"))
    }

    /// The value fits no branch of an `anyOf`.
    pub fn any_of(path: ValuePath) -> Self {
        Self::new(path, "matches none of the allowed forms")
    }

    /// The schema allows nothing here.
    pub fn never(path: ValuePath) -> Self {
        Self::new(path, "is not allowed")
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// Text of a schema, cut to what a line can bear.
pub fn quote(text: &str) -> String {
    match text.char_indices().nth(QUOTE) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

pub fn type_of(value: &Value) -> &'static str {
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
        let message = Violation::options(ValuePath::default(), &options, &Value::Null).message;
        assert_eq!(message, "must be one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 30 more");
    }

    #[test]
    fn the_nearest_option_is_suggested_and_the_value_never_quoted() {
        let options = ["lima", "oslo"].map(Value::from);
        let violation =
            |value: &str| Violation::options(ValuePath::default(), &options, &value.into());
        assert_eq!(
            violation("Oslo").message,
            r#"must be one of "lima", "oslo"; did you mean "oslo"?"#
        );
        assert_eq!(violation("hunter2").message, r#"must be one of "lima", "oslo""#);
    }
}
