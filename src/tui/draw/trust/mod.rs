//! Draws the trust question about the project.

#[cfg(test)]
mod tests;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Text};
use ratatui::widgets::Clear;

use super::styler::Styler;
use super::wrap::wrap;
use super::{pane, scroll_text};
use crate::tui::keys::{Action, KeyContext};
use crate::tui::layout;
use crate::tui::state::{AppState, Readiness, TrustWindow};
use crate::tui::theme::StyleRole;

/// The rows of a window that has room for what the keys do; below that the footer has to do.
const KEY_HINTS_MIN_HEIGHT: u16 = 14;

pub(super) fn draw(
    frame: &mut Frame<'_>,
    styler: &Styler<'_>,
    state: &AppState,
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
    let inner = pane::window(frame, styler, place, title, StyleRole::Warning);
    let keys =
        if inner.height < KEY_HINTS_MIN_HEIGHT { Vec::new() } else { answers(styler, state) };
    let height = u16::try_from(keys.len()).unwrap_or(0) + 1;
    let [above, line, below] = Layout::vertical([
        Constraint::Fill(1),
        Constraint::Length(1),
        Constraint::Length(height - 1),
    ])
    .areas(inner);
    scroll_text::draw(frame, styler, &window.text, above);
    // Only now is it known whether the end is on the screen.
    let (meaning, text) = match window.readiness(state.context.now) {
        Readiness::Ready => (StyleRole::Title, "Trust this project? [y/N]".to_owned()),
        Readiness::TooSoon => {
            (StyleRole::Dim, "One moment… (ignoring keys typed ahead)".to_owned())
        }
        Readiness::Unread => (StyleRole::Warning, "Read to the end to answer (G)".to_owned()),
        Readiness::TooLong => {
            (StyleRole::Error, format!("Too long to show here. Run: {}", window.request.command()))
        }
    };
    frame.render_widget(styler.line(meaning, text), line);
    pane::paragraph(frame, styler, below, &keys);
}

fn answers(styler: &Styler<'_>, state: &AppState) -> Vec<Line<'static>> {
    let shown = state.context.keys.bindings(KeyContext::Trust).iter();
    let shown =
        shown.filter(|binding| binding.label.is_some() && !state.is_unavailable(binding.action));
    let answers = shown.map(|binding| {
        Line::from(vec![
            styler.span(StyleRole::Key, format!("{:>3} ", binding.key.to_string())),
            styler.span(StyleRole::Plain, binding.about),
        ])
    });
    answers.collect()
}

/// Says below the tools what is not trusted; returns the area left above.
pub(super) fn notice(
    frame: &mut Frame<'_>,
    styler: &Styler<'_>,
    state: &AppState,
    area: Rect,
) -> Rect {
    let key = state.context.keys.key_of(Action::Trust, &state.view_key_contexts());
    let lines = match state.trust.notice(key) {
        Some(text) => wrap(&styler.line(StyleRole::Warning, text), usize::from(area.width)),
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
