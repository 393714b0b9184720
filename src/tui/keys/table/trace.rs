//! Keys in what crosses the wires.

use super::{Place, shown};
use crate::tui::keys::{Action, Key, When};

pub(super) const TRACE: Place = Place {
    when: When::Trace,
    title: "in the trace",
    bindings: &[shown(Key::Char('/'), Action::Filter, "filter", "show only what these words say")],
};
