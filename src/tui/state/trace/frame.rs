//! One frame, or a request with its answer, laid out to be read.
//!
//! Owns: the lines, made once when the frame is chosen. Never does: make more of them than anybody
//! reads.

use serde_json::Value;

use super::item::{TraceContent, TraceItem};
use crate::model::traffic::TrafficKind;
use crate::util::units::show_size;
use crate::util::{json, text};

/// The most lines of one message.
const LINES: usize = 5_000;
/// The longest piece of a line, in characters: longer lines go on in the next one.
const MAX_LINE_CHARS: usize = 400;

/// What of a pair is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FrameScope {
    /// The chosen frame.
    #[default]
    Chosen,
    /// The request and its answer.
    Both,
    /// The request.
    Request,
    /// The answer.
    Answer,
}

impl FrameScope {
    /// The next way to show a pair of which the chosen frame is the request or not.
    #[must_use]
    pub fn next(self, is_request: bool) -> Self {
        match (self, is_request) {
            (Self::Chosen, true) | (Self::Request, _) => Self::Answer,
            (Self::Chosen, false) | (Self::Both, _) => Self::Request,
            (Self::Answer, _) => Self::Both,
        }
    }
}

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameLineKind {
    /// What stands above a message: which one it is.
    Heading,
    /// The message.
    Text,
    /// Something that is said about it.
    Note,
}

/// What was laid out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FrameText {
    /// The lines.
    pub lines: Vec<(FrameLineKind, String)>,
}

impl FrameText {
    /// One after the other; with a heading each where there are several.
    pub fn of(items: &[&TraceItem]) -> Self {
        let mut frame = Self::default();
        for item in items {
            if items.len() > 1 {
                let heading = if item.is_request() { "request" } else { "response" };
                frame.lines.push((FrameLineKind::Heading, heading.to_owned()));
            }
            frame.add(item);
        }
        frame
    }

    fn add(&mut self, item: &TraceItem) {
        if let Some(call) = &item.call {
            self.lines.push((FrameLineKind::Note, format!("call {}", call.0)));
        }
        if item.is_cut {
            let (kept, size) = (item.bytes().len() as u64, item.size as u64);
            let said = format!("the first {} of {}", show_size(kept), show_size(size));
            self.lines.push((FrameLineKind::Note, said));
        }
        match &item.what {
            TraceContent::Wire(TrafficKind::Message { bytes, .. }) => {
                self.message(bytes, item.is_cut)
            }
            TraceContent::Wire(TrafficKind::HttpHead { line, headers, .. }) => {
                self.text(line);
                for (name, value) in headers {
                    self.text(&format!("{name}: {value}"));
                }
            }
            TraceContent::Wire(
                TrafficKind::Stderr(text)
                | TrafficKind::NonJsonLine(text)
                | TrafficKind::Opened(text)
                | TrafficKind::Closed(text),
            )
            | TraceContent::Log { text, .. } => self.text(text),
        }
    }

    fn message(&mut self, bytes: &[u8], is_cut: bool) {
        let parsed = (!is_cut).then(|| serde_json::from_slice::<Value>(bytes));
        match parsed {
            Some(Ok(value)) => return self.text(&json::pretty(&value)),
            Some(Err(why)) => self.lines.push((FrameLineKind::Note, format!("not JSON: {why}"))),
            None => {}
        }
        self.text(&String::from_utf8_lossy(bytes));
    }

    fn text(&mut self, said: &str) {
        let begun = self.lines.len();
        for line in said.split('\n') {
            let mut rest = line;
            loop {
                if self.lines.len() - begun >= LINES {
                    let said = format!("… more than {LINES} lines; y copies the frame");
                    return self.lines.push((FrameLineKind::Note, said));
                }
                let at = rest.char_indices().nth(MAX_LINE_CHARS).map_or(rest.len(), |(at, _)| at);
                let (piece, left) = rest.split_at(at);
                self.lines.push((FrameLineKind::Text, text::safe_line(piece).into_owned()));
                if left.is_empty() {
                    break;
                }
                rest = left;
            }
        }
    }
}
