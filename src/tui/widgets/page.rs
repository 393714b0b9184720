//! Draws scrolling text.

use std::cell::RefMut;

use ratatui::style::Style;
use ratatui::text::Text;
use unicode_segmentation::UnicodeSegmentation as _;

use crate::tui::prelude::*;
use crate::tui::widgets::picture;
use crate::tui::widgets::scroll_text::{PictureRow, TextLayout, TextLine};

impl Pen<'_> {
    pub fn text(&mut self, text: &ScrollText, area: Rect) {
        if area.is_empty() {
            return;
        }
        let styler = self.styler;
        let mut layout = layout(styler, text, area.width);
        let (total, height) = (layout.rows(), usize::from(area.height));
        let first = text.position.fit(total, height);
        (layout.height, layout.first) = (area.height, first);
        // The line that the first visible row is of.
        let from = layout.starts.partition_point(|start| *start <= first).saturating_sub(1);
        let hidden = first - layout.starts.get(from).copied().unwrap_or(0);
        let lines = text.lines().get(from..).unwrap_or_default();
        let rows = lines.iter().flat_map(|line| rows(styler, text, line, area.width));
        let visible: Vec<Line<'static>> = rows.skip(hidden).take(height).collect();
        self.put(Text::from(visible), area);
        self.more(area, total.saturating_sub(first + height));
    }

    /// How many rows a text takes at this width.
    pub fn rows_of(&self, text: &ScrollText, width: u16) -> usize {
        layout(self.styler, text, width).rows()
    }

    pub fn page(&mut self, lines: &[Line<'static>], position: &ScrollPosition, area: Rect) {
        if area.is_empty() {
            return;
        }
        let width = usize::from(area.width);
        let rows: Vec<Line<'static>> = lines.iter().flat_map(|line| wrap(line, width)).collect();
        let (total, height) = (rows.len(), usize::from(area.height));
        let first = position.fit(total, height);
        let visible: Vec<Line<'static>> = rows.into_iter().skip(first).take(height).collect();
        self.put(Text::from(visible), area);
        self.more(area, total.saturating_sub(first + height));
    }

    pub fn more(&mut self, area: Rect, left: usize) {
        if left > 0 && area.width > 8 {
            let text = self.dim(format!(" {} more", show_count(left)));
            let width = cells(text.width()).min(area.width);
            let (x, y) = (area.right() - width, area.bottom().saturating_sub(1));
            let place = Rect { x, y, width, height: 1 }.intersection(area);
            let place = place.intersection(self.buffer.area);
            let is_cut = place.positions().any(|at| self.buffer[at].symbol() != " ");
            self.put(text, place);
            let mark = self.dim("…");
            let before = cells(mark.width());
            if is_cut && area.width >= width + before {
                self.put(mark, Rect { x: x - before, width: before, ..place });
            }
        }
    }
}

/// The layout of a text, which is kept until the text or the width changes.
fn layout(styler: Styler, text: &ScrollText, width: u16) -> RefMut<'_, TextLayout> {
    let mut kept = text.layout.borrow_mut();
    if kept.as_ref().is_some_and(|kept| kept.width != width || kept.theme != styler.theme) {
        *kept = None;
    }
    RefMut::map(kept, |kept| kept.get_or_insert_with(|| lay_out(styler, text, width)))
}

fn lay_out(styler: Styler, text: &ScrollText, width: u16) -> TextLayout {
    let mut starts = Vec::with_capacity(text.len() + 1);
    let (mut row, mut plain) = (0, Vec::new());
    for line in text.lines() {
        starts.push(row);
        row += match ascii_rows(text, line, usize::from(width), &mut plain) {
            Some(rows) => rows,
            None => rows(styler, text, line, width).len(),
        };
    }
    starts.push(row);
    TextLayout { width, height: 0, first: 0, theme: styler.theme, starts }
}

