//! A lane: one connection that carries one call at a time.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::time::sleep;

use super::context::LaneContext;
use super::request_head::RequestHead;
use super::response_reader::{self, ReadProgress, ResponseReader};
use crate::model::Error;
use crate::net::dial::NetStream;
use crate::net::errors;
use crate::util::clock::{Clock as _, SystemClock};

/// Room for what comes, at first.
const INITIAL_BUFFER: usize = 16 << 10;
/// Buffers above this size are given back after use.
const MAX_KEPT_BUFFER: usize = 1 << 20;
/// Attempts to reconnect before the lane is abandoned.
pub(super) const MAX_CONNECT_ATTEMPTS: u32 = 7;
/// The wait before the second attempt, as a part of the one before a stream is continued (1 s);
/// doubled for each further attempt.
const FIRST_WAIT_DIVISOR: u32 = 20;
/// A connection that lasted this long was a good one, though nothing was asked on it.
const STABLE_AFTER: Duration = Duration::from_secs(1);

/// A connection, and what is under way on it.
pub(super) struct HttpLane {
    state: LaneState,
    /// The request, head and body; `written` counts the bytes that were sent.
    pub(super) out: Vec<u8>,
    pub(super) body: Vec<u8>,
    pub(super) param_headers: Vec<u8>,
    written: usize,
    input: InputBuffer,
    reply: Option<ResponseReader>,
    answer: AnswerLocation,
    pub(super) call: LaneCall,
    connect_attempts: u32,
    since: Instant,
    /// Whether a waker is registered for what happens on the idle connection.
    is_watched: bool,
    /// A call is on it that has no ending yet.
    pub(super) is_busy: bool,
    pub(super) is_queued: bool,
    pub(super) refusal: Option<Error>,
    /// There are no other credentials: the refusal is final.
    pub(super) is_refusal_final: bool,
}

enum LaneState {
    Opening(BoxFuture<'static, Result<NetStream, Error>>),
    Idle(NetStream),
    /// A request is written, or its answer read.
    Exchanging(NetStream),
    Draining(NetStream),
    /// It was refused by the credentials: others are being got.
    Refused(Option<NetStream>),
    Closed,
}

#[derive(Debug, Clone)]
pub(super) struct LaneCall {
    pub(super) ticket: u64,
    pub(super) id: i64,
    pub(super) sent: Instant,
    pub(super) bytes_in: u64,
    /// Which head it was sent with.
    pub(super) generation: u32,
    /// Whether it was sent again with renewed credentials.
    pub(super) is_resent: bool,
    /// When it, or what is left of its stream, is not waited for any more.
    pub(super) deadline: Instant,
}

/// Where the text of the last answer lies.
enum AnswerLocation {
    None,
    InInput(usize, usize),
    Owned(Vec<u8>),
}

/// Bytes that came and were not taken.
struct InputBuffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

#[derive(Debug)]
pub(super) enum LaneEvent {
    Free,
    /// The answer is here; `free` when nothing more has to come.
    Answered {
        free: bool,
    },
    /// The call has no response. The lane reconnects if necessary.
    Failed {
        error: Error,
        free: bool,
    },
    /// The credentials were refused; a renewal decides what follows.
    Refused {
        status: u16,
        fields: Box<reqwest::header::HeaderMap>,
        error: Error,
    },
    RefusalFinal,
    Closed(Error),
}

impl InputBuffer {
    fn unread(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
        if self.bytes.len() > MAX_KEPT_BUFFER {
            self.bytes = vec![0; INITIAL_BUFFER];
        }
    }

