//! The end of a stream of text, in lines.

use std::collections::VecDeque;

/// How much is kept, in bytes.
const MAX_BYTES: usize = 64 << 10;
/// How much of one line is kept, in bytes.
const MAX_LINE_BYTES: usize = 4 << 10;

/// Keeps the last lines of a stream: 64 KiB of it, and 4 KiB of each line.
#[derive(Debug, Default)]
pub(super) struct StderrTail {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    open: Vec<u8>,
    /// Whether the open line was longer than what is kept of it.
    is_cut: bool,
}

impl StderrTail {
    /// Takes the next bytes.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = match piece.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (piece, false),
            };
            let room = MAX_LINE_BYTES.saturating_sub(self.open.len()).min(text.len());
            self.open.extend_from_slice(text.get(..room).unwrap_or_default());
            self.is_cut |= room < text.len();
            if ends {
                let line = self.line();
                self.push(line);
            }
        }
    }

    /// Takes the open line. A cut shows, also to whoever looks for secrets beside it.
    fn line(&mut self) -> Vec<u8> {
        let mut line = std::mem::take(&mut self.open);
        if std::mem::take(&mut self.is_cut) {
            line.extend_from_slice("…".as_bytes());
        }
        line
    }

    fn push(&mut self, line: Vec<u8>) {
        // An empty line costs too, so that the number of lines is bounded as well.
        self.bytes += line.len() + 1;
        self.lines.push_back(line);
        while self.bytes > MAX_BYTES {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.bytes -= oldest.len() + 1;
        }
    }

    /// The lines, oldest first; bytes that are no text become replacement characters.
    pub(super) fn lines(mut self) -> Vec<String> {
        if !self.open.is_empty() {
            let line = self.line();
            self.push(line);
        }
        let text = |line: Vec<u8>| String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned();
        self.lines.into_iter().map(text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_stay() {
        let mut tail = StderrTail::default();
        for n in 0..20_000 {
            tail.feed(format!("line {n}\r\n").as_bytes());
        }
        tail.feed(b"no newline");
        let lines = tail.lines();
        assert_eq!(lines.last().map(String::as_str), Some("no newline"));
        assert_eq!(lines[lines.len() - 2], "line 19999");
        assert!(lines.iter().map(String::len).sum::<usize>() <= MAX_BYTES);
    }

    #[test]
    fn a_long_line_is_cut_and_the_next_one_is_not() {
        let mut tail = StderrTail::default();
        tail.feed(&vec![b'x'; 3 * MAX_LINE_BYTES]);
        tail.feed(b"\nshort\n");
        let lines = tail.lines();
        let shown = format!("{}…", "x".repeat(MAX_LINE_BYTES));
        assert_eq!(lines, [shown.as_str(), "short"]);
    }
}
