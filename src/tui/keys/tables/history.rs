//! Keys in the calls of the past.

use super::{KeyTable, alias_binding, footer_binding, help_binding};
use crate::tui::keys::{Action, KeyContext, KeyPress};

pub(super) const HISTORY: KeyTable = KeyTable {
    context: KeyContext::History,
    title: "in the history",
    bindings: &[
        footer_binding(KeyPress::Enter, Action::Open, "open", "go to the chosen call"),
        footer_binding(
            KeyPress::Char('/'),
            Action::Filter,
            "find",
            "find by a few letters; tool:GLOB failed:yes since:1h session:this !word narrow it",
        ),
        footer_binding(
            KeyPress::Char('r'),
            Action::Replay,
            "replay",
            "call again with the same arguments; what was secret is asked for",
        ),
        footer_binding(
            KeyPress::Char('R'),
            Action::ReplayEdited,
            "edit and replay",
            "look at the arguments, then call again",
        ),
        footer_binding(
            KeyPress::Char('m'),
            Action::Mark,
            "mark",
            "mark the call, to compare another with it",
        ),
        footer_binding(
            KeyPress::Char('d'),
            Action::Diff,
            "diff",
            "how it differs from the marked call, or from the one before of the same tool",
        ),
        alias_binding(KeyPress::Char('D'), Action::Diff),
        footer_binding(
            KeyPress::Char('t'),
            Action::Turn,
            "text/json/raw",
            "show the call another way",
        ),
        footer_binding(
            KeyPress::Char('Y'),
            Action::CopyCommand,
            "copy as command",
            "copy the call as a command line",
        ),
        help_binding(
            KeyPress::Char('E'),
            Action::Export,
            "write the listed calls to a file, a line of JSON each",
        ),
        help_binding(KeyPress::Char('u'), Action::Refresh, "read the history again"),
    ],
};
