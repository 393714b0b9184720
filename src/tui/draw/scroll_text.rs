//! A text that scrolls: laid out when it, its room or the styles change, and else only shown.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span, Text};

use super::pane;
use super::styler::Styler;
use super::wrap::wrap;
use crate::tui::state::{LayoutCache, ScrollText};

pub(super) fn draw(frame: &mut Frame<'_>, styler: &Styler<'_>, page: &ScrollText, area: Rect) {
    if area.is_empty() {
        return;
    }
    let mut kept = page.layout_cache().borrow_mut();
    let fits = |laid: &LayoutCache| laid.width == area.width && laid.theme == *styler.theme;
    if !kept.as_ref().is_some_and(fits) {
        let rows = page.lines().iter().flat_map(|pieces| {
            let spans = pieces.iter().map(|(meaning, said)| styler.span(*meaning, said));
            wrap_indented(&spans.collect(), usize::from(area.width), page.indent())
        });
        let rows = rows.collect();
        *kept =
            Some(LayoutCache { width: area.width, height: 0, from: 0, theme: *styler.theme, rows });
    }
    let Some(laid) = kept.as_mut() else { return };
    laid.height = area.height;
    let (length, height) = (laid.rows.len(), usize::from(area.height));
    let from = page.from().min(length.saturating_sub(height));
    laid.from = from;
    let seen = laid.rows.get(from..length.min(from + height)).unwrap_or_default();
    frame.render_widget(Text::from(seen.to_vec()), area);
    pane::more(frame, styler, area, length.saturating_sub(from + height));
}

/// Breaks a line; what does not fit on its first row goes on behind so many spaces.
fn wrap_indented(line: &Line<'static>, width: usize, indent: usize) -> Vec<Line<'static>> {
    if indent == 0 || width <= indent * 2 || line.width() <= width {
        return wrap(line, width);
    }
    let mut rows = wrap(line, width - indent);
    for row in rows.iter_mut().skip(1) {
        row.spans.insert(0, Span::raw(" ".repeat(indent)));
    }
    rows
}
