//! SIGINT, SIGTERM and SIGHUP as something that can be waited for.

use std::io;

use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

use crate::model::Signal;

/// The signals that end a run in an orderly way.
pub struct Signals {
    interrupt: Stream,
    terminate: Stream,
    hangup: Stream,
}

impl Signals {
    /// Takes the signals over from their default action, which would leave children behind.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            Some(()) = self.interrupt.recv() => Signal::Interrupt,
            Some(()) = self.terminate.recv() => Signal::Terminate,
            Some(()) = self.hangup.recv() => Signal::Hangup,
            else => std::future::pending().await,
        }
    }
}
