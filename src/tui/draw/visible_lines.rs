//! Long texts, of which only what is seen is laid out.
//!
//! Owns: wrapping as many lines as fill the room and no more, however long the text is.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Text};

use super::pane;
use super::styler::Styler;
use super::wrap::wrap;

/// Draws a text of so many lines from line `from` on, the last page whole. `line` makes one.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    styler: &Styler<'_>,
    area: Rect,
    length: usize,
    from: usize,
    line: impl Fn(usize) -> Line<'static>,
) {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    if area.is_empty() || length == 0 {
        return;
    }
    let from = from.min(last_page(length, width, height, &line));
    let mut seen = Vec::with_capacity(height);
    let mut at = from;
    while at < length && seen.len() < height {
        seen.extend(wrap(&line(at), width));
        at += 1;
    }
    seen.truncate(height);
    frame.render_widget(Text::from(seen), area);
    pane::more(frame, styler, area, length - at);
}

/// The first line of the last page.
fn last_page(
    length: usize,
    width: usize,
    height: usize,
    line: &impl Fn(usize) -> Line<'static>,
) -> usize {
    let (mut at, mut used) = (length, 0);
    while at > 0 {
        used += wrap(&line(at - 1), width).len();
        if used > height {
            break;
        }
        at -= 1;
    }
    at.min(length.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::tui::theme::Theme;

    fn drawn(length: usize, from: usize) -> (String, usize) {
        let theme = Theme::default();
        let styler = Styler::new(&theme);
        let made = Cell::new(0);
        let mut terminal = Terminal::new(TestBackend::new(12, 4)).unwrap();
        let line = |at: usize| {
            made.set(made.get() + 1);
            Line::from(format!("line {at} and more"))
        };
        terminal.draw(|frame| draw(frame, &styler, frame.area(), length, from, line)).unwrap();
        (terminal.backend().to_string(), made.get())
    }

    #[test]
    fn only_what_is_seen_is_made_and_the_last_page_is_whole() {
        let (seen, made) = drawn(1_000_000, 500_000);
        assert!(seen.contains("line 500000") && made < 10, "{made}: {seen}");
        let (seen, made) = drawn(1_000_000, usize::MAX);
        assert!(seen.contains("line 999998") && seen.contains("line 999999"), "{seen}");
        assert!(made < 10, "{made}");
        assert!(drawn(1, 9).0.contains("line 0"));
    }
}
