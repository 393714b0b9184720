//! A search in a result.

use crate::tui::state::LineInput;

#[derive(Debug, Default)]
pub struct ResultSearch {
    /// The words as they were typed.
    pub line: LineInput,
    pub is_typing: bool,
    found: Vec<usize>,
    at: usize,
}

impl ResultSearch {
    pub fn words(&self) -> Option<&str> {
        Some(self.line.text()).filter(|words| !words.is_empty())
    }

    /// Sets the lines that contain the words; the first one from `from` on becomes current.
    pub(super) fn set_found(&mut self, found: Vec<usize>, from: usize) {
        self.at = found.iter().position(|line| *line >= from).unwrap_or(0);
        self.found = found;
    }

    /// Goes to the next line that has them, or to one before; round at the ends.
    pub(super) fn step(&mut self, by: isize) {
        let length = isize::try_from(self.found.len().max(1)).unwrap_or(1);
        let at = isize::try_from(self.at).unwrap_or(0) + by;
        self.at = usize::try_from(at.rem_euclid(length)).unwrap_or(0);
    }

    pub(super) fn line_at(&self) -> Option<usize> {
        self.found.get(self.at).copied()
    }

    /// How many lines have them and which is looked at: `/words 2 of 7`.
    pub fn summary(&self) -> Option<String> {
        let words = self.words()?;
        Some(match self.found.len() {
            0 => format!("/{words} no matches"),
            all => format!("/{words} {} of {all}", self.at + 1),
        })
    }
}
