//! The picture of a state.
//!
//! Owns: where everything is written. Reads the state and nothing else; what comes from tools and
//! servers is made safe here, before it is laid out, so that it takes the room it seems to take.

mod approval;
mod bars;
mod bench;
mod catalogue;
mod chart;
mod columns;
mod detail;
mod form;
mod histogram;
mod history;
mod inbox;
mod offers;
mod overlay;
mod page;
mod pages;
mod palette;
mod pane;
mod result;
mod running;
mod servers;
mod stats;
mod trace;
mod trust;
mod words;
mod wrap;

#[cfg(test)]
mod pictures;
#[cfg(test)]
mod tests;

use ratatui::Frame;
use ratatui::layout::Rect;

use super::layout::{self, Room};
use super::state::{Pane, State};
use super::theme::Theme;
use words::Words;

/// Draws the whole console.
pub fn console(frame: &mut Frame<'_>, state: &State, theme: &Theme) {
    let area = frame.area();
    let room = Room::of(area);
    let mut words = Words::new(theme);
    if room == Room::None {
        return bars::too_small(frame, &words, area);
    }
    let [top, _, status, keys] = layout::frame(area);
    bars::top(frame, &words, state, top);
    bars::status(frame, &words, state, status);
    bars::keys(frame, &words, state, keys);
    words.frames = layout::has_frames(room);
    for (shown, place) in state.shell.panes_shown() {
        pane(frame, &words, state, shown, place);
    }
    if let Some(place) = state.shell.wire_shown() {
        trace::newest(frame, &words, state, place);
    }
    overlay::draw(frame, &Words::new(theme), state, area);
}

fn pane(frame: &mut Frame<'_>, words: &Words<'_>, state: &State, pane: Pane, area: Rect) {
    match pane {
        Pane::Catalogue => catalogue::draw(frame, words, state, area),
        Pane::Detail => match &state.tools.form {
            Some(form) => form::draw(frame, words, form, state.shell.focus == pane, area),
            None => detail::draw(frame, words, state, area),
        },
        Pane::Result => result::draw(frame, words, state, area),
        Pane::Servers => servers::list(frame, words, state, area),
        Pane::Health => servers::health(frame, words, state, area),
        Pane::Wire | Pane::Frame => trace::draw(frame, words, state, pane, area),
        Pane::Usage | Pane::Latency => stats::draw(frame, words, state, pane, area),
        Pane::Plan | Pane::Run | Pane::Verdict => bench::draw(frame, words, state, pane, area),
        Pane::Past | Pane::Entry => history::draw(frame, words, state, pane, area),
        Pane::Offered | Pane::Content => offers::draw(frame, words, state, pane, area),
        Pane::Questions | Pane::Question => inbox::draw(frame, words, state, pane, area),
    }
}
