//! Reading lines from a child process's pipe, with a bound on the events they may cause.

use crate::model::{EventSink, HostEvent};

/// Maximum number of events of one call that viewers see; the rest are counted and dropped.
pub(super) const MAX_EVENTS: u32 = 10_000;

/// Cuts a stream into lines, in memory that is bounded however long a line is.
#[derive(Debug)]
pub(super) struct LineSplitter {
    max_bytes: usize,
    open: Vec<u8>,
    /// The line under way passed the limit: the rest of it is left out.
    is_skipping: bool,
}

/// A line of a stream, without its newline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SplitLine<'a> {
    Whole(&'a [u8]),
    /// A line exceeded the limit; reported once, as soon as it is known.
    TooLong,
}

impl LineSplitter {
    /// A splitter for lines of at most `max_bytes` bytes.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { max_bytes, open: Vec::new(), is_skipping: false }
    }

    pub(super) fn feed(&mut self, bytes: &[u8], mut take: impl FnMut(SplitLine<'_>)) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = match piece.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (piece, false),
            };
            if !self.is_skipping && self.open.len() + text.len() > self.max_bytes {
                self.is_skipping = true;
                self.open = Vec::new();
                take(SplitLine::TooLong);
            }
            match (self.is_skipping, ends) {
                (true, _) => self.is_skipping = !ends,
                (false, true) if self.open.is_empty() => take(SplitLine::Whole(text)),
                (false, true) => {
                    self.open.extend_from_slice(text);
                    take(SplitLine::Whole(&self.open));
                    self.open.clear();
                    // One large line should not be paid for until the end.
                    self.open.shrink_to(64 << 10);
                }
                (false, false) => self.open.extend_from_slice(text),
            }
        }
    }

    /// Hands on the last line of a stream that ends without a newline.
    pub(super) fn finish(&mut self, take: impl FnOnce(SplitLine<'_>)) {
        if !self.open.is_empty() {
            take(SplitLine::Whole(&self.open));
        }
        self.open = Vec::new();
        self.is_skipping = false;
    }
}

/// Hands the events of one call to its viewers, up to [`MAX_EVENTS`].
#[derive(Debug)]
pub(super) struct LimitedEvents {
    sink: EventSink,
    seen: u32,
}

impl LimitedEvents {
    /// A sink for the events of one call, which go to `sink`.
    pub(super) fn new(sink: EventSink) -> Self {
        Self { sink, seen: 0 }
    }

    /// Emits an event, unless there were too many before it.
    pub(super) fn emit(&mut self, event: HostEvent) {
        self.seen = self.seen.saturating_add(1);
        if self.seen <= MAX_EVENTS {
            self.sink.emit(event);
        }
    }

    /// Where the events go, for those that do not count.
    pub(super) fn sink(&self) -> &EventSink {
        &self.sink
    }

    pub(super) fn dropped(&self) -> u32 {
        self.seen.saturating_sub(MAX_EVENTS)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(max_bytes: usize, pieces: &[&[u8]]) -> Vec<Option<Vec<u8>>> {
        let (mut lines, mut split_lines) = (LineSplitter::new(max_bytes), Vec::new());
        let mut take = |line: SplitLine<'_>| {
            split_lines.push(match line {
                SplitLine::Whole(line) => Some(line.to_vec()),
                SplitLine::TooLong => None,
            });
        };
        for piece in pieces {
            lines.feed(piece, &mut take);
        }
        lines.finish(take);
        split_lines
    }

    #[test]
    fn a_line_is_read_piece_by_piece() {
        let lines = split(100, &[b"{\"a", b"\":1}\n{}", b"\n\nrest"]);
        let expected = [&b"{\"a\":1}"[..], b"{}", b"", b"rest"].map(|line| Some(line.to_vec()));
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_line_beyond_the_limit_is_told_once_and_the_next_one_is_whole() {
        let expected = [Some(b"abcd".to_vec()), None, Some(b"ok".to_vec())];
        assert_eq!(split(4, &[b"abcd\nabc", b"de", b"fghi", b"\nok\n"]), expected);
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same_lines(text in "[a-c\n]{0,60}", cut in 0_usize..60) {
            let bytes = text.as_bytes();
            let (head, tail) = bytes.split_at(cut.min(bytes.len()));
            prop_assert_eq!(split(5, &[bytes]), split(5, &[head, tail]));
        }
    }
}
