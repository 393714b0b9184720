//! Keys of the statistics view.

use super::{KeyTable, alias_binding, footer_binding, help_binding};
use crate::tui::keys::{Action, KeyContext, KeyPress};

pub(super) const STATS: KeyTable = KeyTable {
    context: KeyContext::Stats,
    title: "Statistics",
    bindings: &[
        footer_binding(
            KeyPress::Char('w'),
            Action::Window,
            "window",
            "change the window: 1m 5m 1h session all",
        ),
        footer_binding(KeyPress::Char('s'), Action::Sort, "sort", "change the sort order"),
        footer_binding(KeyPress::Char('/'), Action::Filter, "find", "find a row by its name"),
        footer_binding(
            KeyPress::Char('t'),
            Action::ChangeFormat,
            "by server",
            "group by tool or by server",
        ),
        footer_binding(
            KeyPress::Enter,
            Action::Open,
            "tool",
            "show the tool, or the server's tools",
        ),
        footer_binding(KeyPress::Char('b'), Action::Bench, "bench", "benchmark the tool"),
        footer_binding(KeyPress::Char(' '), Action::Pause, "pause", "pause or resume"),
        footer_binding(
            KeyPress::Char('0'),
            Action::Reset,
            "reset",
            "count from now on; keeps the data",
        ),
        help_binding(
            KeyPress::Char('P'),
            Action::AllProjects,
            "show calls of all projects or this one",
        ),
        help_binding(KeyPress::Char('H'), Action::Scale, "switch between linear and log scale"),
        help_binding(KeyPress::Char('h'), Action::ShowHistory, "show the history of the tool"),
        help_binding(KeyPress::Char('u'), Action::Refresh, "refresh now and clear messages"),
        alias_binding(KeyPress::Char('r'), Action::Refresh),
    ],
};
