//! Live snapshots of a run.
//!
//! Owns: what a front end may see of a run that is not over. A snapshot holds a lock of the run for
//! a moment, and is only taken on request.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::meter::Meter;

/// Where a run is.
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
    /// It is over.
    Done,
}

/// What there is to see of a run.
#[derive(Debug, Default)]
pub struct RunState {
    /// The phase of the run.
    pub phase: RunPhase,
    /// When the first call that counts was made.
    pub began: Option<Instant>,
    /// The round or step that runs, from 1, and how many there are.
    pub round: Option<(u32, u32)>,
    /// The full name of each target and what is metered of it.
    pub targets: Vec<(String, Arc<Mutex<Meter>>)>,
}

/// A window on a run; clones look at the same one.
#[derive(Debug, Clone, Default)]
pub struct RunMonitor(Arc<Mutex<RunState>>);

impl RunMonitor {
    /// Locks the present state. The run waits while the guard is held.
    pub fn lock(&self) -> MutexGuard<'_, RunState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
