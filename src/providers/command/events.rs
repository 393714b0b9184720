//! The events pipe of a running command: NDJSON, one event per line.
//!
//! `{"progress": 3, "total": 10, "message": "…"}` or `{"level": "info", "text": "…"}`. Bounded: a
//! line of [`MAX_LINE_BYTES`] bytes, and the events of a call; what is beyond is counted.

use bytes::BytesMut;
use serde_json::Value;
use tokio_util::codec::{Decoder as _, LinesCodec, LinesCodecError};

use crate::model::{CallId, EventSink, HostEvent, LogLevel};
use crate::providers::limited_events::LimitedEvents;

const MAX_LINE_BYTES: usize = 8 * 1024;

pub(super) struct CommandEventReader<'a> {
    /// What every event of the call carries besides its line.
    call: &'a CallId,
    origin: String,
    lines: LinesCodec,
    received: BytesMut,
    events: LimitedEvents,
    bad_lines: u32,
}

impl<'a> CommandEventReader<'a> {
    /// A reader whose events belong to `call` of the tool `origin`.
    pub(super) fn new(call: &'a CallId, origin: String, sink: &EventSink) -> Self {
        Self {
            call,
            origin,
            lines: LinesCodec::new_with_max_length(MAX_LINE_BYTES),
            received: BytesMut::new(),
            events: LimitedEvents::new(sink.clone()),
            bad_lines: 0,
        }
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
        while let Some(line) = self.lines.decode(&mut self.received).transpose() {
            self.handle(line);
        }
    }

    /// The warning about lines without events, once the pipe is at its end. A last line may
    /// lack its newline.
    pub(super) fn finish(mut self) -> Option<String> {
        while let Some(line) = self.lines.decode_eof(&mut self.received).transpose() {
            self.handle(line);
        }
        match (self.bad_lines, self.events.dropped()) {
            (0, 0) => None,
            (bad, 0) => Some(format!("{bad} lines on the events pipe could not be read")),
            (bad, over) => Some(format!("{} lines on the events pipe were dropped", bad + over)),
        }
    }

    fn handle(&mut self, line: Result<String, LinesCodecError>) {
        match line {
            Ok(line) if line.trim_ascii().is_empty() => {}
            line => match line.ok().and_then(|line| self.parse(&line)) {
                Some(event) => self.events.emit(event),
                None => self.bad_lines = self.bad_lines.saturating_add(1),
            },
        }
    }

    fn parse(&self, line: &str) -> Option<HostEvent> {
        let value: Value = serde_json::from_str(line).ok()?;
        let text = |key| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let number = |key| value.get(key).and_then(Value::as_f64).filter(|n: &f64| n.is_finite());
        if let Some(progress) = number("progress") {
            return Some(HostEvent::Progress {
                call_id: self.call.clone(),
                progress,
                total: number("total"),
                message: text("message"),
            });
        }
        Some(HostEvent::Log {
            origin: self.origin.clone(),
            call_id: Some(self.call.clone()),
            level: LogLevel(text("level").unwrap_or_else(|| "info".to_owned())),
            text: text("text")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use proptest::prelude::*;

    use super::*;
    use crate::providers::limited_events::MAX_EVENTS;

    fn read(chunks: &[&[u8]]) -> (Vec<String>, Option<String>) {
        let recorded = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&recorded);
        let sink = EventSink::new(move |event| log.lock().unwrap().push(format!("{event:?}")));
        let call = CallId("c".into());
        let mut reader = CommandEventReader::new(&call, "t".to_owned(), &sink);
        for chunk in chunks {
            reader.feed(chunk);
        }
        let notice = reader.finish();
        let events = recorded.lock().unwrap().clone();
        (events, notice)
    }

    #[test]
    fn progress_and_log_lines_become_events() {
        let (events, notice) = read(&[
            b"{\"progress\":1,\"tot",
            b"al\":4,\"message\":\"one\"}\n\n{\"level\":\"warning\",\"text\":\"hm\"}\n{\"progress\":2}",
        ]);
        assert_eq!(notice, None);
        insta::assert_debug_snapshot!(events, @r#"
        [
            "Progress { call_id: CallId(\"c\"), progress: 1.0, total: Some(4.0), message: Some(\"one\") }",
            "Log { origin: \"t\", call_id: Some(CallId(\"c\")), level: LogLevel(\"warning\"), text: \"hm\" }",
            "Progress { call_id: CallId(\"c\"), progress: 2.0, total: None, message: None }",
        ]
        "#);
    }

    #[test]
    fn what_cannot_be_read_is_counted() {
        let long = vec![b'x'; MAX_LINE_BYTES + 1];
        let (events, notice) = read(&[b"hello\n[1]\n", &long, b"\n{\"text\":\"ok\"}\n"]);
        assert_eq!(events.len(), 1);
        assert_eq!(notice.as_deref(), Some("3 lines on the events pipe could not be read"));
    }

    #[test]
    fn a_flood_is_cut_off() {
        let line = b"{\"progress\":1}\n".repeat(MAX_EVENTS as usize + 5);
        let (events, notice) = read(&[&line]);
        assert_eq!(events.len(), MAX_EVENTS as usize);
        assert_eq!(notice.as_deref(), Some("5 lines on the events pipe were dropped"));
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces(bytes in proptest::collection::vec(any::<u8>(), 0..200), cut in 0_usize..200) {
            let (head, tail) = bytes.split_at(cut.min(bytes.len()));
            prop_assert_eq!(read(&[&bytes]), read(&[head, tail]));
        }
    }
}
