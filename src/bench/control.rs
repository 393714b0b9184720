//! Pausing and stopping a run from outside.

use std::sync::Arc;

use tokio::sync::watch;

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
