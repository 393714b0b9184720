//! The members of a JSON-RPC object, without a tree of what is inside them.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// The members of a JSON-RPC object, each still text.
#[derive(Default)]
pub(in crate::mcp) struct Envelope<'a> {
    pub(in crate::mcp) jsonrpc: Option<&'a RawValue>,
    pub(in crate::mcp) id: Option<Value>,
    pub(in crate::mcp) method: Option<Value>,
    pub(in crate::mcp) params: Option<&'a RawValue>,
    pub(in crate::mcp) result: Option<&'a RawValue>,
    pub(in crate::mcp) error: Option<&'a RawValue>,
    pub(in crate::mcp) duplicate_keys: Vec<&'static str>,
}

/// The name of a member, compared in place.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum EnvelopeKey {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    #[serde(other)]
    Other,
}

impl<'a> Envelope<'a> {
    pub(in crate::mcp) fn read(text: &'a str) -> serde_json::Result<Self> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Envelope<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON-RPC object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Envelope<'de>, A::Error> {
                let mut e = Envelope::default();
                while let Some(key) = map.next_key()? {
                    match key {
                        EnvelopeKey::Jsonrpc => e.jsonrpc = Some(map.next_value()?),
                        EnvelopeKey::Id => e.take_id(map.next_value::<&RawValue>()?.get()),
                        EnvelopeKey::Method => e.method = Some(map.next_value()?),
                        EnvelopeKey::Params => e.params = Some(map.next_value()?),
                        EnvelopeKey::Result => {
                            if e.result.replace(map.next_value()?).is_some() {
                                e.note_duplicate_key("result");
                            }
                        }
                        EnvelopeKey::Error => e.error = Some(map.next_value()?),
                        EnvelopeKey::Other => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(e)
            }
        }
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let envelope = deserializer.deserialize_map(Members)?;
        deserializer.end()?;
        Ok(envelope)
    }

    /// The last of several ids counts, as in most readers of JSON; that there were several is a
    /// warning.
    fn take_id(&mut self, text: &str) {
        if self.id.replace(read_id(text)).is_some() {
            self.note_duplicate_key("id");
        }
    }

    fn note_duplicate_key(&mut self, key: &'static str) {
        if !self.duplicate_keys.contains(&key) {
            self.duplicate_keys.push(key);
        }
    }
}

/// The value of an id. One that nests too deep is invalid, as `null` is.
fn read_id(text: &str) -> Value {
    match text.parse::<i64>() {
        Ok(number) => number.into(),
        Err(_) => serde_json::from_str(text).unwrap_or(Value::Null),
    }
}
