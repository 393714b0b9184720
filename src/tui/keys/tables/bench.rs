//! Keys in the benchmark.

use super::{KeyTable, alias_binding, footer_binding, help_binding};
use crate::tui::keys::{Action, KeyContext, KeyPress};

pub(super) const BENCH: KeyTable = KeyTable {
    context: KeyContext::Bench,
    title: "in the benchmark",
    bindings: &[
        footer_binding(KeyPress::Enter, Action::Run, "start", "start the run"),
        alias_binding(KeyPress::F(5), Action::Run),
        footer_binding(KeyPress::Char('a'), Action::TargetA, "tool A", "choose the first tool"),
        footer_binding(
            KeyPress::Char('b'),
            Action::TargetB,
            "tool B",
            "choose the tool it is compared with",
        ),
        footer_binding(KeyPress::Char('e'), Action::Fill, "edit", "write the entry of the plan"),
        footer_binding(
            KeyPress::Char('m'),
            Action::Model,
            "model",
            "closed: the next call when one ended; open: a rate",
        ),
        footer_binding(
            KeyPress::Char('x'),
            Action::Stop,
            "stop",
            "stop the run and keep what was measured",
        ),
        footer_binding(
            KeyPress::Char(' '),
            Action::Pause,
            "pause",
            "make no calls for now, or go on",
        ),
        footer_binding(
            KeyPress::Char('B'),
            Action::Baseline,
            "baseline",
            "keep the run, to compare later ones with it",
        ),
        footer_binding(
            KeyPress::Char('E'),
            Action::Export,
            "export",
            "write the run: .json .csv .md .hgrm .svg",
        ),
        footer_binding(
            KeyPress::Char('Y'),
            Action::CopyCommand,
            "copy as command",
            "copy the command line of it",
        ),
        help_binding(KeyPress::Left, Action::PreviousChoice, "the other choice"),
        help_binding(KeyPress::Right, Action::NextChoice, "the other choice"),
        help_binding(KeyPress::Delete, Action::Unset, "leave the entry out: its default holds"),
    ],
};
