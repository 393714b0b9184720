//! A single-line text input.

use unicode_segmentation::UnicodeSegmentation as _;

use crate::tui::keys::Action;

/// The maximum number of bytes a line may have; more is not typed or pasted.
const LONGEST: usize = 64 * 1024;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineInput {
    text: String,
    cursor: usize,
    pub is_selected: bool,
}

impl LineInput {
    pub fn of(text: impl Into<String>) -> Self {
        let text = text.into();
        let cursor = text.len();
        Self { text, cursor, is_selected: false }
    }

    /// Selects the whole line: what is typed next replaces it.
    pub fn select(&mut self) {
        self.end();
        self.is_selected = !self.text.is_empty();
    }

    /// Empties a selected line; whether it was selected.
    fn take_selected(&mut self) -> bool {
        let was = self.is_selected;
        if was {
            self.clear();
        }
        was
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text before the cursor, and the text after it.
    pub fn split(&self) -> (&str, &str) {
        self.text.split_at_checked(self.cursor).unwrap_or((&self.text, ""))
    }

    /// Writes at the cursor. Line breaks become spaces, other control characters nothing.
    pub fn insert(&mut self, text: &str) {
        self.insert_with_tabs(&text.replace(['\n', '\t'], " "));
    }

    /// Writes at the cursor. Control characters other than tabs are left out.
    pub fn insert_with_tabs(&mut self, text: &str) {
        self.take_selected();
        let clean: String = text.chars().filter(|c| *c == '\t' || !c.is_control()).collect();
        if self.text.len() + clean.len() <= LONGEST {
            self.text.insert_str(self.cursor, &clean);
            self.cursor += clean.len();
        }
    }

    pub fn backspace(&mut self) {
        if self.take_selected() {
            return;
        }
        let end = self.cursor;
        self.left();
        self.text.replace_range(self.cursor..end, "");
    }

    /// Takes away the word before the cursor.
    pub fn erase_word(&mut self) {
        self.is_selected = false;
        let end = self.cursor;
        let before = self.split().0.trim_end();
        self.cursor = before.rfind(char::is_whitespace).map_or(0, |at| {
            at + before.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8)
        });
        self.text.replace_range(self.cursor..end, "");
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    pub fn left(&mut self) {
        self.is_selected = false;
        let step = self.split().0.graphemes(true).next_back().map_or(0, str::len);
        self.cursor -= step;
    }

    pub fn right(&mut self) {
        self.is_selected = false;
        let step = self.split().1.graphemes(true).next().map_or(0, str::len);
        self.cursor += step;
    }

    /// Moves the cursor before the first character.
    pub fn home(&mut self) {
        self.is_selected = false;
        self.cursor = 0;
    }

    pub fn end(&mut self) {
        self.is_selected = false;
        self.cursor = self.text.len();
    }

    /// How many graphemes stand before the cursor.
    pub fn column(&self) -> usize {
        self.split().0.graphemes(true).count()
    }

    /// Puts the cursor after this many graphemes, or at the end.
    pub fn move_to(&mut self, column: usize) {
        self.is_selected = false;
        let at = self.text.grapheme_indices(true).nth(column);
        self.cursor = at.map_or(self.text.len(), |(at, _)| at);
    }

    #[must_use]
    pub fn split_off(&mut self) -> Self {
        self.is_selected = false;
        Self { text: self.text.split_off(self.cursor), ..Self::default() }
    }

    pub fn append(&mut self, other: &Self) {
        self.end();
        self.text.push_str(&other.text);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_looks_like_one_character_is_one() {
        let mut line = LineInput::of("e\u{301}👨‍👩‍👧");
        line.backspace();
        assert_eq!(line.text(), "e\u{301}");
        line.backspace();
        assert_eq!(line.text(), "");
        line.backspace();
    }

    #[test]
    fn what_is_selected_is_replaced_unless_the_cursor_moves_first() {
        let typed = |first: fn(&mut LineInput)| {
            let mut line = LineInput::of("old");
            line.select();
            first(&mut line);
            line.insert("x");
            line.insert("y");
            line.text().to_owned()
        };
        assert_eq!(typed(|_| ()), "xy");
        assert_eq!(typed(LineInput::backspace), "xy");
        assert_eq!(typed(LineInput::end), "oldxy");
        assert_eq!(typed(LineInput::home), "xyold");
    }

    #[test]
    fn a_word_is_erased_with_the_space_behind_it() {
        let mut line = LineInput::of("one two  ");
        line.erase_word();
        assert_eq!(line.text(), "one ");
        line.erase_word();
        assert_eq!(line.text(), "");
    }

    proptest! {
        #[test]
        fn the_cursor_is_always_in_the_line(keys in prop::collection::vec((0..8_u8, ".{0,4}"), 0..60)) {
            let mut line = LineInput::default();
            for (key, text) in keys {
                match key {
                    0 => line.left(),
                    1 => line.right(),
                    2 => line.backspace(),
                    3 => line.erase_word(),
                    4 => line.home(),
                    5 => line.end(),
                    _ => line.insert(&text),
                }
                let (before, behind) = line.split();
                prop_assert_eq!(format!("{before}{behind}"), line.text());
                prop_assert_eq!(before.len(), line.cursor);
            }
        }
    }
}

/// The maximum number of lines a text may have; more are not typed or pasted.
const LINES: usize = 10_000;

/// A text, and which of its lines the cursor is in. There is always one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextArea {
    lines: Vec<LineInput>,
    at: usize,
}

impl Default for TextArea {
    fn default() -> Self {
        Self { lines: vec![LineInput::default()], at: 0 }
    }
}

impl TextArea {
    pub fn of(text: &str) -> Self {
        let mut lines: Vec<LineInput> = text.split('\n').map(LineInput::of).collect();
        lines[0].home();
        Self { lines, at: 0 }
    }

