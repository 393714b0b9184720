//! Keys for what a person is asked.

use super::{KeyTable, alias_binding, footer_binding, help_binding};
use crate::tui::keys::{Action, KeyContext, KeyPress};

pub(super) const INBOX: KeyTable = KeyTable {
    context: KeyContext::Inbox,
    title: "in the inbox",
    bindings: &[
        footer_binding(KeyPress::Enter, Action::Open, "answer", "open the question"),
        footer_binding(
            KeyPress::F(5),
            Action::Run,
            "send",
            "send the answer; of an address: it was visited",
        ),
        alias_binding(KeyPress::Ctrl('r'), Action::Run),
        footer_binding(KeyPress::Char('d'), Action::No, "decline", "say no to what is asked"),
        footer_binding(KeyPress::Char('x'), Action::Turnaway, "turn away", "give no answer"),
    ],
};

pub(super) const ANSWER: KeyTable = KeyTable {
    context: KeyContext::Answer,
    title: "in an answer",
    bindings: &[
        footer_binding(KeyPress::F(5), Action::Run, "send", "send the answer"),
        alias_binding(KeyPress::AltEnter, Action::Run),
        alias_binding(KeyPress::Ctrl('j'), Action::Run),
        alias_binding(KeyPress::Ctrl('r'), Action::Run),
        footer_binding(KeyPress::Ctrl('d'), Action::No, "decline", "say no to what is asked"),
        footer_binding(KeyPress::Ctrl('x'), Action::Turnaway, "turn away", "give no answer"),
        help_binding(KeyPress::PageDown, Action::PageDown, "read on in what is asked"),
        help_binding(KeyPress::PageUp, Action::PageUp, "read back in what is asked"),
    ],
};

pub(super) const APPROVAL: KeyTable = KeyTable {
    context: KeyContext::Approval,
    title: "asked for approval",
    bindings: &[
        footer_binding(KeyPress::Enter, Action::No, "deny", "refuse"),
        alias_binding(KeyPress::Char('n'), Action::No),
        footer_binding(KeyPress::Char('y'), Action::Yes, "allow once", "allow this call, once"),
        footer_binding(
            KeyPress::Char('s'),
            Action::YesForSession,
            "allow these arguments",
            "allow this tool with exactly these arguments until the console is closed",
        ),
        footer_binding(
            KeyPress::Char('e'),
            Action::Fill,
            "edit",
            "refuse, and fill in the arguments again",
        ),
        footer_binding(
            KeyPress::Char('v'),
            Action::Turn,
            "definition",
            "all that the tool says about itself",
        ),
        footer_binding(
            KeyPress::Esc,
            Action::Turnaway,
            "cancel the call",
            "call the whole call off",
        ),
        help_binding(KeyPress::Ctrl('l'), Action::Redraw, "draw the screen anew"),
    ],
};

pub(super) const TRUST: KeyTable = KeyTable {
    context: KeyContext::Trust,
    title: "asked to trust the project",
    bindings: &[
        footer_binding(
            KeyPress::Char('y'),
            Action::Yes,
            "trust",
            "trust exactly this, once its end was shown",
        ),
        footer_binding(
            KeyPress::Char('n'),
            Action::No,
            "refuse",
            "do not trust it; remembered until it changes",
        ),
        alias_binding(KeyPress::Char('N'), Action::No),
        alias_binding(KeyPress::Esc, Action::No),
        footer_binding(
            KeyPress::Char('a'),
            Action::YesAsAuthor,
            "author",
            "trust it as its author: code below it may change without asking again",
        ),
        footer_binding(
            KeyPress::Char('v'),
            Action::Turn,
            "whole",
            "the whole instead of the difference, or back",
        ),
        footer_binding(KeyPress::Char('q'), Action::Quit, "quit", "leave without an answer"),
        help_binding(KeyPress::Char(' '), Action::PageDown, "a page down"),
        help_binding(KeyPress::Ctrl('l'), Action::Redraw, "draw the screen anew"),
    ],
};
