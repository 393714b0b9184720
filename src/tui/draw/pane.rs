//! Shared parts of all panes: the frame with its title, an input row, and a placeholder text.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Block;

use super::scroll_text;
use super::styler::Styler;
use crate::tui::state::ScrollPosition;
use crate::tui::theme::{ColourScheme, StyleRole, Theme};

/// Draws the frame and returns the area inside.
pub(super) fn open(
    frame: &mut Frame<'_>,
    styler: &Styler<'_>,
    area: Rect,
    title: &str,
    focused: bool,
) -> Rect {
    open_with(frame, styler, area, title, None, focused)
}

/// The frame of a window that asks something, in the colour of what it asks.
pub(super) fn window(
    frame: &mut Frame<'_>,
    styler: &Styler<'_>,
    area: Rect,
    title: &str,
    role: StyleRole,
) -> Rect {
    let inner = open_with(frame, styler, area, "", Some(&(role, title.to_owned())), true);
    if styler.theme.palette != ColourScheme::Mono {
        let style = styler.theme.style(role);
        for at in area.positions().filter(|at| !inner.contains(*at)) {
            let cell = &mut frame.buffer_mut()[at];
            // The badge keeps its own.
            if cell.bg == Color::Reset {
                cell.set_style(style);
            }
        }
    }
    inner
}

/// The same, with a badge behind the first word of the title.
pub(super) fn open_with(
    frame: &mut Frame<'_>,
    styler: &Styler<'_>,
    area: Rect,
    title: &str,
    chip: Option<&(StyleRole, String)>,
    focused: bool,
) -> Rect {
    let title_role = if focused { StyleRole::Name } else { StyleRole::Title };
    let (first, rest) = match chip {
        Some(_) => title.split_at(title.find(' ').unwrap_or(title.len())),
        None => (title, ""),
    };
    let mut title = vec![styler.span(title_role, first)];
    if let Some((role, word)) = chip {
        title.extend([styler.span(StyleRole::Plain, " "), styler.chip(*role, word)]);
    }
    title.push(styler.span(StyleRole::Title, rest));
    let meaning = if focused { StyleRole::FocusedFrame } else { StyleRole::Frame };
    if !styler.frames {
        let [head, inner] =
            Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
        frame.render_widget(Line::from(title), head);
        return inner;
    }
    title.insert(0, styler.span(StyleRole::Plain, " "));
    title.push(styler.span(StyleRole::Plain, " "));
    let title = Line::from(title);
    let block = Block::bordered()
        .border_set(styler.theme.border(focused))
        .border_style(styler.theme.style(meaning))
        .title(title);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    inner
}

/// Takes the colours from what is behind a window.
pub(super) fn dim(frame: &mut Frame<'_>, theme: Theme) {
    if theme.palette == ColourScheme::Mono {
        return;
    }
    let style = theme.style(StyleRole::Dim);
    let area = frame.area();
    // The footer has the keys of the window.
    for at in area.positions().filter(|at| at.y + 1 < area.bottom()) {
        let cell = &mut frame.buffer_mut()[at];
        cell.set_style(Style::reset());
        cell.set_style(style);
    }
}

/// A row of a list: filled to its end when it is the chosen one, which says whether the list has the
/// focus.
pub(super) fn chosen(
    styler: &Styler<'_>,
    mut line: Line<'static>,
    focused: Option<bool>,
    room: usize,
) -> Line<'static> {
    let role = match focused {
        None => return line,
        Some(true) => StyleRole::Selected,
        Some(false) => StyleRole::SelectedUnfocused,
    };
    line.spans.push(styler.span(StyleRole::Plain, " ".repeat(room)));
    let style = styler.theme.style(role);
    let own = |span: Span<'static>| match span.style.bg {
        Some(_) => span,
        None => span.patch_style(style),
    };
    Line::from(line.spans.into_iter().map(own).collect::<Vec<_>>())
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
    let role = if written.is_selected() { StyleRole::SelectedUnfocused } else { StyleRole::Plain };
    let mut spans = vec![styler.span(StyleRole::Key, "/ "), styler.span(role, before)];
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
