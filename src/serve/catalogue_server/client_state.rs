//! Which notifications a client of the older era wants.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use super::changes::{CatalogueChange, ResourceWatch};
use super::exchange::DEFAULT_LEVEL;
use crate::util::lock::lock;

/// Which notifications a client of the older era wants.
pub(super) struct ClientState {
    takes_logs: bool,
    level: Mutex<Option<&'static str>>,
    watched: Mutex<HashMap<String, ResourceWatch>>,
    is_ready: AtomicBool,
}

impl ClientState {
    /// A client that set nothing. `takes_logs`: it gets every line a server logs, in addition to those
    /// of its own requests.
    pub(super) fn new(takes_logs: bool) -> Self {
        let (level, watched) = (Mutex::default(), Mutex::default());
        Self { takes_logs, level, watched, is_ready: AtomicBool::new(false) }
    }

    /// Notes that the client is ready; `false` when it had said so already.
    pub(super) fn make_ready(&self) -> bool {
        !self.is_ready.swap(true, Ordering::Relaxed)
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
