//! Styled text for people: lines of labelled, sanitised spans.

use std::borrow::Cow;

use serde_json::Value;

use crate::util::{json, text};

const PROSE: usize = 20_000;
/// Our own marks, and what stands for each where only ASCII can be shown.
const MARKS: &str = "…·─▃│␊└→←µ▁▂▄▅▆▇█";
const ASCII_MARKS: &str = "~---||`><u_.:=+*#";

/// What a piece of text means; each face has its own colours for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// Text without a special role.
    #[default]
    Plain,
    Title,
    Name,
    /// Labels, hints and other secondary text.
    Dim,
    Success,
    /// Something to look at that is not an error: slow, or asks.
    Warning,
    Error,
    Hint,
    /// What a server wants to know of a person.
    Question,
    Sent,
    Received,
    /// One of the stable colours of servers.
    Hue(u8),
    Example,
    /// The chosen line of a list that has the focus.
    Selected,
    /// The chosen line of another list.
    SelectedUnfocused,
    FocusedFrame,
    Frame,
    Key,
    JsonKey,
    JsonText,
    JsonNumber,
    /// `true`, `false` or `null` in JSON.
    JsonWord,
}

impl Role {
    pub const HUES: u8 = 6;

    pub fn of_server(name: &str) -> Self {
        let sum = name.bytes().fold(7_u32, |sum, byte| sum.wrapping_mul(31) + u32::from(byte));
        Self::Hue(u8::try_from(sum % u32::from(Self::HUES)).unwrap_or(0))
    }

    fn sgr(self) -> Option<&'static str> {
        Some(match self {
            Self::Title | Self::Key => "1",
            Self::Name => "1;36",
            Self::Dim => "2",
            Self::Example => "2;3",
            Self::Success | Self::JsonText | Self::Received => "32",
            Self::Warning | Self::JsonNumber => "33",
            Self::Error => "1;31",
            Self::Hint | Self::JsonKey => "36",
            Self::Question | Self::JsonWord => "35",
            Self::Sent => "34",
            _ => return None,
        })
    }
}

/// One line. Everything pushed into it is sanitised first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    spans: Vec<(Role, String)>,
}

impl Line {
    pub fn styled(label: Role, text: impl AsRef<str>) -> Self {
        Self::default().then(label, text)
    }

    pub fn plain(text: impl AsRef<str>) -> Self {
        Self::styled(Role::Plain, text)
    }

    #[must_use]
    pub fn then(mut self, label: Role, text: impl AsRef<str>) -> Self {
        self.push(label, text);
        self
    }

    pub fn push(&mut self, label: Role, text: impl AsRef<str>) {
        let text = text::safe_line(text.as_ref());
        if !text.is_empty() {
            self.spans.push((label, text.into_owned()));
        }
    }

    /// Appends blanks up to `column` (counted in cells from 0).
    pub fn pad_to(&mut self, column: usize) {
        let missing = column.saturating_sub(self.width());
        if missing > 0 {
            self.spans.push((Role::Plain, " ".repeat(missing)));
        }
    }

    pub fn append(&mut self, other: Self) {
        self.spans.extend(other.spans);
    }

    /// The line moved right by `cells`.
    #[must_use]
    pub fn indented(mut self, cells: usize) -> Self {
        if !self.spans.is_empty() {
            self.spans.insert(0, (Role::Plain, " ".repeat(cells)));
        }
        self
    }

    /// The line cut to `width` cells, ending in `…` when something was cut.
    #[must_use]
    pub fn truncate(self, width: usize) -> Self {
        if self.width() <= width {
            return self;
        }
        let mut left = width;
        let mut spans = Vec::new();
        for (label, text) in self.spans {
            let cells = text::width(&text);
            // One cell is reserved for the truncation mark, because more text certainly follows.
            if cells < left {
                left -= cells;
                spans.push((label, text));
            } else {
                let head = text::cut(&format!("{text}  "), left).into_owned();
                spans.push((label, head));
                break;
            }
        }
        Self { spans }
    }

