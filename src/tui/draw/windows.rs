//! Windows that show a text over the views: the problems of the configuration, a tool and its pin.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::widgets::Clear;

use super::styler::Styler;
use super::{pane, scroll_text};
use crate::catalogue::pins::PinReportState;
use crate::tui::layout;
use crate::tui::state::{AppState, PinWindow, Readiness, SaveCallWindow};
use crate::tui::theme::StyleRole;

/// The columns of such a window, where there is room.
const WIDTH: u16 = 100;

fn open(frame: &mut Frame<'_>, styler: &Styler<'_>, title: &str, area: Rect) -> Rect {
    let margin = if area.height < 20 { 2 } else { 4 };
    let place = layout::window(area, WIDTH, area.height.saturating_sub(margin).max(5));
    frame.render_widget(Clear, place);
    pane::open(frame, styler, place, title, true)
}

pub(super) fn problems(frame: &mut Frame<'_>, styler: &Styler<'_>, state: &AppState, area: Rect) {
    let title = format!("Configuration  {}", state.configuration_problems.summary());
    let inner = open(frame, styler, &title, area);
    scroll_text::draw(frame, styler, &state.configuration_problems.text, inner);
}

pub(super) fn pin(
    frame: &mut Frame<'_>,
    styler: &Styler<'_>,
    state: &AppState,
    window: &PinWindow,
    area: Rect,
) {
    let inner = open(frame, styler, &format!("Pin  {}", window.review.tool), area);
    let [above, line] = Layout::vertical([Constraint::Fill(1), Constraint::Length(1)]).areas(inner);
    scroll_text::draw(frame, styler, &window.text, above);
    let question = match window.review.state {
        PinReportState::New => "Pin this definition? [y/N]",
        _ => "Accept all of these changes? [y/N]",
    };
    // Only now is it known whether the end is on the screen.
    let (role, text) = match window.readiness(state.context.now) {
        _ if !window.is_question() => (StyleRole::Dim, "Esc closes".to_owned()),
        Readiness::Ready => (StyleRole::Title, question.to_owned()),
        Readiness::TooSoon => {
            (StyleRole::Dim, "One moment… (ignoring keys typed ahead)".to_owned())
        }
        Readiness::Unread => (StyleRole::Warning, "Read to the end to answer (G)".to_owned()),
        Readiness::TooLong => {
            let command = format!("toolhost pin {}", window.review.tool);
            (StyleRole::Error, format!("Too long to show here. Run: {command}"))
        }
    };
    frame.render_widget(styler.line(role, text), line);
}

pub(super) fn save_call(
    frame: &mut Frame<'_>,
    styler: &Styler<'_>,
    window: &SaveCallWindow,
    area: Rect,
) {
    let place = layout::window(area, 64, 5);
    frame.render_widget(Clear, place);
    let title = format!("Save call  {}", window.tool);
    let inner = pane::open(frame, styler, place, &title, true);
    let above = pane::input_row(frame, styler, inner, "name  ", &window.name);
    let name = Some(window.name.text().trim()).filter(|name| !name.is_empty()).unwrap_or("NAME");
    let (role, text) = match &window.error {
        Some(error) => (StyleRole::Error, error.clone()),
        None => (StyleRole::Dim, format!("run it again: toolhost run {name}")),
    };
    frame.render_widget(styler.line(role, text), above);
}
