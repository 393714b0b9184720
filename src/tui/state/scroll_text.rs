//! A text that scrolls: lines of pieces that mean something.
//!
//! Owns: the lines, bounded; how far they are scrolled; what was laid out of them last, so that a
//! frame costs what is seen of a text and not its length. Never does: make text safe, or style it.

use std::cell::RefCell;

use ratatui::text::Line;

use crate::tui::theme::{StyleRole, Theme};

/// The most lines that are kept: more than anybody scrolls through.
const LINES: usize = 5_000;
/// The most bytes of text that are kept.
const BYTES: usize = 512 * 1024;

/// A piece of a line, and what it means.
pub type StyledSpan = (StyleRole, String);

/// A text that scrolls.
#[derive(Debug, Default)]
pub struct ScrollText {
    lines: Vec<Vec<StyledSpan>>,
    bytes: usize,
    is_cut: bool,
    indent: usize,
    from: usize,
    layout_cache: RefCell<Option<LayoutCache>>,
}

/// The lines as they were drawn last.
#[derive(Debug)]
pub struct LayoutCache {
    /// Columns.
    pub width: u16,
    /// Rows.
    pub height: u16,
    /// The first row that was shown.
    pub from: usize,
    /// The styles.
    pub theme: Theme,
    /// The lines, broken to the width.
    pub rows: Vec<Line<'static>>,
}

impl ScrollText {
    /// An empty text whose lines, where they are broken, go on behind so many spaces. So no text
    /// can be made to look like a line of its own.
    pub fn with_indent(hanging: usize) -> Self {
        Self { indent: hanging, ..Self::default() }
    }

    /// How many spaces stand before the rest of a line that is broken.
    pub fn indent(&self) -> usize {
        self.indent
    }

    /// Appends a line.
    pub fn push(&mut self, pieces: Vec<StyledSpan>) {
        let bytes: usize = pieces.iter().map(|(_, text)| text.len() + 1).sum();
        if self.is_cut {
            return;
        }
        if self.lines.len() >= LINES || self.bytes + bytes > BYTES {
            return self.cut();
        }
        self.bytes += bytes;
        self.lines.push(pieces);
        *self.layout_cache.get_mut() = None;
    }

    /// Says that there is more, and takes nothing more.
    fn cut(&mut self) {
        self.is_cut = true;
        self.lines.push(vec![(StyleRole::Warning, "more is not shown here".to_owned())]);
        *self.layout_cache.get_mut() = None;
    }

    /// Appends a line of one piece.
    pub fn line(&mut self, meaning: StyleRole, said: impl Into<String>) {
        self.push(vec![(meaning, said.into())]);
    }

    /// Appends a text of several lines; of a line that alone is too much, its beginning.
    pub fn text(&mut self, meaning: StyleRole, said: &str) {
        for line in said.lines() {
            if self.is_cut {
                return;
            }
            let room = BYTES.saturating_sub(self.bytes + 1);
            let head = line.get(..line.floor_char_boundary(room)).unwrap_or_default();
            self.line(meaning, head);
            if head.len() < line.len() {
                return self.cut();
            }
        }
    }

    /// Appends a name and what it is.
    pub fn fact(&mut self, name: &str, value: impl Into<String>) {
        self.push(vec![(StyleRole::Dim, format!("{name:<12}")), (StyleRole::Plain, value.into())]);
    }

    /// Appends a title, set off from what is above.
    pub fn heading(&mut self, said: impl Into<String>) {
        if !self.lines.is_empty() {
            self.push(Vec::new());
        }
        self.line(StyleRole::Title, said);
    }

    /// The lines.
    pub fn lines(&self) -> &[Vec<StyledSpan>] {
        &self.lines
    }

    /// The first row that is seen, as far as there are so many.
    pub fn from(&self) -> usize {
        self.from
    }

    /// The same text in other words: it stays where it is scrolled.
    pub fn replace(&mut self, mut by: Self) {
        by.from = self.from;
        *self = by;
    }

    /// So many rows on, as far as there are any; back when negative.
    pub fn scroll(&mut self, by: isize) {
        let last = match self.layout_cache.get_mut() {
            Some(laid) => laid.rows.len().saturating_sub(usize::from(laid.height)),
            None => self.lines.len().saturating_sub(1),
        };
        self.from = self.from.min(last).saturating_add_signed(by).min(last);
    }

    /// Whether the end of it was on the screen when it was drawn last.
    pub fn is_end_visible(&self) -> bool {
        let laid = self.layout_cache.borrow();
        laid.as_ref().is_some_and(|laid| {
            laid.height > 0 && laid.from + usize::from(laid.height) >= laid.rows.len()
        })
    }

    /// Whether it is longer than what is kept.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Where what was laid out last is kept.
    pub fn layout_cache(&self) -> &RefCell<Option<LayoutCache>> {
        &self.layout_cache
    }

    /// The whole text.
    pub fn to_text(&self) -> String {
        let line =
            |pieces: &Vec<StyledSpan>| pieces.iter().map(|(_, text)| text.as_str()).collect();
        self.lines.iter().map(line).collect::<Vec<String>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_too_long_says_so_and_costs_no_more() {
        let mut page = ScrollText::default();
        page.text(StyleRole::Plain, &"x\n".repeat(LINES * 2));
        assert_eq!(page.lines().len(), LINES + 1);
        let mut page = ScrollText::default();
        page.text(StyleRole::Plain, &"é".repeat(BYTES));
        let text = page.to_text();
        assert!(text.len() <= BYTES + 64, "{}", text.len());
        assert!(text.ends_with("more is not shown here"), "{}", page.lines().len());
    }

    #[test]
    fn the_end_is_the_end_and_one_key_leads_back_from_it() {
        let mut page = ScrollText::default();
        page.text(StyleRole::Plain, "1\n2\n3");
        page.scroll(isize::MAX);
        assert_eq!(page.from(), 2);
        page.scroll(-1);
        assert_eq!(page.from(), 1);
        page.scroll(isize::MIN);
        assert_eq!(page.from(), 0);
    }
}