    /// The line wrapped to lines of at most `width` cells, between words where that wastes little
    /// space. Nothing is lost, and a line that fits stays whole. Continuation lines are indented,
    /// so that no text can pose as a new line.
    #[must_use]
    pub fn wrap(self, width: usize) -> Vec<Self> {
        const INDENT: usize = 4;
        const LONGEST_WORD: usize = 20;
        if width <= INDENT || self.width() <= width {
            return vec![self];
        }
        let mut lines = Vec::new();
        let (mut line, mut used) = (Self::default(), 0);
        for (label, text) in self.spans {
            let mut piece = String::new();
            for c in text.chars() {
                let cells = text::width(c.encode_utf8(&mut [0; 4]));
                if used + cells > width {
                    let word = match piece.rfind(' ') {
                        Some(at) if piece.len() - at <= LONGEST_WORD => piece.split_off(at + 1),
                        _ => String::new(),
                    };
                    line.spans.push((label, std::mem::replace(&mut piece, word)));
                    lines.push(std::mem::take(&mut line));
                    line.spans.push((Role::Plain, " ".repeat(INDENT)));
                    used = INDENT + text::width(&piece);
                }
                used += cells;
                piece.push(c);
            }
            line.spans.push((label, piece));
        }
        lines.push(line);
        lines
    }

    pub fn spans(&self) -> &[(Role, String)] {
        &self.spans
    }

    pub fn width(&self) -> usize {
        self.spans.iter().map(|(_, text)| text::width(text)).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }
}

impl From<&str> for Line {
    fn from(text: &str) -> Self {
        Self::plain(text)
    }
}

impl From<String> for Line {
    fn from(text: String) -> Self {
        Self::plain(text)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    lines: Vec<Line>,
}

impl Page {
    pub fn push(&mut self, line: Line) {
        self.lines.push(line);
    }

    /// Appends an empty line, unless the page is empty or already ends in one.
    pub fn blank_line(&mut self) {
        if self.lines.last().is_some_and(|line| !line.is_empty()) {
            self.lines.push(Line::default());
        }
    }

    /// Appends a heading, with an empty line before it.
    pub fn heading(&mut self, text: &str) {
        self.blank_line();
        self.push(Line::styled(Role::Title, text));
    }

    /// Appends text of several lines unchanged, each line moved right by `indent`.
    pub fn text(&mut self, label: Role, indent: usize, text: &str) {
        // Tabs stay tabs here: this is content, not a table.
        for line in text::safe(text).split('\n') {
            let spans = if line.is_empty() {
                Vec::new()
            } else {
                vec![(Role::Plain, " ".repeat(indent)), (label, line.to_owned())]
            };
            self.lines.push(Line { spans });
        }
    }

    /// Appends a value as indented JSON, moved right by `indent`.
    pub fn json(&mut self, indent: usize, value: &Value) {
        json::pretty_lines(value, |line| {
            self.push(json_line(line).indented(indent));
            true
        });
    }

    /// Appends advice as a line of its own: `hint: text`.
    pub fn hint(&mut self, text: &str) {
        self.push(
            Line::styled(Role::Hint, "hint:").then(Role::Plain, format!(" {text}")).indented(2),
        );
    }

    /// Appends prose, wrapped to lines of at most `width` cells (unlimited for `None`),
    /// each moved right by `indent`. Line breaks of the text stay; an overlong text is
    /// shortened.
    pub fn paragraph(&mut self, label: Role, indent: usize, text: &str, width: Option<usize>) {
        let room = width.map_or(usize::MAX, |w| w.saturating_sub(indent).max(20));
        for paragraph in text::shorten(text.trim(), PROSE).lines() {
            let safe = text::safe_line(paragraph.trim_end());
            for line in fill(&safe, room) {
                self.push(Line::styled(label, line).indented(indent));
            }
        }
    }

    /// Appends a named value: the name in its own column, the value wrapped beside it. Without
    /// a name it continues the previous value.
    pub fn field(&mut self, key: &str, label: Role, value: &str, width: Option<usize>) {
        const COLUMN: usize = 15;
        // A key that is wider than the column pushes its own value to the right.
        let end = Line::styled(Role::Dim, key).width() + 2;
        let column = if end < COLUMN { COLUMN } else { end + 2 };
        let mut rows = Self::default();
        rows.paragraph(label, 0, value, width.map(|width| width.saturating_sub(column)));
        for (index, row) in rows.lines.into_iter().enumerate() {
            let mut line = Line::styled(Role::Dim, if index == 0 { key } else { "" }).indented(2);
            line.pad_to(column);
            line.append(row);
            self.push(line);
        }
    }

    /// Appends a short value beside its label, which has a column of `cells`.
    pub fn fact(&mut self, cells: usize, label: &str, value: Line) {
        let mut line = Line::styled(Role::Dim, label).indented(2);
        line.pad_to(cells);
        line.append(value);
        self.push(line);
    }

