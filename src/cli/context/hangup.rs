//! SIGHUP, which ends a run unless the command handles it as a request.

use std::sync::Arc;

use tokio::sync::Notify;

use super::CommandContext;

pub(super) struct HangupListener {
    asked: Arc<Notify>,
    had_terminal: bool,
}

fn has_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

impl CommandContext {
    /// From now on, treats SIGHUP as a request, as servers do, and notifies the command. If the
    /// terminal is closed, it still ends the run.
    pub fn take_hangup(&self) -> Arc<Notify> {
        let listener = || HangupListener { asked: Arc::default(), had_terminal: has_terminal() };
        Arc::clone(&self.hangup.get_or_init(listener).asked)
    }

    /// Passes SIGHUP to the command if it handles it; otherwise ends the run.
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
