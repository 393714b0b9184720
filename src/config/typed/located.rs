//! Types that serde has no name for: a value with its place, a value as written, a short form.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};

use crate::config::node::ConfigNode;
use crate::model::{Diagnostic, SourceLocation};

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
