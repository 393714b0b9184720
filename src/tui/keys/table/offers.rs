//! Keys in what servers offer beside tools.

use super::{Place, shown};
use crate::tui::keys::{Action, Key, When};

pub(super) const OFFERS: Place = Place {
    when: When::Offers,
    title: "in the resources and prompts",
    bindings: &[shown(Key::Char('/'), Action::Filter, "find", "find by a few letters")],
};
