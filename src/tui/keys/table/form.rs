//! Keys while arguments are filled in.

use super::{Place, also, quiet, shown};
use crate::tui::keys::{Action, Key, When};

pub(super) const FORM: Place = Place {
    when: When::Form,
    title: "in the arguments",
    bindings: &[
        shown(Key::F(5), Action::Run, "run", "make the call"),
        also(Key::AltEnter, Action::Run),
        also(Key::Ctrl('j'), Action::Run),
        also(Key::Ctrl('r'), Action::Run),
        shown(Key::F(6), Action::Validate, "dry run", "show what would be sent, and send nothing"),
        quiet(Key::Enter, Action::NextField, "next field"),
        also(Key::Tab, Action::NextField),
        also(Key::Down, Action::NextField),
        quiet(Key::BackTab, Action::PreviousField, "previous field"),
        also(Key::Up, Action::PreviousField),
        quiet(Key::Left, Action::PreviousChoice, "previous choice, or a letter back"),
        quiet(Key::Right, Action::NextChoice, "next choice, or a letter on"),
        shown(Key::Delete, Action::Unset, "unset", "leave the field out"),
        shown(Key::Ctrl('n'), Action::Null, "null", "send null for the field"),
        shown(Key::Esc, Action::Back, "back", "back to the list"),
    ],
};
