//! An incremental reader of `text/event-stream` (the HTML standard, section 9.2).

use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};

use crate::net::response::lossy;

/// One event that was complete, or one instruction of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SseItem {
    /// An event that ended with an empty line.
    Event(SseEvent),
    /// The server asked to wait this long before connecting again.
    Retry(Duration),
    Comment(String),
}

/// One event. Its data may be empty: such events only carry an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// The id given inside this event; an empty one clears what was remembered.
    pub id: Option<String>,
    pub kind: Option<String>,
    pub data: Bytes,
}

impl SseEvent {
    /// Whether it carries a message; other types of events and empty ones carry none.
    pub fn is_message(&self) -> bool {
        let kind = self.kind.as_deref().unwrap_or_default();
        matches!(kind, "" | "message") && !self.data.iter().all(u8::is_ascii_whitespace)
    }

    pub fn message(self) -> Option<Bytes> {
        self.is_message().then_some(self.data)
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct EventTooLarge;

#[derive(Debug)]
pub struct SseParser {
    limit: usize,
    /// The current line, not yet ended.
    line: BytesMut,
    data: Option<BytesMut>,
    id: Option<String>,
    kind: Option<String>,
    /// The last byte was a CR that ended a line: a LF right after it belongs to that line end.
    after_cr: bool,
    /// No line has ended yet: a byte order mark may still come first.
    at_start: bool,
    /// Comments are returned, not dropped.
    comments: bool,
}

impl SseParser {
    /// A reader for one connection that refuses events above `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: BytesMut::new(),
            data: None,
            id: None,
            kind: None,
            after_cr: false,
            at_start: true,
            comments: false,
        }
    }

    /// The same reader, returning comments too if `comments`.
    pub fn with_comments(self, comments: bool) -> Self {
        Self { comments, ..self }
    }

    pub fn buffered_bytes(&self) -> usize {
        self.line.len() + self.data.as_ref().map_or(0, BytesMut::len)
    }

    /// Reads one chunk; what became complete is appended to `out`. An event that is never ended
    /// by an empty line is never returned.
    pub fn feed(&mut self, mut chunk: &[u8], out: &mut Vec<SseItem>) -> Result<(), EventTooLarge> {
        while !chunk.is_empty() {
            if std::mem::take(&mut self.after_cr) && chunk.first() == Some(&b'\n') {
                chunk.advance(1);
                continue;
            }
            let end = memchr::memchr2(b'\n', b'\r', chunk);
            let part = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
            if self.buffered_bytes() + part.len() > self.limit {
                return Err(EventTooLarge);
            }
            self.line.extend_from_slice(part);
            chunk.advance(part.len());
            if end.is_some() {
                self.after_cr = chunk.first() == Some(&b'\r');
                chunk.advance(1);
                self.end_line(out);
            }
        }
        Ok(())
    }

    fn end_line(&mut self, out: &mut Vec<SseItem>) {
        let mut line = self.line.split();
        if std::mem::take(&mut self.at_start) && line.starts_with(b"\xef\xbb\xbf") {
            line.advance(3);
        }
        if line.is_empty() {
            return self.dispatch(out);
        }
        let (name, mut value) = match memchr::memchr(b':', &line) {
            Some(0) => {
                if self.comments {
                    out.push(SseItem::Comment(
                        lossy(line.get(1..).unwrap_or_default()).into_owned(),
                    ));
                }
                return;
            }
            Some(colon) => {
                let mut value = line.split_off(colon);
                value.advance(1);
                (line, value)
            }
            None => (line, BytesMut::new()),
        };
        if value.starts_with(b" ") {
            value.advance(1);
        }
        match &name[..] {
            b"data" => match &mut self.data {
                Some(data) => {
                    data.extend_from_slice(b"\n");
                    data.extend_from_slice(&value);
                }
                // The usual event has one data line: its buffer is taken over, not copied.
                none => *none = Some(value),
            },
            b"event" => self.kind = Some(lossy(&value).into_owned()),
            b"id" if !value.contains(&0) => self.id = Some(lossy(&value).into_owned()),
            b"retry" => out.extend(milliseconds(&value).map(SseItem::Retry)),
            _ => {}
        }
    }

    fn dispatch(&mut self, out: &mut Vec<SseItem>) {
        let (id, kind, data) = (self.id.take(), self.kind.take(), self.data.take());
        if id.is_some() || data.is_some() {
            let data = data.unwrap_or_default().freeze();
            out.push(SseItem::Event(SseEvent { id, kind, data }));
        }
    }
}

