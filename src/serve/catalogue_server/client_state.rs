//! Which notifications a client of the older era wants.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use tokio_util::sync::CancellationToken;

use super::changes::{CatalogueChange, Interests, ResourceWatch};
use super::exchange::DEFAULT_LEVEL;
use crate::util::lock::lock;

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

    pub(super) fn level(&self) -> Option<&'static str> {
        *lock(&self.level)
    }

    pub(super) fn set_level(&self, level: Option<&'static str>) {
        *lock(&self.level) = level;
    }

    pub(super) fn watched(&self) -> MutexGuard<'_, HashMap<String, ResourceWatch>> {
        lock(&self.watched)
    }
}

impl Interests for ClientState {
    fn includes(&self, change: &CatalogueChange) -> bool {
        match change {
            CatalogueChange::List(_) => true,
            CatalogueChange::Resource(uri) => self.watched().contains_key(uri),
            CatalogueChange::Log { level, .. } => {
                self.takes_logs && !level.is_below(self.level().unwrap_or(DEFAULT_LEVEL))
            }
        }
    }
}
