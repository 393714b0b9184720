//! The in-memory notes behind `delete_note` and `demo://notes/{name}`.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Notes by name. Cheap to read, forgotten at the end of the process.
#[derive(Debug)]
pub(super) struct Notes(Mutex<BTreeMap<&'static str, &'static str>>);

impl Default for Notes {
    fn default() -> Self {
        Self(Mutex::new(BTreeMap::from([
            ("draft", "A note that may go."),
            ("ideas", "A tool that lists tools."),
            ("shopping", "Tea, bread, a longer cable."),
        ])))
    }
}

impl Notes {
    pub(super) fn read(&self, name: &str) -> Option<&'static str> {
        self.lock().get(name).copied()
    }

    /// Removes a note; says whether there was one.
    pub(super) fn delete(&self, name: &str) -> bool {
        self.lock().remove(name).is_some()
    }

    pub(super) fn names(&self) -> Vec<&'static str> {
        self.lock().keys().copied().collect()
    }

    // A panic elsewhere cannot leave the map half changed: every change is one call.
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<&'static str, &'static str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
