//! Keys of the resources view.

use super::{KeyTable, footer_binding, help_binding};
use crate::tui::keys::{Action, KeyContext, KeyPress};

pub(super) const OFFERINGS: KeyTable = KeyTable {
    context: KeyContext::Offerings,
    title: "Resources and prompts",
    bindings: &[
        footer_binding(KeyPress::Enter, Action::Open, "open", "read, fill in or fold"),
        footer_binding(KeyPress::Char('/'), Action::Filter, "filter", "filter by name"),
        footer_binding(
            KeyPress::Char('S'),
            Action::Subscribe,
            "watch",
            "watch or unwatch the resource",
        ),
        footer_binding(
            KeyPress::Char('t'),
            Action::ChangeFormat,
            "text/raw",
            "switch between text and raw",
        ),
        footer_binding(
            KeyPress::Char('Y'),
            Action::CopyCommand,
            "copy as command",
            "copy as a command",
        ),
        footer_binding(KeyPress::Char('E'), Action::Export, "write", "save to a file"),
        help_binding(KeyPress::Char('e'), Action::Fill, "edit the arguments"),
        help_binding(KeyPress::Char('u'), Action::Refresh, "reload from all servers"),
    ],
};

pub(super) const OFFERING_FORM: KeyTable = KeyTable {
    context: KeyContext::OfferingForm,
    title: "Template and prompt arguments",
    bindings: &[footer_binding(
        KeyPress::Right,
        Action::NextChoice,
        "suggestion",
        "accept the next suggestion, or cursor right",
    )],
};
