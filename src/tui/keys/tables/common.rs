//! Keys that hold in many places.

use super::{KeyTable, alias_binding, footer_binding, help_binding};
use crate::tui::keys::{Action, KeyContext, KeyPress};
use crate::tui::view_id::ViewId;

pub(super) const TEXT: KeyTable = KeyTable {
    context: KeyContext::Text,
    title: "while writing",
    bindings: &[
        help_binding(KeyPress::Enter, Action::Back, "keep it, and go back"),
        alias_binding(KeyPress::Esc, Action::Back),
        help_binding(KeyPress::Down, Action::Down, "down"),
        help_binding(KeyPress::Up, Action::Up, "up"),
    ],
};

pub(super) const PICKER: KeyTable = KeyTable {
    context: KeyContext::Choosing,
    title: "while choosing",
    bindings: &[
        footer_binding(KeyPress::Enter, Action::Open, "take it", "take what is chosen or written"),
        footer_binding(KeyPress::Esc, Action::Back, "leave it", "go back and change nothing"),
        help_binding(KeyPress::Down, Action::Down, "down"),
        help_binding(KeyPress::Up, Action::Up, "up"),
        help_binding(KeyPress::PageDown, Action::PageDown, "a page down"),
        help_binding(KeyPress::PageUp, Action::PageUp, "a page up"),
    ],
};

pub(super) const OVERLAY: KeyTable = KeyTable {
    context: KeyContext::Overlay,
    title: "in a window",
    bindings: &[
        footer_binding(KeyPress::Esc, Action::Back, "close", "close"),
        alias_binding(KeyPress::Char('q'), Action::Back),
        alias_binding(KeyPress::Char('n'), Action::Back),
        alias_binding(KeyPress::Char('?'), Action::Back),
        help_binding(KeyPress::Char('y'), Action::Yes, "yes"),
    ],
};

pub(super) const PALETTE: KeyTable = KeyTable {
    context: KeyContext::Palette,
    title: "in the palette",
    bindings: &[
        footer_binding(KeyPress::Enter, Action::Open, "do it", "do what is chosen"),
        footer_binding(KeyPress::Esc, Action::Back, "close", "close"),
        help_binding(KeyPress::Down, Action::Down, "down"),
        alias_binding(KeyPress::Ctrl('n'), Action::Down),
        help_binding(KeyPress::Up, Action::Up, "up"),
        alias_binding(KeyPress::Ctrl('p'), Action::Up),
        help_binding(KeyPress::PageDown, Action::PageDown, "a page down"),
        help_binding(KeyPress::PageUp, Action::PageUp, "a page up"),
    ],
};

pub(super) const RUNNING: KeyTable = KeyTable {
    context: KeyContext::Running,
    title: "in the calls that run",
    bindings: &[
        footer_binding(KeyPress::Enter, Action::Stop, "stop it", "stop the chosen call"),
        alias_binding(KeyPress::Char('x'), Action::Stop),
        alias_binding(KeyPress::Delete, Action::Stop),
    ],
};

pub(super) const PANE: KeyTable = KeyTable {
    context: KeyContext::Pane,
    title: "in a pane",
    bindings: &[
        help_binding(KeyPress::Char('j'), Action::Down, "down"),
        alias_binding(KeyPress::Down, Action::Down),
        help_binding(KeyPress::Char('k'), Action::Up, "up"),
        alias_binding(KeyPress::Up, Action::Up),
        help_binding(KeyPress::PageDown, Action::PageDown, "a page down"),
        help_binding(KeyPress::PageUp, Action::PageUp, "a page up"),
        help_binding(KeyPress::Char('g'), Action::Top, "to the beginning"),
        alias_binding(KeyPress::Home, Action::Top),
        help_binding(KeyPress::Char('G'), Action::Bottom, "to the end"),
        alias_binding(KeyPress::End, Action::Bottom),
    ],
};

pub(super) const ANYWHERE: KeyTable = KeyTable {
    context: KeyContext::Anywhere,
    title: "anywhere",
    bindings: &[
        footer_binding(KeyPress::Tab, Action::NextPane, "pane", "next pane"),
        help_binding(KeyPress::BackTab, Action::PreviousPane, "previous pane"),
        help_binding(
            KeyPress::Char('z'),
            Action::Zoom,
            "let the pane fill the screen, or give it back",
        ),
        footer_binding(
            KeyPress::Char(':'),
            Action::Palette,
            "menu",
            "everything that can be done, to choose from",
        ),
        alias_binding(KeyPress::Ctrl('p'), Action::Palette),
        help_binding(KeyPress::Ctrl('o'), Action::Jump, "a letter on every pane, to go to one"),
        help_binding(
            KeyPress::Ctrl('x'),
            Action::Running,
            "the calls that run, to stop one of them",
        ),
        footer_binding(KeyPress::Char('y'), Action::Copy, "copy", "copy what is shown"),
        help_binding(KeyPress::Char('1'), Action::Show(ViewId::Tools), "show tools"),
        help_binding(KeyPress::Char('2'), Action::Show(ViewId::Servers), "show servers"),
        help_binding(
            KeyPress::Char('3'),
            Action::Show(ViewId::Trace),
            "show what crosses the wires",
        ),
        help_binding(KeyPress::Char('4'), Action::Show(ViewId::Stats), "show statistics"),
        help_binding(KeyPress::Char('5'), Action::Show(ViewId::Bench), "show the benchmark"),
        help_binding(
            KeyPress::Char('6'),
            Action::Show(ViewId::History),
            "show the calls of the past",
        ),
        help_binding(
            KeyPress::Char('7'),
            Action::Show(ViewId::Offerings),
            "show resources and prompts",
        ),
        help_binding(KeyPress::Char('8'), Action::Show(ViewId::Inbox), "show what is asked"),
        footer_binding(
            KeyPress::Char('!'),
            Action::Trust,
            "trust",
            "see what the project would do, and trust it or not",
        ),
        help_binding(KeyPress::Esc, Action::Back, "close, leave, go back"),
        help_binding(
            KeyPress::Ctrl('c'),
            Action::Cancel,
            "stop the newest call; with nothing running: quit",
        ),
        help_binding(KeyPress::Ctrl('l'), Action::Redraw, "draw the screen anew"),
        help_binding(
            KeyPress::Ctrl('z'),
            Action::Suspend,
            "back to the shell for a while (fg returns)",
        ),
        footer_binding(KeyPress::Char('?'), Action::Help, "help", "what the keys do"),
        footer_binding(KeyPress::Char('q'), Action::Quit, "quit", "quit"),
    ],
};
