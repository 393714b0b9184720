//! One connection that carries one call at a time.
//!
//! Owns: the life of the connection, writing a request and reading up to its answer, without
//! allocating anything once its buffers have their size. Never does: choose what is sent, or wait
//! longer than it is told to (its owner ends what takes too long).

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::time::sleep;

use super::reply::{self, Reply, Step};
use super::request::RequestHead;
use super::shop::Shop;
use crate::model::Fault;
use crate::net::dial::Stream;
use crate::net::trouble;
use crate::util::clock::{Clock as _, SystemClock};

/// Room for what comes, at first.
const ROOM: usize = 16 << 10;
/// Buffers above this size are given back after use.
const KEPT: usize = 1 << 20;
/// Attempts to make a connection again before the lane is given up.
pub(super) const ATTEMPTS: u32 = 7;
/// The wait before the second attempt, as a part of the one before a stream is continued (1 s);
/// doubled for each further attempt.
const PAUSES: u32 = 20;
/// A connection that lasted this long was a good one, though nothing was asked on it.
const STEADY: Duration = Duration::from_secs(1);

/// A connection, and what is under way on it.
pub(super) struct Lane {
    state: State,
    /// What is asked, head and body, and how much of it was written.
    pub(super) out: Vec<u8>,
    /// Its body, and its own headers, to send it again with another head.
    pub(super) body: Vec<u8>,
    pub(super) own: Vec<u8>,
    written: usize,
    input: Input,
    reply: Option<Reply>,
    answer: Answer,
    pub(super) call: Call,
    /// Attempts to connect since something good came of one.
    tries: u32,
    since: Instant,
    /// Somebody is told when something happens on the idle connection.
    watched: bool,
    /// A call is on it that has no ending yet.
    pub(super) busy: bool,
    /// It stands among the idle ones.
    pub(super) queued: bool,
    /// Why its call was refused, while other credentials are being got.
    pub(super) refusal: Option<Fault>,
    /// There are no other credentials: the refusal stands.
    pub(super) condemned: bool,
}

/// What a lane is doing.
enum State {
    Opening(BoxFuture<'static, Result<Stream, Fault>>),
    Idle(Stream),
    /// A request is written, or its answer read.
    Asking(Stream),
    /// The answer was read, and the end of its stream is waited for.
    Trailing(Stream),
    /// It was refused by the credentials: others are being got.
    Refused(Option<Stream>),
    Gone,
}

/// The call on a lane.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) ticket: u64,
    pub(super) id: i64,
    pub(super) sent: Instant,
    pub(super) bytes_in: u64,
    /// Which head it was sent with.
    pub(super) generation: u32,
    /// It was sent a second time with other credentials.
    pub(super) again: bool,
    /// When it, or what is left of its stream, is not waited for any more.
    pub(super) until: Instant,
}

/// Where an answer lies.
enum Answer {
    None,
    /// In the input.
    Here(usize, usize),
    /// On its own.
    Apart(Vec<u8>),
}

/// Bytes that came and were not taken.
struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

/// What became of a lane.
#[derive(Debug)]
pub(super) enum Event {
    /// It can be used.
    Free,
    /// The answer is here; `free` when nothing more has to come.
    Answered { free: bool },
    /// The call has no answer. The lane connects anew where it has to.
    Failed { fault: Fault, free: bool },
    /// The credentials were refused.
    Refused { status: u16, fields: Box<reqwest::header::HeaderMap>, fault: Fault },
    /// The refusal of the credentials stands.
    Condemned,
    /// It cannot be used any more.
    Gone(Fault),
}

impl Input {
    fn held(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
        if self.bytes.len() > KEPT {
            self.bytes = vec![0; ROOM];
        }
    }

