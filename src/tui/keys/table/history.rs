//! Keys in the calls of the past.

use super::{Place, shown};
use crate::tui::keys::{Action, Key, When};

pub(super) const HISTORY: Place = Place {
    when: When::History,
    title: "in the history",
    bindings: &[shown(Key::Char('/'), Action::Filter, "filter", "find calls by a few letters")],
};
