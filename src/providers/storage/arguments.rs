//! The arguments of a call, checked once more: what the schema cannot say (lengths in bytes), and
//! what a caller who switched validation off may have sent.

use serde_json::Value;

use super::offers::{MOST_PAGE, PAGE};
use crate::model::{Fault, JsonObject};
use crate::providers::engines::Condition;
use crate::providers::engines::choice::Limits;
use crate::util::units::show_size;

/// The key of a call.
///
/// # Errors
/// A usage fault when there is none, or it cannot be one.
pub(super) fn key<'a>(arguments: &'a JsonObject, limits: &Limits) -> Result<&'a str, Fault> {
    let key = arguments
        .get("key")
        .and_then(Value::as_str)
        .ok_or_else(|| Fault::usage("'key' has to be a text"))?;
    if key.is_empty() {
        return Err(Fault::usage("'key' is empty"));
    }
    if key.contains('\0') {
        return Err(Fault::usage("'key' holds a NUL character"));
    }
    if key.len() as u64 > limits.key {
        return Err(Fault::usage(format!(
            "'key' has {} bytes; a key of this store has at most {}",
            key.len(),
            limits.key
        )));
    }
    Ok(key)
}

/// The value of a call, as JSON text.
///
/// # Errors
/// A usage fault when there is none, or it is too long.
pub(super) fn value(arguments: &JsonObject, limits: &Limits) -> Result<String, Fault> {
    let value = arguments.get("value").ok_or_else(|| Fault::usage("'value' is missing"))?;
    let text = value.to_string();
    if text.len() as u64 > limits.value {
        return Err(Fault::usage(format!(
            "'value' has {} as JSON; a value of this store has at most {}",
            show_size(text.len() as u64),
            show_size(limits.value)
        ))
        .hint("'max_value_bytes' of the entry says how long a value may be"));
    }
    Ok(text)
}

/// A version that is asked for.
///
/// # Errors
/// A usage fault when it is no whole number.
pub(super) fn version(arguments: &JsonObject) -> Result<Option<u64>, Fault> {
    match arguments.get("if_version") {
        None => Ok(None),
        Some(version) => version
            .as_u64()
            .map(Some)
            .ok_or_else(|| Fault::usage("'if_version' has to be a whole number")),
    }
}

/// What has to hold for a write.
///
/// # Errors
/// A usage fault when the two conditions contradict each other.
pub(super) fn condition(arguments: &JsonObject) -> Result<Condition, Fault> {
    let absent = arguments.get("if_absent").and_then(Value::as_bool).unwrap_or_default();
    match (version(arguments)?, absent) {
        (Some(_), true) => Err(Fault::usage("'if_version' and 'if_absent' exclude each other")),
        (Some(version), false) => Ok(Condition::Version(version)),
        (None, true) => Ok(Condition::Absent),
        (None, false) => Ok(Condition::Any),
    }
}

/// How many keys a page has.
pub(super) fn limit(arguments: &JsonObject) -> usize {
    let limit = arguments.get("limit").and_then(Value::as_u64).unwrap_or(PAGE);
    usize::try_from(limit.clamp(1, MOST_PAGE)).unwrap_or_default()
}

/// A text that may be absent.
pub(super) fn text<'a>(arguments: &'a JsonObject, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str)
}
