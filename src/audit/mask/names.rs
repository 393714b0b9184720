//! Recognising secret arguments by their schema or their name.

use serde_json::Value;

use crate::util::schema;
use crate::util::text::identifier_words;

/// How many `$ref`s are followed to find a property's schema.
const MAX_REFS: usize = 16;

pub fn is_marked(schema: &Value) -> bool {
    let says = |key: &str| schema.get(key).and_then(Value::as_bool).unwrap_or(false);
    says("writeOnly")
        || says("x-secret")
        || schema.get("format").and_then(Value::as_str) == Some("password")
}

/// Whether a property's name calls it secret: `password`, `api_key`, `authToken`, … Plurals of
/// `token` are counts more often than secrets.
pub fn is_secret_argument(key: &str) -> bool {
    let words = identifier_words(key);
    let has = |word: &str| words.iter().any(|w| w == word);
    let pair = |a: &str, b: &str| words.windows(2).any(|w| w[0] == a && w[1] == b);
    ["password", "passwd", "passphrase", "pwd", "secret", "secrets", "token", "apikey"]
        .iter()
        .any(|word| has(word))
        || ["authorization", "credential", "credentials", "bearer", "cookie"].iter().any(|w| has(w))
        || pair("api", "key")
        || pair("access", "key")
        || pair("private", "key")
}

/// Numbers and booleans under a telling name (`token: 5`) are no secrets.
pub(super) fn is_maskable(value: &Value) -> bool {
    matches!(value, Value::String(_) | Value::Array(_) | Value::Object(_))
}

pub(super) fn resolve<'a>(mut schema: &'a Value, root: &'a Value) -> Option<&'a Value> {
    for _ in 0..MAX_REFS {
        if schema.get("$ref").is_none() || is_marked(schema) {
            return Some(schema);
        }
        schema = schema::referenced(root, schema)?;
    }
    None
}
