//! Keys in what crosses the wires.

use super::{Place, also, quiet, shown};
use crate::tui::keys::{Action, Key, When};

pub(super) const TRACE: Place = Place {
    when: When::Trace,
    title: "in the trace",
    bindings: &[
        shown(Key::Char(' '), Action::Pause, "pause", "hold still, or go on; what comes is kept"),
        shown(
            Key::Char('/'),
            Action::Filter,
            "filter",
            "show only srv:NAME method:tools/* way:sent error:yes call:ID words !unwanted",
        ),
        shown(Key::Enter, Action::Open, "pair", "the frame whole, with its request or answer"),
        shown(Key::Char('t'), Action::Turn, "turn", "request, response, both"),
        also(Key::Left, Action::Turn),
        also(Key::Right, Action::Turn),
        shown(Key::Char('f'), Action::Follow, "follow", "stay at the newest line, or not"),
        quiet(Key::Char('Y'), Action::CopyCommand, "copy the request and its answer"),
        shown(Key::Char('E'), Action::Export, "export", "write what is shown, for replay"),
        quiet(Key::Char('C'), Action::Reset, "forget what came until now"),
    ],
};