/// Only digits count; what does not fit is the longest wait there is.
fn milliseconds(value: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(value).ok()?;
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| Duration::from_millis(text.parse().unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(input: &[u8], chunk: usize) -> Vec<SseItem> {
        let mut parser = SseParser::new(1 << 20);
        let mut out = Vec::new();
        for part in input.chunks(chunk.max(1)) {
            parser.feed(part, &mut out).unwrap();
        }
        out
    }

    fn event(id: Option<&str>, kind: Option<&str>, data: &str) -> SseItem {
        SseItem::Event(SseEvent {
            id: id.map(str::to_owned),
            kind: kind.map(str::to_owned),
            data: Bytes::copy_from_slice(data.as_bytes()),
        })
    }

    #[test]
    fn an_event_has_its_fields() {
        let input = b": hello\nid: 7\nevent: message\ndata: {\"a\":1}\nnonsense: x\n\n";
        assert_eq!(read(input, 100), [event(Some("7"), Some("message"), "{\"a\":1}")]);
    }

    #[test]
    fn every_line_end_and_a_byte_order_mark_are_read_in_chunks_of_any_size() {
        let input = b"\xef\xbb\xbf: c\r\n\r\nevent: ping\r\ndata: {}\r\n\r\nid: 7\r\ndata:a\rdata: b\r\rdata\n\n";
        let expected = [
            event(None, Some("ping"), "{}"),
            event(Some("7"), None, "a\nb"),
            event(None, None, ""),
        ];
        for chunk in 1..input.len() {
            assert_eq!(read(input, chunk), expected, "chunks of {chunk}");
        }
    }

    #[test]
    fn comments_are_returned_to_who_wants_them() {
        let (mut parser, mut out) = (SseParser::new(100).with_comments(true), Vec::new());
        parser.feed(b": still here\ndata: x\n\n", &mut out).unwrap();
        assert_eq!(out, [SseItem::Comment(" still here".to_owned()), event(None, None, "x")]);
    }

    #[test]
    fn one_leading_space_is_dropped_and_no_more() {
        assert_eq!(read(b"data:  two\n\n", 3), [event(None, None, " two")]);
    }

    #[test]
    fn an_id_alone_is_an_event_and_an_id_with_nul_is_none() {
        assert_eq!(read(b"id: 1\n\n", 9), [event(Some("1"), None, "")]);
        assert_eq!(read(b"id: a\0b\ndata: x\n\n", 9), [event(None, None, "x")]);
        assert_eq!(read(b"id\ndata: x\n\n", 9), [event(Some(""), None, "x")]);
    }

    #[test]
    fn retry_takes_digits_only() {
        assert_eq!(read(b"retry: 1500\n", 4), [SseItem::Retry(Duration::from_millis(1500))]);
        assert_eq!(read(b"retry: 1e3\nretry: -1\nretry:\n", 4), []);
        assert_eq!(
            read(b"retry: 99999999999999999999999\n", 4),
            [SseItem::Retry(Duration::from_millis(u64::MAX))]
        );
    }

    #[test]
    fn an_unfinished_event_is_not_an_event() {
        assert_eq!(read(b"data: half", 3), []);
        assert_eq!(read(b"data: half\n", 3), []);
    }

    #[test]
    fn a_large_event_is_refused_whether_in_one_line_or_many() {
        let mut out = Vec::new();
        assert_eq!(SseParser::new(10).feed(b"data: 12345678", &mut out), Err(EventTooLarge));
        let mut parser = SseParser::new(20);
        let fed = (0..10).try_for_each(|_| parser.feed(b"data: 1234\n", &mut out));
        assert_eq!(fed, Err(EventTooLarge));
        assert_eq!(out, []);
    }

    #[test]
    fn comments_without_end_do_not_add_up() {
        let mut parser = SseParser::new(64);
        let mut out = Vec::new();
        for _ in 0..1000 {
            parser.feed(b": keep-alive\n\n", &mut out).unwrap();
        }
        assert_eq!(parser.buffered_bytes(), 0);
        assert_eq!(out, []);
    }

    proptest! {
        #[test]
        fn cutting_into_chunks_changes_nothing(
            input in prop::collection::vec(
                prop::sample::select(b"\r\n: dataeventidretry7{}\xef\xbb\xbf\0".to_vec()), 0..200),
            cuts in prop::collection::vec(1_usize..9, 1..60),
        ) {
            let whole = read(&input, input.len());
            let (mut parser, mut out, mut rest) = (SseParser::new(1 << 20), Vec::new(), &input[..]);
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break; }
                let (now, later) = rest.split_at((*cut).min(rest.len()));
                parser.feed(now, &mut out).unwrap();
                rest = later;
            }
            prop_assert_eq!(out, whole);
        }

        #[test]
        fn what_is_written_is_read_back(
            lines in prop::collection::vec("[^\r\n]{0,20}", 1..5),
            end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
            chunk in 1_usize..40,
        ) {
            let mut text = String::new();
            for line in &lines {
                text.push_str("data: ");
                text.push_str(line);
                text.push_str(end);
            }
            text.push_str(end);
            prop_assert_eq!(read(text.as_bytes(), chunk), [event(None, None, &lines.join("\n"))]);
        }

        #[test]
        fn no_more_than_the_limit_is_ever_held(
            chunks in prop::collection::vec(
                prop::collection::vec(prop::sample::select(b"\r\ndata: x".to_vec()), 0..30), 0..30),
        ) {
            let mut parser = SseParser::new(40);
            let mut out = Vec::new();
            for chunk in chunks {
                if parser.feed(&chunk, &mut out).is_err() { break; }
                prop_assert!(parser.buffered_bytes() <= 40);
            }
        }
    }
}
