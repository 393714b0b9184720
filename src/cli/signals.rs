//! SIGINT, SIGTERM and SIGHUP as a future.

use std::io;

use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

use crate::model::Signal;

pub struct Signals {
    interrupt: Stream,
    terminate: Stream,
    hangup: Stream,
}

impl Signals {
    /// Replaces the default action of the signals, which would leave children behind.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }
}

/// Replaces the default action of SIGXFSZ for the rest of this process, so that exceeding a file
/// size limit (`ulimit -f`) is a write error instead of the end of the process. Children are not
/// affected: a handler does not survive `exec`.
pub fn ignore_file_size_signal() -> io::Result<()> {
    // Without a limit it is never sent, and building a runtime for it would be wasted.
    if rustix::process::getrlimit(rustix::process::Resource::Fsize).current.is_none() {
        return Ok(());
    }
    // A handler outlives the runtime that installed it.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _inside = runtime.enter();
    signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).map(drop)
}

pub trait NextSignal {
    fn next(&mut self) -> impl Future<Output = Signal>;
}

impl NextSignal for Signals {
    async fn next(&mut self) -> Signal {
        tokio::select! {
            Some(()) = self.interrupt.recv() => Signal::Interrupt,
            Some(()) = self.terminate.recv() => Signal::Terminate,
            Some(()) = self.hangup.recv() => Signal::Hangup,
            else => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{Signal as Number, getpid, kill_process};

    use super::*;

    #[test]
    fn real_signals_are_delivered_and_do_not_end_the_process() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut signals = Signals::new().unwrap();
            for (number, signal) in [
                (Number::INT, Signal::Interrupt),
                (Number::TERM, Signal::Terminate),
                (Number::HUP, Signal::Hangup),
            ] {
                kill_process(getpid(), number).unwrap();
                assert_eq!(signals.next().await, signal);
            }
        });
    }
}
