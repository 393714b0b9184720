//! The operations of a store: read, write, list, delete, clear.
//!
//! Checks of a call's arguments that a schema cannot express (lengths in bytes), or that were
//! skipped because validation is off.

use serde_json::{Value, json};

use crate::model::{Error, ToolResult};
use crate::providers::arguments::Arguments;
use crate::providers::engines::config::EngineLimits;
use crate::providers::engines::kind::EngineCall;
use crate::providers::engines::{Quota, TakeOutcome, WriteCondition, WriteOutcome, WriteRequest};
use crate::util::spelling::did_you_mean;
use crate::util::units::show_size;

/// How many keys are looked at to find one that looks like a missing one.
const SUGGESTION_SCAN: usize = 1000;

pub(super) async fn read(call: EngineCall<'_>) -> Result<ToolResult, Error> {
    let key = key(call.arguments, &call.config.limits)?;
    let Some(entry) = call.engine.read(&call.space, key).await? else {
        return missing(&call, key).await;
    };
    let value: Value = serde_json::from_str(&entry.value).map_err(|error| {
        Error::protocol(format!("the value of '{key}' in the store is not JSON: {error}"))
    })?;
    let structured = json!({ "key": key, "value": value, "version": entry.version });
    Ok(ToolResult { structured: Some(structured), ..ToolResult::json(value) })
}

async fn missing(call: &EngineCall<'_>, key: &str) -> Result<ToolResult, Error> {
    let page = call.engine.page(&call.space, "", None, SUGGESTION_SCAN).await?;
    let keys = page.items.iter().map(|item| item.key.as_str());
    let hint = did_you_mean(key, keys).unwrap_or_else(|| {
        let is_empty = page.items.is_empty();
        if is_empty { "it has no keys" } else { "its 'list' tool shows the keys" }.into()
    });
    let error = Error::tool(format!("the store has no key '{key}'"));
    Err(error.with_hint(hint).with_data(json!({ "reason": "missing" })))
}

/// Writes a value to a key, if its condition is met and the quota allows it.
pub(super) async fn write(call: EngineCall<'_>) -> Result<ToolResult, Error> {
    let limits = &call.config.limits;
    let key = key(call.arguments, limits)?;
    let write = WriteRequest {
        space: call.space.clone(),
        key: Some(key.to_owned()),
        value: value(call.arguments, limits)?,
        condition: condition(call.arguments)?,
        quota: limits.quota,
        ttl: call.config.ttl,
    };
    let Quota { keys, bytes } = limits.quota;
    Err(match call.engine.write(write).await? {
        WriteOutcome::Done { key, version } => {
            return Ok(ToolResult::json(json!({ "key": key, "version": version })));
        }
        WriteOutcome::Conflict(at) => conflict(key, at),
        WriteOutcome::TooManyKeys => {
            Error::tool(format!("quota: the store already has {keys} keys, its limit"))
                .with_hint("delete some, or raise 'max_keys' of the entry")
                .with_data(json!({ "reason": "quota", "max_keys": keys }))
        }
        WriteOutcome::TooManyBytes => {
            Error::tool(format!("quota: the store may hold {} in total", show_size(bytes)))
                .with_hint("delete something, or raise 'max_total_bytes' of the entry")
                .with_data(json!({ "reason": "quota", "max_total_bytes": bytes }))
        }
    })
}

/// One page of the keys, and the cursor of the next page.
pub(super) async fn list(call: EngineCall<'_>) -> Result<ToolResult, Error> {
    let prefix = call.arguments.optional_text("prefix")?.unwrap_or_default();
    let after = call.arguments.optional_text("cursor")?;
    let limit = limit(call.arguments)?;
    let page = call.engine.page(&call.space, prefix, after, limit).await?;
    let cursor = page.items.last().filter(|_| page.more).map(|item| item.key.clone());
    Ok(ToolResult::json(json!({ "keys": page.items, "cursor": cursor })))
}

/// Deletes a key; one without a value is not a failure.
pub(super) async fn delete(call: EngineCall<'_>) -> Result<ToolResult, Error> {
    let key = key(call.arguments, &call.config.limits)?;
    let version = call.arguments.count("if_version", 0)?;
    match call.engine.take(&call.space, key, version).await? {
        TakeOutcome::Conflict(at) => Err(conflict(key, Some(at))),
        taken => {
            let existed = taken != TakeOutcome::Absent;
            Ok(ToolResult::json(json!({ "key": key, "existed": existed })))
        }
    }
}

pub(super) async fn clear(call: EngineCall<'_>) -> Result<ToolResult, Error> {
    let deleted = call.engine.clear(&call.space).await?;
    Ok(ToolResult::json(json!({ "deleted": deleted })))
}

fn conflict(key: &str, at: Option<u64>) -> Error {
    let message = match at {
        Some(at) => format!("conflict: '{key}' is at version {at}"),
        None => format!("conflict: '{key}' has no value"),
    };
    Error::tool(message)
        .with_hint("read it again, and write with its current version")
        .with_data(json!({ "reason": "conflict", "version": at }))
}

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
