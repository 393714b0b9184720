//! The operations of a mailbox: send, receive with or without waiting, list.

use std::time::Duration;

use serde_json::{Value, json};

use super::message;
use crate::model::{Error, ToolResult};
use crate::providers::engines::kind::EngineCall;
use crate::providers::engines::{TakeOutcome, WriteCondition, WriteOutcome, WriteRequest};
use crate::util::clock::{Clock as _, SystemClock};
use crate::util::units::show_size;

pub(super) const MAX_MESSAGES: u64 = 100;

/// How long one call may wait for a message, in seconds.
pub(super) const MAX_WAIT_SECONDS: u64 = 240;

/// The first pause between two looks at an engine that cannot notify of arrivals, and the
/// longest; each is twice the one before.
const POLL_INTERVALS: (Duration, Duration) =
    (Duration::from_millis(20), Duration::from_millis(500));

const MAX_LISTED: usize = 1000;

fn mailbox(call: &EngineCall<'_>, name: &str) -> String {
    format!("{}/{name}", call.space)
}

pub(super) async fn send(call: EngineCall<'_>) -> Result<ToolResult, Error> {
    let arguments = call.arguments;
    let limits = &call.config.limits;
    let to = message::mailbox(arguments, "to", limits)?;
    let write = WriteRequest {
        space: mailbox(&call, to),
        // Numbered by the engine, so that they are received as they were accepted.
        key: None,
        value: message::encode_message(arguments, time(), limits)?,
        condition: WriteCondition::Any,
        quota: limits.quota,
        ttl: call.config.ttl,
    };
    let (message, data) = match call.engine.write(write).await? {
        WriteOutcome::Done { key, .. } => {
            return Ok(ToolResult::json(json!({ "id": key, "to": to })));
        }
        WriteOutcome::TooManyBytes => (
            format!("quota: all messages together may have {}", show_size(limits.quota.bytes)),
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
    Err(Error::tool(message).with_hint("messages must be received first").with_data(data))
}

/// The oldest messages of a mailbox; without any, those that come while the call waits. It watches
/// for the cancellation itself, because what was taken must be delivered.
pub(super) async fn receive(call: EngineCall<'_>) -> Result<ToolResult, Error> {
    let (arguments, cancel) = (call.arguments, &call.context.cancel);
    let name = message::mailbox(arguments, "name", &call.config.limits)?;
    let limit = arguments.count("limit", 1)?.unwrap_or(1).min(MAX_MESSAGES);
    let limit = usize::try_from(limit).unwrap_or(1);
    let keep = arguments.flag("keep")?;
    let wait = arguments.number("wait")?.unwrap_or_default();
    let most = Duration::from_secs(MAX_WAIT_SECONDS);
    let wait = Duration::try_from_secs_f64(wait).unwrap_or_default().min(most);
    let over = tokio::time::sleep(wait);
    tokio::pin!(over);
    let mut pause = POLL_INTERVALS.0;
    loop {
        // Listen before looking, or a message that arrives in between is missed.
        let arrival = call.engine.write_notify().map(|arrivals| {
            let mut arrival = Box::pin(arrivals.notified());
            arrival.as_mut().enable();
            arrival
        });
        let messages = take_available(&call, name, limit, keep).await?;
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
                return Err(Error::timeout(format!("no message arrived for '{name}' in time")));
            }
        }
    }
}

/// The oldest messages, taken unless they are kept. Others may take some of them first; then
/// the next ones are looked at.
async fn take_available(
    call: &EngineCall<'_>,
    name: &str,
    limit: usize,
    keep: bool,
) -> Result<Vec<Value>, Error> {
    let space = mailbox(call, name);
    let mut messages = Vec::new();
    loop {
        let page = call.engine.page(&space, "", None, limit - messages.len()).await?;
        for item in &page.items {
            match take(call, &space, name, &item.key, keep).await {
                Ok(message) => messages.extend(message),
                Err(error) if messages.is_empty() => return Err(error),
                // Messages already taken are not lost because of a later error.
                Err(_) => return Ok(messages),
            }
        }
        if page.items.is_empty() || messages.len() == limit || (keep && !messages.is_empty()) {
            return Ok(messages);
        }
    }
}

/// One message; none if another receiver was faster.
async fn take(
    call: &EngineCall<'_>,
    space: &str,
    name: &str,
    key: &str,
    keep: bool,
) -> Result<Option<Value>, Error> {
    let stored = if keep {
        call.engine.read(space, key).await?
    } else {
        match call.engine.take(space, key, None).await? {
            TakeOutcome::Removed(entry) => Some(entry),
            TakeOutcome::Absent | TakeOutcome::Conflict(_) => None,
        }
    };
    stored.map(|entry| message::decode_message(key, name, &entry.value)).transpose()
}

pub(super) async fn list(call: EngineCall<'_>) -> Result<ToolResult, Error> {
    let prefix = mailbox(&call, "");
    let mut spaces = call.engine.spaces(&prefix, MAX_LISTED + 1).await?;
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

fn time() -> String {
    let millis = i64::try_from(SystemClock.unix().as_millis()).unwrap_or_default();
    jiff::Timestamp::from_millisecond(millis).map(|at| at.to_string()).unwrap_or_default()
}
