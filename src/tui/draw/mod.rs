//! The picture of a state.
//!
//! Owns: where everything is written. Reads the state and nothing else; what comes from tools and
//! servers is made safe here, before it is laid out, so that it takes the room it seems to take.

mod bars;
mod catalogue;
mod detail;
mod form;
mod overlay;
mod pane;
mod result;
mod servers;
mod words;
mod wrap;

#[cfg(test)]
mod tests;

use ratatui::Frame;
use ratatui::layout::Rect;

use super::layout::{self, Room};
use super::state::{Pane, State, View};
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
    let [top, middle, status, keys] = layout::frame(area);
    bars::top(frame, &words, state, top);
    bars::status(frame, &words, state, status);
    bars::keys(frame, &words, state, keys);
    if state.is_zoomed || room <= Room::Compact {
        // A narrow screen has no lines to spare for frames.
        words.frames = room > Room::Tiny;
        pane(frame, &words, state, state.focus, middle);
    } else {
        match state.view {
            View::Tools => tools(frame, &words, state, room, middle),
            View::Servers => {
                let (above, below) = layout::rows(middle, 45);
                pane(frame, &words, state, Pane::Servers, above);
                pane(frame, &words, state, Pane::Health, below);
            }
        }
    }
    overlay::draw(frame, &Words::new(theme), state, area);
}

fn tools(frame: &mut Frame<'_>, words: &Words<'_>, state: &State, room: Room, area: Rect) {
    let (left, right) = layout::columns(area, room);
    pane(frame, words, state, Pane::Catalogue, left);
    if room == Room::Full {
        let (above, below) = layout::rows(right, 55);
        pane(frame, words, state, Pane::Detail, above);
        pane(frame, words, state, Pane::Result, below);
    } else {
        let (above, below) = layout::rows(right, 60);
        pane(frame, words, state, Pane::Detail, above);
        pane(frame, words, state, Pane::Result, below);
    }
}

fn pane(frame: &mut Frame<'_>, words: &Words<'_>, state: &State, pane: Pane, area: Rect) {
    match pane {
        Pane::Catalogue => catalogue::draw(frame, words, state, area),
        Pane::Detail if state.form.is_some() => form::draw(frame, words, state, area),
        Pane::Detail => detail::draw(frame, words, state, area),
        Pane::Result => result::draw(frame, words, state, area),
        Pane::Servers => servers::list(frame, words, state, area),
        Pane::Health => servers::health(frame, words, state, area),
    }
}
