//! Keys of the history view.

use super::{KeyTable, alias_binding, footer_binding, help_binding};
use crate::tui::keys::{Action, KeyContext, KeyPress};

pub(super) const HISTORY: KeyTable = KeyTable {
    context: KeyContext::History,
    title: "History",
    bindings: &[
        footer_binding(KeyPress::Enter, Action::Open, "open", "show the call"),
        footer_binding(
            KeyPress::Char('/'),
            Action::Filter,
            "filter",
            "filter: words tool:GLOB failed:yes since:1h session:this !word",
        ),
        footer_binding(
            KeyPress::Char('r'),
            Action::Rerun,
            "rerun",
            "call again with the same arguments (asks for secrets)",
        ),
        footer_binding(
            KeyPress::Char('R'),
            Action::RerunEdited,
            "edit and rerun",
            "edit the arguments, then call again",
        ),
        footer_binding(KeyPress::Char('m'), Action::Mark, "mark", "mark the call for a diff"),
        footer_binding(
            KeyPress::Char('d'),
            Action::Diff,
            "diff",
            "diff with the marked call, or the tool's previous call",
        ),
        alias_binding(KeyPress::Char('D'), Action::Diff),
        footer_binding(
            KeyPress::Char('t'),
            Action::ChangeFormat,
            "text/json/raw",
            "change the format",
        ),
        footer_binding(
            KeyPress::Char('Y'),
            Action::CopyCommand,
            "copy as command",
            "copy the call as a command",
        ),
        help_binding(
            KeyPress::Char('P'),
            Action::AllProjects,
            "show calls of all projects or this one",
        ),
        help_binding(KeyPress::Char('E'), Action::Export, "export the listed calls as JSON lines"),
        help_binding(KeyPress::Char('u'), Action::Refresh, "reload the history"),
    ],
};
