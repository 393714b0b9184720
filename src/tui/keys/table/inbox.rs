//! Keys for what a person is asked.

use super::{Place, also, quiet, shown};
use crate::tui::keys::{Action, Key, When};

pub(super) const INBOX: Place = Place {
    when: When::Inbox,
    title: "in the inbox",
    bindings: &[
        shown(Key::Enter, Action::Open, "answer", "open the question"),
        shown(Key::F(5), Action::Run, "send", "send the answer; of an address: it was visited"),
        also(Key::Ctrl('r'), Action::Run),
        shown(Key::Char('d'), Action::No, "decline", "say no to what is asked"),
        shown(Key::Char('x'), Action::Turnaway, "turn away", "give no answer"),
    ],
};

pub(super) const ANSWER: Place = Place {
    when: When::Answer,
    title: "in an answer",
    bindings: &[
        shown(Key::F(5), Action::Run, "send", "send the answer"),
        also(Key::AltEnter, Action::Run),
        also(Key::Ctrl('j'), Action::Run),
        also(Key::Ctrl('r'), Action::Run),
        shown(Key::Ctrl('d'), Action::No, "decline", "say no to what is asked"),
        shown(Key::Ctrl('x'), Action::Turnaway, "turn away", "give no answer"),
        quiet(Key::PageDown, Action::PageDown, "read on in what is asked"),
        quiet(Key::PageUp, Action::PageUp, "read back in what is asked"),
    ],
};

pub(super) const APPROVAL: Place = Place {
    when: When::Approval,
    title: "asked for approval",
    bindings: &[
        shown(Key::Enter, Action::No, "deny", "refuse"),
        also(Key::Char('n'), Action::No),
        shown(Key::Char('y'), Action::Yes, "allow once", "allow this call, once"),
        shown(
            Key::Char('s'),
            Action::YesForSession,
            "allow these arguments",
            "allow this tool with exactly these arguments until the console is closed",
        ),
        shown(Key::Char('e'), Action::Fill, "edit", "refuse, and fill in the arguments again"),
        shown(Key::Char('v'), Action::Turn, "definition", "all that the tool says about itself"),
        shown(Key::Esc, Action::Turnaway, "cancel the call", "call the whole call off"),
        quiet(Key::Ctrl('l'), Action::Redraw, "draw the screen anew"),
    ],
};

pub(super) const TRUST: Place = Place {
    when: When::Trust,
    title: "asked to trust the project",
    bindings: &[
        shown(Key::Char('y'), Action::Yes, "trust", "trust exactly this, once its end was shown"),
        shown(Key::Char('n'), Action::No, "refuse", "do not trust it; remembered until it changes"),
        also(Key::Char('N'), Action::No),
        also(Key::Esc, Action::No),
        shown(
            Key::Char('a'),
            Action::YesAsAuthor,
            "author",
            "trust it as its author: code below it may change without asking again",
        ),
        shown(
            Key::Char('v'),
            Action::Turn,
            "whole",
            "the whole instead of the difference, or back",
        ),
        shown(Key::Char('q'), Action::Quit, "quit", "leave without an answer"),
        quiet(Key::Char(' '), Action::PageDown, "a page down"),
        quiet(Key::Ctrl('l'), Action::Redraw, "draw the screen anew"),
    ],
};
