//! Keys in the benchmark.

use super::{Place, also, quiet, shown};
use crate::tui::keys::{Action, Key, When};

pub(super) const BENCH: Place = Place {
    when: When::Bench,
    title: "in the benchmark",
    bindings: &[
        shown(Key::Enter, Action::Run, "start", "start the run"),
        also(Key::F(5), Action::Run),
        shown(Key::Char('a'), Action::TargetA, "tool A", "choose the first tool"),
        shown(Key::Char('b'), Action::TargetB, "tool B", "choose the tool it is compared with"),
        shown(Key::Char('e'), Action::Fill, "edit", "write the entry of the plan"),
        shown(
            Key::Char('m'),
            Action::Model,
            "model",
            "closed: the next call when one ended; open: a rate",
        ),
        shown(Key::Char('x'), Action::Stop, "stop", "stop the run and keep what was measured"),
        shown(Key::Char(' '), Action::Pause, "pause", "make no calls for now, or go on"),
        shown(
            Key::Char('B'),
            Action::Baseline,
            "baseline",
            "keep the run, to compare later ones with it",
        ),
        shown(Key::Char('E'), Action::Export, "export", "write the run: .json .csv .md .hgrm .svg"),
        shown(
            Key::Char('Y'),
            Action::CopyCommand,
            "copy as command",
            "copy the command line of it",
        ),
        quiet(Key::Left, Action::PreviousChoice, "the other choice"),
        quiet(Key::Right, Action::NextChoice, "the other choice"),
        quiet(Key::Delete, Action::Unset, "leave the entry out: its default holds"),
    ],
};
