//! Keys while arguments are filled in.

use super::{KeyTable, alias_binding, footer_binding, help_binding};
use crate::tui::keys::{Action, KeyContext, KeyPress};

pub(super) const FORM: KeyTable = KeyTable {
    context: KeyContext::Form,
    title: "in the arguments",
    bindings: &[
        footer_binding(KeyPress::F(5), Action::Run, "run", "make the call"),
        alias_binding(KeyPress::AltEnter, Action::Run),
        alias_binding(KeyPress::Ctrl('j'), Action::Run),
        alias_binding(KeyPress::Ctrl('r'), Action::Run),
        help_binding(KeyPress::Enter, Action::NextField, "next field"),
        alias_binding(KeyPress::Tab, Action::NextField),
        alias_binding(KeyPress::Down, Action::NextField),
        help_binding(KeyPress::BackTab, Action::PreviousField, "previous field"),
        alias_binding(KeyPress::Up, Action::PreviousField),
        help_binding(
            KeyPress::Left,
            Action::PreviousChoice,
            "previous choice, fold, or a letter back",
        ),
        help_binding(KeyPress::Right, Action::NextChoice, "next choice, unfold, or a letter on"),
        footer_binding(
            KeyPress::F(6),
            Action::Validate,
            "dry run",
            "check it, show what would be sent, send nothing",
        ),
        alias_binding(KeyPress::Alt('v'), Action::Validate),
        footer_binding(KeyPress::Delete, Action::Unset, "unset", "leave the field out"),
        footer_binding(KeyPress::Ctrl('n'), Action::Null, "null", "send null for the field"),
        footer_binding(
            KeyPress::Ctrl('t'),
            Action::SwitchForm,
            "JSON",
            "write all of it as JSON, or as fields",
        ),
        footer_binding(
            KeyPress::Ctrl('e'),
            Action::Editor,
            "editor",
            "write it in your editor ($VISUAL, $EDITOR)",
        ),
        help_binding(KeyPress::Alt('+'), Action::Add, "add an item to the list"),
        help_binding(KeyPress::Alt('-'), Action::Remove, "take the item out of the list"),
        footer_binding(KeyPress::Esc, Action::Back, "back", "back to the list"),
    ],
};

pub(super) const FORM_ITEMS: KeyTable = KeyTable {
    context: KeyContext::Items,
    title: "in arguments where nothing is typed",
    bindings: &[
        footer_binding(KeyPress::Char('+'), Action::Add, "add", "add an item to the list"),
        footer_binding(
            KeyPress::Char('-'),
            Action::Remove,
            "remove",
            "take the item out of the list",
        ),
        help_binding(KeyPress::Char(' '), Action::NextChoice, "next choice; unfold; tick"),
    ],
};

pub(super) const LINES: KeyTable = KeyTable {
    context: KeyContext::Lines,
    title: "in a text of several lines",
    bindings: &[
        footer_binding(KeyPress::F(5), Action::Run, "run", "make the call, send the answer"),
        alias_binding(KeyPress::AltEnter, Action::Run),
        alias_binding(KeyPress::Ctrl('j'), Action::Run),
        alias_binding(KeyPress::Ctrl('r'), Action::Run),
        help_binding(KeyPress::Enter, Action::Add, "a new line"),
        help_binding(
            KeyPress::Backspace,
            Action::Remove,
            "take away what stands before the cursor",
        ),
        help_binding(KeyPress::Up, Action::Up, "a line up"),
        help_binding(KeyPress::Down, Action::Down, "a line down"),
        help_binding(KeyPress::PageUp, Action::PageUp, "a page up"),
        help_binding(KeyPress::PageDown, Action::PageDown, "a page down"),
        footer_binding(KeyPress::F(6), Action::Validate, "check", "check it, and do nothing"),
        alias_binding(KeyPress::Alt('v'), Action::Validate),
        footer_binding(KeyPress::Ctrl('t'), Action::SwitchForm, "fields", "back to the fields"),
        footer_binding(
            KeyPress::Ctrl('e'),
            Action::Editor,
            "editor",
            "write it in your editor ($VISUAL, $EDITOR)",
        ),
        footer_binding(KeyPress::Esc, Action::Back, "back", "back to the list"),
    ],
};
