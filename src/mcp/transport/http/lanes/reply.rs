//! One response, from its first byte to the answer in it.
//!
//! Owns: how far a response is, its bounds, and what it means when it is no answer. Never does:
//! read from a connection, or judge what an answer says.

use std::io;

use bytes::Bytes;
use reqwest::StatusCode;
use serde_json::Value;

use super::chunked::Chunked;
use super::head::{self, Head, Kind, Length, Unusable};
use super::shop::Shop;
use crate::mcp::repeat::answer;
use crate::mcp::transport::http::answer::{Glance, glance, is_error};
use crate::mcp::transport::http::post::{empty, no_content, no_endpoint, not_the_answer};
use crate::mcp::transport::http::sse::{Item, Parser};
use crate::mcp::transport::http::status::{Refusal, session_lost};
use crate::model::Fault;
use crate::net::redirect::{Asking, redirect};
use crate::net::response::{broken, headers_too_large, too_large};
use crate::net::trouble::{self, Cut, io_text};

/// A response that is being read.
pub(super) struct Reply {
    head: Head,
    chunked: Chunked,
    /// Bytes of the body that were taken, before decoding.
    taken: u64,
    sink: Sink,
    /// An answer to something else, or what is no JSON.
    stray: Option<Glance>,
    /// The answer came.
    answered: bool,
    /// Events carry ids: an ordinary call could go on where the stream ended.
    resumable: bool,
}

/// Where a body goes.
enum Sink {
    /// It is the answer, whole.
    Whole(Vec<u8>),
    /// It has the answer among its events.
    Events(Box<Parser>),
    /// It is shown, not used: its beginning is enough.
    Shown(Vec<u8>),
}

/// How far a response is.
#[derive(Debug)]
pub(super) enum Step {
    /// More has to come.
    More,
    /// The answer is here. Events may follow it.
    Answer(Vec<u8>),
}

/// How a body came to its end too early.
pub(super) type Ended = Option<io::Error>;

/// Reads the head of a response at the beginning of `bytes`, and how long it is.
///
/// # Errors
/// When it is none, or its status says that no answer comes.
pub(super) fn begin(bytes: &[u8], shop: &Shop) -> Result<Option<(Reply, usize)>, Fault> {
    let mut at = 0;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let read = head::read(rest, shop.limits().headers).map_err(|unusable| match unusable {
            Unusable::NotHttp(why) => trouble::no_http(&why, shop.url()),
            Unusable::TooMany => trouble::head_too_large(shop.url()),
            Unusable::TooLong(size) => headers_too_large(size, shop.limits().headers),
        })?;
        let Some((head, size)) = read else { return Ok(None) };
        at += size;
        match head.status {
            101 => return Err(Fault::protocol("the server changes the protocol, unasked")),
            100..=199 => {}
            _ => return Ok(Some((Reply::new(head, shop)?, at))),
        }
    }
}

impl Reply {
    fn new(head: Head, shop: &Shop) -> Result<Self, Fault> {
        let limit = shop.limits().message;
        let success = (200..=299).contains(&head.status);
        let sink = match &head.kind {
            _ if !success => Sink::Shown(Vec::new()),
            _ if matches!(head.status, 202 | 204 | 205) => Sink::Shown(Vec::new()),
            Kind::Events => Sink::Events(Box::new(Parser::new(limit))),
            Kind::Json | Kind::Other(_) => Sink::Whole(Vec::new()),
        };
        if success && let Some(coding) = &head.coding {
            return Err(Fault::protocol(format!("the answer is compressed ({coding})"))
                .detail("none of the requests of this run accepts that"));
        }
        if let (Sink::Whole(_), Length::Exactly(length)) = (&sink, &head.length)
            && *length > limit as u64
        {
            return Err(too_large(limit));
        }
        let chunked = Chunked::default();
        Ok(Self { head, chunked, taken: 0, sink, stray: None, answered: false, resumable: false })
    }

    /// Whether the connection can be used again after the end.
    pub(super) fn keeps(&self) -> bool {
        self.head.keeps
    }

    /// The HTTP status.
    pub(super) fn status(&self) -> u16 {
        self.head.status
    }

