//! Types of values that many keys share.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error as _, Unexpected};

use super::Either;
use crate::config::node::ConfigNode;
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
