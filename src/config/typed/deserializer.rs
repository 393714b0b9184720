//! The [`Deserializer`] over a [`ConfigNode`].

use std::cell::Cell;
use std::fmt;

use serde::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{Deserializer, Error, Expected, IntoDeserializer, Unexpected, Visitor};

use super::values::{EITHER, LOCATED, NODE, hand_over};
use super::{Attempt, unknown_keys};
use crate::config::node::{ConfigNode, NodeValue};
use crate::model::Diagnostic;

/// What is wrong, and with which value.
#[derive(Debug)]
pub(super) struct ReadError<'n> {
    pub(super) problem: Problem,
    pub(super) node: Option<&'n ConfigNode>,
}

#[derive(Debug)]
pub(super) enum Problem {
    /// Another type or range is needed.
    Expected(String),
    /// A word that the type, whose name begins the text, does not have.
    UnknownWord(String, &'static [&'static str]),
    MissingKey(&'static str),
    /// The second spelling of a key in one mapping.
    RepeatedKey(&'static str),
    /// A message; a second line of it is a hint.
    Other(String),
}

impl Problem {
    pub(super) fn diagnostic(self, node: &ConfigNode) -> Diagnostic {
        let diagnostic = match self {
            Self::Expected(what) => return node.expected(type_name(&what)),
            Self::UnknownWord(name, choices) => {
                let word = node.as_scalar_text().unwrap_or_default();
                // These stand for other words.
                let is_word = |choice: &&&str| !["true", "false"].contains(*choice);
                let choices: Vec<&str> = choices.iter().filter(is_word).copied().collect();
                let (name, all) = (spaced(&name), choices.join(", "));
                let message = match choices.as_slice() {
                    [only] => format!("'{name}' can only be '{only}'"),
                    _ => format!("unknown {name} '{word}'; expected one of {all}"),
                };
                Diagnostic::error(message).with_suggestion(&word, choices)
            }
            Self::MissingKey(key) => Diagnostic::error(format!("'{key}' is missing")),
            Self::RepeatedKey(key) => Diagnostic::warning(format!(
                "'{key}' is already set under another spelling: this one is ignored"
            )),
            Self::Other(text) => match text.split_once('\n') {
                Some((message, hint)) => Diagnostic::error(message).with_hint(hint),
                None => Diagnostic::error(text),
            },
        };
        diagnostic.with_location(node.location())
    }
}

/// What serde calls a type, in the words of messages.
fn type_name(name: &str) -> &str {
    match name {
        "a boolean" => "true or false",
        "a string" => "text",
        "a sequence" => "a list",
        "a map" => "a mapping",
        "f64" => "a number",
        "u32" | "u64" => "a whole number, 0 or more",
        "a nonzero u64" => "a whole number, 1 or more",
        name if name.starts_with("struct ") => "a mapping",
        name => name,
    }
}

/// `StorageType` as `storage type`.
fn spaced(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push(' ');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

impl fmt::Display for ReadError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.problem)
    }
}

impl std::error::Error for ReadError<'_> {}

impl From<Problem> for ReadError<'_> {
    fn from(problem: Problem) -> Self {
        Self { problem, node: None }
    }
}

impl<'n> ReadError<'n> {
    fn at(self, node: &'n ConfigNode) -> Self {
        Self { node: self.node.or(Some(node)), ..self }
    }
}

impl Error for ReadError<'_> {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Problem::Other(message.to_string()).into()
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Problem::Expected(expected.to_string()).into()
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Problem::Expected(expected.to_string()).into()
    }

    fn unknown_variant(_: &str, choices: &'static [&'static str]) -> Self {
        Problem::UnknownWord(String::new(), choices).into()
    }

    fn missing_field(field: &'static str) -> Self {
        Problem::MissingKey(field).into()
    }

    fn duplicate_field(field: &'static str) -> Self {
        Problem::RepeatedKey(field).into()
    }
}

#[derive(Clone, Copy)]
pub(super) struct NodeDeserializer<'n, 'a> {
    pub(super) node: &'n ConfigNode,
    pub(super) attempt: &'a Attempt<'n, 'a>,
}

impl<'n> IntoDeserializer<'n, ReadError<'n>> for NodeDeserializer<'n, '_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'n> NodeDeserializer<'n, '_> {
    fn of(self, node: &'n ConfigNode) -> Self {
        Self { node, ..self }
    }

