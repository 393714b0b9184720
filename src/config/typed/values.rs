//! Types of values that many keys share, and those that serde has no name for: a value with its place, a
//! value as written, a short form.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};

use crate::config::node::ConfigNode;
use crate::model::{Diagnostic, SourceLocation};
use crate::util::units;

/// A list of texts, or one text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts(pub Vec<String>);

/// Text, and no number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainText(pub String);

/// Text, or a number or a boolean that stands for its text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scalar(pub String);

/// How long: a number of seconds, or text such as `500ms`, `30s`, `2m`, `1h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timespan(pub Duration);

/// A time limit, which is not zero: that would refuse everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit(pub Duration);

/// A number of bytes from 1 to `MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteSize<const MAX: u64>(pub u64);

/// The `MAX` of sizes that have no bound.
pub const UNBOUNDED: u64 = u64::MAX >> 1;

/// How often something is repeated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retries(pub u32);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match Either::<PlainText, Vec<Scalar>>::deserialize(deserializer)? {
            Either::Short(PlainText(text)) => vec![text],
            Either::Nested(texts) => texts.into_iter().map(|text| text.0).collect(),
        }))
    }
}

impl<'de> Deserialize<'de> for PlainText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = ConfigNode::deserialize(deserializer)?.as_text().map(str::to_owned);
        text.map(Self).map_err(|_| D::Error::invalid_type(Unexpected::Unit, &"a list of texts"))
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = ConfigNode::deserialize(deserializer)?.as_scalar_text();
        text.map(Self).map_err(|_| D::Error::invalid_type(Unexpected::Unit, &"text"))
    }
}

/// A text or number that `parse` understands.
fn parsed<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    expected: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, D::Error> {
    let value = String::deserialize(deserializer).ok().and_then(|text| parse(&text));
    value.ok_or_else(|| D::Error::invalid_value(Unexpected::Unit, &expected))
}

impl<'de> Deserialize<'de> for Timespan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer, "a duration such as 30, 500ms, 30s or 2m", units::duration).map(Self)
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Timespan(limit) = Timespan::deserialize(deserializer)?;
        if limit.is_zero() {
            return Err(D::Error::custom("a limit must be greater than 0"));
        }
        Ok(Self(limit))
    }
}

impl<'de, const MAX: u64> Deserialize<'de> for ByteSize<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = match MAX {
            UNBOUNDED.. => "a size such as 256MiB".to_owned(),
            _ => format!("a size from 1 to {}, such as 64KiB", units::show_size(MAX)),
        };
        let size = |text: &str| units::size(text).filter(|size| (1..=MAX).contains(size));
        parsed(deserializer, &expected, size).map(Self)
    }
}

impl<'de> Deserialize<'de> for Retries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u32::deserialize(deserializer)? {
            count @ 0..=100 => Ok(Self(count)),
            _ => Err(D::Error::custom("at most 100 retries are allowed")),
        }
    }
}

/// Gives types a schema that is written out.
macro_rules! schemas {
    ($($type:ident $(<$parameter:ident>)?: $schema:tt)*) => {$(
        impl$(<const $parameter: u64>)? JsonSchema for $type$(<$parameter>)? {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )*};
}

schemas! {
    ConfigNode: {}
    Texts: { "anyOf": [
        { "type": "string" },
        { "type": "array", "items": { "type": ["string", "number", "boolean"] } }
    ] }
    PlainText: { "type": "string" }
    Scalar: { "type": ["string", "number", "boolean"] }
    Timespan: { "anyOf": [
        { "type": "number", "minimum": 0 },
        { "type": "string", "pattern": "^[0-9.]+ *(ns|us|µs|ms|s|sec|m|min|h|d)?$" }
    ] }
    Limit: { "anyOf": [
        { "type": "number", "exclusiveMinimum": 0 },
        { "type": "string", "pattern": "^[0-9.]+ *(ns|us|µs|ms|s|sec|m|min|h|d)?$" }
    ] }
    ByteSize<MAX>: { "anyOf": [
        { "type": "integer", "minimum": 1, "maximum": MAX },
        { "type": "string", "pattern": "^[0-9]+ *[kKMG]?i?B?$" }
    ] }
    Retries: { "type": "integer", "minimum": 0, "maximum": 100 }
}

/// The names under which these types ask for what they need.
pub(super) const NODE: &str = "$node";
pub(super) const LOCATED: &str = "$located";
pub(super) const EITHER: &str = "$either";

thread_local! {
    /// A node on its way from the deserializer to a visitor: serde's data model has no places.
    static HANDED_OVER: RefCell<Option<ConfigNode>> = const { RefCell::new(None) };
}

pub(super) fn hand_over<T>(node: ConfigNode, visit: impl FnOnce() -> T) -> T {
    HANDED_OVER.set(Some(node));
    visit()
}

fn take<E: Error>() -> Result<ConfigNode, E> {
    HANDED_OVER.take().ok_or_else(|| E::custom("this is not part of a configuration file"))
}

/// A value and its place in a file.
#[derive(Debug, Clone)]
pub struct Located<T> {
    pub value: T,
    pub location: SourceLocation,
}

impl<T> Located<T> {
    /// An error about the value.
    pub fn error(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(message).with_location(self.location.clone())
    }

    /// A warning about the value.
    pub fn warning(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::warning(message).with_location(self.location.clone())
    }
}

impl<T> Deref for Located<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// A value with a short form: a word, a number or a boolean in place of a list or a mapping.
#[derive(Debug, Clone)]
pub enum Either<S, N> {
    Short(S),
    Nested(N),
}

struct TypeVisitor<T>(PhantomData<T>);

impl Visitor<'_> for TypeVisitor<ConfigNode> {
    type Value = ConfigNode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value in a file")
    }

    fn visit_unit<E: Error>(self) -> Result<ConfigNode, E> {
        take()
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for TypeVisitor<Located<T>> {
    type Value = Located<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value in a file")
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let location = take()?.location();
        Ok(Located { value: T::deserialize(deserializer)?, location })
    }
}

impl<'de, S: Deserialize<'de>, N: Deserialize<'de>> Visitor<'de> for TypeVisitor<Either<S, N>> {
    type Value = Either<S, N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value in a file")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, short: D) -> Result<Self::Value, D::Error> {
        S::deserialize(short).map(Either::Short)
    }

    fn visit_some<D: Deserializer<'de>>(self, nested: D) -> Result<Self::Value, D::Error> {
        N::deserialize(nested).map(Either::Nested)
    }
}

macro_rules! by_name {
    ($($name:ident: $type:ty $(, $parameter:ident)*;)*) => {$(
        impl<'de $(, $parameter: Deserialize<'de>)*> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_newtype_struct($name, TypeVisitor::<Self>(PhantomData))
            }
        }
    )*};
}

by_name! {
    NODE: ConfigNode;
    LOCATED: Located<T>, T;
    EITHER: Either<S, N>, S, N;
}

impl<T: JsonSchema> JsonSchema for Located<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

impl<S: JsonSchema, N: JsonSchema> JsonSchema for Either<S, N> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("{} or {}", S::schema_name(), N::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let forms = [generator.subschema_for::<S>(), generator.subschema_for::<N>()];
        json_schema!({ "anyOf": forms })
    }
}
