//! Draws the servers view.

mod health;
mod table;

#[cfg(test)]
mod tests;

use crate::model::{ServerState, ServerStatus};
use crate::tui::theme::StyleRole;

pub(super) use health::health;
pub(super) use table::list;

pub(super) fn dot(server: &ServerStatus) -> (&'static str, StyleRole) {
    let (_, role) = state_of(server);
    let dot = match server.state {
        ServerState::Ready => "●",
        ServerState::Failed(_) => "✗",
        ServerState::Starting => "◐",
        ServerState::Idle | ServerState::Closed | ServerState::Untrusted(_) => "○",
    };
    (dot, role)
}

fn state_of(server: &ServerStatus) -> (String, StyleRole) {
    let meaning = match server.state {
        ServerState::Ready => StyleRole::Success,
        ServerState::Failed(_) => StyleRole::Error,
        ServerState::Starting | ServerState::Untrusted(_) => StyleRole::Warning,
        ServerState::Idle | ServerState::Closed => StyleRole::Dim,
    };
    (server.state.as_str().to_owned(), meaning)
}

/// A time that goes on: `41:07`, `1:02:33`.
fn clock(time: std::time::Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}
