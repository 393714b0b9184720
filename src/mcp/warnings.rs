//! What a peer did against the protocol and is tolerated: warnings, as text for people.

use crate::util::text::truncate;

const MAX_WARNINGS: usize = 20;
/// How much of a warning is kept, in characters: it may quote what the server made up.
pub(super) const WARNING_CHARS: usize = 300;

/// The warnings about one server: each with how often it came, in order of first appearance.
#[derive(Debug, Default)]
pub struct WarningList {
    known: Vec<(String, u64)>,
    dropped: u64,
}

impl WarningList {
    /// Adds a warning; equal ones are counted.
    pub fn add(&mut self, warning: &str) {
        let text = truncate(warning, WARNING_CHARS);
        if let Some((_, count)) = self.known.iter_mut().find(|(existing, _)| *existing == text) {
            *count += 1;
        } else if self.known.len() < MAX_WARNINGS {
            self.known.push((text, 1));
        } else {
            self.dropped += 1;
        }
    }

    /// Adds a warning unless the list is full or already has it: one that is repeated during the
    /// handshake counts once.
    pub fn add_once(&mut self, warning: &str) {
        let text = truncate(warning, WARNING_CHARS);
        if self.known.len() < MAX_WARNINGS
            && !self.known.iter().any(|(existing, _)| *existing == text)
        {
            self.known.push((text, 1));
        }
    }

    pub fn lines(&self) -> Vec<String> {
        let lines = self.known.iter().map(|(text, count)| match count {
            1 => text.clone(),
            times => format!("{text} ({times} times)"),
        });
        let dropped = (self.dropped > 0).then(|| format!("and {} more warnings", self.dropped));
        lines.chain(dropped).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_warnings_are_counted_and_other_ones_are_bounded() {
        let mut list = WarningList::default();
        assert!(list.lines().is_empty());
        list.add_once("raw NUL bytes");
        list.add_once("raw NUL bytes");
        assert_eq!(list.lines(), ["raw NUL bytes"]);
        list.add("raw NUL bytes");
        assert_eq!(list.lines(), ["raw NUL bytes (2 times)"]);
        for count in 0..30 {
            list.add(&format!("{count} messages"));
        }
        assert_eq!(list.lines().len(), MAX_WARNINGS + 1);
        assert_eq!(list.lines().last().unwrap(), "and 11 more warnings");
    }

    #[test]
    fn what_a_server_made_up_is_cut() {
        let mut list = WarningList::default();
        list.add(&"x".repeat(10_000));
        assert_eq!(list.lines()[0].chars().count(), WARNING_CHARS + 1);
    }
}