    /// Reads once; how much came, 0 at the end.
    fn fill(&mut self, stream: &mut NetStream, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
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

impl HttpLane {
    pub(super) fn new(stream: NetStream, now: Instant) -> Self {
        Self {
            state: LaneState::Idle(stream),
            out: Vec::with_capacity(1024),
            body: Vec::with_capacity(512),
            param_headers: Vec::new(),
            written: 0,
            input: InputBuffer { bytes: vec![0; INITIAL_BUFFER], start: 0, end: 0 },
            reply: None,
            answer: AnswerLocation::None,
            call: LaneCall {
                ticket: 0,
                id: 0,
                sent: now,
                bytes_in: 0,
                generation: 0,
                is_resent: false,
                deadline: now,
            },
            connect_attempts: 0,
            since: now,
            is_watched: false,
            is_busy: false,
            is_queued: false,
            refusal: None,
            is_refusal_final: false,
        }
    }

    /// Whether it can take a call, as far as is known.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self.state, LaneState::Idle(_))
    }

    /// Whether the rest of a stream is read whose answer came.
    pub(super) fn is_draining(&self) -> bool {
        matches!(self.state, LaneState::Draining(_))
    }

    /// Whether it is waiting for other credentials.
    pub(super) fn is_refused(&self) -> bool {
        matches!(self.state, LaneState::Refused(_))
    }

    /// Whether its idle connection still needs watching.
    pub(super) fn is_unwatched(&self) -> bool {
        !self.is_watched && self.is_idle()
    }

    /// Checks that the idle connection is still open, and registers to be woken when it closes.
    /// Reconnects otherwise.
    pub(super) fn check_idle(&mut self, cx: &mut Context<'_>, context: &Arc<LaneContext>) -> bool {
        let LaneState::Idle(stream) = &mut self.state else { return false };
        self.input.clear();
        self.is_watched = true;
        match self.input.fill(stream, cx) {
            Poll::Pending => true,
            // Also when it sent something unrequested: what that belongs to is unknown.
            Poll::Ready(_) => {
                context.warnings().lost += 1;
                if SystemClock.now().saturating_duration_since(self.since) >= STABLE_AFTER {
                    self.connect_attempts = 0;
                }
                self.reopen(context);
                false
            }
        }
    }

    /// Sends its current call over its idle connection.
    pub(super) fn send(&mut self, head: &RequestHead, cx: &mut Context<'_>) {
        self.out.clear();
        head.write(&self.param_headers, &self.body, &mut self.out);
        self.written = 0;
        self.reply = None;
        self.answer = AnswerLocation::None;
        match std::mem::replace(&mut self.state, LaneState::Closed) {
            LaneState::Idle(stream) => {
                self.state = LaneState::Exchanging(stream);
                if self.write(cx).is_err() {
                    // Reading the response shows what failed.
                    cx.waker().wake_by_ref();
                }
            }
            other => self.state = other,
        }
    }

    pub(super) fn answer(&self) -> &[u8] {
        match &self.answer {
            AnswerLocation::None => &[],
            AnswerLocation::InInput(from, to) => {
                self.input.bytes.get(*from..*to).unwrap_or_default()
            }
            AnswerLocation::Owned(bytes) => bytes,
        }
    }

    /// What the call waits for, for the message of a timeout.
    pub(super) fn waiting_for(&self) -> String {
        match &self.reply {
            Some(reply) => reply.waiting_for(),
            None if self.written < self.out.len() => "the server to accept the request".to_owned(),
            None => "response headers".to_owned(),
        }
    }

    /// Ends the call in progress, and reconnects. The part of a refusal read so far is its error.
    pub(super) fn give_up(&mut self, context: &Arc<LaneContext>) -> Option<Error> {
        let id = self.call.id;
        let error = match &mut self.reply {
            Some(reply) if reply.status() >= 300 => reply.finish(id, context).err(),
            _ => None,
        };
        match self.state {
            LaneState::Draining(_) => context.warnings().unfinished_streams += 1,
            _ => context.warnings().given_up += 1,
        }
        self.reopen(context);
        error
    }

    /// Moves on as far as it goes.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        context: &Arc<LaneContext>,
    ) -> Poll<LaneEvent> {
        loop {
            match &mut self.state {
                LaneState::Opening(opening) => match opening.as_mut().poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(stream)) => {
                        self.state = LaneState::Idle(stream);
                        self.since = SystemClock.now();
                        self.is_watched = false;
                        return Poll::Ready(LaneEvent::Free);
                    }
                    Poll::Ready(Err(error)) if self.connect_attempts >= MAX_CONNECT_ATTEMPTS => {
                        self.state = LaneState::Closed;
                        context.warnings().unreachable += 1;
                        return Poll::Ready(LaneEvent::Closed(error));
                    }
                    Poll::Ready(Err(_)) => self.reopen(context),
                },
                LaneState::Idle(_) => {
                    // It was woken although nothing was asked: it may have ended.
                    if self.check_idle(cx, context) {
                        return Poll::Pending;
                    }
                }
                LaneState::Exchanging(_) => return self.exchange(cx, context),
                LaneState::Draining(_) => match self.drain_stream(cx, context) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(true) => return Poll::Ready(LaneEvent::Free),
                    Poll::Ready(false) => {}
                },
                LaneState::Refused(_) if std::mem::take(&mut self.is_refusal_final) => {
                    return Poll::Ready(LaneEvent::RefusalFinal);
                }
                LaneState::Refused(_) | LaneState::Closed => return Poll::Pending,
            }
        }
    }

    fn write(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let LaneState::Exchanging(stream) = &mut self.state else { return Ok(()) };
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

    fn exchange(&mut self, cx: &mut Context<'_>, context: &Arc<LaneContext>) -> Poll<LaneEvent> {
        // A server may respond, with the reason, before it has read everything: read the response.
        let wrote = self.write(cx);
        let id = self.call.id;
        loop {
            let LaneState::Exchanging(stream) = &mut self.state else { return Poll::Pending };
            let step = match self.input.fill(stream, cx) {
                Poll::Pending if wrote.is_ok() => return Poll::Pending,
                Poll::Pending => Err(errors::unanswered(wrote.as_ref().err(), &context.place())),
                Poll::Ready(Ok(0)) => self.connection_ended(None, id, context),
                Poll::Ready(Err(cause)) => self.connection_ended(Some(cause), id, context),
                Poll::Ready(Ok(came)) => {
                    self.call.bytes_in += came as u64;
                    self.advance(id, context)
                }
            };
            match step {
                Ok(ReadProgress::More) => {}
                Ok(ReadProgress::Answer(bytes)) => {
                    if !bytes.is_empty() {
                        self.answer = AnswerLocation::Owned(bytes);
                    }
                    return Poll::Ready(LaneEvent::Answered {
                        free: self.finish_response(context),
                    });
                }
                Err(error) => return Poll::Ready(self.failed(error, context)),
            }
        }
    }

    /// Reads on in what came of the response to the call `id`.
    fn advance(&mut self, id: i64, context: &LaneContext) -> Result<ReadProgress, Error> {
        if self.reply.is_none() {
            let Some((reply, size)) = response_reader::read_head(self.input.unread(), context)?
            else {
                return Ok(ReadProgress::More);
            };
            self.input.start += size;
            self.reply = Some(reply);
        }
        let Some(reply) = &mut self.reply else { return Ok(ReadProgress::More) };
        if let Some(length) = reply.in_place() {
            if length > self.input.unread().len() {
                return Ok(ReadProgress::More);
            }
            let from = self.input.start;
            self.input.start += length;
            self.answer = AnswerLocation::InInput(from, from + length);
            reply.consume_in_place(length);
            return Ok(ReadProgress::Answer(Vec::new()));
        }
        let (took, step) = reply.consume(self.input.unread(), id, context)?;
        self.input.start += took;
        Ok(step)
    }

    fn connection_ended(
        &mut self,
        why: response_reader::EndCause,
        id: i64,
        context: &LaneContext,
    ) -> Result<ReadProgress, Error> {
        if let Some(reply) = &mut self.reply {
            reply.connection_ended(why, self.input.unread().len(), id, context)
        } else {
            let why = why.filter(|why| why.kind() != io::ErrorKind::UnexpectedEof);
            Err(errors::unanswered(why.as_ref(), &context.place()))
        }
    }

    /// After an answer: whether the connection is free now. Otherwise the rest of its stream is
    /// read, or another one is made.
    fn finish_response(&mut self, context: &Arc<LaneContext>) -> bool {
        self.connect_attempts = 0;
        self.is_watched = false;
        let (keeps, done) = self
            .reply
            .as_ref()
            .map_or((false, true), |reply| (reply.is_reusable(), reply.is_done()));
        match std::mem::replace(&mut self.state, LaneState::Closed) {
            LaneState::Exchanging(stream) if keeps && done && self.input.unread().is_empty() => {
                self.state = LaneState::Idle(stream);
                return true;
            }
            LaneState::Exchanging(stream) if keeps && !done => {
                self.state = LaneState::Draining(stream);
                return false;
            }
            _ => {}
        }
        if keeps {
            context.warnings().surplus += 1;
        } else {
            context.warnings().closed += 1;
        }
        self.reopen(context);
        false
    }

    /// After a call that failed: the connection is kept when its response came to its end.
    fn failed(&mut self, error: Error, context: &Arc<LaneContext>) -> LaneEvent {
        let whole =
            self.reply.as_ref().is_some_and(|reply| {
                reply.status() >= 300 && reply.is_reusable() && reply.is_done()
            }) && self.input.unread().is_empty();
        let refused = self.reply.as_ref().filter(|reply| matches!(reply.status(), 401 | 403));
        let refused = refused.map(|reply| (reply.status(), Box::new(reply.headers().clone())));
        let stream = match std::mem::replace(&mut self.state, LaneState::Closed) {
            LaneState::Exchanging(stream) if whole => Some(stream),
            _ => None,
        };
        let error = context.redact(error);
        if let Some((status, fields)) = refused {
            self.state = LaneState::Refused(stream);
            return LaneEvent::Refused { status, fields, error };
        }
        if let Some(stream) = stream {
            self.state = LaneState::Idle(stream);
            self.is_watched = false;
            self.connect_attempts = 0;
            return LaneEvent::Failed { error, free: true };
        }
        context.warnings().given_up += 1;
        self.reopen(context);
        LaneEvent::Failed { error, free: false }
    }

    /// A refused call ends as such: what the lane does next.
    pub(super) fn accept_refusal(&mut self, context: &Arc<LaneContext>) -> bool {
        if let LaneState::Refused(Some(stream)) =
            std::mem::replace(&mut self.state, LaneState::Closed)
        {
            self.state = LaneState::Idle(stream);
            self.is_watched = false;
            true
        } else {
            self.reopen(context);
            false
        }
    }

    /// Readies it for the second try of a refused call: true when that can be sent now, otherwise
    /// as soon as it is free.
    pub(super) fn prepare_resend(&mut self, context: &Arc<LaneContext>) -> bool {
        self.accept_refusal(context)
    }

    /// Reads the rest of a stream whose answer came; true when the connection is free again.
    fn drain_stream(&mut self, cx: &mut Context<'_>, context: &Arc<LaneContext>) -> Poll<bool> {
        loop {
            let LaneState::Draining(stream) = &mut self.state else { return Poll::Ready(false) };
            let Some(reply) = &mut self.reply else { return Poll::Ready(false) };
            let took = reply.consume(self.input.unread(), self.call.id, context);
            self.input.start += took.as_ref().map_or(0, |(took, _)| *took);
            if took.is_ok() && !reply.is_done() {
                match self.input.fill(stream, cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(came)) if came > 0 => continue,
                    Poll::Ready(_) => {}
                }
            } else if took.is_ok()
                && self.input.unread().is_empty()
                && let LaneState::Draining(stream) =
                    std::mem::replace(&mut self.state, LaneState::Closed)
            {
                self.state = LaneState::Idle(stream);
                self.is_watched = false;
                return Poll::Ready(true);
            }
            context.warnings().closed += 1;
            self.reopen(context);
            return Poll::Ready(false);
        }
    }

    /// Makes another connection in place of this one.
    pub(super) fn reopen(&mut self, context: &Arc<LaneContext>) {
        let wait = match self.connect_attempts {
            0 => Duration::ZERO,
            n => (context.limits().reconnect_wait / FIRST_WAIT_DIVISOR)
                .saturating_mul(1 << (n - 1).min(6)),
        };
        self.connect_attempts += 1;
        self.reply = None;
        let context = Arc::clone(context);
        self.state = LaneState::Opening(Box::pin(async move {
            if !wait.is_zero() {
                sleep(wait).await;
            }
            context.dialer.dial().await
        }));
    }
}
