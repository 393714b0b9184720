//! A text that is made once and looked at through a window.
//!
//! Owns: lines that are short enough to be laid out one by one, so that what a frame costs does not
//! grow with the text. Bounded; what is left out is said.

use crate::tui::theme::StyleRole;

/// The most lines.
const LINES: usize = 100_000;
/// The most bytes of one line; longer ones are broken.
const LONGEST: usize = 512;

/// A text in lines, each with what it means.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TextDocument {
    lines: Vec<(StyleRole, String)>,
    is_cut: bool,
}

impl TextDocument {
    /// Adds a text of any number of lines.
    pub fn text(&mut self, meaning: StyleRole, text: &str) {
        for line in text.lines() {
            self.line(meaning, line);
        }
    }

    /// Adds a line; a long one is broken, behind a space where there is one.
    pub fn line(&mut self, meaning: StyleRole, line: &str) {
        let mut rest = line;
        loop {
            if self.lines.len() >= LINES {
                self.is_cut = true;
                return;
            }
            if rest.len() <= LONGEST {
                self.lines.push((meaning, rest.to_owned()));
                return;
            }
            let most = rest.floor_char_boundary(LONGEST);
            let (head, _) = rest.split_at(most);
            let at = head.rfind(' ').map_or(most, |space| space + 1);
            let (head, tail) = rest.split_at(at);
            self.lines.push((meaning, head.to_owned()));
            rest = tail;
        }
    }

    /// Adds a line with nothing on it, between two that have something.
    pub fn gap(&mut self) {
        if self.lines.last().is_some_and(|(_, line)| !line.is_empty()) {
            self.lines.push((StyleRole::Plain, String::new()));
        }
    }

    /// Adds a name and what it is.
    pub fn fact(&mut self, name: &str, value: &str) {
        self.line(StyleRole::Plain, &format!("{name:<10}{value}"));
    }

    /// How many lines there are.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Whether something was left out at the end.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The lines from this one on.
    pub fn from(&self, first: usize) -> impl Iterator<Item = (StyleRole, &str)> + '_ {
        let lines = self.lines.get(first..).unwrap_or_default();
        lines.iter().map(|(meaning, line)| (*meaning, line.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_without_end_is_cut_and_says_so() {
        let mut document = TextDocument::default();
        document.text(StyleRole::Plain, &"x\n".repeat(LINES + 5));
        assert_eq!((document.len(), document.is_cut()), (LINES, true));
    }

    proptest! {
        #[test]
        fn long_lines_are_broken_and_nothing_is_lost(line in "[a-zé日 ]{0,3000}") {
            let mut document = TextDocument::default();
            document.line(StyleRole::Plain, &line);
            let whole: String = document.from(0).map(|(_, line)| line).collect();
            prop_assert_eq!(whole, line);
            prop_assert!(document.from(0).all(|(_, line)| line.len() <= LONGEST));
        }
    }
}
