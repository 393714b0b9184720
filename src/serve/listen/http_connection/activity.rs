//! The activity on a connection, as far as its owner must know.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Response, Version, header};
use http_body_util::combinators::BoxBody;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::Instant;

use super::{IDLE, WRITE_TIMEOUT};
use crate::serve::listen::http_answer::HttpAnswer;

/// Marks an answer that stays open for events for as long as its client is there.
#[derive(Debug, Clone, Copy)]
pub(in crate::serve::listen) struct StaysOpen;

/// Why a connection is taken from hyper.
pub(super) enum Pause {
    /// The client asks nothing.
    Idle,
    /// The head of an answer that stays open was sent.
    Open,
    /// The client does not read.
    Close,
}

/// What goes on on one connection while hyper has it.
#[derive(Default)]
pub(super) struct Activity(Mutex<ActivityState>);

#[derive(Default)]
struct ActivityState {
    /// Requests whose answer hyper does not have in whole.
    open: usize,
    idle_since: Option<Instant>,
    blocked_since: Option<Instant>,
    /// A body was not read to its end; what follows it is not a request.
    has_unread_body: bool,
    open_answer: Option<BoxBody<Bytes, Infallible>>,
    is_open_head_sent: bool,
}

/// Counts as an open request until it is dropped.
pub(super) struct OpenRequest(Arc<Activity>);

impl Activity {
    fn state(&self) -> MutexGuard<'_, ActivityState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin_request(self: &Arc<Self>) -> OpenRequest {
        self.state().open += 1;
        OpenRequest(Arc::clone(self))
    }

    /// What hyper is to send of an answer: all of it, or its head if it stays open.
    pub(super) fn send(
        self: &Arc<Self>,
        mut answer: HttpAnswer,
        version: Version,
        open: OpenRequest,
    ) -> Response<OutgoingBody> {
        let is_marked = answer.extensions_mut().remove::<StaysOpen>().is_some();
        let mut state = self.state();
        // Only in HTTP/1.1 is its length written piece by piece.
        let stays_open =
            is_marked && version == Version::HTTP_11 && !state.has_unread_body && state.open == 1;
        if stays_open {
            // Unwarned, a client would send its next request into the connection that ends.
            answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        answer.map(|body| {
            if stays_open {
                state.open_answer = Some(body);
                return OutgoingBody { body: None, open };
            }
            OutgoingBody { body: Some(body), open }
        })
    }

    /// What to do next, and when, if nothing happens until then.
    pub(super) fn next_pause(&self) -> Option<(Pause, Instant)> {
        let state = self.state();
        if let Some(since) = state.blocked_since {
            return Some((Pause::Close, since + WRITE_TIMEOUT));
        }
        if state.is_open_head_sent {
            return Some((Pause::Open, Instant::now()));
        }
        let since = state.idle_since.filter(|_| state.open == 0 && !state.has_unread_body);
        since.map(|since| (Pause::Idle, since + IDLE))
    }

    pub(super) fn take_open_answer(&self) -> Option<BoxBody<Bytes, Infallible>> {
        self.state().open_answer.take()
    }

    /// Notes whether the client takes what is sent to it.
    pub(super) fn note_write(&self, is_blocked: bool) {
        let mut state = self.state();
        match (is_blocked, state.blocked_since) {
            (true, None) => state.blocked_since = Some(Instant::now()),
            (false, Some(_)) => state.blocked_since = None,
            _ => {}
        }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.open -= 1;
        state.idle_since = Some(Instant::now());
    }
}

/// The body of a request.
pub(in crate::serve::listen) struct RequestBody {
    body: Incoming,
    /// One in chunks does not know its end before it is there.
    is_read: bool,
    activity: Arc<Activity>,
}

impl RequestBody {
    pub(super) fn new(body: Incoming, activity: &Arc<Activity>) -> Self {
        Self { body, is_read: false, activity: Arc::clone(activity) }
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if !self.is_read && !self.body.is_end_stream() {
            self.activity.state().has_unread_body = true;
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        self.is_read |= matches!(frame, Poll::Ready(None));
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a response as hyper sends it; hyper gets no body for one that stays open.
pub(super) struct OutgoingBody {
    body: Option<BoxBody<Bytes, Infallible>>,
    open: OpenRequest,
}

impl Body for OutgoingBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(body) = &mut self.body {
            return Pin::new(body).poll_frame(context);
        }
        // Asked for once the head is on its way.
        self.open.0.state().is_open_head_sent = true;
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_some_and(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::default, Body::size_hint)
    }
}