    /// Reads once; how much came, 0 at the end.
    fn fill(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.bytes.len() && self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.bytes.len() {
            self.bytes.resize(self.bytes.len() * 2, 0);
        }
        let mut buffer = ReadBuf::new(self.bytes.get_mut(self.end..).unwrap_or_default());
        match pin!(stream).poll_read(cx, &mut buffer) {
            Poll::Ready(Ok(())) => {
                let came = buffer.filled().len();
                self.end += came;
                Poll::Ready(Ok(came))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl Lane {
    /// A lane over a connection that stands.
    pub(super) fn new(stream: Stream, now: Instant) -> Self {
        Self {
            state: State::Idle(stream),
            out: Vec::with_capacity(1024),
            body: Vec::with_capacity(512),
            own: Vec::new(),
            written: 0,
            input: Input { bytes: vec![0; ROOM], start: 0, end: 0 },
            reply: None,
            answer: Answer::None,
            call: Call {
                ticket: 0,
                id: 0,
                sent: now,
                bytes_in: 0,
                generation: 0,
                again: false,
                until: now,
            },
            tries: 0,
            since: now,
            watched: false,
            busy: false,
            queued: false,
            refusal: None,
            condemned: false,
        }
    }

    /// Whether it can take a call, as far as is known.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle(_))
    }

    /// Whether the rest of a stream is read whose answer came.
    pub(super) fn is_trailing(&self) -> bool {
        matches!(self.state, State::Trailing(_))
    }

    /// Whether it is waiting for other credentials.
    pub(super) fn is_refused(&self) -> bool {
        matches!(self.state, State::Refused(_))
    }

    /// Whether its idle connection still has to be looked after.
    pub(super) fn is_unwatched(&self) -> bool {
        !self.watched && self.is_idle()
    }

    /// Looks whether the idle connection still stands, and is told when it does not any more. It
    /// connects anew otherwise.
    pub(super) fn still_stands(&mut self, cx: &mut Context<'_>, shop: &Arc<Shop>) -> bool {
        let State::Idle(stream) = &mut self.state else { return false };
        self.input.clear();
        self.watched = true;
        match self.input.fill(stream, cx) {
            Poll::Pending => true,
            // Also when it said something unasked: what that belongs to is anybody's guess.
            Poll::Ready(_) => {
                shop.doubts().lost += 1;
                if SystemClock.now().saturating_duration_since(self.since) >= STEADY {
                    self.tries = 0;
                }
                self.reopen(shop);
                false
            }
        }
    }

    /// Sends the call that is on it, over its idle connection.
    pub(super) fn depart(&mut self, head: &RequestHead, cx: &mut Context<'_>) {
        self.out.clear();
        head.write(&self.own, &self.body, &mut self.out);
        self.written = 0;
        self.reply = None;
        self.answer = Answer::None;
        match std::mem::replace(&mut self.state, State::Gone) {
            State::Idle(stream) => {
                self.state = State::Asking(stream);
                if self.write(cx).is_err() {
                    // What went wrong shows when the answer is read.
                    cx.waker().wake_by_ref();
                }
            }
            other => self.state = other,
        }
    }

    /// What the answer says, once there is one.
    pub(super) fn answer(&self) -> &[u8] {
        match &self.answer {
            Answer::None => &[],
            Answer::Here(from, to) => self.input.bytes.get(*from..*to).unwrap_or_default(),
            Answer::Apart(bytes) => bytes,
        }
    }

    /// What the call waits for, for the message of a timeout.
    pub(super) fn waiting_for(&self) -> String {
        match &self.reply {
            Some(reply) => reply.waiting_for(),
            None if self.written < self.out.len() => "the server to take the request".to_owned(),
            None => "response headers".to_owned(),
        }
    }

    /// Ends what is under way, and connects anew. What a refusal had said until then is its fault.
    pub(super) fn give_up(&mut self, shop: &Arc<Shop>) -> Option<Fault> {
        let id = self.call.id;
        let said = match &mut self.reply {
            Some(reply) if reply.status() >= 300 => reply.ended(id, shop).err(),
            _ => None,
        };
        match self.state {
            State::Trailing(_) => shop.doubts().lingering += 1,
            _ => shop.doubts().given_up += 1,
        }
        self.reopen(shop);
        said
    }

    /// Moves on as far as it goes.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, shop: &Arc<Shop>) -> Poll<Event> {
        loop {
            match &mut self.state {
                State::Opening(opening) => match opening.as_mut().poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(stream)) => {
                        self.state = State::Idle(stream);
                        self.since = SystemClock.now();
                        self.watched = false;
                        return Poll::Ready(Event::Free);
                    }
                    Poll::Ready(Err(fault)) if self.tries >= ATTEMPTS => {
                        self.state = State::Gone;
                        shop.doubts().gone += 1;
                        return Poll::Ready(Event::Gone(fault));
                    }
                    Poll::Ready(Err(_)) => self.reopen(shop),
                },
                State::Idle(_) => {
                    // It was woken although nothing was asked: it may have ended.
                    if self.still_stands(cx, shop) {
                        return Poll::Pending;
                    }
                }
                State::Asking(_) => return self.exchange(cx, shop),
                State::Trailing(_) => match self.trail(cx, shop) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(true) => return Poll::Ready(Event::Free),
                    Poll::Ready(false) => {}
                },
                State::Refused(_) if std::mem::take(&mut self.condemned) => {
                    return Poll::Ready(Event::Condemned);
                }
                State::Refused(_) | State::Gone => return Poll::Pending,
            }
        }
    }

    fn write(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let State::Asking(stream) = &mut self.state else { return Ok(()) };
        while let Some(rest) = self.out.get(self.written..).filter(|rest| !rest.is_empty()) {
            match Pin::new(&mut *stream).poll_write(cx, rest) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(wrote)) => self.written += wrote,
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => return Ok(()),
            }
        }
        match Pin::new(stream).poll_flush(cx) {
            Poll::Ready(done) => done,
            Poll::Pending => Ok(()),
        }
    }

    fn exchange(&mut self, cx: &mut Context<'_>, shop: &Arc<Shop>) -> Poll<Event> {
        // A server may answer, and say why, before it has read everything: reading tells.
        let wrote = self.write(cx);
        let id = self.call.id;
        loop {
            let State::Asking(stream) = &mut self.state else { return Poll::Pending };
            let step = match self.input.fill(stream, cx) {
                Poll::Pending if wrote.is_ok() => return Poll::Pending,
                Poll::Pending => Err(trouble::unanswered(wrote.as_ref().err(), shop.url())),
                Poll::Ready(Ok(0)) => self.cut(None, id, shop),
                Poll::Ready(Err(error)) => self.cut(Some(error), id, shop),
                Poll::Ready(Ok(came)) => {
                    self.call.bytes_in += came as u64;
                    self.advance(id, shop)
                }
            };
            match step {
                Ok(Step::More) => {}
                Ok(Step::Answer(bytes)) => {
                    if !bytes.is_empty() {
                        self.answer = Answer::Apart(bytes);
                    }
                    return Poll::Ready(Event::Answered { free: self.settle(shop) });
                }
                Err(fault) => return Poll::Ready(self.failed(fault, shop)),
            }
        }
    }

    /// Takes what came.
    fn advance(&mut self, id: i64, shop: &Shop) -> Result<Step, Fault> {
        if self.reply.is_none() {
            let Some((reply, size)) = reply::begin(self.input.held(), shop)? else {
                return Ok(Step::More);
            };
            self.input.start += size;
            self.reply = Some(reply);
        }
        let Some(reply) = &mut self.reply else { return Ok(Step::More) };
        if let Some(length) = reply.in_place() {
            if length > self.input.held().len() {
                return Ok(Step::More);
            }
            let from = self.input.start;
            self.input.start += length;
            self.answer = Answer::Here(from, from + length);
            reply.took_in_place(length);
            return Ok(Step::Answer(Vec::new()));
        }
        let (took, step) = reply.take(self.input.held(), id, shop)?;
        self.input.start += took;
        Ok(step)
    }

    /// The connection ended, or broke.
    fn cut(&mut self, why: reply::Ended, id: i64, shop: &Shop) -> Result<Step, Fault> {
        if let Some(reply) = &mut self.reply {
            reply.cut(why, self.input.held().len(), id, shop)
        } else {
            let why = why.filter(|why| why.kind() != io::ErrorKind::UnexpectedEof);
            Err(shop.placed(trouble::unanswered(why.as_ref(), shop.url())))
        }
    }

    /// After an answer: whether the connection is free now. Otherwise the rest of its stream is
    /// read, or another one is made.
    fn settle(&mut self, shop: &Arc<Shop>) -> bool {
        self.tries = 0;
        self.watched = false;
        let (keeps, done) =
            self.reply.as_ref().map_or((false, true), |reply| (reply.keeps(), reply.is_done()));
        match std::mem::replace(&mut self.state, State::Gone) {
            State::Asking(stream) if keeps && done && self.input.held().is_empty() => {
                self.state = State::Idle(stream);
                return true;
            }
            State::Asking(stream) if keeps && !done => {
                self.state = State::Trailing(stream);
                return false;
            }
            _ => {}
        }
        if keeps {
            shop.doubts().surplus += 1;
        } else {
            shop.doubts().closed += 1;
        }
        self.reopen(shop);
        false
    }

    /// After a call that failed: the connection is kept when its response came to its end.
    fn failed(&mut self, fault: Fault, shop: &Arc<Shop>) -> Event {
        let whole = self
            .reply
            .as_ref()
            .is_some_and(|reply| reply.status() >= 300 && reply.keeps() && reply.is_done())
            && self.input.held().is_empty();
        let refused = self.reply.as_ref().filter(|reply| matches!(reply.status(), 401 | 403));
        let refused = refused.map(|reply| (reply.status(), Box::new(reply.fields().clone())));
        let stream = match std::mem::replace(&mut self.state, State::Gone) {
            State::Asking(stream) if whole => Some(stream),
            _ => None,
        };
        let fault = shop.clean(fault);
        if let Some((status, fields)) = refused {
            self.state = State::Refused(stream);
            return Event::Refused { status, fields, fault };
        }
        if let Some(stream) = stream {
            self.state = State::Idle(stream);
            self.watched = false;
            self.tries = 0;
            return Event::Failed { fault, free: true };
        }
        shop.doubts().given_up += 1;
        self.reopen(shop);
        Event::Failed { fault, free: false }
    }

    /// A refused call ends as such: what the lane does next.
    pub(super) fn accept_refusal(&mut self, shop: &Arc<Shop>) -> bool {
        if let State::Refused(Some(stream)) = std::mem::replace(&mut self.state, State::Gone) {
            self.state = State::Idle(stream);
            self.watched = false;
            true
        } else {
            self.reopen(shop);
            false
        }
    }

    /// Readies it for the second try of a refused call: true when that can be sent now, otherwise
    /// as soon as it is free.
    pub(super) fn readmit(&mut self, shop: &Arc<Shop>) -> bool {
        self.accept_refusal(shop)
    }

    /// Reads the rest of a stream whose answer came; true when the connection is free again.
    fn trail(&mut self, cx: &mut Context<'_>, shop: &Arc<Shop>) -> Poll<bool> {
        loop {
            let State::Trailing(stream) = &mut self.state else { return Poll::Ready(false) };
            let Some(reply) = &mut self.reply else { return Poll::Ready(false) };
            let took = reply.take(self.input.held(), self.call.id, shop);
            self.input.start += took.as_ref().map_or(0, |(took, _)| *took);
            if took.is_ok() && !reply.is_done() {
                match self.input.fill(stream, cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(came)) if came > 0 => continue,
                    Poll::Ready(_) => {}
                }
            } else if took.is_ok()
                && self.input.held().is_empty()
                && let State::Trailing(stream) = std::mem::replace(&mut self.state, State::Gone)
            {
                self.state = State::Idle(stream);
                self.watched = false;
                return Poll::Ready(true);
            }
            shop.doubts().closed += 1;
            self.reopen(shop);
            return Poll::Ready(false);
        }
    }

    /// Makes another connection in place of this one.
    pub(super) fn reopen(&mut self, shop: &Arc<Shop>) {
        let wait = match self.tries {
            0 => Duration::ZERO,
            n => (shop.limits().reconnect_wait / PAUSES).saturating_mul(1 << (n - 1).min(6)),
        };
        self.tries += 1;
        self.reply = None;
        let shop = Arc::clone(shop);
        self.state = State::Opening(Box::pin(async move {
            if !wait.is_zero() {
                sleep(wait).await;
            }
            shop.dialer.dial().await
        }));
    }
}
