//! Text that a person types, on one line or several.

use unicode_segmentation::UnicodeSegmentation as _;

use crate::tui::keys::Action;

/// The maximum number of bytes; more is not typed or pasted.
const LONGEST: usize = 1 << 20;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextInput {
    text: String,
    cursor: usize,
    /// Whether all of it is selected: what is typed next replaces it.
    pub is_selected: bool,
}

impl TextInput {
    pub fn of(text: impl Into<String>) -> Self {
        let text = text.into();
        let cursor = text.len();
        Self { text, cursor, is_selected: false }
    }

    /// The same, with the cursor before the first character.
    pub fn at_start(text: impl Into<String>) -> Self {
        Self { cursor: 0, ..Self::of(text) }
    }

    pub fn select(&mut self) {
        self.cursor = self.text.len();
        self.is_selected = !self.text.is_empty();
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text before the cursor, and the text after it.
    pub fn split(&self) -> (&str, &str) {
        self.text.split_at_checked(self.cursor).unwrap_or((&self.text, ""))
    }

    /// The lines from the top; there is always one.
    pub fn lines(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.text.split('\n')
    }

    pub fn line_count(&self) -> usize {
        self.lines().count()
    }

    /// The line with the cursor, from 0.
    pub fn row(&self) -> usize {
        self.split().0.matches('\n').count()
    }

    /// The line with the cursor: what is before it, and what is after it.
    pub fn split_line(&self) -> (&str, &str) {
        let (before, behind) = self.split();
        let before = before.rsplit('\n').next().unwrap_or_default();
        (before, behind.split('\n').next().unwrap_or_default())
    }

    /// Where the line with the cursor starts and ends.
    fn line_bounds(&self) -> (usize, usize) {
        let (before, behind) = self.split_line();
        (self.cursor - before.len(), self.cursor + behind.len())
    }

    /// Writes at the cursor, as a part of its line. Line breaks become spaces, other control characters
    /// nothing.
    pub fn insert(&mut self, text: &str) {
        self.write(&text.replace(['\n', '\t'], " "));
    }

    /// Writes a text of several lines at the cursor. Control characters other than tabs are left out.
    pub fn paste(&mut self, text: &str) {
        self.write(&text.replace("\r\n", "\n").replace('\r', "\n"));
    }

    fn write(&mut self, text: &str) {
        self.take_selected();
        let is_kept = |c: &char| matches!(c, '\t' | '\n') || !c.is_control();
        let clean: String = text.chars().filter(is_kept).collect();
        if self.text.len() + clean.len() <= LONGEST {
            self.text.insert_str(self.cursor, &clean);
            self.cursor += clean.len();
        }
    }

    /// Empties a selected text; whether it was selected.
    fn take_selected(&mut self) -> bool {
        let was = self.is_selected;
        if was {
            *self = Self::default();
        }
        was
    }

    /// Deletes the character before the cursor; at the start of a line joins it with the previous one.
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
        let word = self.split_line().0.trim_end();
        let kept = word.trim_end_matches(|c: char| !c.is_whitespace());
        let start = self.line_bounds().0 + kept.len();
        self.cursor = start;
        self.text.replace_range(start..end, "");
    }

