//! Keys of the tools view.

use super::{KeyTable, alias_binding, footer_binding, help_binding};
use crate::tui::keys::{Action, KeyContext, KeyPress};

pub(super) const TOOLS: KeyTable = KeyTable {
    context: KeyContext::Tools,
    title: "Tools",
    bindings: &[
        footer_binding(KeyPress::Enter, Action::Fill, "call", "fill in the arguments and call"),
        alias_binding(KeyPress::Char('e'), Action::Fill),
        footer_binding(
            KeyPress::Char('/'),
            Action::Filter,
            "filter",
            "filter: words src:NAME kind:NAME approval:yes !word",
        ),
        help_binding(KeyPress::Char('Y'), Action::CopyCommand, "copy the call as a command"),
        footer_binding(KeyPress::Char('b'), Action::Bench, "bench", "benchmark this tool"),
        footer_binding(
            KeyPress::Char('h'),
            Action::ShowHistory,
            "history",
            "show the history of this tool",
        ),
        footer_binding(
            KeyPress::Char('d'),
            Action::Detail,
            "detail",
            "switch between details, schema and raw",
        ),
        footer_binding(KeyPress::Char('t'), Action::Wire, "trace", "open or close the trace"),
        help_binding(
            KeyPress::Char('v'),
            Action::ChangeFormat,
            "show the result as text, JSON tree, table or raw",
        ),
        footer_binding(
            KeyPress::Char('E'),
            Action::Export,
            "save",
            "save the shown result to a file",
        ),
        footer_binding(
            KeyPress::Char('S'),
            Action::SaveCall,
            "save call",
            "save the call under a name, for 'toolhost run NAME'",
        ),
        help_binding(KeyPress::Char('s'), Action::Sort, "change the sort order"),
        help_binding(KeyPress::Char('p'), Action::Pin, "compare with the pin, then pin it"),
        help_binding(KeyPress::Char('T'), Action::ShowTrace, "show the trace of its newest call"),
        footer_binding(
            KeyPress::Char('u'),
            Action::Refresh,
            "reload",
            "reload the tools of all sources",
        ),
    ],
};

/// What holds in the tree only: elsewhere these keys scroll.
pub(super) const TOOL_TREE: KeyTable = KeyTable {
    context: KeyContext::ToolTree,
    title: "Tree of tools",
    bindings: &[
        help_binding(
            KeyPress::Char('g'),
            Action::Group,
            "group by server or kind, by category, or not",
        ),
        help_binding(KeyPress::Left, Action::PreviousChoice, "fold"),
        help_binding(KeyPress::Right, Action::NextChoice, "unfold"),
    ],
};

pub(super) const RESULT: KeyTable = KeyTable {
    context: KeyContext::Result,
    title: "Result",
    bindings: &[
        footer_binding(
            KeyPress::Enter,
            Action::Open,
            "fold",
            "fold or unfold; in text: call again",
        ),
        alias_binding(KeyPress::Char(' '), Action::Open),
        footer_binding(KeyPress::Char('/'), Action::Filter, "search", "search in the result"),
        help_binding(KeyPress::Char('n'), Action::NextMatch, "next match"),
        help_binding(KeyPress::Char('N'), Action::PreviousMatch, "previous match"),
        footer_binding(
            KeyPress::Char('|'),
            Action::Query,
            "jq",
            "filter the result with jq as you type",
        ),
        footer_binding(KeyPress::Char('d'), Action::Diff, "diff", "compare with the previous call"),
        help_binding(
            KeyPress::Char('c'),
            Action::CopyPath,
            "copy the jq path of the selected tree line",
        ),
        footer_binding(KeyPress::Left, Action::PreviousChoice, "older", "show an older call"),
        footer_binding(KeyPress::Right, Action::NextChoice, "newer", "show a newer call"),
    ],
};

pub(super) const RESULT_TABLE: KeyTable = KeyTable {
    context: KeyContext::ResultTable,
    title: "Result as a table",
    bindings: &[
        footer_binding(KeyPress::Enter, Action::Open, "row", "show the row in the JSON tree"),
        footer_binding(KeyPress::Left, Action::PreviousColumn, "column", "column to the left"),
        help_binding(KeyPress::Right, Action::NextColumn, "column to the right"),
        footer_binding(
            KeyPress::Char('s'),
            Action::Sort,
            "sort",
            "sort by column: up, down, unsorted",
        ),
        help_binding(KeyPress::Char('c'), Action::CopyPath, "copy the jq path of the cell"),
    ],
};
