//! Sending, receiving and waiting.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::message;
use super::offers::{MOST_MESSAGES, MOST_WAIT};
use crate::model::{Fault, JsonObject, ToolResult};
use crate::providers::engines::choice::Choice;
use crate::providers::engines::{Condition, Engine, Taken, Write, Written};
use crate::util::units::show_size;

/// The first pause between two looks at an engine that tells nobody about arrivals, and the
/// longest; each is twice the one before.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// How many mailboxes are listed.
const MOST_LISTED: usize = 1000;

/// The mailboxes as one call sees them.
pub(super) struct Post<'a> {
    pub(super) engine: &'a dyn Engine,
    pub(super) choice: &'a Choice,
    /// The part of the engine that is meant; a mailbox is a space in it.
    pub(super) space: String,
}

impl Post<'_> {
    fn mailbox(&self, name: &str) -> String {
        format!("{}/{name}", self.space)
    }

    pub(super) async fn send(&self, given: &JsonObject, sent: String) -> Result<ToolResult, Fault> {
        let limits = &self.choice.limits;
        let to = message::mailbox(given, "to", limits)?;
        let write = Write {
            space: self.mailbox(to),
            // Numbered by the engine, so that they are received as they were accepted.
            key: None,
            value: message::letter(given, sent, limits)?,
            condition: Condition::Any,
            quota: limits.quota,
            ttl: self.choice.ttl,
        };
        let (message, data) = match self.engine.write(write).await? {
            Written::Done { key, .. } => {
                return Ok(ToolResult::json(json!({ "id": key, "to": to })));
            }
            Written::TooManyBytes => (
                format!("quota: all messages may have {} together", show_size(limits.quota.bytes)),
                json!({ "reason": "quota", "max_total_bytes": limits.quota.bytes }),
            ),
            Written::TooManyKeys => (
                format!("quota: the mailbox '{to}' holds {} messages", limits.quota.keys),
                json!({ "reason": "quota", "max_keys": limits.quota.keys }),
            ),
            Written::Conflict(_) => {
                return Err(Fault::internal("a message without a condition met a conflict"));
            }
        };
        let fault = Fault::tool(&message).hint("somebody has to receive some first").data(data);
        Ok(ToolResult { fault: Some(fault), ..ToolResult::failure(message) })
    }

    pub(super) async fn receive(
        &self,
        given: &JsonObject,
        cancel: &CancellationToken,
    ) -> Result<ToolResult, Fault> {
        let name = message::mailbox(given, "name", &self.choice.limits)?;
        let limit = given.get("limit").and_then(Value::as_u64).unwrap_or(1).clamp(1, MOST_MESSAGES);
        let limit = usize::try_from(limit).unwrap_or(1);
        let keep = given.get("keep").and_then(Value::as_bool).unwrap_or_default();
        let wait = given.get("wait").and_then(Value::as_f64).unwrap_or_default();
        let most = Duration::from_secs(MOST_WAIT);
        let wait = Duration::try_from_secs_f64(wait).unwrap_or_default().min(most);
        let over = tokio::time::sleep(wait);
        tokio::pin!(over);
        let mut pause = PAUSES.0;
        loop {
            // Listen before looking, or what comes in between is heard by nobody.
            let arrival = self.engine.arrivals().map(|arrivals| {
                let mut arrival = Box::pin(arrivals.notified());
                arrival.as_mut().enable();
                arrival
            });
            let messages = self.look(name, limit, keep).await?;
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
                () = next => pause = (pause * 2).min(PAUSES.1),
                () = &mut over => {}
                () = cancel.cancelled() => {
                    return Err(Fault::timeout(format!("no message came to '{name}' in time")));
                }
            }
        }
    }

    /// The oldest messages, taken unless they are kept. Others may take some of them first; then
    /// the next ones are looked at.
    async fn look(&self, name: &str, limit: usize, keep: bool) -> Result<Vec<Value>, Fault> {
        let space = self.mailbox(name);
        loop {
            let page = self.engine.page(&space, "", None, limit).await?;
            let found = join_all(page.items.iter().map(|item| async {
                let letter = if keep {
                    self.engine.read(&space, &item.key).await?.map(|entry| entry.value)
                } else {
                    match self.engine.take(&space, &item.key, None).await? {
                        Taken::Entry(entry) => Some(entry.value),
                        Taken::Absent | Taken::Conflict(_) => None,
                    }
                };
                letter.map(|letter| message::handed_out(&item.key, name, &letter)).transpose()
            }))
            .await;
            let (mut messages, mut failed) = (Vec::new(), None);
            for one in found {
                match one {
                    Ok(message) => messages.extend(message),
                    Err(fault) => failed = Some(fault),
                }
            }
            match failed {
                // What was taken is not lost because something else went wrong.
                Some(fault) if messages.is_empty() => return Err(fault),
                _ if messages.is_empty() && !page.items.is_empty() => {}
                _ => return Ok(messages),
            }
        }
    }

    pub(super) async fn list(&self) -> Result<ToolResult, Fault> {
        let prefix = self.mailbox("");
        let mut spaces = self.engine.spaces(&prefix, MOST_LISTED + 1).await?;
        let more = spaces.len() > MOST_LISTED;
        spaces.truncate(MOST_LISTED);
        let mailboxes: Vec<Value> = spaces
            .iter()
            .filter_map(|(space, messages)| {
                Some(json!({ "name": space.strip_prefix(&prefix)?, "messages": messages }))
            })
            .collect();
        Ok(ToolResult::json(json!({ "mailboxes": mailboxes, "more": more })))
    }
}