    fn text(self) -> Result<String, ReadError<'n>> {
        self.node.as_scalar_text().map_err(|_| Problem::Expected("text".to_owned()).into())
    }

    /// Reads a mapping: of a struct without keys that are unknown or have no value.
    fn map<V: Visitor<'n>>(
        self,
        fields: Option<&'static [&'static str]>,
        visitor: V,
    ) -> Result<V::Value, ReadError<'n>> {
        let last = Cell::new(self.node);
        // Where a key stands twice in the same spelling, that is reported with the file.
        let mut spellings: Vec<&str> = Vec::new();
        let entries = self.node.entries().iter().filter(|(key, value)| {
            let Some(fields) = fields else { return !self.attempt.skips(value) };
            let spelling = &*key.text;
            let is_read = fields.contains(&spelling)
                && !value.is_null()
                && !self.attempt.skips(value)
                && !spellings.contains(&spelling);
            if is_read {
                spellings.push(spelling);
            }
            is_read
        });
        let entries = entries.map(|(key, value)| {
            last.set(value);
            (&*key.text, self.of(value))
        });
        let read = visitor.visit_map(MapDeserializer::new(entries));
        read.map_err(|error: ReadError<'n>| match error.problem {
            Problem::MissingKey(_) => error.at(self.node),
            _ => error.at(last.get()),
        })
    }
}

impl<'n> Deserializer<'n> for NodeDeserializer<'n, '_> {
    type Error = ReadError<'n>;

    fn deserialize_any<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        let read = match &self.node.value {
            NodeValue::Null => visitor.visit_unit(),
            NodeValue::Bool(value) => visitor.visit_bool(*value),
            NodeValue::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => visitor.visit_u64(number),
                (None, Some(number)) => visitor.visit_i64(number),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
            NodeValue::Text(text) => visitor.visit_borrowed_str(text),
            NodeValue::List(items) => {
                let last = Cell::new(self.node);
                let items = items.iter().filter(|item| !self.attempt.skips(item)).map(|item| {
                    last.set(item);
                    self.of(item)
                });
                visitor
                    .visit_seq(SeqDeserializer::new(items))
                    .map_err(|error: ReadError<'n>| error.at(last.get()))
            }
            NodeValue::Map(_) => self.map(None, visitor),
        };
        read.map_err(|error| error.at(self.node))
    }

    /// Text, or a number in its place.
    fn deserialize_str<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        if let NodeValue::Bool(_) = self.node.value {
            return Err(ReadError::from(Problem::Expected("text".to_owned())).at(self.node));
        }
        visitor.visit_string(self.text().map_err(|error| error.at(self.node))?)
    }

    fn deserialize_string<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        if self.node.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'n>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        match (name, &self.node.value) {
            (NODE, _) => hand_over(self.node.clone(), || visitor.visit_unit()),
            (LOCATED, _) => {
                let place = self.node.with_value(NodeValue::Null);
                hand_over(place, || visitor.visit_some(self))
            }
            (EITHER, NodeValue::List(_) | NodeValue::Map(_)) => visitor.visit_some(self),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_struct<V: Visitor<'n>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        if !matches!(self.node.value, NodeValue::Map(_)) {
            return Err(ReadError::from(Problem::Expected(format!("struct {name}"))).at(self.node));
        }
        if !self.attempt.shared.is_some_and(|node| std::ptr::eq(node, self.node)) {
            self.attempt.warnings.borrow_mut().extend(unknown_keys(self.node, fields));
        }
        self.map(Some(fields), visitor)
    }

    fn deserialize_enum<V: Visitor<'n>>(
        self,
        name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        let read = self.text().and_then(|word| {
            let word: StrDeserializer<'_, Self::Error> = word.as_str().into_deserializer();
            visitor.visit_enum(word)
        });
        read.map_err(|error| match error.problem {
            Problem::UnknownWord(_, choices) => {
                ReadError::from(Problem::UnknownWord(name.to_owned(), choices)).at(self.node)
            }
            _ => error.at(self.node),
        })
    }

    fn deserialize_ignored_any<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        <W: Visitor<'n>>
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct
        seq tuple tuple_struct map identifier
    }
}