    /// Appends `key = value`; the further lines of a value stand below the key.
    pub fn assignment(&mut self, indent: usize, key: &str, value: &str) {
        let mut lines = value.lines();
        let first = format!(" = {}", lines.next().unwrap_or_default());
        self.push(Line::styled(Role::Name, key).then(Role::Plain, first).indented(indent));
        lines.for_each(|line| self.push(Line::plain(line).indented(indent)));
    }

    pub fn append(&mut self, other: Self) {
        self.lines.extend(other.lines);
    }

    /// The page with every line moved right by `cells`.
    #[must_use]
    pub fn indented(self, cells: usize) -> Self {
        Self { lines: self.lines.into_iter().map(|line| line.indented(cells)).collect() }
    }

    /// The page with every line cut to `width` cells.
    #[must_use]
    pub fn truncate(self, width: usize) -> Self {
        Self { lines: self.lines.into_iter().map(|line| line.truncate(width)).collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The page with every line wrapped at `width` cells, so that each is one row of a screen.
    #[must_use]
    pub fn wrap(self, width: usize) -> Self {
        Self { lines: self.lines.into_iter().flat_map(|line| line.wrap(width)).collect() }
    }

    pub fn lines(&self) -> &[Line] {
        &self.lines
    }
}

impl From<Line> for Page {
    fn from(line: Line) -> Self {
        Self::from_iter([line])
    }
}

impl FromIterator<Line> for Page {
    fn from_iter<I: IntoIterator<Item = Line>>(lines: I) -> Self {
        Self { lines: lines.into_iter().collect() }
    }
}

/// A line of JSON: its indentation and key, and what follows.
pub fn json_line(line: &str) -> Line {
    let value_at = line.len() - line.trim_start().len();
    let (mut head, mut value) = line.split_at_checked(value_at).unwrap_or((line, ""));
    let mut spans = Line::default();
    if let Some(end) = json::quoted_end(value)
        && value.get(end..).is_some_and(|rest| rest.starts_with(": "))
        && let Some((key, rest)) = line.split_at_checked(value_at + end)
    {
        spans.push(Role::JsonKey, key);
        (head, value) = rest.split_at_checked(2).unwrap_or((rest, ""));
    }
    spans.push(Role::Plain, head);
    let (shown, comma) = value.strip_suffix(',').map_or((value, ""), |shown| (shown, ","));
    spans.push(json_role(shown), shown);
    spans.push(Role::Plain, comma);
    spans
}

/// The kind of JSON value that a text starts.
pub fn json_role(value: &str) -> Role {
    match value.bytes().next() {
        Some(b'"') => Role::JsonText,
        Some(b'-' | b'0'..=b'9') => Role::JsonNumber,
        Some(b't' | b'f' | b'n') => Role::JsonWord,
        _ => Role::Plain,
    }
}

/// Wraps words to lines of at most `room` cells; a longer word is broken.
fn fill(text: &str, room: usize) -> Vec<String> {
    if text::width(text) <= room {
        return vec![text.to_owned()];
    }
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if text::width(line) + 1 + text::width(word) <= room => {
                line.extend([" ", word]);
            }
            // Blanks where a line ends are no line of their own.
            _ if word.is_empty() => {}
            _ => lines.extend(broken(word, room)),
        }
    }
    lines
}

fn broken(word: &str, room: usize) -> Vec<String> {
    let (mut pieces, mut piece, mut used) = (Vec::new(), String::new(), 0);
    for c in word.chars() {
        let cells = text::width(c.encode_utf8(&mut [0; 4]));
        if used + cells > room && used > 0 {
            pieces.push(std::mem::take(&mut piece));
            used = 0;
        }
        piece.push(c);
        used += cells;
    }
    pieces.push(piece);
    pieces
}

/// How lines become bytes: with or without colour, with or without characters beyond ASCII for
/// our own marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LineRenderer {
    pub colour: bool,
    /// Whether our own marks stay within ASCII. Data is not changed.
    pub ascii: bool,
}

impl LineRenderer {
    /// The line as text, without a line break and without trailing blanks.
    pub fn line(self, line: &Line) -> String {
        let mut out = String::new();
        let ink = line.spans.iter().rposition(|(_, text)| text.contains(|c| c != ' '));
        let inked = ink.map_or(0, |last| last + 1);
        for (index, (label, text)) in line.spans.iter().take(inked).enumerate() {
            let last = index + 1 == inked;
            let text = self.marks(if last { text.trim_end_matches(' ') } else { text });
            match label.sgr().filter(|_| self.colour && !text.is_empty()) {
                Some(sgr) => {
                    out.push_str("\x1b[");
                    out.push_str(sgr);
                    out.push('m');
                    out.push_str(&text);
                    out.push_str("\x1b[0m");
                }
                None => out.push_str(&text),
            }
        }
        out
    }

