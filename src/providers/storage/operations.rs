//! What the tools of a store do.

use serde_json::{Value, json};

use super::arguments;
use crate::catalogue::naming::nearest;
use crate::model::{Error, JsonObject, ToolResult};
use crate::providers::engines::config::EngineConfig;
use crate::providers::engines::{Engine, TakeOutcome, WriteOutcome, WriteRequest};
use crate::util::units::show_size;

/// How many keys are looked at to find one that looks like a missing one.
const SUGGESTION_SCAN: usize = 1000;

/// A store as one call sees it.
pub(super) struct StoreOperations<'a> {
    pub(super) engine: &'a dyn Engine,
    pub(super) config: &'a EngineConfig,
    /// The part of the engine that is meant.
    pub(super) space: String,
}

impl StoreOperations<'_> {
    pub(super) async fn read(&self, given: &JsonObject) -> Result<ToolResult, Error> {
        let key = arguments::key(given, &self.config.limits)?;
        let Some(entry) = self.engine.read(&self.space, key).await? else {
            return self.missing(key).await;
        };
        let value: Value = serde_json::from_str(&entry.value).map_err(|error| {
            Error::protocol(format!("what the store holds under '{key}' is no JSON: {error}"))
        })?;
        let structured = json!({ "key": key, "value": value, "version": entry.version });
        Ok(ToolResult { structured: Some(structured), ..ToolResult::json(value) })
    }

    async fn missing(&self, key: &str) -> Result<ToolResult, Error> {
        let page = self.engine.page(&self.space, "", None, SUGGESTION_SCAN).await?;
        let near = nearest(key, page.items.iter().map(|item| item.key.as_str()));
        let hint = match near {
            Some(near) => format!("did you mean '{near}'?"),
            None if page.items.is_empty() => "it holds no keys at all".to_owned(),
            None => "its 'list' tool shows the keys".to_owned(),
        };
        Ok(failure_result(
            format!("the store holds no key '{key}'"),
            hint,
            json!({ "reason": "missing" }),
        ))
    }

    pub(super) async fn write(&self, given: &JsonObject) -> Result<ToolResult, Error> {
        let limits = &self.config.limits;
        let key = arguments::key(given, limits)?;
        let write = WriteRequest {
            space: self.space.clone(),
            key: Some(key.to_owned()),
            value: arguments::value(given, limits)?,
            condition: arguments::condition(given)?,
            quota: limits.quota,
            ttl: self.config.ttl,
        };
        Ok(match self.engine.write(write).await? {
            WriteOutcome::Done { key, version } => {
                ToolResult::json(json!({ "key": key, "version": version }))
            }
            WriteOutcome::Conflict(at) => conflict(key, at),
            WriteOutcome::TooManyKeys => failure_result(
                format!("quota: the store holds {} keys, as many as it may", limits.quota.keys),
                "delete some, or raise 'max_keys' of the entry".to_owned(),
                json!({ "reason": "quota", "max_keys": limits.quota.keys }),
            ),
            WriteOutcome::TooManyBytes => failure_result(
                format!("quota: the store may hold {} in all", show_size(limits.quota.bytes)),
                "delete something, or raise 'max_total_bytes' of the entry".to_owned(),
                json!({ "reason": "quota", "max_total_bytes": limits.quota.bytes }),
            ),
        })
    }

    pub(super) async fn list(&self, given: &JsonObject) -> Result<ToolResult, Error> {
        let prefix = arguments::text(given, "prefix").unwrap_or_default();
        let after = arguments::text(given, "cursor");
        let limit = arguments::limit(given);
        let page = self.engine.page(&self.space, prefix, after, limit).await?;
        let cursor = page.items.last().filter(|_| page.more).map(|item| item.key.clone());
        let keys: Vec<Value> = page
            .items
            .into_iter()
            .map(|item| json!({ "key": item.key, "version": item.version, "bytes": item.bytes }))
            .collect();
        Ok(ToolResult::json(json!({ "keys": keys, "cursor": cursor })))
    }

    pub(super) async fn delete(&self, given: &JsonObject) -> Result<ToolResult, Error> {
        let key = arguments::key(given, &self.config.limits)?;
        let version = arguments::version(given)?;
        Ok(match self.engine.take(&self.space, key, version).await? {
            TakeOutcome::Conflict(at) => conflict(key, Some(at)),
            taken => {
                let existed = taken != TakeOutcome::Absent;
                ToolResult::json(json!({ "key": key, "existed": existed }))
            }
        })
    }

    pub(super) async fn clear(&self) -> Result<ToolResult, Error> {
        let deleted = self.engine.clear(&self.space).await?;
        Ok(ToolResult::json(json!({ "deleted": deleted })))
    }
}

fn conflict(key: &str, at: Option<u64>) -> ToolResult {
    let message = match at {
        Some(at) => format!("conflict: '{key}' is at version {at}"),
        None => format!("conflict: '{key}' holds nothing"),
    };
    let hint = "read it again, and write with the version it has then".to_owned();
    failure_result(message, hint, json!({ "reason": "conflict", "version": at }))
}

/// A well-formed no.
fn failure_result(message: String, hint: String, data: Value) -> ToolResult {
    let error = Error::tool(&message).with_hint(hint).with_data(data);
    ToolResult { error: Some(error), ..ToolResult::failure(message) }
}