    pub fn at_end(text: &str) -> Self {
        let mut area = Self::of(text);
        area.at = area.lines.len() - 1;
        area.line().end();
        area
    }

    /// The whole text, with a line break between lines.
    pub fn text(&self) -> String {
        let lines: Vec<&str> = self.lines.iter().map(LineInput::text).collect();
        lines.join("\n")
    }

    pub fn is_empty(&self) -> bool {
        self.lines.iter().all(|line| line.text().is_empty())
    }

    /// The lines from the top; there is always one.
    pub fn lines(&self) -> &[LineInput] {
        &self.lines
    }

    /// The line with the cursor, from 0.
    pub fn row(&self) -> usize {
        self.at
    }

    pub fn line(&mut self) -> &mut LineInput {
        &mut self.lines[self.at]
    }

    pub fn break_line(&mut self) {
        if self.lines.len() < LINES {
            let rest = self.line().split_off();
            self.at += 1;
            self.lines.insert(self.at, rest);
        }
    }

    /// Deletes the character before the cursor, or joins the line with the previous one.
    pub fn erase(&mut self) {
        if self.at == 0 || self.line().column() > 0 {
            return self.line().backspace();
        }
        let line = self.lines.remove(self.at);
        self.at -= 1;
        self.line().append(&line);
        let seam = self.line().text().len() - line.text().len();
        let column = LineInput::of(self.line().text().get(..seam).unwrap_or_default()).column();
        self.line().move_to(column);
    }

    /// So many lines down, up when negative; the cursor stays in its column where it can.
    pub fn step(&mut self, by: isize) {
        let column = self.line().column();
        self.at = self.at.saturating_add_signed(by).min(self.lines.len() - 1);
        self.line().move_to(column);
    }

    /// Moves the cursor one character to the left, from the beginning of a line to the end of the
    /// one before.
    pub fn left(&mut self) {
        if self.at > 0 && self.line().column() == 0 {
            self.at -= 1;
            self.line().end();
        } else {
            self.line().left();
        }
    }

    /// Moves the cursor one character to the right, from the end of a line to the beginning of the
    /// next one.
    pub fn right(&mut self) {
        if self.at + 1 < self.lines.len() && self.line().split().1.is_empty() {
            self.at += 1;
            self.line().home();
        } else {
            self.line().right();
        }
    }

    /// Performs an action on the text; `false` when it is not about it.
    pub fn act(&mut self, action: Action) -> bool {
        match action {
            Action::Add => self.break_line(),
            Action::Remove => self.erase(),
            Action::Up | Action::PreviousField => self.step(-1),
            Action::Down | Action::NextField => self.step(1),
            Action::PageUp => self.step(-10),
            Action::PageDown => self.step(10),
            Action::PreviousChoice => self.line().left(),
            Action::NextChoice => self.line().right(),
            _ => return false,
        }
        true
    }

    /// Writes a text of several lines at the cursor; tabs are kept.
    pub fn paste(&mut self, text: &str) {
        for (at, line) in text.replace("\r\n", "\n").split(['\n', '\r']).enumerate() {
            if at > 0 {
                self.break_line();
            }
            self.line().insert_with_tabs(line);
        }
    }
}

#[cfg(test)]
mod text_area_tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_cursor_passes_the_ends_of_lines_and_no_line_break_is_lost() {
        let mut text = TextArea::at_end("a\n\tb\n");
        assert_eq!((text.text().as_str(), text.row()), ("a\n\tb\n", 2));
        text.left();
        text.left();
        text.left();
        text.left();
        assert_eq!((text.row(), text.line().column()), (0, 1));
        text.right();
        assert_eq!((text.row(), text.line().column()), (1, 0));
        text.paste("x\ty\r\nz");
        assert_eq!(text.text(), "a\nx\ty\nz\tb\n");
    }

    #[test]
    fn lines_break_and_join() {
        let mut text = TextArea::of("one\ntwo");
        text.line().end();
        text.break_line();
        text.paste("a\r\nb");
        assert_eq!(text.text(), "one\na\nb\ntwo");
        text.line().home();
        text.erase();
        assert_eq!((text.text().as_str(), text.line().column()), ("one\nab\ntwo", 1));
        text.step(-1);
        text.erase();
        assert_eq!(text.text(), "ne\nab\ntwo");
    }

    proptest! {
        #[test]
        fn no_keys_break_it(keys in prop::collection::vec((0..7_u8, ".{0,3}"), 0..60)) {
            let mut text = TextArea::default();
            for (key, typed) in keys {
                match key {
                    0 => text.erase(),
                    1 => text.break_line(),
                    2 => text.step(-2),
                    3 => text.step(1),
                    4 => text.line().left(),
                    5 => text.line().home(),
                    _ => text.paste(&typed),
                }
                prop_assert!(text.row() < text.lines().len());
                prop_assert_eq!(text.text().split('\n').count(), text.lines().len());
            }
        }
    }
}
