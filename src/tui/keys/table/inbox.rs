//! Keys for what a person is asked.

use super::{Place, also, shown};
use crate::tui::keys::{Action, Key, When};

pub(super) const INBOX: Place = Place {
    when: When::Inbox,
    title: "in the inbox",
    bindings: &[shown(Key::Enter, Action::Open, "answer", "open the question")],
};

pub(super) const APPROVAL: Place = Place {
    when: When::Approval,
    title: "asked for approval",
    bindings: &[
        shown(Key::Enter, Action::No, "deny", "refuse"),
        also(Key::Char('n'), Action::No),
        also(Key::Esc, Action::No),
        shown(Key::Char('y'), Action::Yes, "allow once", "allow this call, once"),
    ],
};
