//! Pausing and stopping a run from outside, and live snapshots of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::watch;

use super::meter::Meter;

/// Stops and pauses a run; clones are the same switches.
#[derive(Debug, Clone, Default)]
pub struct RunControl(Arc<watch::Sender<RunSwitches>>);

#[derive(Debug, Default)]
pub(super) struct RunSwitches {
    is_stopped: bool,
    is_paused: bool,
}

impl RunControl {
    /// Makes no more calls; what is in flight may end.
    pub fn stop(&self) {
        self.0.send_modify(|switches| switches.is_stopped = true);
    }

    /// Whether it was stopped.
    pub fn is_stopped(&self) -> bool {
        self.0.borrow().is_stopped
    }

    /// Makes no calls for now. What is in flight may end; the intended starts of an open load
    /// move by as long as the pause lasts, so that no call is late because of it.
    pub fn pause(&self) {
        self.0.send_modify(|switches| switches.is_paused = true);
    }

    /// Goes on after a pause.
    pub fn resume(&self) {
        self.0.send_modify(|switches| switches.is_paused = false);
    }

    /// Whether it is paused.
    pub fn is_paused(&self) -> bool {
        self.0.borrow().is_paused
    }

    pub(super) async fn stopped(&self) {
        let mut changes = self.0.subscribe();
        let _is_stopped = changes.wait_for(|switches| switches.is_stopped).await;
    }

    /// Tells when a switch is turned.
    pub(super) fn changes(&self) -> watch::Receiver<RunSwitches> {
        self.0.subscribe()
    }
}

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
