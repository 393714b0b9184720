//! Keys in what crosses the wires.

use super::{KeyTable, alias_binding, footer_binding, help_binding};
use crate::tui::keys::{Action, KeyContext, KeyPress};

pub(super) const TRACE: KeyTable = KeyTable {
    context: KeyContext::Trace,
    title: "in the trace",
    bindings: &[
        footer_binding(
            KeyPress::Char(' '),
            Action::Pause,
            "pause",
            "hold still, or go on; what comes is kept",
        ),
        footer_binding(
            KeyPress::Char('/'),
            Action::Filter,
            "filter",
            "show only srv:NAME method:tools/* way:sent error:yes call:ID words !unwanted",
        ),
        footer_binding(
            KeyPress::Enter,
            Action::Open,
            "pair",
            "the frame whole, with its request or answer",
        ),
        footer_binding(KeyPress::Char('t'), Action::Turn, "turn", "request, response, both"),
        alias_binding(KeyPress::Left, Action::Turn),
        alias_binding(KeyPress::Right, Action::Turn),
        footer_binding(
            KeyPress::Char('f'),
            Action::Follow,
            "follow",
            "stay at the newest line, or not",
        ),
        help_binding(KeyPress::Char('Y'), Action::CopyCommand, "copy the request and its answer"),
        footer_binding(
            KeyPress::Char('E'),
            Action::Export,
            "export",
            "write what is shown, for replay",
        ),
        help_binding(KeyPress::Char('C'), Action::Reset, "forget what came until now"),
    ],
};
