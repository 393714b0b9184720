//! Live snapshots of a run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::meter::Meter;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RunPhase {
    /// Ways to the tools are being opened.
    #[default]
    Connecting,
    /// Calls are made that do not count.
    WarmUp,
    /// Calls are made that count.
    Measuring,
    /// No more calls are made; answers are waited for.
    Draining,
    Done,
}

#[derive(Debug, Default)]
pub struct RunState {
    pub phase: RunPhase,
    /// When the first call that counts was made.
    pub began: Option<Instant>,
    /// The round or step that runs, from 1, and how many there are.
    pub round: Option<(u32, u32)>,
    pub targets: Vec<(String, Arc<Mutex<Meter>>)>,
}

/// A window on a run; clones look at the same one.
#[derive(Debug, Clone, Default)]
pub struct RunMonitor(Arc<Mutex<RunState>>);

impl RunMonitor {
    pub fn lock(&self) -> MutexGuard<'_, RunState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
