//! Scrolling text and its scroll position.

use std::cell::{Cell, RefCell};

use serde_json::Value;

use crate::present::page::json_line;
use crate::tui::prelude::*;
use crate::tui::theme::Theme;
use crate::tui::widgets::picture::Picture;
use crate::util::json;

/// The most bytes of one line; longer ones are broken, so that each is cheap to lay out.
const MAX_LINE_BYTES: usize = 512;

/// A piece of a line, and what it means.
pub type StyledSpan = (Role, String);

/// How much of a text is kept, and the notice at its end when it was truncated.
#[derive(Debug, Clone, Copy)]
pub struct TextLimits {
    pub lines: usize,
    pub bytes: usize,
    pub notice: &'static str,
}

impl TextLimits {
    pub const fn of_lines(lines: usize, notice: &'static str) -> Self {
        Self { lines, bytes: usize::MAX, notice }
    }
}

impl Default for TextLimits {
    fn default() -> Self {
        Self { lines: 5_000, bytes: 512 * 1024, notice: "The rest is not shown." }
    }
}

/// The first visible row of a text, kept within what was drawn last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScrollPosition {
    row: usize,
    last: Cell<usize>,
    /// How many rows were visible in the last frame.
    height: Cell<usize>,
}

impl Default for ScrollPosition {
    fn default() -> Self {
        Self { row: 0, last: Cell::new(usize::MAX), height: Cell::new(0) }
    }
}

impl ScrollPosition {
    /// Moves by this many rows; negative moves up, and never past the ends of the text.
    pub fn scroll(&mut self, by: isize) {
        let last = self.last.get();
        self.row = self.row.min(last).saturating_add_signed(by).min(last);
    }

    /// How many rows were visible in the last frame; 0 before the first one.
    pub fn height(&self) -> usize {
        self.height.get()
    }

    fn go_to(&mut self, row: usize) {
        self.row = row.saturating_sub(2);
    }

    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// The first visible row of a text of `rows` rows in an area of `height`; remembers where the
    /// text ends.
    pub fn fit(&self, rows: usize, height: usize) -> usize {
        self.last.set(rows.saturating_sub(height));
        self.height.set(height);
        self.row.min(self.last.get())
    }
}

/// One line of a [`ScrollText`].
#[derive(Debug, Clone)]
pub struct TextLine {
    pub spans: Vec<StyledSpan>,
    /// Whether the line before was too long and goes on here.
    pub is_continuation: bool,
    pub picture: Option<PictureRow>,
}

#[derive(Debug, Clone)]
pub struct PictureRow {
    pub picture: Arc<Picture>,
    /// The number of the row, from 0.
    pub row: u16,
}

#[derive(Debug, Clone, Default)]
pub struct ScrollText {
    lines: Vec<TextLine>,
    bytes: usize,
    limits: TextLimits,
    is_cut: bool,
    pub indent: usize,
    pub highlight: Option<String>,
    pub position: ScrollPosition,
    pub layout: RefCell<Option<TextLayout>>,
}

/// Where each line starts when the text is wrapped to a width.
#[derive(Debug, Clone)]
pub struct TextLayout {
    pub width: u16,
    /// Rows that were visible in the last frame.
    pub height: u16,
    pub first: usize,
    /// Decides how wide characters are: an ASCII theme writes others as numbers.
    pub theme: Theme,
    /// The first row of each line, and behind them the number of rows.
    pub starts: Vec<usize>,
}

impl TextLayout {
    pub fn rows(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }
}

