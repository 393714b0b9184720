//! The tail of a stream of lines, in bounded memory.

use std::collections::VecDeque;

/// How much is kept in all.
const MAX_BYTES: usize = 64 * 1024;
/// How much of one line is kept.
const MAX_LINE_BYTES: usize = 4 * 1024;

/// Keeps the last lines of what is pushed: 64 KiB in all, 4 KiB a line.
#[derive(Debug, Default)]
pub struct LineTail {
    lines: VecDeque<String>,
    bytes: usize,
    open: Vec<u8>,
    /// Whether the open line was longer than what is kept of it.
    is_cut: bool,
}

impl LineTail {
    /// Adds a piece of the stream.
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

#[cfg(test)]
mod tests {
    use super::*;

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