    /// The headers of a refusal.
    pub(super) fn fields(&self) -> &reqwest::header::HeaderMap {
        &self.head.fields
    }

    /// How much is waited for, for the message of a timeout.
    pub(super) fn waiting_for(&self) -> String {
        let kind = match &self.head.kind {
            Kind::Json => "application/json",
            Kind::Events => "text/event-stream",
            Kind::Other(kind) => kind,
        };
        format!("the rest of the answer (status {}, {kind})", self.head.status)
    }

    /// How long the answer is that is best left where it came: JSON of a known length.
    pub(super) fn in_place(&self) -> Option<usize> {
        match (&self.sink, &self.head.length, &self.head.kind) {
            (Sink::Whole(_), Length::Exactly(length), Kind::Json) => {
                usize::try_from(*length).ok().filter(|length| *length > 0)
            }
            _ => None,
        }
    }

    /// The answer was taken from where it came.
    pub(super) fn took_in_place(&mut self, length: usize) {
        self.taken = length as u64;
    }

    /// Takes what came; how much was taken, and how far that is. What is not taken is wanted again.
    ///
    /// # Errors
    /// When there will be no answer.
    pub(super) fn take(
        &mut self,
        bytes: &[u8],
        id: i64,
        shop: &Shop,
    ) -> Result<(usize, Step), Fault> {
        let (mut items, mut full) = (Vec::new(), false);
        let limits = (shop.limits().message, shop.limits().error_body);
        let sink = &mut self.sink;
        let mut content = |part: &[u8]| match sink {
            Sink::Whole(body) if body.len() + part.len() > limits.0 => full = true,
            Sink::Whole(body) => body.extend_from_slice(part),
            Sink::Events(parser) => full |= parser.feed(part, &mut items).is_err(),
            Sink::Shown(body) => {
                let room = limits.1.saturating_sub(body.len());
                body.extend_from_slice(part.get(..room).unwrap_or(part));
            }
        };
        let (took, done) = match self.head.length {
            Length::Exactly(length) => {
                let left = usize::try_from(length - self.taken).unwrap_or(usize::MAX);
                let here = left.min(bytes.len());
                content(bytes.get(..here).unwrap_or_default());
                (here, here == left)
            }
            Length::Chunked => {
                let taken = self.chunked.take(bytes, &mut content);
                let took = taken.map_err(|why| self.broken(Cut::Broken(why.to_owned())))?;
                (took, self.chunked.is_done())
            }
            Length::ToEnd => {
                content(bytes);
                (bytes.len(), false)
            }
        };
        self.taken += took as u64;
        let answer = self.hear(items, id, shop);
        if full && answer.is_none() {
            return Err(too_large(limits.0));
        }
        match answer {
            Some(answer) => {
                self.answered = true;
                Ok((took, Step::Answer(answer)))
            }
            None if done && self.answered => Ok((took, Step::More)),
            None if done => Ok((took, self.ended(id, shop)?)),
            None => {
                if let Sink::Shown(body) = &self.sink
                    && body.len() >= limits.1
                {
                    self.head.keeps = false;
                    return Ok((took, self.ended(id, shop)?));
                }
                Ok((took, Step::More))
            }
        }
    }

    /// Whether all of the body was taken.
    pub(super) fn is_done(&self) -> bool {
        match self.head.length {
            Length::Exactly(length) => self.taken >= length,
            Length::Chunked => self.chunked.is_done(),
            Length::ToEnd => false,
        }
    }

    /// The connection ended, or broke, before the body had; `held` bytes of it were not taken.
    ///
    /// # Errors
    /// When there will be no answer.
    pub(super) fn cut(
        &mut self,
        why: Ended,
        held: usize,
        id: i64,
        shop: &Shop,
    ) -> Result<Step, Fault> {
        self.head.keeps = false;
        self.taken += held as u64;
        let regular = why.is_none() && self.head.length == Length::ToEnd;
        if regular || matches!(self.sink, Sink::Shown(_)) {
            return self.ended(id, shop);
        }
        if let Sink::Events(_) = self.sink {
            let reason = match why.filter(|why| why.kind() != io::ErrorKind::UnexpectedEof) {
                Some(why) => format!("the event stream was cut ({})", io_text(&why)),
                None => "the event stream was cut".to_owned(),
            };
            return Err(self.unanswered(&reason, id));
        }
        Err(match why.filter(|why| why.kind() != io::ErrorKind::UnexpectedEof) {
            Some(why) => self.broken(Cut::Lost(io_text(&why))),
            None => self.broken(Cut::Short),
        })
    }

