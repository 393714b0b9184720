//! The tail of a stream of lines, in bounded memory.

use std::collections::VecDeque;

const MAX_BYTES: usize = 64 * 1024;
const MAX_LINE_BYTES: usize = 4 * 1024;

/// Keeps the last lines of what is pushed: 64 KiB in all, 4 KiB a line.
#[derive(Debug, Default)]
pub struct LineTail {
    lines: VecDeque<String>,
    bytes: usize,
    open: Vec<u8>,
    is_cut: bool,
}

impl LineTail {
    pub fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|b| *b == b'\n') {
            let (text, ends) = match piece.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (piece, false),
            };
            let room = MAX_LINE_BYTES.saturating_sub(self.open.len()).min(text.len());
            self.open.extend_from_slice(text.get(..room).unwrap_or_default());
            self.is_cut |= room < text.len();
            if ends {
                let line = self.line();
                self.open.clear();
                self.is_cut = false;
                self.keep(line);
            }
        }
    }

    /// The unfinished line. A cut is marked, so that the search for secrets sees it too.
    fn line(&self) -> String {
        let text = String::from_utf8_lossy(&self.open);
        if self.is_cut { format!("{text}…") } else { text.trim_end_matches('\r').to_owned() }
    }

    fn keep(&mut self, line: String) {
        self.bytes += line.len() + 1;
        self.lines.push_back(line);
        while self.bytes > MAX_BYTES {
            match self.lines.pop_front() {
                Some(line) => self.bytes -= line.len() + 1,
                None => break,
            }
        }
    }

    /// The last `count` lines, oldest first; an unfinished line counts.
    pub fn last(&self, count: usize) -> Vec<String> {
        let open = (!self.open.is_empty()).then(|| self.line());
        let lines: Vec<String> = self.lines.iter().cloned().chain(open).collect();
        let skip = lines.len().saturating_sub(count);
        lines.into_iter().skip(skip).collect()
    }
}

const FIRST: usize = 2;
const LAST: usize = 3;

impl LineTail {
    /// What explains an end best: both ends, since many programs write their error before a page of
    /// usage, and between them up to `count` lines that look like errors; `…` for what is left out.
    pub fn excerpt(&self, count: usize) -> Vec<String> {
        let lines = self.last(usize::MAX);
        let end = lines.len().saturating_sub(LAST);
        let mut errors = 0;
        let mut excerpt: Vec<String> = Vec::new();
        for (at, line) in lines.into_iter().enumerate() {
            let is_error = (FIRST..end).contains(&at) && errors < count && reports_error(&line);
            errors += usize::from(is_error);
            if at < FIRST || at >= end || is_error {
                excerpt.push(line);
            } else if excerpt.last().is_none_or(|last| last != "…") {
                excerpt.push("…".to_owned());
            }
        }
        excerpt
    }
}

/// Whether a line looks like the report of an error: `Error: …`, `mod.SomeError: …`, `fatal: …`.
pub fn reports_error(line: &str) -> bool {
    let names = ["error", "fatal", "panic", "exception"];
    if line.contains("ERROR") || line.contains("FATAL") {
        return true;
    }
    let line = line.trim_start().to_ascii_lowercase();
    let head = line.split([':', ' ']).next().unwrap_or_default();
    names.iter().any(|word| head.contains(word))
        || names.iter().any(|word| line.contains(&format!("{word}:")))
        || line.contains(" panicked at ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_has_both_ends_and_the_errors_between_them() {
        let excerpt = |lines: &[&str]| {
            let mut tail = LineTail::default();
            tail.push(lines.join("\n").as_bytes());
            tail.excerpt(1).join("|")
        };
        assert_eq!(excerpt(&["a", "b", "c", "d", "e"]), "a|b|c|d|e");
        let usage = ["Error: no token", "", "Usage:", "-a", "-b", "-c", "-d", "-e"];
        assert_eq!(excerpt(&usage), "Error: no token||…|-c|-d|-e");
        let middle = ["1", "2", "3", "x.ValueError: no", "fatal: no", "4", "5", "6"];
        assert_eq!(excerpt(&middle), "1|2|…|x.ValueError: no|…|4|5|6");
    }

    #[test]
    fn reports_of_errors_are_told_from_other_lines() {
        for line in [
            "Error: Cannot find module 'x'",
            "error: unexpected argument",
            "ValueError: no",
            "  mod.sub.ConfigError",
            "2026-01-01 ERROR no database",
            "thread 'main' panicked at src/main.rs:1",
            "fatal: no",
        ] {
            assert!(reports_error(line), "{line}");
        }
        for line in ["Usage: x [--on-error]", "listening", "  at node:internal/errors", "0 errors"]
        {
            assert!(!reports_error(line), "{line}");
        }
    }

    #[test]
    fn the_last_lines_are_kept() {
        let mut tail = LineTail::default();
        tail.push(b"a\nb\r\nc");
        tail.push(b"d\ne");
        assert_eq!(tail.last(2), ["cd", "e"]);
        assert_eq!(tail.last(9), ["a", "b", "cd", "e"]);
    }

    #[test]
    fn a_long_line_is_cut_and_the_next_one_is_not() {
        let mut tail = LineTail::default();
        tail.push(&vec![b'x'; 3 * MAX_LINE_BYTES]);
        tail.push(b"\nshort\n");
        let shown = format!("{}…", "x".repeat(MAX_LINE_BYTES));
        assert_eq!(tail.last(usize::MAX), [shown.as_str(), "short"]);
    }

    #[test]
    fn memory_is_bounded_however_much_comes() {
        let mut tail = LineTail::default();
        for _ in 0..1000 {
            tail.push(&[b'x'; 10_000]);
            tail.push(b"\n");
        }
        tail.push(&vec![b'y'; 1 << 20]);
        assert!(
            tail.last(usize::MAX).iter().map(String::len).sum::<usize>()
                <= MAX_BYTES + MAX_LINE_BYTES + 3
        );
    }
}
