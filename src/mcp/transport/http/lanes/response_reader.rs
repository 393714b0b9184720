//! Reading one HTTP response, from its first byte to the JSON-RPC response in it.

use std::io;

use bytes::Bytes;
use reqwest::StatusCode;
use serde_json::Value;

use super::chunked::ChunkedDecoder;
use super::context::LaneContext;
use super::response_head::{self, BodyKind, BodyLength, HeadError, ResponseHead};
use crate::mcp::repeat::answer;
use crate::mcp::transport::http::answer_match::{AnswerMatch, is_error, match_answer};
use crate::mcp::transport::http::post::{
    empty_body_error, no_content_error, not_an_endpoint_error, unexpected_answer,
};
use crate::mcp::transport::http::sse::{SseItem, SseParser};
use crate::mcp::transport::http::status::{HttpRefusal, session_lost};
use crate::model::Error;
use crate::net::errors::{self, BodyReadError, io_text};
use crate::net::redirect::{MethodSafety, redirect};
use crate::net::response::{broken, headers_too_large, too_large};

pub(super) struct ResponseReader {
    head: ResponseHead,
    chunked: ChunkedDecoder,
    /// Bytes of the body that were taken, before decoding.
    body_bytes: u64,
    sink: BodySink,
    /// A response to another id, or something that is not JSON.
    unmatched_response: Option<AnswerMatch>,
    /// Whether the answer to the call came already.
    is_answered: bool,
    /// Events carry ids: an ordinary call could go on where the stream ended.
    is_resumable: bool,
}

enum BodySink {
    Whole(Vec<u8>),
    Events(Box<SseParser>),
    /// It is shown, not used: its beginning is enough.
    Excerpt(Vec<u8>),
}

/// How far a response is.
#[derive(Debug)]
pub(super) enum ReadProgress {
    /// The response is not whole yet.
    More,
    Answer(Vec<u8>),
}

pub(super) type EndCause = Option<io::Error>;

/// Reads the head of a response at the beginning of `bytes`, and how long it is.
pub(super) fn read_head(
    bytes: &[u8],
    context: &LaneContext,
) -> Result<Option<(ResponseReader, usize)>, Error> {
    let mut at = 0;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let read =
            response_head::read(rest, context.limits().headers).map_err(
                |unusable| match unusable {
                    HeadError::NotHttp(why) => errors::not_http(&why, &context.place()),
                    HeadError::TooMany => errors::head_too_large(&context.place()),
                    HeadError::TooLong(size) => headers_too_large(size, context.limits().headers),
                },
            )?;
        let Some((head, size)) = read else { return Ok(None) };
        at += size;
        match head.status {
            101 => {
                return Err(Error::protocol("the server switched protocols without being asked"));
            }
            100..=199 => {}
            _ => return Ok(Some((ResponseReader::new(head, context)?, at))),
        }
    }
}

impl ResponseReader {
    fn new(head: ResponseHead, context: &LaneContext) -> Result<Self, Error> {
        let limit = context.limits().message;
        let success = (200..=299).contains(&head.status);
        let sink = match &head.kind {
            _ if !success => BodySink::Excerpt(Vec::new()),
            _ if matches!(head.status, 202 | 204 | 205) => BodySink::Excerpt(Vec::new()),
            BodyKind::Events => BodySink::Events(Box::new(SseParser::new(limit))),
            BodyKind::Json | BodyKind::Other(_) => BodySink::Whole(Vec::new()),
        };
        if success && let Some(coding) = &head.content_encoding {
            return Err(Error::protocol(format!("the response is compressed ({coding})"))
                .with_detail("no request of this run accepts that"));
        }
        if let (BodySink::Whole(_), BodyLength::Exactly(length)) = (&sink, &head.length)
            && *length > limit as u64
        {
            return Err(too_large(limit));
        }
        let chunked = ChunkedDecoder::default();
        Ok(Self {
            head,
            chunked,
            body_bytes: 0,
            sink,
            unmatched_response: None,
            is_answered: false,
            is_resumable: false,
        })
    }

    /// Whether the connection can be used again after the end.
    pub(super) fn is_reusable(&self) -> bool {
        self.head.is_reusable
    }

    pub(super) fn status(&self) -> u16 {
        self.head.status
    }

    pub(super) fn headers(&self) -> &reqwest::header::HeaderMap {
        &self.head.headers
    }

