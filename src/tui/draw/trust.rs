//! The question about the project: what it would do, and what may be answered.

#[cfg(test)]
mod tests;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Text};
use ratatui::widgets::Clear;

use super::words::Words;
use super::wrap::wrap;
use super::{page, pane};
use crate::tui::keys::{Action, When};
use crate::tui::layout;
use crate::tui::state::{Readiness, State, TrustWindow};
use crate::tui::theme::Meaning;

/// The rows of a window that has room for what the keys do; below that the footer has to do.
const ROOMY: u16 = 14;

pub(super) fn draw(
    frame: &mut Frame<'_>,
    words: &Words<'_>,
    state: &State,
    window: &TrustWindow,
    area: Rect,
) {
    let margin = if area.height < 20 { 2 } else { 4 };
    let place = layout::window(area, 100, area.height.saturating_sub(margin).max(5));
    frame.render_widget(Clear, place);
    let title = match (&window.request.previous, window.shows_whole) {
        (None, _) => "Trust this project?",
        (Some(_), false) => "The project changed",
        (Some(_), true) => "The whole project",
    };
    let inner = pane::open(frame, words, place, title, true);
    let keys = if inner.height < ROOMY { Vec::new() } else { answers(words, state) };
    let height = u16::try_from(keys.len()).unwrap_or(0) + 1;
    let [above, line, below] = Layout::vertical([
        Constraint::Fill(1),
        Constraint::Length(1),
        Constraint::Length(height - 1),
    ])
    .areas(inner);
    page::draw(frame, words, &window.page, above);
    // Only now is it known whether the end is on the screen.
    let (meaning, said) = match window.readiness(state.shell.now) {
        Readiness::Ready => (Meaning::Title, "Trust this project? [y/N]".to_owned()),
        Readiness::TooSoon => {
            (Meaning::Dim, "one moment: what was typed ahead is no answer".to_owned())
        }
        Readiness::Unread => (Meaning::Doubt, "Read to the end to answer (G)".to_owned()),
        Readiness::TooLong => {
            (Meaning::Bad, format!("Too long for here: {}", window.request.command()))
        }
    };
    frame.render_widget(words.line(meaning, said), line);
    pane::scrolled(frame, words, below, &keys, 0);
}

/// The answers, from the table of keys.
fn answers(words: &Words<'_>, state: &State) -> Vec<Line<'static>> {
    let shown = state.shell.keys.bindings(When::Trust).iter();
    let shown = shown.filter(|binding| binding.word.is_some() && !state.is_idle(binding.action));
    let answers = shown.map(|binding| {
        Line::from(vec![
            words.span(Meaning::Key, format!("{:>3} ", binding.key.to_string())),
            words.span(Meaning::Plain, binding.about),
        ])
    });
    answers.collect()
}

/// Says below the tools what is not trusted; gives the room that is left above.
pub(super) fn notice(frame: &mut Frame<'_>, words: &Words<'_>, state: &State, area: Rect) -> Rect {
    let key = state.shell.keys.key_of(Action::Trust, &state.places_below());
    let lines = match state.trust.notice(key) {
        Some(said) => wrap(&words.line(Meaning::Doubt, said), usize::from(area.width)),
        None => Vec::new(),
    };
    // The tools keep a line.
    let height = u16::try_from(lines.len()).unwrap_or(0).min(area.height.saturating_sub(1));
    state.tools.notice_height.set(height);
    let [above, below] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(height)]).areas(area);
    frame.render_widget(Text::from(lines), below);
    above
}
