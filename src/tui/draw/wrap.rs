//! Wrapping lines at word boundaries.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation as _;

use crate::util::text;

/// Wraps a line into lines of at most this many cells, after a space if possible.
pub(super) fn wrap(line: &Line<'static>, width: usize) -> Vec<Line<'static>> {
    if width == 0 || line.width() <= width {
        return vec![line.clone()];
    }
    let cells: Vec<(&str, Style, usize)> = line
        .spans
        .iter()
        .flat_map(|span| span.content.graphemes(true).map(|g| (g, span.style, text::width(g))))
        .collect();
    let mut lines = Vec::new();
    let mut from = 0;
    while from < cells.len() {
        let mut used = 0;
        let fits = cells[from..].iter().take_while(|(_, _, width_of_it)| {
            used += width_of_it;
            used <= width
        });
        // What is wider than the whole room is shown all the same: it is cut there.
        let mut to = from + fits.count().max(1);
        if to < cells.len()
            && let Some(space) = cells[from..to].iter().rposition(|(g, _, _)| *g == " ")
            && space > 0
        {
            to = from + space + 1;
        }
        lines.push(joined(&cells[from..to]));
        from = to;
    }
    lines
}

fn joined(cells: &[(&str, Style, usize)]) -> Line<'static> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    for (grapheme, style, _) in cells {
        match spans.last_mut() {
            Some(span) if span.style == *style => span.content.to_mut().push_str(grapheme),
            _ => spans.push(Span::styled((*grapheme).to_owned(), *style)),
        }
    }
    Line::from(spans)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wrapped(text: &str, width: usize) -> Vec<String> {
        wrap(&Line::from(text.to_owned()), width).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lines_break_behind_spaces_and_long_words_anywhere() {
        assert_eq!(wrapped("one two three", 8), ["one two ", "three"]);
        assert_eq!(wrapped("abcdefghij", 4), ["abcd", "efgh", "ij"]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_is_wider(text in "[a-z 日本é]{0,80}", width in 2..30_usize) {
            let lines = wrapped(&text, width);
            prop_assert_eq!(lines.concat(), text);
            prop_assert!(lines.iter().all(|line| text::width(line) <= width));
        }
    }
}
