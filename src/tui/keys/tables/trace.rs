//! Keys of the trace view.

use super::{KeyTable, alias_binding, footer_binding, help_binding};
use crate::tui::keys::{Action, KeyContext, KeyPress};

pub(super) const TRACE: KeyTable = KeyTable {
    context: KeyContext::Trace,
    title: "Trace",
    bindings: &[
        footer_binding(
            KeyPress::Char(' '),
            Action::Pause,
            "pause",
            "pause or resume; new lines are kept",
        ),
        footer_binding(
            KeyPress::Char('/'),
            Action::Filter,
            "filter",
            "filter: words srv:NAME method:tools/* way:sent error:yes call:ID !word",
        ),
        footer_binding(
            KeyPress::Enter,
            Action::Open,
            "pair",
            "show the frame with its request or response",
        ),
        footer_binding(
            KeyPress::Char('t'),
            Action::ChangeFormat,
            "view",
            "show request, response or both",
        ),
        alias_binding(KeyPress::Left, Action::ChangeFormat),
        alias_binding(KeyPress::Right, Action::ChangeFormat),
        footer_binding(KeyPress::Char('f'), Action::Follow, "follow", "follow the newest line"),
        help_binding(KeyPress::Char('Y'), Action::CopyCommand, "copy the request and its response"),
        footer_binding(KeyPress::Char('E'), Action::Export, "export", "export for replay"),
        help_binding(KeyPress::Char('C'), Action::Reset, "clear the trace"),
    ],
};
