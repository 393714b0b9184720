//! Keys shared by many views.

use super::{KeyTable, alias_binding, footer_binding, help_binding};
use crate::tui::keys::{Action, KeyContext, KeyPress};
use crate::tui::view_id::ViewId;

pub(super) const TEXT: KeyTable = KeyTable {
    context: KeyContext::Text,
    title: "Text input",
    bindings: &[
        footer_binding(KeyPress::Enter, Action::Open, "open", "open what is chosen"),
        footer_binding(KeyPress::Esc, Action::Back, "clear", "clear the text and go back"),
        help_binding(KeyPress::Down, Action::Down, "down"),
        help_binding(KeyPress::Up, Action::Up, "up"),
    ],
};

pub(super) const PICKER: KeyTable = KeyTable {
    context: KeyContext::Picker,
    title: "Choosing",
    bindings: &[
        footer_binding(KeyPress::Enter, Action::Open, "select", "select"),
        footer_binding(KeyPress::Esc, Action::Back, "cancel", "go back without changes"),
        help_binding(KeyPress::Down, Action::Down, "down"),
        help_binding(KeyPress::Up, Action::Up, "up"),
        help_binding(KeyPress::PageDown, Action::PageDown, "page down"),
        help_binding(KeyPress::PageUp, Action::PageUp, "page up"),
    ],
};

pub(super) const OVERLAY: KeyTable = KeyTable {
    context: KeyContext::Overlay,
    title: "Windows",
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
    title: "Commands",
    bindings: &[
        footer_binding(KeyPress::Enter, Action::Open, "run", "run the chosen command"),
        footer_binding(KeyPress::Esc, Action::Back, "close", "close"),
        help_binding(KeyPress::Down, Action::Down, "down"),
        alias_binding(KeyPress::Ctrl('n'), Action::Down),
        help_binding(KeyPress::Up, Action::Up, "up"),
        alias_binding(KeyPress::Ctrl('p'), Action::Up),
        help_binding(KeyPress::PageDown, Action::PageDown, "page down"),
        help_binding(KeyPress::PageUp, Action::PageUp, "page up"),
    ],
};

pub(super) const SAVE_CALL: KeyTable = KeyTable {
    context: KeyContext::SaveCall,
    title: "Saving a call",
    bindings: &[
        footer_binding(KeyPress::Enter, Action::Open, "save", "save the call under this name"),
        footer_binding(KeyPress::Esc, Action::Back, "cancel", "go back without saving"),
    ],
};

pub(super) const RUNNING: KeyTable = KeyTable {
    context: KeyContext::Running,
    title: "Running calls",
    bindings: &[
        footer_binding(KeyPress::Enter, Action::Stop, "cancel", "cancel the chosen call"),
        alias_binding(KeyPress::Char('x'), Action::Stop),
        alias_binding(KeyPress::Delete, Action::Stop),
    ],
};

pub(super) const PROBLEMS: KeyTable = KeyTable {
    context: KeyContext::Problems,
    title: "Configuration problems",
    bindings: &[footer_binding(KeyPress::Char('y'), Action::Copy, "copy", "copy the whole list")],
};

pub(super) const PIN_REVIEW: KeyTable = KeyTable {
    context: KeyContext::PinReview,
    title: "Pin",
    bindings: &[
        footer_binding(
            KeyPress::Char('y'),
            Action::Yes,
            "accept",
            "pin exactly this (after reading to the end)",
        ),
        help_binding(KeyPress::Char(' '), Action::PageDown, "page down"),
    ],
};

pub(super) const PANE: KeyTable = KeyTable {
    context: KeyContext::Pane,
    title: "Panes",
    bindings: &[
        help_binding(KeyPress::Char('j'), Action::Down, "down"),
        alias_binding(KeyPress::Down, Action::Down),
        help_binding(KeyPress::Char('k'), Action::Up, "up"),
        alias_binding(KeyPress::Up, Action::Up),
        help_binding(KeyPress::PageDown, Action::PageDown, "page down"),
        help_binding(KeyPress::PageUp, Action::PageUp, "page up"),
        help_binding(KeyPress::Char('g'), Action::Top, "go to the top"),
        alias_binding(KeyPress::Home, Action::Top),
        help_binding(KeyPress::Char('G'), Action::Bottom, "go to the end"),
        alias_binding(KeyPress::End, Action::Bottom),
    ],
};

pub(super) const ANYWHERE: KeyTable = KeyTable {
    context: KeyContext::Anywhere,
    title: "Everywhere",
    bindings: &[
        footer_binding(KeyPress::Tab, Action::NextPane, "pane", "next pane"),
        help_binding(KeyPress::BackTab, Action::PreviousPane, "previous pane"),
        help_binding(KeyPress::Char('z'), Action::Zoom, "zoom the pane"),
        footer_binding(KeyPress::Char(':'), Action::Palette, "menu", "show all commands"),
        alias_binding(KeyPress::Ctrl('p'), Action::Palette),
        help_binding(KeyPress::Char('<'), Action::NarrowPane, "left pane narrower"),
        help_binding(KeyPress::Char('>'), Action::WidenPane, "left pane wider"),
        help_binding(KeyPress::Char('-'), Action::ShrinkPane, "upper pane smaller"),
        help_binding(KeyPress::Char('+'), Action::GrowPane, "upper pane larger"),
        help_binding(KeyPress::Char('='), Action::ResetPanes, "reset pane sizes"),
        help_binding(KeyPress::Ctrl('x'), Action::Running, "show running calls"),
        footer_binding(KeyPress::Char('y'), Action::Copy, "copy", "copy what is shown"),
        help_binding(KeyPress::Char('1'), Action::Show(ViewId::Tools), "show tools"),
        help_binding(KeyPress::Char('2'), Action::Show(ViewId::Servers), "show servers"),
        help_binding(KeyPress::Char('3'), Action::Show(ViewId::Trace), "show the trace"),
        help_binding(KeyPress::Char('4'), Action::Show(ViewId::Stats), "show statistics"),
        help_binding(KeyPress::Char('5'), Action::Show(ViewId::Bench), "show the benchmark"),
        help_binding(KeyPress::Char('6'), Action::Show(ViewId::History), "show the history"),
        help_binding(
            KeyPress::Char('7'),
            Action::Show(ViewId::Offerings),
            "show resources and prompts",
        ),
        help_binding(KeyPress::Char('8'), Action::Show(ViewId::Inbox), "show the inbox"),
        alias_binding(KeyPress::Ctrl('q'), Action::Show(ViewId::Inbox)),
        help_binding(KeyPress::Char('U'), Action::Reload, "reload the configuration files"),
        footer_binding(
            KeyPress::Char('W'),
            Action::Problems,
            "problems",
            "show configuration file problems",
        ),
        footer_binding(KeyPress::Char('!'), Action::Trust, "trust", "review and trust the project"),
        help_binding(KeyPress::Esc, Action::Back, "close or go back"),
        help_binding(
            KeyPress::Ctrl('c'),
            Action::Cancel,
            "cancel the newest call; with none ask whether to quit",
        ),
        help_binding(KeyPress::Ctrl('l'), Action::Redraw, "redraw"),
        help_binding(KeyPress::Ctrl('z'), Action::Suspend, "suspend (fg returns)"),
        footer_binding(KeyPress::Char('?'), Action::Help, "help", "show the keys"),
        alias_binding(KeyPress::F(1), Action::Help),
        footer_binding(KeyPress::Char('q'), Action::Quit, "quit", "quit"),
    ],
};
