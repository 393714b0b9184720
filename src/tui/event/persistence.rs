//! Commands and events of settings and remembered state.

use crate::tui::persisted_state::PersistedState;
use crate::tui::settings::ConsoleSettings;

/// What has to be read or written for the next start of the console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PersistenceEffect {
    /// Read `console.yaml` and the state of the last session.
    Load,
}

/// What was read, with its problems.
#[derive(Debug, Default)]
pub struct PersistenceEvent {
    /// The settings from `console.yaml`, or the defaults.
    pub settings: ConsoleSettings,
    /// The state of the last session; `None` when there is none that can be used.
    pub persisted: Option<PersistedState>,
    /// The problems in both files, each with its location.
    pub problems: Vec<String>,
}
