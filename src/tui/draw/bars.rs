//! The bar above and the two lines below.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::words::Words;
use crate::tui::keys::{TABLE, When};
use crate::tui::layout::LEAST;
use crate::tui::state::{State, View};
use crate::tui::theme::Meaning;

/// What there is, and which view is shown.
pub(super) fn top(frame: &mut Frame<'_>, words: &Words<'_>, state: &State, area: Rect) {
    let mut spans = vec![words.span(Meaning::Title, " toolhost ")];
    let wide = area.width >= 60;
    if wide {
        let servers = &state.servers;
        let (tools, ready, all) = (state.catalogue.len(), servers.ready(), servers.rows.len());
        spans.push(words.span(Meaning::Plain, format!(" {tools} tools  {ready}/{all} up  ")));
    }
    for (number, view) in View::ALL.into_iter().enumerate() {
        let title = format!("{} {}", number + 1, view.title());
        spans.push(if view == state.view {
            words.span(Meaning::Chosen, format!("[{title}]"))
        } else {
            words.span(Meaning::Plain, format!(" {title} "))
        });
    }
    let running = state.calls.running().count();
    if running > 0 {
        spans.push(words.span(Meaning::Doubt, format!("  {running} running")));
    }
    frame.render_widget(Line::from(spans), area);
}

/// The newest message, or what is being searched for.
pub(super) fn status(frame: &mut Frame<'_>, words: &Words<'_>, state: &State, area: Rect) {
    let Some(message) = &state.message else { return };
    let meaning = if message.is_bad { Meaning::Bad } else { Meaning::Plain };
    frame.render_widget(words.line(meaning, format!(" {}", message.text)), area);
}

/// What the keys do here, as far as there is room.
pub(super) fn keys(frame: &mut Frame<'_>, words: &Words<'_>, state: &State, area: Rect) {
    let places = state.places();
    let mut spans = Vec::new();
    let mut left = usize::from(area.width);
    // The way out is always told.
    let shown = TABLE.iter().filter(|binding| binding.word.is_some());
    let here = |place: When| shown.clone().filter(move |binding| binding.when == place);
    for binding in places.iter().flat_map(|place| here(*place)) {
        let (key, word) = (binding.key.to_string(), binding.word.unwrap_or_default());
        let width = key.len() + word.len() + 4;
        if width > left {
            continue;
        }
        left -= width;
        spans.push(words.span(Meaning::Key, format!(" {key}")));
        spans.push(words.span(Meaning::Plain, format!(" {word}  ")));
    }
    frame.render_widget(Line::from(spans), area);
}

/// What is said instead of everything.
pub(super) fn too_small(frame: &mut Frame<'_>, words: &Words<'_>, area: Rect) {
    let (width, height) = LEAST;
    let said =
        format!("terminal too small ({}x{}), need {width}x{height}", area.width, area.height);
    frame.render_widget(words.line(Meaning::Plain, said), area);
}
