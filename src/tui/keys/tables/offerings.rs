//! Keys in what servers offer beside tools.

use super::{KeyTable, footer_binding, help_binding};
use crate::tui::keys::{Action, KeyContext, KeyPress};

pub(super) const OFFERINGS: KeyTable = KeyTable {
    context: KeyContext::Offers,
    title: "in the resources and prompts",
    bindings: &[
        footer_binding(
            KeyPress::Enter,
            Action::Open,
            "open",
            "read it, or fill it in; a server or group: fold it",
        ),
        footer_binding(KeyPress::Char('/'), Action::Filter, "find", "find by a few letters"),
        footer_binding(
            KeyPress::Char('S'),
            Action::Subscribe,
            "watch",
            "be told when the resource changes, or not any more",
        ),
        footer_binding(
            KeyPress::Char('t'),
            Action::Turn,
            "text/raw",
            "show what is open as text or as it came",
        ),
        footer_binding(
            KeyPress::Char('Y'),
            Action::CopyCommand,
            "copy as command",
            "copy as a command line",
        ),
        footer_binding(
            KeyPress::Char('E'),
            Action::Export,
            "write",
            "write what is open to a file",
        ),
        help_binding(KeyPress::Char('e'), Action::Fill, "fill in the arguments again"),
        help_binding(KeyPress::Char('u'), Action::Refresh, "ask all servers again"),
    ],
};

pub(super) const OFFERING_FORM: KeyTable = KeyTable {
    context: KeyContext::Asking,
    title: "in the arguments of templates and prompts",
    bindings: &[footer_binding(
        KeyPress::Right,
        Action::NextChoice,
        "suggestion",
        "take the next suggestion, or a letter on",
    )],
};
