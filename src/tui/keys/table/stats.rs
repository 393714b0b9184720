//! Keys in the statistics.

use super::{Place, shown};
use crate::tui::keys::{Action, Key, When};

pub(super) const STATS: Place = Place {
    when: When::Stats,
    title: "in the statistics",
    bindings: &[shown(Key::Char('s'), Action::Sort, "sort", "another order")],
};