impl ScrollText {
    /// An empty text that keeps as much as these limits allow.
    pub fn with_limits(limits: TextLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// An empty text whose broken lines continue behind so many spaces: no text can then be made to
    /// look like a line of its own.
    pub fn with_indent(indent: usize) -> Self {
        Self { indent, ..Self::default() }
    }

    /// Appends a line; one that is too long is broken, behind a space where there is one.
    pub fn push(&mut self, spans: Vec<StyledSpan>) {
        if self.is_cut {
            return;
        }
        *self.layout.get_mut() = None;
        let (mut line, mut used, mut is_continuation) = (Vec::new(), 0, false);
        for (role, text) in spans {
            let mut rest = text.as_str();
            while used + rest.len() > MAX_LINE_BYTES {
                let most = rest.floor_char_boundary(MAX_LINE_BYTES - used);
                let space = rest.get(..most).and_then(|head| head.rfind(' '));
                let (head, tail) = rest.split_at(space.map_or(most, |space| space + 1));
                line.push((role, head.to_owned()));
                if !self.keep(std::mem::take(&mut line), is_continuation) {
                    return;
                }
                (rest, used, is_continuation) = (tail, 0, true);
            }
            used += rest.len();
            line.push((role, rest.to_owned()));
        }
        self.keep(line, is_continuation);
    }

    /// Keeps a line if the limits allow it; `false` when the text was cut instead.
    fn keep(&mut self, spans: Vec<StyledSpan>, is_continuation: bool) -> bool {
        let bytes: usize = spans.iter().map(|(_, text)| text.len() + 1).sum();
        if self.lines.len() >= self.limits.lines || self.bytes + bytes > self.limits.bytes {
            self.is_cut = true;
            let spans = vec![(Role::Warning, self.limits.notice.to_owned())];
            self.lines.push(TextLine { spans, is_continuation: false, picture: None });
            return false;
        }
        self.bytes += bytes;
        self.lines.push(TextLine { spans, is_continuation, picture: None });
        true
    }

    pub fn picture(&mut self, picture: &Arc<Picture>) {
        *self.layout.get_mut() = None;
        for row in 0..picture.rows {
            let picture = Some(PictureRow { picture: Arc::clone(picture), row });
            self.lines.push(TextLine { spans: Vec::new(), is_continuation: false, picture });
        }
    }

    pub fn line(&mut self, role: Role, text: impl Into<String>) {
        self.push(vec![(role, text.into())]);
    }

    pub fn text(&mut self, role: Role, text: &str) {
        for line in text.lines() {
            if self.is_cut {
                return;
            }
            self.line(role, line);
        }
    }

    /// Appends JSON whose keys, texts, numbers and words are told apart.
    pub fn json(&mut self, value: &Value) {
        json::pretty_lines(value, |line| {
            self.push(json_line(line).spans().to_vec());
            !self.is_cut
        });
    }

    pub fn fact(&mut self, label: &str, value: impl Into<String>) {
        self.push(vec![(Role::Dim, format!("{label:<12}")), (Role::Plain, value.into())]);
    }

    pub fn page(&mut self, page: &Page) {
        for line in page.lines() {
            self.push(line.spans().to_vec());
        }
    }

    /// Appends a title, with an empty line between it and the text above.
    pub fn heading(&mut self, title: impl Into<String>) {
        self.gap();
        self.line(Role::Title, title);
    }

    /// Appends an empty line, unless the text is empty or ends with one.
    pub fn gap(&mut self) {
        if self.lines.last().is_some_and(|line| !line.spans.is_empty()) {
            self.push(Vec::new());
        }
    }

    pub fn append(&mut self, other: Self) {
        *self.layout.get_mut() = None;
        self.bytes += other.bytes;
        self.lines.extend(other.lines);
    }

    pub fn lines(&self) -> &[TextLine] {
        &self.lines
    }

    /// How many lines there are; a line that was broken counts as several.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub fn replace(&mut self, mut with: Self) {
        with.position = self.position.clone();
        *self = with;
    }

    /// Scrolls by this many rows; negative moves up, and never past the ends.
    pub fn scroll(&mut self, by: isize) {
        if self.layout.get_mut().is_none() {
            // Not drawn yet: one row for each line.
            self.position.fit(self.lines.len(), 1);
        }
        self.position.scroll(by);
    }

    /// The lines, counted from 0, whose text matches the predicate.
    pub fn find(&self, is_match: impl Fn(&str) -> bool) -> Vec<usize> {
        let has = |line: &TextLine| match line.spans.as_slice() {
            [(_, only)] => is_match(only),
            spans => is_match(&spans.iter().map(|(_, text)| text.as_str()).collect::<String>()),
        };
        let lines = self.lines.iter().enumerate();
        lines.filter(|(_, line)| has(line)).map(|(at, _)| at).collect()
    }

