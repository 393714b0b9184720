//! Resources and prompts.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::pane;
use super::words::Words;
use crate::tui::state::{Pane, State};

pub(super) fn draw(
    frame: &mut Frame<'_>,
    words: &Words<'_>,
    state: &State,
    shown: Pane,
    area: Rect,
) {
    pane::open(frame, words, area, &format!("{shown:?}"), state.shell.focus == shown);
}