    /// How much is waited for, for the message of a timeout.
    pub(super) fn waiting_for(&self) -> String {
        let kind = match &self.head.kind {
            BodyKind::Json => "application/json",
            BodyKind::Events => "text/event-stream",
            BodyKind::Other(kind) => kind,
        };
        format!("the rest of the response (status {}, {kind})", self.head.status)
    }

    /// How long the answer is that is best left where it came: JSON of a known length.
    pub(super) fn in_place(&self) -> Option<usize> {
        match (&self.sink, &self.head.length, &self.head.kind) {
            (BodySink::Whole(_), BodyLength::Exactly(length), BodyKind::Json) => {
                usize::try_from(*length).ok().filter(|length| *length > 0)
            }
            _ => None,
        }
    }

    pub(super) fn consume_in_place(&mut self, length: usize) {
        self.body_bytes = length as u64;
    }

    /// Takes what came; how much was taken, and how far that is. What is not taken is wanted again.
    pub(super) fn consume(
        &mut self,
        bytes: &[u8],
        id: i64,
        context: &LaneContext,
    ) -> Result<(usize, ReadProgress), Error> {
        let (mut items, mut full) = (Vec::new(), false);
        let limits = (context.limits().message, context.limits().error_body);
        let sink = &mut self.sink;
        let mut content = |part: &[u8]| match sink {
            BodySink::Whole(body) if body.len() + part.len() > limits.0 => full = true,
            BodySink::Whole(body) => body.extend_from_slice(part),
            BodySink::Events(parser) => full |= parser.feed(part, &mut items).is_err(),
            BodySink::Excerpt(body) => {
                let room = limits.1.saturating_sub(body.len());
                body.extend_from_slice(part.get(..room).unwrap_or(part));
            }
        };
        let (took, done) = match self.head.length {
            BodyLength::Exactly(length) => {
                let left = usize::try_from(length - self.body_bytes).unwrap_or(usize::MAX);
                let here = left.min(bytes.len());
                content(bytes.get(..here).unwrap_or_default());
                (here, here == left)
            }
            BodyLength::Chunked => {
                let taken = self.chunked.decode(bytes, &mut content);
                let took = taken
                    .map_err(|error| self.broken_error(BodyReadError::Broken(error.to_string())))?;
                (took, self.chunked.is_done())
            }
            BodyLength::ToEnd => {
                content(bytes);
                (bytes.len(), false)
            }
        };
        self.body_bytes += took as u64;
        let answer = self.handle_events(items, id, context);
        if full && answer.is_none() {
            return Err(too_large(limits.0));
        }
        match answer {
            Some(answer) => {
                self.is_answered = true;
                Ok((took, ReadProgress::Answer(answer)))
            }
            None if done && self.is_answered => Ok((took, ReadProgress::More)),
            None if done => Ok((took, self.finish(id, context)?)),
            None => {
                if let BodySink::Excerpt(body) = &self.sink
                    && body.len() >= limits.1
                {
                    self.head.is_reusable = false;
                    return Ok((took, self.finish(id, context)?));
                }
                Ok((took, ReadProgress::More))
            }
        }
    }

    pub(super) fn is_done(&self) -> bool {
        match self.head.length {
            BodyLength::Exactly(length) => self.body_bytes >= length,
            BodyLength::Chunked => self.chunked.is_done(),
            BodyLength::ToEnd => false,
        }
    }

    /// The connection ended, or broke, before the body had; `held` bytes of it were not taken.
    pub(super) fn connection_ended(
        &mut self,
        why: EndCause,
        held: usize,
        id: i64,
        context: &LaneContext,
    ) -> Result<ReadProgress, Error> {
        self.head.is_reusable = false;
        self.body_bytes += held as u64;
        let regular = why.is_none() && self.head.length == BodyLength::ToEnd;
        if regular || matches!(self.sink, BodySink::Excerpt(_)) {
            return self.finish(id, context);
        }
        if let BodySink::Events(_) = self.sink {
            let reason = match why.filter(|why| why.kind() != io::ErrorKind::UnexpectedEof) {
                Some(why) => format!("the event stream was cut ({})", io_text(&why)),
                None => "the event stream was cut".to_owned(),
            };
            return Err(self.unanswered_error(&reason, id));
        }
        Err(match why.filter(|why| why.kind() != io::ErrorKind::UnexpectedEof) {
            Some(why) => self.broken_error(BodyReadError::Lost(io_text(&why))),
            None => self.broken_error(BodyReadError::Truncated),
        })
    }

