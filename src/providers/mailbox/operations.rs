//! Sending, receiving and waiting.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::message;
use super::tools::{MAX_MESSAGES, MAX_WAIT_SECONDS};
use crate::model::{Error, JsonObject, ToolResult};
use crate::providers::engines::config::EngineConfig;
use crate::providers::engines::{Engine, TakeOutcome, WriteCondition, WriteOutcome, WriteRequest};
use crate::util::units::show_size;

/// The first pause between two looks at an engine that tells nobody about arrivals, and the
/// longest; each is twice the one before.
const POLL_INTERVALS: (Duration, Duration) =
    (Duration::from_millis(20), Duration::from_millis(500));

/// How many mailboxes are listed.
const MAX_LISTED: usize = 1000;

/// The mailboxes as one call sees them.
pub(super) struct MailboxOperations<'a> {
    pub(super) engine: &'a dyn Engine,
    pub(super) config: &'a EngineConfig,
    /// The part of the engine that is meant; a mailbox is a space in it.
    pub(super) space: String,
}

impl MailboxOperations<'_> {
    fn mailbox(&self, name: &str) -> String {
        format!("{}/{name}", self.space)
    }

    pub(super) async fn send(&self, given: &JsonObject, sent: String) -> Result<ToolResult, Error> {
        let limits = &self.config.limits;
        let to = message::mailbox(given, "to", limits)?;
        let write = WriteRequest {
            space: self.mailbox(to),
            // Numbered by the engine, so that they are received as they were accepted.
            key: None,
            value: message::encode_message(given, sent, limits)?,
            condition: WriteCondition::Any,
            quota: limits.quota,
            ttl: self.config.ttl,
        };
        let (message, data) = match self.engine.write(write).await? {
            WriteOutcome::Done { key, .. } => {
                return Ok(ToolResult::json(json!({ "id": key, "to": to })));
            }
            WriteOutcome::TooManyBytes => (
                format!("quota: all messages may have {} together", show_size(limits.quota.bytes)),
                json!({ "reason": "quota", "max_total_bytes": limits.quota.bytes }),
            ),
            WriteOutcome::TooManyKeys => (
                format!("quota: the mailbox '{to}' holds {} messages", limits.quota.keys),
                json!({ "reason": "quota", "max_keys": limits.quota.keys }),
            ),
            WriteOutcome::Conflict(_) => {
                return Err(Error::internal("a message without a condition met a conflict"));
            }
        };
        let error =
            Error::tool(&message).with_hint("somebody has to receive some first").with_data(data);
        Ok(ToolResult { error: Some(error), ..ToolResult::failure(message) })
    }

    pub(super) async fn receive(
        &self,
        given: &JsonObject,
        cancel: &CancellationToken,
    ) -> Result<ToolResult, Error> {
        let name = message::mailbox(given, "name", &self.config.limits)?;
        let limit = given.get("limit").and_then(Value::as_u64).unwrap_or(1).clamp(1, MAX_MESSAGES);
        let limit = usize::try_from(limit).unwrap_or(1);
        let keep = given.get("keep").and_then(Value::as_bool).unwrap_or_default();
        let wait = given.get("wait").and_then(Value::as_f64).unwrap_or_default();
        let most = Duration::from_secs(MAX_WAIT_SECONDS);
        let wait = Duration::try_from_secs_f64(wait).unwrap_or_default().min(most);
        let over = tokio::time::sleep(wait);
        tokio::pin!(over);
        let mut pause = POLL_INTERVALS.0;
        loop {
            // Listen before looking, or what comes in between is heard by nobody.
            let arrival = self.engine.write_notify().map(|arrivals| {
                let mut arrival = Box::pin(arrivals.notified());
                arrival.as_mut().enable();
                arrival
            });
            let messages = self.take_available(name, limit, keep).await?;
            if !messages.is_empty() || wait.is_zero() || over.is_elapsed() {
                return Ok(ToolResult::json(json!({ "messages": messages })));
            }
            let next = async {
                match arrival {
                    Some(arrival) => arrival.await,
                    None => tokio::time::sleep(pause).await,
                }
            };
            tokio::select! {
                () = next => pause = (pause * 2).min(POLL_INTERVALS.1),
                () = &mut over => {}
                () = cancel.cancelled() => {
                    return Err(Error::timeout(format!("no message came to '{name}' in time")));
                }
            }
        }
    }

    /// The oldest messages, taken unless they are kept. Others may take some of them first; then
    /// the next ones are looked at.
    async fn take_available(
        &self,
        name: &str,
        limit: usize,
        keep: bool,
    ) -> Result<Vec<Value>, Error> {
        let space = self.mailbox(name);
        loop {
            let page = self.engine.page(&space, "", None, limit).await?;
            let found = join_all(page.items.iter().map(|item| async {
                let letter = if keep {
                    self.engine.read(&space, &item.key).await?.map(|entry| entry.value)
                } else {
                    match self.engine.take(&space, &item.key, None).await? {
                        TakeOutcome::Removed(entry) => Some(entry.value),
                        TakeOutcome::Absent | TakeOutcome::Conflict(_) => None,
                    }
                };
                letter.map(|letter| message::decode_message(&item.key, name, &letter)).transpose()
            }))
            .await;
            let (mut messages, mut failed) = (Vec::new(), None);
            for one in found {
                match one {
                    Ok(message) => messages.extend(message),
                    Err(error) => failed = Some(error),
                }
            }
            match failed {
                // What was taken is not lost because something else went wrong.
                Some(error) if messages.is_empty() => return Err(error),
                _ if messages.is_empty() && !page.items.is_empty() => {}
                _ => return Ok(messages),
            }
        }
    }

    pub(super) async fn list(&self) -> Result<ToolResult, Error> {
        let prefix = self.mailbox("");
        let mut spaces = self.engine.spaces(&prefix, MAX_LISTED + 1).await?;
        let more = spaces.len() > MAX_LISTED;
        spaces.truncate(MAX_LISTED);
        let mailboxes: Vec<Value> = spaces
            .iter()
            .filter_map(|(space, messages)| {
                Some(json!({ "name": space.strip_prefix(&prefix)?, "messages": messages }))
            })
            .collect();
        Ok(ToolResult::json(json!({ "mailboxes": mailboxes, "more": more })))
    }
}
