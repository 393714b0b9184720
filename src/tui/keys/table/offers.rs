//! Keys in what servers offer beside tools.

use super::{Place, quiet, shown};
use crate::tui::keys::{Action, Key, When};

pub(super) const OFFERS: Place = Place {
    when: When::Offers,
    title: "in the resources and prompts",
    bindings: &[
        shown(
            Key::Enter,
            Action::Open,
            "open",
            "read it, or fill it in; a server or group: fold it",
        ),
        shown(Key::Char('/'), Action::Filter, "find", "find by a few letters"),
        shown(
            Key::Char('S'),
            Action::Subscribe,
            "watch",
            "be told when the resource changes, or not any more",
        ),
        shown(Key::Char('t'), Action::Turn, "text/raw", "show what is open as text or as it came"),
        shown(Key::Char('Y'), Action::CopyCommand, "copy as command", "copy as a command line"),
        shown(Key::Char('E'), Action::Export, "write", "write what is open to a file"),
        quiet(Key::Char('e'), Action::Fill, "fill in the arguments again"),
        quiet(Key::Char('u'), Action::Refresh, "ask all servers again"),
    ],
};

pub(super) const ASKING: Place = Place {
    when: When::Asking,
    title: "in the arguments of templates and prompts",
    bindings: &[shown(
        Key::Right,
        Action::NextChoice,
        "suggestion",
        "take the next suggestion, or a letter on",
    )],
};
