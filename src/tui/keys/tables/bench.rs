//! Keys of the benchmark view.

use super::{KeyTable, alias_binding, footer_binding, help_binding};
use crate::tui::keys::{Action, KeyContext, KeyPress};

pub(super) const BENCH: KeyTable = KeyTable {
    context: KeyContext::Bench,
    title: "Benchmark",
    bindings: &[
        footer_binding(KeyPress::Enter, Action::Run, "start", "start the run"),
        alias_binding(KeyPress::F(5), Action::Run),
        footer_binding(KeyPress::Char('a'), Action::TargetA, "tool A", "choose tool A"),
        footer_binding(
            KeyPress::Char('b'),
            Action::TargetB,
            "tool B",
            "choose tool B, to compare with A",
        ),
        footer_binding(KeyPress::Char('e'), Action::Fill, "edit", "edit the plan entry"),
        footer_binding(
            KeyPress::Char('x'),
            Action::Stop,
            "stop",
            "stop the run and keep its results",
        ),
        footer_binding(KeyPress::Char(' '), Action::Pause, "pause", "pause or resume"),
        footer_binding(
            KeyPress::Char('E'),
            Action::Export,
            "export",
            "export the run: .json .csv .md .html",
        ),
        footer_binding(
            KeyPress::Char('Y'),
            Action::CopyCommand,
            "copy as command",
            "copy the run as a command",
        ),
        help_binding(KeyPress::Delete, Action::Unset, "unset the entry"),
    ],
};
