//! Draws scrolling text.
//!
//! Owns: finding the visible rows of a text, wrapping only the lines they are of, and saying how
//! many rows come below. The rows are counted again only when the text, the width or the theme
//! changes.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span, Text};

use super::pane;
use super::styler::Styler;
use super::wrap::wrap;
use crate::tui::state::{ScrollPosition, ScrollText, TextLayout, TextLine, pieces};
use crate::tui::theme::StyleRole;

/// Draws a kept text from where it is scrolled to.
pub(super) fn draw(frame: &mut Frame<'_>, styler: &Styler<'_>, text: &ScrollText, area: Rect) {
    if area.is_empty() {
        return;
    }
    let mut kept = text.layout().borrow_mut();
    let fits = |layout: &TextLayout| layout.width == area.width && layout.theme == *styler.theme;
    if !kept.as_ref().is_some_and(fits) {
        *kept = Some(lay_out(styler, text, area.width));
    }
    let Some(layout) = kept.as_mut() else { return };
    let (total, height) = (layout.rows(), usize::from(area.height));
    let first = text.position().fit(total, height);
    (layout.height, layout.first) = (area.height, first);
    // The line that the first visible row is of.
    let from = layout.starts.partition_point(|start| *start <= first).saturating_sub(1);
    let hidden = first - layout.starts.get(from).copied().unwrap_or(0);
    let lines = text.lines().get(from..).unwrap_or_default();
    let rows = lines.iter().flat_map(|line| rows(styler, text, line, area.width));
    let visible: Vec<Line<'static>> = rows.skip(hidden).take(height).collect();
    frame.render_widget(Text::from(visible), area);
    pane::more(frame, styler, area, total.saturating_sub(first + height));
}

/// Draws lines that are made for each frame, from where they are scrolled to.
pub(super) fn draw_lines(
    frame: &mut Frame<'_>,
    styler: &Styler<'_>,
    lines: &[Line<'static>],
    position: &ScrollPosition,
    area: Rect,
) {
    if area.is_empty() {
        return;
    }
    let width = usize::from(area.width);
    let rows: Vec<Line<'static>> = lines.iter().flat_map(|line| wrap(line, width)).collect();
    let (total, height) = (rows.len(), usize::from(area.height));
    let first = position.fit(total, height);
    let visible: Vec<Line<'static>> = rows.into_iter().skip(first).take(height).collect();
    frame.render_widget(Text::from(visible), area);
    pane::more(frame, styler, area, total.saturating_sub(first + height));
}

/// Counts the rows of each line.
fn lay_out(styler: &Styler<'_>, text: &ScrollText, width: u16) -> TextLayout {
    let mut starts = Vec::with_capacity(text.len() + 1);
    let mut row = 0;
    for line in text.lines() {
        starts.push(row);
        let is_short = is_ascii_within(line, usize::from(width));
        row += if is_short { 1 } else { rows(styler, text, line, width).len() };
    }
    starts.push(row);
    TextLayout { width, height: 0, first: 0, theme: *styler.theme, starts }
}

/// Whether a line surely needs no wrapping: only printable ASCII, and no more of it than columns.
/// Most lines are like that, and they need not be styled to be counted.
fn is_ascii_within(line: &TextLine, width: usize) -> bool {
    let indent_free = !line.is_continuation;
    let bytes: usize = line.spans.iter().map(|(_, text)| text.len()).sum();
    let is_plain = |text: &str| text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    indent_free && bytes <= width && line.spans.iter().all(|(_, text)| is_plain(text))
}

/// The rows of one line. Behind a break they are indented, if the text wants that.
fn rows(styler: &Styler<'_>, text: &ScrollText, line: &TextLine, width: u16) -> Vec<Line<'static>> {
    let (width, indent) = (usize::from(width), text.indent());
    let marked = |role: StyleRole, text: &str, words: &str| -> Vec<Span<'static>> {
        let role = |is_match| if is_match { StyleRole::Selected } else { role };
        pieces(text, words).iter().map(|(piece, at)| styler.span(role(*at), piece)).collect()
    };
    let whole: Line<'static> = match text.highlight() {
        Some(words) => {
            line.spans.iter().flat_map(|(role, text)| marked(*role, text, words)).collect()
        }
        None => line.spans.iter().map(|(role, text)| styler.span(*role, text)).collect(),
    };
    let is_broken = line.is_continuation || whole.width() > width;
    if indent == 0 || width <= indent * 2 || !is_broken {
        return wrap(&whole, width);
    }
    let mut rows = wrap(&whole, width - indent);
    for row in rows.iter_mut().skip(usize::from(!line.is_continuation)) {
        row.spans.insert(0, Span::raw(" ".repeat(indent)));
    }
    rows
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::tui::state::TextLimits;
    use crate::tui::theme::Theme;

    fn drawn(text: &ScrollText) -> String {
        let theme = Theme::default();
        let styler = Styler::new(&theme);
        let mut terminal = Terminal::new(TestBackend::new(12, 4)).unwrap();
        terminal.draw(|frame| draw(frame, &styler, text, frame.area())).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn a_million_lines_scroll_by_rows_and_the_last_page_is_whole() {
        let limits = TextLimits { lines: usize::MAX, bytes: usize::MAX, notice: "" };
        let mut text = ScrollText::with_limits(limits);
        for number in 0..1_000_000 {
            text.line(StyleRole::Plain, format!("line {number} and more"));
        }
        assert!(drawn(&text).contains("line 0 and"));
        text.scroll(1_000_000);
        let seen = drawn(&text);
        assert!(seen.contains("line 500000") || seen.contains("line 499"), "{seen}");
        text.scroll(isize::MAX);
        let seen = drawn(&text);
        assert!(seen.contains("line 999998") && seen.contains("line 999999"), "{seen}");
        assert!(text.is_end_visible());
        text.scroll(-1);
        drop(drawn(&text));
        assert!(!text.is_end_visible());
    }

    #[test]
    fn what_was_broken_for_its_length_stays_behind_the_indent() {
        let mut text = ScrollText::with_indent(3);
        text.line(StyleRole::Plain, "x".repeat(600));
        drop(drawn(&text));
        text.scroll(isize::MAX);
        assert!(drawn(&text).lines().take(4).all(|row| row.starts_with("\"   x")));
    }
}