    /// Empties the line with the cursor.
    pub fn clear_line(&mut self) {
        self.is_selected = false;
        let (start, end) = self.line_bounds();
        self.cursor = start;
        self.text.replace_range(start..end, "");
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

    /// Moves the cursor before the first character of its line.
    pub fn home(&mut self) {
        self.is_selected = false;
        self.cursor = self.line_bounds().0;
    }

    pub fn end(&mut self) {
        self.is_selected = false;
        self.cursor = self.line_bounds().1;
    }

    /// How many graphemes of its line stand before the cursor.
    pub fn column(&self) -> usize {
        self.split_line().0.graphemes(true).count()
    }

    /// So many lines down, up when negative; the cursor stays in its column where it can.
    pub fn step(&mut self, by: isize) {
        self.is_selected = false;
        let column = self.column();
        let row = self.row().saturating_add_signed(by).min(self.line_count() - 1);
        let above: usize = self.lines().take(row).map(|line| line.len() + 1).sum();
        let line = self.lines().nth(row).unwrap_or_default();
        let within = line.grapheme_indices(true).nth(column).map_or(line.len(), |(at, _)| at);
        self.cursor = above + within;
    }

    /// Performs an action on a text of several lines; `false` when it is not about it.
    pub fn act(&mut self, action: Action) -> bool {
        match action {
            // A line is added to what is there, also where typing would replace it.
            Action::Add => {
                self.is_selected = false;
                self.write("\n");
            }
            Action::Remove => self.backspace(),
            Action::Up | Action::PreviousField => self.step(-1),
            Action::Down | Action::NextField => self.step(1),
            Action::PageUp => self.step(-10),
            Action::PageDown => self.step(10),
            Action::PreviousChoice => self.left(),
            Action::NextChoice => self.right(),
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_looks_like_one_character_is_one() {
        let mut line = TextInput::of("e\u{301}👨‍👩‍👧");
        line.backspace();
        assert_eq!(line.text(), "e\u{301}");
        line.backspace();
        assert_eq!(line.text(), "");
        line.backspace();
    }

    #[test]
    fn what_is_selected_is_replaced_unless_the_cursor_moves_first() {
        let typed = |first: fn(&mut TextInput)| {
            let mut line = TextInput::of("old");
            line.select();
            first(&mut line);
            line.insert("x");
            line.insert("y");
            line.text().to_owned()
        };
        assert_eq!(typed(|_| ()), "xy");
        assert_eq!(typed(TextInput::backspace), "xy");
        assert_eq!(typed(TextInput::end), "oldxy");
        assert_eq!(typed(TextInput::home), "xyold");
    }

    #[test]
    fn a_word_is_erased_with_the_space_behind_it() {
        let mut line = TextInput::of("one two  ");
        line.erase_word();
        assert_eq!(line.text(), "one ");
        line.erase_word();
        assert_eq!(line.text(), "");
        let mut text = TextInput::of("one\ntwo");
        text.erase_word();
        text.erase_word();
        assert_eq!(text.text(), "one\n", "no word of another line");
    }

    #[test]
    fn the_cursor_passes_the_ends_of_lines_and_no_line_break_is_lost() {
        let mut text = TextInput::of("a\n\tb\n");
        assert_eq!((text.line_count(), text.row()), (3, 2));
        for _ in 0..4 {
            text.left();
        }
        assert_eq!((text.row(), text.column()), (0, 1));
        text.right();
        assert_eq!((text.row(), text.column()), (1, 0));
        text.paste("x\ty\r\nz");
        assert_eq!(text.text(), "a\nx\ty\nz\tb\n");
    }

    #[test]
    fn lines_break_and_join() {
        let mut text = TextInput::at_start("one\ntwo");
        text.end();
        text.act(Action::Add);
        text.paste("a\r\nb");
        assert_eq!(text.text(), "one\na\nb\ntwo");
        text.home();
        text.backspace();
        assert_eq!((text.text(), text.column()), ("one\nab\ntwo", 1));
        text.step(-1);
        text.backspace();
        assert_eq!(text.text(), "ne\nab\ntwo");
        text.step(1);
        text.clear_line();
        assert_eq!((text.text(), text.row()), ("ne\n\ntwo", 1));
    }

    proptest! {
        #[test]
        fn the_cursor_is_always_in_the_text(keys in prop::collection::vec((0..11_u8, ".{0,4}"), 0..60)) {
            let mut input = TextInput::default();
            for (key, text) in keys {
                match key {
                    0 => input.left(),
                    1 => input.right(),
                    2 => input.backspace(),
                    3 => input.erase_word(),
                    4 => input.home(),
                    5 => input.end(),
                    6 => input.step(-2),
                    7 => input.step(1),
                    8 => input.clear_line(),
                    9 => input.paste(&format!("\n{text}")),
                    _ => input.insert(&text),
                }
                let (before, behind) = input.split();
                prop_assert_eq!(format!("{before}{behind}"), input.text());
                prop_assert_eq!(before.len(), input.cursor);
                prop_assert!(input.row() < input.line_count());
            }
        }
    }
}
