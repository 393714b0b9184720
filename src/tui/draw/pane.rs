//! Shared parts of all panes: the frame with its title, an input row, and a placeholder text.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::Block;

use super::scroll_text;
use super::styler::Styler;
use crate::tui::state::ScrollPosition;
use crate::tui::theme::StyleRole;

/// Draws the frame and returns the area inside.
pub(super) fn open(
    frame: &mut Frame<'_>,
    styler: &Styler<'_>,
    area: Rect,
    title: &str,
    focused: bool,
) -> Rect {
    let meaning = if focused { StyleRole::FocusedFrame } else { StyleRole::Frame };
    if !styler.frames {
        let [head, inner] =
            Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
        frame.render_widget(styler.line(StyleRole::Title, title), head);
        return inner;
    }
    let title = Line::from(vec![styler.span(StyleRole::Title, format!(" {title} "))]);
    let block = Block::bordered()
        .border_set(styler.theme.border(focused))
        .border_style(styler.theme.style(meaning))
        .title(title);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    inner
}

/// Draws a line being edited, and its error.
pub(super) fn prompt(
    frame: &mut Frame<'_>,
    styler: &Styler<'_>,
    written: &crate::tui::state::LineInput,
    problem: Option<&str>,
    area: Rect,
) {
    let (before, behind) = written.split();
    let mut spans = vec![styler.span(StyleRole::Key, "/ "), styler.span(StyleRole::Plain, before)];
    let at: usize = spans.iter().map(ratatui::text::Span::width).sum();
    spans.push(styler.span(StyleRole::Plain, behind));
    spans.extend(problem.map(|problem| styler.span(StyleRole::Error, format!("  {problem}"))));
    frame.render_widget(Line::from(spans), area);
    let x = area.x + u16::try_from(at).unwrap_or(0).min(area.width.saturating_sub(1));
    frame.set_cursor_position((x, area.y));
}

/// Draws short text from the start and says how much does not fit.
pub(super) fn paragraph(
    frame: &mut Frame<'_>,
    styler: &Styler<'_>,
    area: Rect,
    lines: &[Line<'static>],
) {
    scroll_text::draw_lines(frame, styler, lines, &ScrollPosition::default(), area);
}

/// Asks for a line of text on the last row; gives the rows above it.
pub(super) fn input_row(
    frame: &mut Frame<'_>,
    styler: &Styler<'_>,
    area: Rect,
    question: &str,
    line: &crate::tui::state::LineInput,
) -> Rect {
    if area.is_empty() {
        return area;
    }
    let (before, behind) = line.split();
    let asked = [styler.span(StyleRole::Key, question), styler.span(StyleRole::Plain, before)];
    let cursor: usize = asked.iter().map(ratatui::text::Span::width).sum();
    let place = Rect { y: area.bottom() - 1, height: 1, ..area };
    let behind = styler.span(StyleRole::Plain, behind);
    let asked: Line<'static> = asked.into_iter().chain([behind]).collect();
    frame.render_widget(asked, place);
    let x = place.x + u16::try_from(cursor).unwrap_or(u16::MAX).min(place.width - 1);
    frame.set_cursor_position((x, place.y));
    Rect { height: area.height - 1, ..area }
}
