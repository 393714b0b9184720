//! Keys in the list of tools, and beside it.

use super::{KeyTable, alias_binding, footer_binding, help_binding};
use crate::tui::keys::{Action, KeyContext, KeyPress};

pub(super) const TOOLS: KeyTable = KeyTable {
    context: KeyContext::Tools,
    title: "in the tools",
    bindings: &[
        footer_binding(KeyPress::Enter, Action::Fill, "call", "fill in the arguments and call"),
        alias_binding(KeyPress::Char('e'), Action::Fill),
        footer_binding(
            KeyPress::Char('/'),
            Action::Filter,
            "find",
            "find by a few letters; src:NAME kind:NAME approval:yes !word narrow it",
        ),
        footer_binding(
            KeyPress::Char('Y'),
            Action::CopyCommand,
            "copy as command",
            "copy the call as a command line",
        ),
        footer_binding(KeyPress::Char('b'), Action::Bench, "bench", "benchmark this tool"),
        footer_binding(
            KeyPress::Char('h'),
            Action::ShowHistory,
            "history",
            "show the calls of the past of this tool",
        ),
        footer_binding(
            KeyPress::Char('d'),
            Action::Detail,
            "detail",
            "the tool as detail, schema, as it was told",
        ),
        footer_binding(
            KeyPress::Char('t'),
            Action::Turn,
            "turn",
            "results as text, as a JSON tree, as they came",
        ),
        footer_binding(
            KeyPress::Char('E'),
            Action::Export,
            "save",
            "write the result that is shown to a file",
        ),
        footer_binding(KeyPress::Char('s'), Action::Sort, "sort", "another order"),
        help_binding(KeyPress::Char('T'), Action::ShowTrace, "show the wire of its newest call"),
        footer_binding(
            KeyPress::Char('u'),
            Action::Refresh,
            "list again",
            "list the tools of all sources again",
        ),
    ],
};

pub(super) const RESULT: KeyTable = KeyTable {
    context: KeyContext::Result,
    title: "in the result",
    bindings: &[
        footer_binding(
            KeyPress::Enter,
            Action::Open,
            "fold",
            "fold or unfold a branch; of a text: call again",
        ),
        alias_binding(KeyPress::Char(' '), Action::Open),
        footer_binding(
            KeyPress::Left,
            Action::PreviousChoice,
            "older",
            "an older call of this tool",
        ),
        footer_binding(KeyPress::Right, Action::NextChoice, "newer", "a newer call of this tool"),
    ],
};