    pub fn scroll_to_line(&mut self, line: usize) {
        let layout = self.layout.get_mut().as_ref();
        let row = layout.and_then(|layout| layout.starts.get(line).copied()).unwrap_or(line);
        self.position.go_to(row);
    }

    /// The line, from 0, that the first visible row is of.
    pub fn first_line(&self) -> usize {
        let layout = self.layout.borrow();
        layout.as_ref().map_or(0, |layout| {
            layout.starts.partition_point(|start| *start <= layout.first).saturating_sub(1)
        })
    }

    /// Whether the last row was on the screen in the last frame.
    pub fn is_end_visible(&self) -> bool {
        let layout = self.layout.borrow();
        layout.as_ref().is_some_and(|layout| {
            layout.height > 0 && layout.first + usize::from(layout.height) >= layout.rows()
        })
    }

    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The text without its styles, broken lines joined again.
    pub fn to_text(&self) -> String {
        let mut all = String::with_capacity(self.bytes);
        for (number, line) in self.lines.iter().enumerate() {
            if number > 0 && !line.is_continuation {
                all.push('\n');
            }
            all.extend(line.spans.iter().map(|(_, text)| text.as_str()));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_that_is_too_long_says_so_and_costs_no_more() {
        let limits = TextLimits::default();
        let mut page = ScrollText::default();
        page.text(Role::Plain, &"x\n".repeat(limits.lines * 2));
        assert_eq!((page.len(), page.is_cut()), (limits.lines + 1, true));
        let mut page = ScrollText::default();
        page.text(Role::Plain, &"é".repeat(limits.bytes));
        let text = page.to_text();
        assert!(text.len() <= limits.bytes + 64, "{}", text.len());
        assert!(text.ends_with(limits.notice), "{}", page.len());
        let mut large = ScrollText::with_limits(TextLimits { lines: 100_000, ..limits });
        large.text(Role::Plain, &"x\n".repeat(100_005));
        assert_eq!((large.len(), large.is_cut()), (100_001, true));
    }

    #[test]
    fn the_end_is_the_end_and_one_key_leads_back_from_it() {
        let mut page = ScrollText::default();
        page.text(Role::Plain, "1\n2\n3");
        page.scroll(isize::MAX);
        assert_eq!(page.position.fit(3, 1), 2);
        page.scroll(-1);
        assert_eq!(page.position.fit(3, 1), 1);
        page.scroll(isize::MIN);
        assert_eq!(page.position.fit(3, 1), 0);
    }

    proptest! {
        #[test]
        fn long_lines_are_broken_and_nothing_is_lost(line in "[a-zé日 ]{0,3000}") {
            let mut page = ScrollText::default();
            page.push(vec![(Role::Dim, "name ".to_owned()), (Role::Plain, line.clone())]);
            prop_assert_eq!(page.to_text(), format!("name {line}"));
            let bytes = |line: &TextLine| line.spans.iter().map(|(_, text)| text.len()).sum::<usize>();
            prop_assert!(page.lines().iter().all(|line| bytes(line) <= MAX_LINE_BYTES));
        }
    }
}

#[cfg(test)]
mod json_tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_texts_numbers_and_words_are_told_apart_and_nothing_is_lost() {
        let value = json!({ "a \": b": "x: \"y\",", "n": [-1.5, true, null, {}], "e": [] });
        let mut page = ScrollText::default();
        page.json(&value);
        assert_eq!(page.to_text(), json::pretty(&value));
        let pieces: Vec<(Role, String)> = page
            .lines()
            .iter()
            .flat_map(|line| line.spans.clone())
            .filter(|(role, _)| *role != Role::Plain)
            .map(|(role, text)| (role, text.trim().to_owned()))
            .collect();
        let expected = [
            (Role::JsonKey, r#""a \": b""#),
            (Role::JsonText, r#""x: \"y\",""#),
            (Role::JsonKey, r#""n""#),
            (Role::JsonNumber, "-1.5"),
            (Role::JsonWord, "true"),
            (Role::JsonWord, "null"),
            (Role::JsonKey, r#""e""#),
        ];
        let expected: Vec<_> = expected.map(|(role, text)| (role, text.to_owned())).into();
        assert_eq!(pieces, expected);
    }
}
