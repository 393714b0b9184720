//! Keys of the inbox.

use super::{KeyTable, alias_binding, footer_binding, help_binding};
use crate::tui::keys::{Action, KeyContext, KeyPress};

pub(super) const INBOX: KeyTable = KeyTable {
    context: KeyContext::Inbox,
    title: "Inbox",
    bindings: &[
        footer_binding(KeyPress::Enter, Action::Open, "answer", "open the question"),
        footer_binding(
            KeyPress::F(5),
            Action::Run,
            "send",
            "send the answer, or confirm the visit",
        ),
        alias_binding(KeyPress::Ctrl('r'), Action::Run),
        footer_binding(KeyPress::Char('d'), Action::No, "decline", "decline the question"),
        footer_binding(
            KeyPress::Char('x'),
            Action::CancelQuestion,
            "cancel",
            "cancel the question without an answer",
        ),
    ],
};

pub(super) const ANSWER: KeyTable = KeyTable {
    context: KeyContext::Answer,
    title: "Answer",
    bindings: &[
        footer_binding(KeyPress::F(5), Action::Run, "send", "send the answer"),
        alias_binding(KeyPress::AltEnter, Action::Run),
        alias_binding(KeyPress::Ctrl('j'), Action::Run),
        alias_binding(KeyPress::Ctrl('r'), Action::Run),
        footer_binding(KeyPress::Ctrl('d'), Action::No, "decline", "decline the question"),
        footer_binding(
            KeyPress::Ctrl('x'),
            Action::CancelQuestion,
            "cancel",
            "cancel the question without an answer",
        ),
        help_binding(KeyPress::PageDown, Action::PageDown, "scroll the question down"),
        help_binding(KeyPress::PageUp, Action::PageUp, "scroll the question up"),
    ],
};

pub(super) const APPROVAL: KeyTable = KeyTable {
    context: KeyContext::Approval,
    title: "Approval",
    bindings: &[
        footer_binding(KeyPress::Enter, Action::No, "deny", "deny the call"),
        alias_binding(KeyPress::Char('n'), Action::No),
        footer_binding(KeyPress::Char('y'), Action::Yes, "allow once", "allow this call once"),
        footer_binding(
            KeyPress::Char('s'),
            Action::YesForSession,
            "allow these arguments",
            "allow this tool with these arguments until the console closes",
        ),
        footer_binding(KeyPress::Char('e'), Action::Fill, "edit", "deny and edit the arguments"),
        footer_binding(
            KeyPress::Char('v'),
            Action::ChangeFormat,
            "definition",
            "show the tool's definition",
        ),
        footer_binding(KeyPress::Esc, Action::CancelQuestion, "cancel the call", "cancel the call"),
        help_binding(KeyPress::Ctrl('l'), Action::Redraw, "redraw"),
    ],
};

pub(super) const TRUST: KeyTable = KeyTable {
    context: KeyContext::Trust,
    title: "Trust",
    bindings: &[
        footer_binding(
            KeyPress::Char('y'),
            Action::Yes,
            "trust",
            "trust exactly this (after reading to the end)",
        ),
        footer_binding(
            KeyPress::Char('n'),
            Action::No,
            "refuse",
            "do not trust it (remembered until it changes)",
        ),
        alias_binding(KeyPress::Char('N'), Action::No),
        alias_binding(KeyPress::Esc, Action::No),
        footer_binding(
            KeyPress::Char('a'),
            Action::YesAsAuthor,
            "author",
            "trust as the author: do not ask again when its code changes",
        ),
        footer_binding(
            KeyPress::Char('v'),
            Action::ChangeFormat,
            "whole",
            "show the whole project or the difference",
        ),
        footer_binding(KeyPress::Char('q'), Action::Quit, "quit", "quit without an answer"),
        help_binding(KeyPress::Char(' '), Action::PageDown, "page down"),
        help_binding(KeyPress::Ctrl('l'), Action::Redraw, "redraw"),
    ],
};
