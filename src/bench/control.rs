//! Pausing and stopping a run from outside.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Stops and pauses a run; clones are the same switches.
#[derive(Debug, Clone, Default)]
pub struct RunControl(Arc<Switches>);

#[derive(Debug, Default)]
struct Switches {
    stopped: CancellationToken,
    paused: AtomicBool,
    listeners: Mutex<Vec<Arc<Notify>>>,
}

impl RunControl {
    /// Makes no more calls; what is in flight may end.
    pub fn stop(&self) {
        self.0.stopped.cancel();
        self.notify_listeners();
    }

    /// Whether it was stopped.
    pub fn is_stopped(&self) -> bool {
        self.0.stopped.is_cancelled()
    }

    /// Makes no calls for now. What is in flight may end; the intended starts of an open load
    /// move by as long as the pause lasts, so that no call is late because of it.
    pub fn pause(&self) {
        self.0.paused.store(true, Ordering::Relaxed);
        self.notify_listeners();
    }

    /// Goes on after a pause.
    pub fn resume(&self) {
        self.0.paused.store(false, Ordering::Relaxed);
        self.notify_listeners();
    }

    /// Whether it is paused.
    pub fn is_paused(&self) -> bool {
        self.0.paused.load(Ordering::Relaxed)
    }

    pub(super) async fn stopped(&self) {
        self.0.stopped.cancelled().await;
    }

    /// Wakes `listener` whenever a switch is turned.
    pub(super) fn listen(&self, listener: Arc<Notify>) {
        self.0.listeners.lock().unwrap_or_else(PoisonError::into_inner).push(listener);
    }

    fn notify_listeners(&self) {
        let listeners = self.0.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        for listener in listeners.iter() {
            listener.notify_one();
        }
    }
}
