//! Keys in the benchmark.

use super::{Place, shown};
use crate::tui::keys::{Action, Key, When};

pub(super) const BENCH: Place = Place {
    when: When::Bench,
    title: "in the benchmark",
    bindings: &[shown(
        Key::Char('x'),
        Action::Stop,
        "stop",
        "stop the run and keep what was measured",
    )],
};
