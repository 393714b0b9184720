//! SIGHUP, which ends a run, unless the command takes it for a request.
//!
//! Owns: who is told of it, and that a terminal which goes away still ends the run. Never does: listen
//! for signals.

use std::sync::Arc;

use tokio::sync::Notify;

use super::CommandContext;

/// Who is told of SIGHUP.
pub(super) struct HangupListener {
    asked: Arc<Notify>,
    had_terminal: bool,
}

/// Whether this process has a terminal that is still there.
fn has_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

impl CommandContext {
    /// Takes SIGHUP for a request from now on, as servers do, and tells of it. When the terminal of
    /// the run goes away it ends the run as ever.
    pub fn take_hangup(&self) -> Arc<Notify> {
        let listener = || HangupListener { asked: Arc::default(), had_terminal: has_terminal() };
        Arc::clone(&self.hangup.get_or_init(listener).asked)
    }

    /// Hands SIGHUP to the command, if it takes it; otherwise it ends the run.
    pub fn hand_on_hangup(&self) -> bool {
        match self.hangup.get() {
            Some(listener) if !listener.had_terminal || has_terminal() => {
                listener.asked.notify_one();
                true
            }
            _ => false,
        }
    }
}
