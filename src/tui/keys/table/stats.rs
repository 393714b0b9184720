//! Keys in the statistics.

use super::{Place, also, quiet, shown};
use crate::tui::keys::{Action, Key, When};

pub(super) const STATS: Place = Place {
    when: When::Stats,
    title: "in the statistics",
    bindings: &[
        shown(Key::Char('w'), Action::Window, "window", "another window: 1m 5m 1h session all"),
        shown(Key::Char('s'), Action::Sort, "sort", "another order"),
        shown(Key::Char('t'), Action::Turn, "by server", "by tool, or by server"),
        shown(Key::Enter, Action::Open, "tool", "show the tool, or the tools of the server"),
        shown(Key::Char('b'), Action::Bench, "bench", "benchmark the tool"),
        shown(Key::Char(' '), Action::Pause, "pause", "hold still, or go on"),
        shown(Key::Char('E'), Action::Export, "export", "write to a file: JSON, or .csv"),
        shown(Key::Char('0'), Action::Reset, "reset", "count from now on; nothing is deleted"),
        quiet(Key::Char('H'), Action::Scale, "histogram with classes of equal length, or ratio"),
        quiet(Key::Char('h'), Action::ShowHistory, "show the calls of the past of the tool"),
        quiet(Key::Char('u'), Action::Refresh, "look now, and forget what was said above"),
        also(Key::Char('r'), Action::Refresh),
    ],
};