    /// The page as text; every line ends in a line break.
    pub fn page(self, page: &Page) -> String {
        let mut out = String::new();
        for line in &page.lines {
            out.push_str(&self.line(line));
            out.push('\n');
        }
        out
    }

    /// Our own marks in the character set of this palette; every replacement is as wide as the
    /// mark.
    fn marks(self, text: &str) -> Cow<'_, str> {
        if !self.ascii || text.is_ascii() {
            return Cow::Borrowed(text);
        }
        let replaced = |c| {
            let at = MARKS.chars().position(|mark| mark == c);
            at.and_then(|at| ASCII_MARKS.chars().nth(at)).unwrap_or(c)
        };
        Cow::Owned(text.chars().map(replaced).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_broken_line_loses_nothing_and_never_begins_anew() {
        let line =
            Line::styled(Role::Dim, "key ").then(Role::Plain, "some words and onelongword日本");
        let shown: Vec<String> =
            line.clone().wrap(12).into_iter().map(|l| LineRenderer::default().line(&l)).collect();
        assert_eq!(shown, ["key some", "    words", "    and", "    onelongw", "    ord日本"]);
        assert_eq!(line.clone().wrap(100), vec![line.clone()]);
        assert_eq!(line.clone().wrap(0), vec![line]);
    }

    #[test]
    fn text_is_safe_once_it_is_in_a_line() {
        let line = Line::styled(Role::Name, "a\x1b[2J").then(Role::Plain, "b\nc");
        assert_eq!(LineRenderer::default().line(&line), "a␛[2Jb␊c");
    }

    #[test]
    fn labels_become_colours_only_when_asked() {
        let line = Line::styled(Role::Error, "no").then(Role::Plain, " way");
        assert_eq!(
            LineRenderer { colour: true, ascii: false }.line(&line),
            "\x1b[1;31mno\x1b[0m way"
        );
        assert_eq!(LineRenderer::default().line(&line), "no way");
    }

    #[test]
    fn a_cut_line_shows_that_it_was_cut() {
        let line = Line::styled(Role::Name, "calculator").then(Role::Plain, " computes");
        assert_eq!(LineRenderer::default().line(&line.clone().truncate(12)), "calculator …");
        assert_eq!(LineRenderer::default().line(&line.clone().truncate(10)), "calculato…");
        assert_eq!(line.clone().truncate(80), line);
    }

    #[test]
    fn prose_is_filled_and_long_words_are_broken() {
        let mut page = Page::default();
        page.paragraph(Role::Plain, 2, "one two three four five six seven", Some(22));
        page.paragraph(Role::Plain, 0, &"x".repeat(45), Some(20));
        let text = LineRenderer::default().page(&page);
        assert!(text.starts_with("  one two three four\n  five six seven\n"), "{text}");
        assert!(text.lines().all(|line| line.len() <= 22));
    }

    #[test]
    fn ascii_marks_are_as_wide_as_the_real_ones() {
        let line = Line::plain("a… b · c");
        let ascii = LineRenderer { colour: false, ascii: true }.line(&line);
        assert_eq!(ascii, "a~ b - c");
    }

    proptest! {
        #[test]
        fn a_cut_line_never_exceeds_its_width(a in any::<String>(), b in any::<String>(), width in 1_usize..60) {
            let line = Line::plain(a).then(Role::Dim, b).truncate(width);
            prop_assert!(line.width() <= width);
        }

        #[test]
        fn several_blanks_begin_no_line(words in proptest::collection::vec("[a-z]{0,12}", 0..30), room in 4_usize..30) {
            let lines = fill(&words.join(" "), room);
            prop_assume!(lines.len() > 1);
            prop_assert!(lines.iter().all(|line| !line.starts_with(' ') && !line.is_empty()), "{lines:?}");
            prop_assert_eq!(lines.concat().replace(' ', ""), words.concat());
        }

        #[test]
        fn filled_lines_fit_and_keep_every_word(words in proptest::collection::vec("[a-z日]{1,12}", 0..30), room in 24_usize..60) {
            let text = words.join(" ");
            let lines = fill(&text, room);
            prop_assert!(lines.iter().all(|l| text::width(l) <= room));
            prop_assert_eq!(lines.join(" "), text);
        }
    }
}
