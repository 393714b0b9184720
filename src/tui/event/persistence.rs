//! What is wanted of a person's settings and of what was remembered, and what comes of it.

use crate::tui::persisted_state::PersistedState;
use crate::tui::settings::ConsoleSettings;

/// Something to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PersistenceEffect {
    /// Read both.
    Load,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct PersistenceEvent {
    /// What a person set.
    pub settings: ConsoleSettings,
    /// What was remembered.
    pub persisted: Option<PersistedState>,
    /// What was wrong with either, each with its place.
    pub problems: Vec<String>,
}
