//! Which notifications a client of the older era wants.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use super::changes::{CatalogueChange, ResourceWatch};
use super::exchange::DEFAULT_LEVEL;
use crate::util::lock::lock;

/// Which notifications a client of the older era wants.
pub(super) struct ClientState {
    takes_logs: bool,
    level: Mutex<Option<&'static str>>,
    watched: Mutex<HashMap<String, ResourceWatch>>,
}

impl ClientState {
    /// A client that set nothing. `takes_logs`: it gets every line a server logs, in addition to those
    /// of its own requests.
    pub(super) fn new(takes_logs: bool) -> Self {
        Self { takes_logs, level: Mutex::default(), watched: Mutex::default() }
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

    pub(super) fn includes(&self, change: &CatalogueChange) -> bool {
        match change {
            CatalogueChange::List(_) => true,
            CatalogueChange::Resource(uri) => self.watched().contains_key(uri),
            CatalogueChange::Log { level, .. } => {
                self.takes_logs && !level.is_below(self.level().unwrap_or(DEFAULT_LEVEL))
            }
        }
    }
}
