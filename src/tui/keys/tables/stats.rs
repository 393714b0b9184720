//! Keys in the statistics.

use super::{KeyTable, alias_binding, footer_binding, help_binding};
use crate::tui::keys::{Action, KeyContext, KeyPress};

pub(super) const STATS: KeyTable = KeyTable {
    context: KeyContext::Stats,
    title: "in the statistics",
    bindings: &[
        footer_binding(
            KeyPress::Char('w'),
            Action::Window,
            "window",
            "another window: 1m 5m 1h session all",
        ),
        footer_binding(KeyPress::Char('s'), Action::Sort, "sort", "another order"),
        footer_binding(KeyPress::Char('t'), Action::Turn, "by server", "by tool, or by server"),
        footer_binding(
            KeyPress::Enter,
            Action::Open,
            "tool",
            "show the tool, or the tools of the server",
        ),
        footer_binding(KeyPress::Char('b'), Action::Bench, "bench", "benchmark the tool"),
        footer_binding(KeyPress::Char(' '), Action::Pause, "pause", "hold still, or go on"),
        footer_binding(
            KeyPress::Char('E'),
            Action::Export,
            "export",
            "write to a file: JSON, or .csv",
        ),
        footer_binding(
            KeyPress::Char('0'),
            Action::Reset,
            "reset",
            "count from now on; nothing is deleted",
        ),
        help_binding(
            KeyPress::Char('H'),
            Action::Scale,
            "histogram with classes of equal length, or ratio",
        ),
        help_binding(
            KeyPress::Char('h'),
            Action::ShowHistory,
            "show the calls of the past of the tool",
        ),
        help_binding(
            KeyPress::Char('u'),
            Action::Refresh,
            "look now, and forget what was said above",
        ),
        alias_binding(KeyPress::Char('r'), Action::Refresh),
    ],
};
