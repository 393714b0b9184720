//! Draws the benchmark view: plan, run, results.

mod plan;
mod run;
mod verdict;

use ratatui::Frame;
use ratatui::layout::Rect;

use super::styler::Styler;
use super::{pane, scroll_text};
use crate::tui::state::{AppState, Pane};

pub(super) fn draw(
    frame: &mut Frame<'_>,
    styler: &Styler<'_>,
    state: &AppState,
    shown: Pane,
    area: Rect,
) {
    let focused = state.context.focus == shown;
    let bench = &state.bench;
    let title = match shown {
        Pane::Plan => plan::title(bench),
        Pane::Run => run::title(bench),
        _ => verdict::title(bench),
    };
    let inner = pane::open(frame, styler, area, &title, focused);
    let inner = match &bench.file {
        Some(line) if focused => {
            pane::input_row(frame, styler, inner, "Export to (json csv md html): ", line)
        }
        _ => inner,
    };
    match shown {
        Pane::Plan => plan::draw(frame, styler, bench, focused, inner),
        Pane::Run => {
            let lines = run::lines(styler, bench, inner.width, inner.height);
            scroll_text::draw_lines(frame, styler, &lines, &bench.run_position, inner);
        }
        _ => {
            let lines = verdict::lines(styler, bench, inner.width);
            scroll_text::draw_lines(frame, styler, &lines, &bench.verdict_position, inner);
        }
    }
}

#[cfg(test)]
mod tests;
