//! Checks of a call's arguments that a schema cannot express (lengths in bytes), or that were
//! skipped because validation is off.

use serde_json::Value;

use crate::model::{Error, JsonObject};
use crate::providers::engines::WriteCondition;
use crate::providers::engines::config::EngineLimits;
use crate::util::units::show_size;

/// How many keys a page has when the call does not say.
pub(super) const DEFAULT_PAGE_SIZE: u64 = 100;
pub(super) const MAX_PAGE_SIZE: u64 = 1000;

pub(super) fn key<'a>(arguments: &'a JsonObject, limits: &EngineLimits) -> Result<&'a str, Error> {
    let key = arguments
        .get("key")
        .and_then(Value::as_str)
        .ok_or_else(|| Error::usage("'key' must be text"))?;
    if key.is_empty() {
        return Err(Error::usage("'key' is empty"));
    }
    if key.contains('\0') {
        return Err(Error::usage("'key' contains a NUL character"));
    }
    if key.len() as u64 > limits.max_key_bytes {
        return Err(Error::usage(format!(
            "'key' has {} bytes; a key of this store can have at most {}",
            key.len(),
            limits.max_key_bytes
        )));
    }
    Ok(key)
}

pub(super) fn value(arguments: &JsonObject, limits: &EngineLimits) -> Result<String, Error> {
    let value = arguments.get("value").ok_or_else(|| Error::usage("'value' is missing"))?;
    let text = value.to_string();
    if text.len() as u64 > limits.max_value_bytes {
        return Err(Error::usage(format!(
            "'value' has {} as JSON; a value of this store can have at most {}",
            show_size(text.len() as u64),
            show_size(limits.max_value_bytes)
        ))
        .with_hint("'max_value_bytes' of the entry says how long a value may be"));
    }
    Ok(text)
}

pub(super) fn version(arguments: &JsonObject) -> Result<Option<u64>, Error> {
    match arguments.get("if_version") {
        None => Ok(None),
        Some(version) => version
            .as_u64()
            .map(Some)
            .ok_or_else(|| Error::usage("'if_version' must be a whole number")),
    }
}

pub(super) fn condition(arguments: &JsonObject) -> Result<WriteCondition, Error> {
    let absent = arguments.get("if_absent").and_then(Value::as_bool).unwrap_or_default();
    match (version(arguments)?, absent) {
        (Some(_), true) => Err(Error::usage("'if_version' and 'if_absent' exclude each other")),
        (Some(version), false) => Ok(WriteCondition::Version(version)),
        (None, true) => Ok(WriteCondition::Absent),
        (None, false) => Ok(WriteCondition::Any),
    }
}

pub(super) fn limit(arguments: &JsonObject) -> usize {
    let limit = arguments.get("limit").and_then(Value::as_u64).unwrap_or(DEFAULT_PAGE_SIZE);
    usize::try_from(limit.clamp(1, MAX_PAGE_SIZE)).unwrap_or_default()
}

pub(super) fn text<'a>(arguments: &'a JsonObject, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str)
}
