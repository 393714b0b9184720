//! Keys in the calls of the past.

use super::{Place, also, quiet, shown};
use crate::tui::keys::{Action, Key, When};

pub(super) const HISTORY: Place = Place {
    when: When::History,
    title: "in the history",
    bindings: &[
        shown(Key::Enter, Action::Open, "open", "go to the chosen call"),
        shown(
            Key::Char('/'),
            Action::Filter,
            "find",
            "find by a few letters; tool:GLOB failed:yes since:1h session:this !word narrow it",
        ),
        shown(
            Key::Char('r'),
            Action::Replay,
            "replay",
            "call again with the same arguments; what was secret is asked for",
        ),
        shown(
            Key::Char('R'),
            Action::ReplayEdited,
            "edit and replay",
            "look at the arguments, then call again",
        ),
        shown(Key::Char('m'), Action::Mark, "mark", "mark the call, to compare another with it"),
        shown(
            Key::Char('d'),
            Action::Diff,
            "diff",
            "how it differs from the marked call, or from the one before of the same tool",
        ),
        also(Key::Char('D'), Action::Diff),
        shown(Key::Char('t'), Action::Turn, "text/json/raw", "show the call another way"),
        shown(
            Key::Char('Y'),
            Action::CopyCommand,
            "copy as command",
            "copy the call as a command line",
        ),
        quiet(
            Key::Char('E'),
            Action::Export,
            "write the listed calls to a file, a line of JSON each",
        ),
        quiet(Key::Char('u'), Action::Refresh, "read the history again"),
    ],
};
