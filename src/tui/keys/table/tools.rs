//! Keys in the list of tools, and beside it.

use super::{Place, also, quiet, shown};
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
        shown(
            Key::Char('h'),
            Action::ShowHistory,
            "history",
            "show the calls of the past of this tool",
        ),
        shown(
            Key::Char('d'),
            Action::Detail,
            "detail",
            "the tool as detail, schema, as it was told",
        ),
        shown(
            Key::Char('t'),
            Action::Turn,
            "turn",
            "results as text, as a JSON tree, as they came",
        ),
        shown(Key::Char('E'), Action::Export, "save", "write the result that is shown to a file"),
        shown(Key::Char('s'), Action::Sort, "sort", "another order"),
        quiet(Key::Char('T'), Action::ShowTrace, "show the wire of its newest call"),
        shown(Key::Char('u'), Action::Refresh, "list again", "list the tools of all sources again"),
    ],
};

pub(super) const RESULT: Place = Place {
    when: When::Result,
    title: "in the result",
    bindings: &[
        shown(Key::Enter, Action::Open, "fold", "fold or unfold a branch; of a text: call again"),
        also(Key::Char(' '), Action::Open),
        shown(Key::Left, Action::PreviousChoice, "older", "an older call of this tool"),
        shown(Key::Right, Action::NextChoice, "newer", "a newer call of this tool"),
    ],
};
