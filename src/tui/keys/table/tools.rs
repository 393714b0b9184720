//! Keys in the list of tools, and beside it.

use super::{Place, also, shown};
use crate::tui::keys::{Action, Key, When};

pub(super) const TOOLS: Place = Place {
    when: When::Tools,
    title: "in the tools",
    bindings: &[
        shown(Key::Enter, Action::Fill, "call", "fill in the arguments and call"),
        also(Key::Char('e'), Action::Fill),
        shown(
            Key::Char('/'),
            Action::Filter,
            "find",
            "find by a few letters; src:NAME kind:NAME approval:yes !word narrow it",
        ),
        shown(
            Key::Char('Y'),
            Action::CopyCommand,
            "copy as command",
            "copy the call as a command line",
        ),
        shown(Key::Char('b'), Action::Bench, "bench", "benchmark this tool"),
        shown(Key::Char('s'), Action::Sort, "sort", "another order"),
        shown(Key::Char('u'), Action::Refresh, "list again", "list the tools of all sources again"),
    ],
};
