//! Keys that hold in many places.

use super::{Place, also, quiet, shown};
use crate::tui::keys::{Action, Key, When};
use crate::tui::state::View;

pub(super) const TEXT: Place = Place {
    when: When::Text,
    title: "while writing",
    bindings: &[
        quiet(Key::Enter, Action::Back, "keep it, and go back"),
        also(Key::Esc, Action::Back),
        quiet(Key::Down, Action::Down, "down"),
        quiet(Key::Up, Action::Up, "up"),
    ],
};

pub(super) const CHOOSING: Place = Place {
    when: When::Choosing,
    title: "while choosing",
    bindings: &[
        shown(Key::Enter, Action::Open, "take it", "take what is chosen or written"),
        shown(Key::Esc, Action::Back, "leave it", "go back and change nothing"),
        quiet(Key::Down, Action::Down, "down"),
        quiet(Key::Up, Action::Up, "up"),
        quiet(Key::PageDown, Action::PageDown, "a page down"),
        quiet(Key::PageUp, Action::PageUp, "a page up"),
    ],
};

pub(super) const OVERLAY: Place = Place {
    when: When::Overlay,
    title: "in a window",
    bindings: &[
        shown(Key::Esc, Action::Back, "close", "close"),
        also(Key::Char('q'), Action::Back),
        also(Key::Char('n'), Action::Back),
        also(Key::Char('?'), Action::Back),
        quiet(Key::Char('y'), Action::Yes, "yes"),
    ],
};

pub(super) const PALETTE: Place = Place {
    when: When::Palette,
    title: "in the palette",
    bindings: &[
        shown(Key::Enter, Action::Open, "do it", "do what is chosen"),
        shown(Key::Esc, Action::Back, "close", "close"),
        quiet(Key::Down, Action::Down, "down"),
        also(Key::Ctrl('n'), Action::Down),
        quiet(Key::Up, Action::Up, "up"),
        also(Key::Ctrl('p'), Action::Up),
        quiet(Key::PageDown, Action::PageDown, "a page down"),
        quiet(Key::PageUp, Action::PageUp, "a page up"),
    ],
};

pub(super) const RUNNING: Place = Place {
    when: When::Running,
    title: "in the calls that run",
    bindings: &[
        shown(Key::Enter, Action::Stop, "stop it", "stop the chosen call"),
        also(Key::Char('x'), Action::Stop),
        also(Key::Delete, Action::Stop),
    ],
};

pub(super) const PANE: Place = Place {
    when: When::Pane,
    title: "in a pane",
    bindings: &[
        quiet(Key::Char('j'), Action::Down, "down"),
        also(Key::Down, Action::Down),
        quiet(Key::Char('k'), Action::Up, "up"),
        also(Key::Up, Action::Up),
        quiet(Key::PageDown, Action::PageDown, "a page down"),
        quiet(Key::PageUp, Action::PageUp, "a page up"),
        quiet(Key::Char('g'), Action::Top, "to the beginning"),
        also(Key::Home, Action::Top),
        quiet(Key::Char('G'), Action::Bottom, "to the end"),
        also(Key::End, Action::Bottom),
    ],
};

pub(super) const ANYWHERE: Place = Place {
    when: When::Anywhere,
    title: "anywhere",
    bindings: &[
        shown(Key::Tab, Action::NextPane, "pane", "next pane"),
        quiet(Key::BackTab, Action::PreviousPane, "previous pane"),
        quiet(Key::Char('z'), Action::Zoom, "let the pane fill the screen, or give it back"),
        shown(
            Key::Char(':'),
            Action::Palette,
            "menu",
            "everything that can be done, to choose from",
        ),
        also(Key::Ctrl('p'), Action::Palette),
        quiet(Key::Ctrl('o'), Action::Jump, "a letter on every pane, to go to one"),
        quiet(Key::Ctrl('x'), Action::Running, "the calls that run, to stop one of them"),
        shown(Key::Char('y'), Action::Copy, "copy", "copy what is shown"),
        quiet(Key::Char('1'), Action::Show(View::Tools), "show tools"),
        quiet(Key::Char('2'), Action::Show(View::Servers), "show servers"),
        quiet(Key::Char('3'), Action::Show(View::Trace), "show what crosses the wires"),
        quiet(Key::Char('4'), Action::Show(View::Stats), "show statistics"),
        quiet(Key::Char('5'), Action::Show(View::Bench), "show the benchmark"),
        quiet(Key::Char('6'), Action::Show(View::History), "show the calls of the past"),
        quiet(Key::Char('7'), Action::Show(View::Offers), "show resources and prompts"),
        quiet(Key::Char('8'), Action::Show(View::Inbox), "show what is asked"),
        shown(
            Key::Char('!'),
            Action::Trust,
            "trust",
            "see what the project would do, and trust it or not",
        ),
        quiet(Key::Esc, Action::Back, "close, leave, go back"),
        quiet(Key::Ctrl('c'), Action::Cancel, "stop the newest call; with nothing running: quit"),
        quiet(Key::Ctrl('l'), Action::Redraw, "draw the screen anew"),
        quiet(Key::Ctrl('z'), Action::Suspend, "back to the shell for a while (fg returns)"),
        shown(Key::Char('?'), Action::Help, "help", "what the keys do"),
        shown(Key::Char('q'), Action::Quit, "quit", "quit"),
    ],
};
