//! What is wanted of a person's settings and of what was remembered, and what comes of it.

use crate::tui::memory::Memory;
use crate::tui::settings::Settings;

/// Something to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// Read both.
    Recall,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct News {
    /// What a person set.
    pub settings: Settings,
    /// What was remembered.
    pub memory: Option<Memory>,
    /// What was wrong with either, each with its place.
    pub problems: Vec<String>,
}
