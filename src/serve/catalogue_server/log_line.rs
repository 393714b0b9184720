//! Lines that servers and tools log, on their way to clients.
#![expect(deprecated, reason = "log lines are part of the older era, and deprecated in the newer")]

use rmcp::model::LoggingMessageNotificationParam;
use serde_json::Value;

use crate::model::LogLevel;
use crate::model::event::LOG_LEVELS;

/// A line, for the clients that want lines of its level.
#[derive(Debug, Clone)]
pub(in crate::serve) struct ServedLogLine {
    pub(in crate::serve) origin: String,
    pub(in crate::serve) level: LogLevel,
    pub(in crate::serve) text: String,
}

impl ServedLogLine {
    /// Whether it is at least as severe as `level`. An unknown level is below every level.
    pub(in crate::serve) fn is_at_least(&self, level: &str) -> bool {
        let place = |level: &str| LOG_LEVELS.iter().position(|name| *name == level);
        place(&self.level.0).zip(place(level)).is_some_and(|(own, other)| own >= other)
    }

    /// The line as sent; `None` when its level is not one of the protocol.
    pub(super) fn notification(self) -> Option<LoggingMessageNotificationParam> {
        let level = serde_json::from_value(Value::String(self.level.0)).ok()?;
        let mut line = LoggingMessageNotificationParam::new(level, Value::String(self.text));
        line.logger = Some(self.origin);
        Some(line)
    }
}

pub(super) fn known_level(level: rmcp::model::LoggingLevel) -> Option<&'static str> {
    let word = serde_json::to_value(level).ok()?;
    LOG_LEVELS.into_iter().find(|name| word.as_str() == Some(name))
}
