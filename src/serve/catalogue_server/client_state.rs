//! Which notifications a client of the older era wants.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::model::ServerNotification;
use tokio_util::sync::CancellationToken;

use super::changes::{ClientChange, Interests, ResourceWatch};
use super::exchange::DEFAULT_LEVEL;
use super::log_line::ServedLogLine;
use crate::model::ListKind;

/// Which notifications a client of the older era wants. An HTTP session keeps it while idle.
pub struct ClientState {
    takes_logs: bool,
    level: Mutex<Option<&'static str>>,
    watched: Mutex<HashMap<String, ResourceWatch>>,
    ended: CancellationToken,
}

impl ClientState {
    /// A client that set nothing. `takes_logs`: it gets every line a server logs, in addition to those
    /// of its own requests.
    pub fn new(takes_logs: bool) -> Self {
        let (level, watched) = (Mutex::default(), Mutex::default());
        Self { takes_logs, level, watched, ended: CancellationToken::new() }
    }

    /// Cancels what the client waits for: it ended its session.
    pub fn end(&self) {
        self.ended.cancel();
    }

    pub(super) fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    pub(in crate::serve) fn notifications(&self, change: &ClientChange) -> Vec<ServerNotification> {
        change.notifications(self)
    }

    pub(super) fn level(&self) -> Option<&'static str> {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_level(&self, level: Option<&'static str>) {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = level;
    }

    pub(super) fn watched(&self) -> MutexGuard<'_, HashMap<String, ResourceWatch>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Interests for ClientState {
    fn has_list(&self, _list: ListKind) -> bool {
        true
    }

    fn has_resource(&self, uri: &str) -> bool {
        self.watched().contains_key(uri)
    }

    fn has_line(&self, line: &ServedLogLine) -> bool {
        self.takes_logs && line.is_at_least(self.level().unwrap_or(DEFAULT_LEVEL))
    }
}
