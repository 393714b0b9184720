//! Keys of forms.

use super::{KeyTable, alias_binding, footer_binding, help_binding};
use crate::tui::keys::{Action, KeyContext, KeyPress};

pub(super) const FORM: KeyTable = KeyTable {
    context: KeyContext::Form,
    title: "Arguments",
    bindings: &[
        footer_binding(
            KeyPress::Enter,
            Action::NextField,
            "next",
            "next field; on the last one run",
        ),
        footer_binding(KeyPress::F(5), Action::Run, "run", "run the call"),
        alias_binding(KeyPress::AltEnter, Action::Run),
        alias_binding(KeyPress::Ctrl('j'), Action::Run),
        alias_binding(KeyPress::Ctrl('r'), Action::Run),
        alias_binding(KeyPress::Tab, Action::NextField),
        alias_binding(KeyPress::Down, Action::NextField),
        help_binding(KeyPress::BackTab, Action::PreviousField, "previous field"),
        alias_binding(KeyPress::Up, Action::PreviousField),
        help_binding(
            KeyPress::Left,
            Action::PreviousChoice,
            "previous choice, fold, or cursor left",
        ),
        help_binding(KeyPress::Right, Action::NextChoice, "next choice, unfold, or cursor right"),
        footer_binding(
            KeyPress::F(6),
            Action::Validate,
            "dry run",
            "show what would be sent, without sending it",
        ),
        alias_binding(KeyPress::Alt('v'), Action::Validate),
        help_binding(KeyPress::Delete, Action::Unset, "unset the field"),
        help_binding(KeyPress::Ctrl('n'), Action::Null, "send null for the field"),
        footer_binding(
            KeyPress::Ctrl('t'),
            Action::SwitchForm,
            "JSON",
            "switch between JSON and fields",
        ),
        help_binding(KeyPress::Ctrl('e'), Action::Editor, "edit in $VISUAL or $EDITOR"),
        help_binding(
            KeyPress::Ctrl('s'),
            Action::SaveCall,
            "save the call under a name, for 'toolhost run NAME'",
        ),
        help_binding(KeyPress::Alt('+'), Action::Add, "add an item"),
        help_binding(KeyPress::Alt('-'), Action::Remove, "remove the item"),
        footer_binding(KeyPress::Esc, Action::Back, "back", "back to the list"),
    ],
};

pub(super) const FORM_LAST: KeyTable = KeyTable {
    context: KeyContext::FormLast,
    title: "The last field of arguments",
    bindings: &[footer_binding(KeyPress::Enter, Action::Run, "run", "run the call")],
};

pub(super) const FORM_ITEMS: KeyTable = KeyTable {
    context: KeyContext::FormItems,
    title: "Arguments without text",
    bindings: &[
        footer_binding(KeyPress::Char('+'), Action::Add, "add", "add an item"),
        footer_binding(KeyPress::Char('-'), Action::Remove, "remove", "remove the item"),
        help_binding(KeyPress::Char(' '), Action::NextChoice, "next choice, unfold or select"),
    ],
};

pub(super) const FIELD_LINES: KeyTable = KeyTable {
    context: KeyContext::FormLines,
    title: "Text in arguments",
    bindings: &[
        footer_binding(KeyPress::Ctrl('g'), Action::NewLine, "new line", "start a new line"),
        help_binding(KeyPress::Up, Action::Up, "line up, or previous field"),
        help_binding(KeyPress::Down, Action::Down, "line down, or next field"),
    ],
};

pub(super) const CHOICE: KeyTable = KeyTable {
    context: KeyContext::FormChoice,
    title: "Choices in arguments",
    bindings: &[
        footer_binding(KeyPress::Right, Action::NextChoice, "next choice", "next choice"),
        help_binding(KeyPress::Left, Action::PreviousChoice, "previous choice (or type its start)"),
    ],
};

pub(super) const LINES: KeyTable = KeyTable {
    context: KeyContext::MultilineText,
    title: "Multi-line text",
    bindings: &[
        footer_binding(KeyPress::F(5), Action::Run, "run", "run the call or send the answer"),
        alias_binding(KeyPress::AltEnter, Action::Run),
        alias_binding(KeyPress::Ctrl('j'), Action::Run),
        alias_binding(KeyPress::Ctrl('r'), Action::Run),
        help_binding(KeyPress::Enter, Action::Add, "new line"),
        help_binding(KeyPress::Backspace, Action::Remove, "delete the character before the cursor"),
        help_binding(KeyPress::Up, Action::Up, "line up"),
        help_binding(KeyPress::Down, Action::Down, "line down"),
        help_binding(KeyPress::PageUp, Action::PageUp, "page up"),
        help_binding(KeyPress::PageDown, Action::PageDown, "page down"),
        footer_binding(KeyPress::F(6), Action::Validate, "check", "check without sending"),
        alias_binding(KeyPress::Alt('v'), Action::Validate),
        footer_binding(KeyPress::Ctrl('t'), Action::SwitchForm, "fields", "back to the fields"),
        footer_binding(KeyPress::Ctrl('e'), Action::Editor, "editor", "edit in $VISUAL or $EDITOR"),
        footer_binding(KeyPress::Esc, Action::Back, "back", "back to the list"),
    ],
};
