//! Checks of a call's arguments that a schema cannot express (lengths in bytes), or that were
//! skipped because validation is off.

use crate::model::Error;
use crate::providers::arguments::Arguments;
use crate::providers::engines::WriteCondition;
use crate::providers::engines::config::EngineLimits;
use crate::util::units::show_size;

/// How many keys a page has when the call does not say.
pub(super) const DEFAULT_PAGE_SIZE: u64 = 100;
pub(super) const MAX_PAGE_SIZE: u64 = 1000;

pub(super) fn key<'a>(arguments: Arguments<'a>, limits: &EngineLimits) -> Result<&'a str, Error> {
    let key = arguments.text("key")?;
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

pub(super) fn value(arguments: Arguments<'_>, limits: &EngineLimits) -> Result<String, Error> {
    let value = arguments.0.get("value").ok_or_else(|| Error::usage("'value' is missing"))?;
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

pub(super) fn condition(arguments: Arguments<'_>) -> Result<WriteCondition, Error> {
    if arguments.0.get("if_version").is_some_and(serde_json::Value::is_null) {
        // Taken for none, it would write what was to be written only on a condition.
        return Err(Error::usage("'if_version' must be a whole number, 0 or more"));
    }
    match (arguments.count("if_version", 0)?, arguments.flag("if_absent")?) {
        (Some(_), true) => Err(Error::usage("'if_version' and 'if_absent' exclude each other")),
        (Some(version), false) => Ok(WriteCondition::Version(version)),
        (None, true) => Ok(WriteCondition::Absent),
        (None, false) => Ok(WriteCondition::Any),
    }
}

pub(super) fn limit(arguments: Arguments<'_>) -> Result<usize, Error> {
    let limit = arguments.count("limit", 1)?.unwrap_or(DEFAULT_PAGE_SIZE).min(MAX_PAGE_SIZE);
    Ok(usize::try_from(limit).unwrap_or_default())
}
