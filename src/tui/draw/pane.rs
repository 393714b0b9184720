//! What all panes have in common: a frame with a title, and text that scrolls.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Text};
use ratatui::widgets::Block;

use super::words::Words;
use super::wrap::wrap;
use crate::tui::theme::Meaning;

/// Draws the frame; gives what is inside.
pub(super) fn open(
    frame: &mut Frame<'_>,
    words: &Words<'_>,
    area: Rect,
    title: &str,
    focused: bool,
) -> Rect {
    let meaning = if focused { Meaning::Focused } else { Meaning::Frame };
    if !words.frames {
        let [head, inner] =
            Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
        frame.render_widget(words.line(Meaning::Title, title), head);
        return inner;
    }
    let title = Line::from(vec![words.span(Meaning::Title, format!(" {title} "))]);
    let block = Block::bordered()
        .border_set(words.theme.border(focused))
        .border_style(words.theme.style(meaning))
        .title(title);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    inner
}

/// Draws text that may be longer than its room, from so many lines down, and as far as there is any.
pub(super) fn scrolled(
    frame: &mut Frame<'_>,
    words: &Words<'_>,
    area: Rect,
    lines: &[Line<'static>],
    from: usize,
) {
    if area.is_empty() {
        return;
    }
    let width = usize::from(area.width);
    let lines: Vec<Line<'static>> = lines.iter().flat_map(|line| wrap(line, width)).collect();
    let (length, height) = (lines.len(), usize::from(area.height));
    let from = from.min(length.saturating_sub(height));
    let seen: Vec<Line<'static>> = lines.into_iter().skip(from).take(height).collect();
    frame.render_widget(Text::from(seen), area);
    if from + height < length && area.width > 8 {
        let more = words.span(Meaning::Dim, format!("{} more", length - from - height));
        let width = u16::try_from(more.width()).unwrap_or(area.width).min(area.width);
        let corner = Rect { x: area.right() - width, y: area.bottom() - 1, width, height: 1 };
        frame.render_widget(more, corner);
    }
}

/// Asks for a line of text on the last row; gives the rows above it.
pub(super) fn asked(
    frame: &mut Frame<'_>,
    words: &Words<'_>,
    area: Rect,
    question: &str,
    line: &crate::tui::state::Line,
) -> Rect {
    if area.is_empty() {
        return area;
    }
    let (before, behind) = line.split();
    let asked = [words.span(Meaning::Key, question), words.span(Meaning::Plain, before)];
    let cursor: usize = asked.iter().map(ratatui::text::Span::width).sum();
    let place = Rect { y: area.bottom() - 1, height: 1, ..area };
    let behind = words.span(Meaning::Plain, behind);
    let asked: Line<'static> = asked.into_iter().chain([behind]).collect();
    frame.render_widget(asked, place);
    let x = place.x + u16::try_from(cursor).unwrap_or(u16::MAX).min(place.width - 1);
    frame.set_cursor_position((x, place.y));
    Rect { height: area.height - 1, ..area }
}
