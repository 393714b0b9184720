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
        quiet(Key::Enter, Action::NextField, "next field"),
        also(Key::Tab, Action::NextField),
        also(Key::Down, Action::NextField),
        quiet(Key::BackTab, Action::PreviousField, "previous field"),
        also(Key::Up, Action::PreviousField),
        quiet(Key::Left, Action::PreviousChoice, "previous choice, fold, or a letter back"),
        quiet(Key::Right, Action::NextChoice, "next choice, unfold, or a letter on"),
        shown(
            Key::F(6),
            Action::Validate,
            "dry run",
            "check it, show what would be sent, send nothing",
        ),
        also(Key::Alt('v'), Action::Validate),
        shown(Key::Delete, Action::Unset, "unset", "leave the field out"),
        shown(Key::Ctrl('n'), Action::Null, "null", "send null for the field"),
        shown(Key::Ctrl('t'), Action::SwitchForm, "JSON", "write all of it as JSON, or as fields"),
        shown(
            Key::Ctrl('e'),
            Action::Editor,
            "editor",
            "write it in your editor ($VISUAL, $EDITOR)",
        ),
        quiet(Key::Alt('+'), Action::Add, "add an item to the list"),
        quiet(Key::Alt('-'), Action::Remove, "take the item out of the list"),
        shown(Key::Esc, Action::Back, "back", "back to the list"),
    ],
};

pub(super) const ITEMS: Place = Place {
    when: When::Items,
    title: "in arguments where nothing is typed",
    bindings: &[
        shown(Key::Char('+'), Action::Add, "add", "add an item to the list"),
        shown(Key::Char('-'), Action::Remove, "remove", "take the item out of the list"),
        quiet(Key::Char(' '), Action::NextChoice, "next choice; unfold; tick"),
    ],
};

pub(super) const LINES: Place = Place {
    when: When::Lines,
    title: "in a text of several lines",
    bindings: &[
        shown(Key::F(5), Action::Run, "run", "make the call, send the answer"),
        also(Key::AltEnter, Action::Run),
        also(Key::Ctrl('j'), Action::Run),
        also(Key::Ctrl('r'), Action::Run),
        quiet(Key::Enter, Action::Add, "a new line"),
        quiet(Key::Backspace, Action::Remove, "take away what stands before the cursor"),
        quiet(Key::Up, Action::Up, "a line up"),
        quiet(Key::Down, Action::Down, "a line down"),
        quiet(Key::PageUp, Action::PageUp, "a page up"),
        quiet(Key::PageDown, Action::PageDown, "a page down"),
        shown(Key::F(6), Action::Validate, "check", "check it, and do nothing"),
        also(Key::Alt('v'), Action::Validate),
        shown(Key::Ctrl('t'), Action::SwitchForm, "fields", "back to the fields"),
        shown(
            Key::Ctrl('e'),
            Action::Editor,
            "editor",
            "write it in your editor ($VISUAL, $EDITOR)",
        ),
        shown(Key::Esc, Action::Back, "back", "back to the list"),
    ],
};
