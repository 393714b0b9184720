//! Questions of ours that are answered by a letter.

use super::terminal_session::{TerminalInput, TerminalSession};
use crate::present::{Line, Page, Role};

const MAX_ATTEMPTS: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InboxChoice {
    Continue,
    Edit,
    Decline,
    Cancel,
}

/// Asks a question with single-letter answers until one of them is typed. `go` are the words to
/// continue; with `enter`, Enter also continues.
pub(super) async fn choose(
    session: &TerminalSession,
    words: &Line,
    go: &[&str],
    enter: bool,
) -> InboxChoice {
    for _ in 0..MAX_ATTEMPTS {
        let TerminalInput::Line(typed) = session.ask(Page::from(words.clone())).await else {
            return InboxChoice::Cancel;
        };
        match typed.trim().to_lowercase().as_str() {
            "d" | "decline" => return InboxChoice::Decline,
            "c" | "cancel" => return InboxChoice::Cancel,
            "e" | "edit" => return InboxChoice::Edit,
            "" if enter => return InboxChoice::Continue,
            word if go.contains(&word) => return InboxChoice::Continue,
            _ => {}
        }
    }
    InboxChoice::Cancel
}

/// One of our questions: its text, and what may be typed.
pub(super) fn choices(about: &str, rest: &str) -> Line {
    Line::styled(Role::Title, about).then(Role::Plain, format!(" {rest}:"))
}
