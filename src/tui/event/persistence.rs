//! Commands and events of the settings and of what earlier runs left.

use std::collections::HashMap;

use crate::model::JsonObject;
use crate::tui::settings::ConsoleSettings;

/// What has to be read for the start of the console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PersistenceEffect {
    /// Read `console.yaml` and the newest calls of the history.
    Load,
}

/// What was read, with its problems.
#[derive(Debug, Default)]
pub struct PersistenceEvent {
    /// The settings from `console.yaml`, or the defaults.
    pub settings: ConsoleSettings,
    /// The last arguments of tools by their full names, without what was secret.
    pub arguments: HashMap<String, JsonObject>,
    pub problems: Vec<String>,
}
