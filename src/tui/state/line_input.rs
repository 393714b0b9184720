//! A single-line text input.

use unicode_segmentation::UnicodeSegmentation as _;

/// The maximum number of bytes a line may have; more is not typed or pasted.
const LONGEST: usize = 64 * 1024;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineInput {
    text: String,
    /// A byte position between two graphemes.
    cursor: usize,
    is_selected: bool,
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

    pub fn is_selected(&self) -> bool {
        self.is_selected
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

    /// Deletes the character before the cursor.
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

    /// Moves the cursor behind the last character.
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