    /// What a response says whose end came, or is not waited for any more.
    pub(super) fn finish(&mut self, id: i64, context: &LaneContext) -> Result<ReadProgress, Error> {
        let body = match &mut self.sink {
            BodySink::Events(_) => return Err(self.unanswered_error("the event stream ended", id)),
            BodySink::Excerpt(body) => {
                let body = std::mem::take(body);
                return self.refusal_error(body, id, context);
            }
            BodySink::Whole(body) => std::mem::take(body),
        };
        if body.iter().all(u8::is_ascii_whitespace) {
            return Err(empty_body_error());
        }
        if let BodyKind::Other(kind) = &self.head.kind {
            let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
            if kind == "text/html" || !matches!(first, Some(b'{' | b'[')) {
                let shown = if kind.is_empty() { "no content type" } else { kind.as_str() };
                return Err(not_an_endpoint_error(shown, &body));
            }
            context.note_mislabelled();
        }
        Ok(ReadProgress::Answer(body))
    }

    /// Takes the messages of an event stream: the answer among them, and the rest to the session.
    fn handle_events(
        &mut self,
        items: Vec<SseItem>,
        id: i64,
        context: &LaneContext,
    ) -> Option<Vec<u8>> {
        let mut answer = None;
        for item in items {
            let SseItem::Event(event) = item else { continue };
            self.is_resumable |= event.id.is_some();
            let Some(message) = event.message() else { continue };
            let verdict = match answer::plain_answer_id(&message) {
                Some(plain) if plain == id => AnswerMatch::Answer,
                _ => match_answer(&message, &Value::from(id)),
            };
            match verdict {
                AnswerMatch::Answer if answer.is_none() && !self.is_answered => {
                    answer = Some(Vec::from(message));
                    continue;
                }
                AnswerMatch::OtherAnswer(_) => self.unmatched_response = Some(verdict),
                AnswerMatch::Unreadable(_) => {
                    self.unmatched_response = self.unmatched_response.take().or(Some(verdict));
                }
                AnswerMatch::Answer | AnswerMatch::NotAnAnswer => {}
            }
            context.forward_to_session(message);
        }
        answer
    }

    fn unanswered_error(&self, reason: &str, id: i64) -> Error {
        if let Some(unmatched) = &self.unmatched_response {
            return unexpected_answer(unmatched, &Value::from(id));
        }
        let error = Error::unreachable(format!("{reason} before the response arrived"));
        if self.is_resumable {
            error.with_detail("a benchmark run does not resume event streams")
        } else {
            error
        }
    }

    fn broken_error(&self, cut: BodyReadError) -> Error {
        let expected = match self.head.length {
            BodyLength::Exactly(length) => Some(length),
            BodyLength::Chunked | BodyLength::ToEnd => None,
        };
        broken(cut, expected, usize::try_from(self.body_bytes).unwrap_or(usize::MAX))
    }

    fn refusal_error(
        &self,
        body: Vec<u8>,
        id: i64,
        context: &LaneContext,
    ) -> Result<ReadProgress, Error> {
        let Ok(status) = StatusCode::from_u16(self.head.status) else {
            let status = self.head.status;
            return Err(Error::protocol(format!("the server answered with the status {status}")));
        };
        if status.is_success() {
            return Err(no_content_error(status));
        }
        let headers = &self.head.headers;
        if let Some(next) = redirect(status, headers, context.url(), MethodSafety::Unsafe)? {
            return Err(context.redirect_error(&next));
        }
        let cause = matches!(status.as_u16(), 400 | 402 | 404..=428 | 430..=499) && is_error(&body);
        if let Some(lost) = session_lost(status, context.in_session()) {
            return Err(lost);
        }
        if cause && match_answer(&body, &Value::from(id)) == AnswerMatch::Answer {
            return Ok(ReadProgress::Answer(body));
        }
        let authorized = context.sent_credentials();
        let refusal = HttpRefusal { status, headers, body: &body, url: context.url(), authorized };
        let error = context.with_socket(refusal.error());
        if cause {
            context.forward_to_session(Bytes::from(body));
        }
        Err(error)
    }
}
