//! A multi-line text input.

use super::LineInput;

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
mod tests {
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
