//! The benchmark: the plan, the run, what it showed.

mod plan;
mod run;
mod verdict;

use ratatui::Frame;
use ratatui::layout::Rect;

use super::pane;
use super::words::Words;
use crate::tui::state::bench::Purpose;
use crate::tui::state::{Pane, State};

pub(super) fn draw(
    frame: &mut Frame<'_>,
    words: &Words<'_>,
    state: &State,
    shown: Pane,
    area: Rect,
) {
    let focused = state.shell.focus == shown;
    let bench = &state.bench;
    let title = match shown {
        Pane::Plan => plan::title(bench),
        Pane::Run => run::title(bench),
        _ => verdict::title(bench),
    };
    let inner = pane::open(frame, words, area, &title, focused);
    let inner = match &bench.file {
        Some((purpose, line)) if focused => {
            let question = match purpose {
                Purpose::Export => "write to (json csv md hgrm svg): ",
                Purpose::Baseline => "keep as: ",
            };
            pane::asked(frame, words, inner, question, line)
        }
        _ => inner,
    };
    match shown {
        Pane::Plan => plan::draw(frame, words, bench, focused, inner),
        Pane::Run => {
            let lines = run::lines(words, bench, inner.width, inner.height);
            pane::scrolled(frame, words, inner, &lines, bench.run_scroll);
        }
        _ => {
            let lines = verdict::lines(words, bench, inner.width);
            pane::scrolled(frame, words, inner, &lines, bench.verdict_scroll);
        }
    }
}

#[cfg(test)]
mod tests;
