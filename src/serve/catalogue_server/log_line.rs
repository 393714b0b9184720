//! Lines that servers and tools log, on their way to clients.
#![expect(deprecated, reason = "log lines are part of the older era, and deprecated in the newer")]

use rmcp::model::{LoggingMessageNotificationParam, Notification, ServerNotification};
use serde_json::Value;

use crate::model::LogLevel;
use crate::model::event::LOG_LEVELS;

/// A line as sent; `None` when its level is not one of the protocol.
pub(super) fn notification(
    origin: String,
    level: LogLevel,
    text: String,
) -> Option<ServerNotification> {
    let level = serde_json::from_value(Value::String(level.0)).ok()?;
    let line = LoggingMessageNotificationParam::new(level, Value::String(text)).with_logger(origin);
    Some(ServerNotification::LoggingMessageNotification(Notification::new(line)))
}

pub(super) fn known_level(level: rmcp::model::LoggingLevel) -> Option<&'static str> {
    let word = serde_json::to_value(level).ok()?;
    LOG_LEVELS.into_iter().find(|name| word.as_str() == Some(name))
}