/// How many rows a line of printable ASCII takes, counted as [`wrap`] breaks it and without styling
/// it; `None` for other lines. Most lines are like that, also those of a very long text. `plain` is
/// room to work in.
fn ascii_rows(
    text: &ScrollText,
    line: &TextLine,
    width: usize,
    plain: &mut Vec<u8>,
) -> Option<usize> {
    plain.clear();
    line.spans.iter().for_each(|(_, text)| plain.extend_from_slice(text.as_bytes()));
    if !plain.iter().all(|byte| *byte == b' ' || byte.is_ascii_graphic()) {
        return None;
    }
    let is_broken = line.is_continuation || plain.len() > width;
    if width == 0 || (is_broken && text.indent > 0) {
        return None;
    }
    let (mut rows, mut rest) = (1, plain.as_slice());
    while rest.len() > width {
        let row = rest.get(..width)?;
        let space = row.iter().rposition(|byte| *byte == b' ').filter(|at| *at > 0);
        rest = rest.get(space.map_or(width, |at| at + 1)..)?;
        rows += 1;
    }
    Some(rows)
}

/// The rows of one line. Behind a break they are indented, if the text wants that.
fn rows(styler: Styler, text: &ScrollText, line: &TextLine, width: u16) -> Vec<Line<'static>> {
    #[cfg(test)]
    tests::LAID_OUT.set(tests::LAID_OUT.get() + 1);
    if let Some(PictureRow { picture, row }) = &line.picture {
        return vec![picture::cells(picture.row(*row))];
    }
    let (width, indent) = (usize::from(width), text.indent);
    let marked = |role: Role, text: &str, words: &str| -> Vec<Span<'static>> {
        let role = |is_match| if is_match { Role::Selected } else { role };
        pieces(text, words).iter().map(|(piece, at)| styler.span(role(*at), piece)).collect()
    };
    let whole: Line<'static> = match text.highlight.as_deref() {
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

    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;
    use crate::tui::theme::Theme;
    use crate::tui::widgets::scroll_text::TextLimits;

    thread_local! {
        /// How many lines were styled and wrapped in this test.
        pub static LAID_OUT: Cell<usize> = const { Cell::new(0) };
    }

    fn drawn(text: &ScrollText) -> String {
        let theme = Theme::default();
        let mut terminal = Terminal::new(TestBackend::new(12, 4)).unwrap();
        let draw = |frame: &mut ratatui::Frame<'_>| {
            let area = frame.area();
            Pen::new(frame.buffer_mut(), theme).text(text, area);
        };
        terminal.draw(draw).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn a_million_lines_scroll_by_rows_and_the_last_page_is_whole() {
        let limits = TextLimits { lines: usize::MAX, bytes: usize::MAX, notice: "" };
        let mut text = ScrollText::with_limits(limits);
        for number in 0..1_000_000 {
            text.line(Role::Plain, format!("line {number} and more"));
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
    fn a_frame_lays_out_what_is_seen_however_long_the_text_is() {
        let limits = TextLimits { lines: usize::MAX, bytes: usize::MAX, notice: "" };
        let laid_out = |lines: usize| {
            let mut text = ScrollText::with_limits(limits);
            for number in 0..lines {
                text.line(Role::Plain, format!("{number} {}", "word ".repeat(90)));
            }
            let mut counts = Vec::new();
            for _ in 0..6 {
                let before = LAID_OUT.get();
                drop(drawn(&text));
                counts.push(LAID_OUT.get() - before);
                text.scroll(37);
            }
            counts
        };
        // 4 rows are seen, of at most 2 lines here; the first frame counts rows and no more.
        let counts = laid_out(100);
        assert!(counts.iter().all(|count| (1..=2).contains(count)), "{counts:?}");
        assert_eq!(laid_out(100_000), counts);
    }

    #[test]
    fn a_row_that_the_number_of_further_rows_covers_ends_in_a_mark() {
        let mut text = ScrollText::default();
        for _ in 0..6 {
            text.line(Role::Plain, "eleven each");
        }
        let seen = drawn(&text);
        assert!(seen.contains("elev… 2 more"), "{seen}");
    }

    proptest! {
        #[test]
        fn rows_are_counted_as_they_are_wrapped(said in "[a-z ]{0,90}", width in 1..20_u16) {
            let mut text = ScrollText::default();
            text.line(Role::Plain, said.clone());
            let theme = Theme::default();
            let rows = wrap(&Line::from(said), usize::from(width)).len();
            prop_assert_eq!(lay_out(Styler::new(theme), &text, width).rows(), rows);
        }
    }

    #[test]
    fn what_was_broken_for_its_length_stays_behind_the_indent() {
        let mut text = ScrollText::with_indent(3);
        text.line(Role::Plain, "x".repeat(600));
        drop(drawn(&text));
        text.scroll(isize::MAX);
        assert!(drawn(&text).lines().take(4).all(|row| row.starts_with("\"   x")));
    }
}

/// Wraps a line into lines of at most this many cells, after a space if possible.
pub fn wrap(line: &Line<'static>, width: usize) -> Vec<Line<'static>> {
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

/// Lines on the left, and lines on the right starting at this cell.
pub fn side_by_side(
    styler: Styler,
    left: Vec<Line<'static>>,
    right: Vec<Line<'static>>,
    at: usize,
) -> Vec<Line<'static>> {
    let rows = left.len().max(right.len());
    let (mut left, mut right) = (left.into_iter(), right.into_iter());
    let row = |_| {
        let mut spans = left.next().unwrap_or_default().spans;
        let mut used = 0;
        for span in &mut spans {
            let room = (at - 1).saturating_sub(used);
            if span.width() > room {
                span.content = styler.cell(&span.content, room).into();
            }
            used += span.width();
        }
        spans.push(styler.plain(" ".repeat(at.saturating_sub(used))));
        spans.extend(right.next().unwrap_or_default().spans);
        Line::from(spans)
    };
    (0..rows).map(row).collect()
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
mod wrap_tests {
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

/// Whether a text contains the words; case-sensitive when the words contain capitals.
pub fn has_words(text: &str, words: &str) -> bool {
    if words.chars().any(char::is_uppercase) {
        text.contains(words)
    } else {
        text.to_lowercase().contains(words)
    }
}

/// Splits a text around the words; each piece says whether it is one of the words.
pub fn pieces<'a>(text: &'a str, words: &str) -> Vec<(&'a str, bool)> {
    let folded =
        if words.chars().any(char::is_uppercase) { text.to_owned() } else { text.to_lowercase() };
    let mut pieces = Vec::new();
    let mut from = 0;
    // Where folding moved letters nothing is marked; the text itself is always whole.
    let is_same_length = folded.len() == text.len() && !words.is_empty();
    for (at, _) in folded.match_indices(words).filter(|_| is_same_length) {
        let (Some(before), Some(word)) = (text.get(from..at), text.get(at..at + words.len()))
        else {
            continue;
        };
        pieces.extend([(before, false), (word, true)]);
        from = at + words.len();
    }
    pieces.push((text.get(from..).unwrap_or_default(), false));
    pieces.retain(|(piece, _)| !piece.is_empty());
    pieces
}

#[cfg(test)]
mod words_tests {
    use super::*;

    #[test]
    fn small_letters_find_capitals_and_the_text_stays_whole() {
        assert!(has_words("Straße NORD", "nord") && !has_words("nord", "Nord"));
        for (text, words) in [("aXbxC", "x"), ("İstanbul is", "is"), ("日本日", "日"), ("ab", "")]
        {
            let whole: String = pieces(text, words).iter().map(|(piece, _)| *piece).collect();
            assert_eq!(whole, text);
        }
        assert_eq!(pieces("aXb", "x"), [("a", false), ("X", true), ("b", false)]);
    }
}