    /// What a response says whose end came, or is not waited for any more.
    ///
    /// # Errors
    /// Unless it is the answer.
    pub(super) fn ended(&mut self, id: i64, shop: &Shop) -> Result<Step, Fault> {
        let body = match &mut self.sink {
            Sink::Events(_) => return Err(self.unanswered("the event stream ended", id)),
            Sink::Shown(body) => {
                let body = std::mem::take(body);
                return self.refused(body, id, shop);
            }
            Sink::Whole(body) => std::mem::take(body),
        };
        if body.iter().all(u8::is_ascii_whitespace) {
            return Err(empty());
        }
        if let Kind::Other(kind) = &self.head.kind {
            let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
            if kind == "text/html" || !matches!(first, Some(b'{' | b'[')) {
                let shown = if kind.is_empty() { "no content type" } else { kind.as_str() };
                return Err(no_endpoint(shown, &body));
            }
            shop.labelled();
        }
        Ok(Step::Answer(body))
    }

    /// Takes the messages of an event stream: the answer among them, and the rest to the session.
    fn hear(&mut self, items: Vec<Item>, id: i64, shop: &Shop) -> Option<Vec<u8>> {
        let mut answer = None;
        for item in items {
            let Item::Event(event) = item else { continue };
            self.resumable |= event.id.is_some();
            let Some(message) = event.message() else { continue };
            let seen = match answer::plain(&message) {
                Some(plain) if plain == id => Glance::Answer,
                _ => glance(&message, &Value::from(id)),
            };
            match seen {
                Glance::Answer if answer.is_none() && !self.answered => {
                    answer = Some(Vec::from(message));
                    continue;
                }
                Glance::Other(_) => self.stray = Some(seen),
                Glance::Unreadable(_) => self.stray = self.stray.take().or(Some(seen)),
                Glance::Answer | Glance::NoAnswer => {}
            }
            shop.hand_over(message);
        }
        answer
    }

    fn unanswered(&self, reason: &str, id: i64) -> Fault {
        if let Some(stray) = &self.stray {
            return not_the_answer(stray, &Value::from(id));
        }
        let fault = Fault::unreachable(format!("{reason} before the answer came"));
        if self.resumable {
            fault.detail("a run of calls does not continue event streams")
        } else {
            fault
        }
    }

    fn broken(&self, cut: Cut) -> Fault {
        let expected = match self.head.length {
            Length::Exactly(length) => Some(length),
            Length::Chunked | Length::ToEnd => None,
        };
        broken(cut, expected, usize::try_from(self.taken).unwrap_or(usize::MAX))
    }

    fn refused(&self, body: Vec<u8>, id: i64, shop: &Shop) -> Result<Step, Fault> {
        let Ok(status) = StatusCode::from_u16(self.head.status) else {
            let status = self.head.status;
            return Err(Fault::protocol(format!("the server answered with the status {status}")));
        };
        if status.is_success() {
            return Err(no_content(status));
        }
        let headers = &self.head.fields;
        if let Some(next) = redirect(status, headers, shop.url(), Asking::Act)? {
            return Err(shop.redirected(&next));
        }
        let error = matches!(status.as_u16(), 400 | 402 | 404..=428 | 430..=499) && is_error(&body);
        if status == StatusCode::NOT_FOUND && shop.in_session() {
            return Err(session_lost(status));
        }
        if error && glance(&body, &Value::from(id)) == Glance::Answer {
            return Ok(Step::Answer(body));
        }
        let authorized = shop.authorized();
        let refusal = Refusal { status, headers, body: &body, url: shop.url(), authorized };
        let fault = shop.placed(refusal.fault());
        if error {
            shop.hand_over(Bytes::from(body));
        }
        Err(fault)
    }
}
