//! The demo server: what its requests share, and which era a request belongs to.
#![expect(deprecated, reason = "logging is deprecated in the newest revision, and a demo shows it")]

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{LoggingLevel, ProtocolVersion};
use rmcp::service::RequestContext;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::notes::Notes;

/// The demo server: answers MCP requests of one client.
#[derive(Debug)]
pub struct DemoServer {
    pub(super) notes: Notes,
    pub(super) client_gone: CancellationToken,
    min_log_level: AtomicU8,
    pub(super) started: Instant,
    /// Ends the telling that a client of the older era subscribed to.
    legacy_ticker: Mutex<Option<CancellationToken>>,
}

impl Default for DemoServer {
    fn default() -> Self {
        Self {
            notes: Notes::default(),
            client_gone: CancellationToken::new(),
            min_log_level: AtomicU8::new(severity(LoggingLevel::Info)),
            started: Instant::now(),
            legacy_ticker: Mutex::default(),
        }
    }
}

impl DemoServer {
    /// Whether the client of this request wants log messages of `level`.
    ///
    /// On 2026-07-28 a request asks for its own messages; before, one level holds for the session.
    pub(super) fn wants_log(
        &self,
        level: LoggingLevel,
        context: &RequestContext<RoleServer>,
    ) -> bool {
        let minimum = if is_modern(context) {
            match context.meta.log_level() {
                Some(minimum_level) => severity(minimum_level),
                None => return false,
            }
        } else {
            self.min_log_level.load(Ordering::Relaxed)
        };
        severity(level) >= minimum
    }

    pub(super) fn set_log_level(&self, level: LoggingLevel) {
        self.min_log_level.store(severity(level), Ordering::Relaxed);
    }

    /// Replaces the token that stops the legacy ticker; the earlier ticker ends.
    pub(super) fn replace_legacy_ticker(&self, stop: Option<CancellationToken>) {
        let mut telling = self.legacy_ticker.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(earlier) = std::mem::replace(&mut *telling, stop) {
            earlier.cancel();
        }
    }
}

pub(super) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// The order of syslog: the more severe, the larger.
fn severity(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}
