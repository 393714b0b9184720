//! The keys of a type, and its JSON Schema.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::MapDeserializer;
use serde::de::{DeserializeOwned, Deserializer, Error, Visitor};
use serde_json::{Map, Value, json};

/// The keys of a type that reads a part of an entry.
#[derive(Debug, Clone, Copy)]
pub struct Keys {
    spellings: fn() -> &'static [&'static str],
    schema: fn(&mut SchemaGenerator) -> Schema,
}

impl Keys {
    pub const fn of<T: DeserializeOwned + JsonSchema>() -> Self {
        Self { spellings: names::<T>, schema: T::json_schema }
    }

    /// All of them, in all spellings.
    pub fn spellings(self) -> &'static [&'static str] {
        (self.spellings)()
    }

    /// The properties of an object with these keys.
    pub fn properties(self, generator: &mut SchemaGenerator) -> Map<String, Value> {
        match (self.schema)(generator).remove("properties") {
            Some(Value::Object(properties)) => properties,
            _ => Map::new(),
        }
    }
}

/// Completes the schema of a struct: the other spellings of its keys, and that it has no more keys.
pub fn object<T: DeserializeOwned>(schema: &mut Schema) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for property in properties.values_mut() {
            if let Some(Value::String(text)) = property.get_mut("description") {
                *text = text.replace('\n', " ");
            }
        }
        for spelling in names::<T>() {
            let same = key_name::<T>(spelling).and_then(|name| Some((name, properties.get(name)?)));
            let Some((name, property)) = same.filter(|(name, _)| name != spelling) else {
                continue;
            };
            let mut property = property.clone();
            let about = property.get("description").and_then(Value::as_str).unwrap_or_default();
            property["description"] = format!("Another spelling of '{name}'. {about}").into();
            properties.insert((*spelling).to_owned(), property);
        }
    }
    schema.insert("patternProperties".to_owned(), json!({ "^x-": true }));
    schema.insert("additionalProperties".to_owned(), json!(false));
}

/// Completes the schema of an enum of words that have other spellings.
pub fn words<T: DeserializeOwned>(schema: &mut Schema) {
    schema.remove("oneOf");
    schema.remove("type");
    let words = names::<T>().iter().map(|word| match *word {
        "true" => json!(true),
        "false" => json!(false),
        word => json!(word),
    });
    schema.insert("enum".to_owned(), words.collect());
}

/// The keys of a struct or the words of an enum, in all spellings.
pub fn names<T: DeserializeOwned>() -> &'static [&'static str] {
    match T::deserialize(NamesProbe) {
        Err(Answer::Names(names)) => names,
        _ => &[],
    }
}

/// The name of the key that has this spelling; `None` if the type has no such key.
pub fn canonical<T: DeserializeOwned>(spelling: &str) -> Option<&'static str> {
    names::<T>().iter().find(|name| **name == spelling).and_then(|name| key_name::<T>(name))
}

/// The name of the key that has this spelling: serde says it when a key stands twice in a mapping.
fn key_name<T: DeserializeOwned>(spelling: &'static str) -> Option<&'static str> {
    let twice = MapDeserializer::new([(spelling, ()), (spelling, ())].into_iter());
    match T::deserialize(twice) {
        Err(Answer::Name(name)) => Some(name),
        _ => None,
    }
}

/// What a type answers to a question that it takes for something to read.
#[derive(Debug)]
enum Answer {
    Names(&'static [&'static str]),
    Name(&'static str),
    Nothing,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Answer {}

impl Error for Answer {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::Nothing
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::Name(field)
    }
}

struct NamesProbe;

impl<'de> Deserializer<'de> for NamesProbe {
    type Error = Answer;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Answer> {
        Err(Answer::Nothing)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Answer> {
        Err(Answer::Names(fields))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        words: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Answer> {
        Err(Answer::Names(words))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map identifier ignored_any
    }
}
