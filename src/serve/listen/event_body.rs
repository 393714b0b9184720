//! Responses that are streams of events.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, header};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame};
use rmcp::model::ServerJsonRpcMessage;
use rmcp::transport::streamable_http_server::session::ServerSseMessage;
use tokio::sync::mpsc;
use tokio::time::Sleep;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::http_answer::HttpAnswer;

/// How long a stream is silent before a comment shows that it is still there.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// An event that says nothing.
pub(super) const COMMENT: &[u8] = b":\n\n";
/// The room for an event that most fit in, in bytes.
const USUAL_EVENT: usize = 256;
/// Proxies that know it pass events on as they come.
static UNBUFFERED: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A stream of events until they end, or `end` fires.
struct EventBody {
    events: mpsc::Receiver<ServerSseMessage>,
    end: Pin<Box<WaitForCancellationFutureOwned>>,
    /// When it was silent for too long; set while it is.
    silence: Option<Pin<Box<Sleep>>>,
}

/// An answer that is a stream of `events`, which ends early when `end` fires.
pub(super) fn event_stream(
    events: mpsc::Receiver<ServerSseMessage>,
    end: CancellationToken,
) -> HttpAnswer {
    let end = Box::pin(end.cancelled_owned());
    let mut answer = Response::new(EventBody { events, end, silence: None }.boxed());
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(UNBUFFERED.clone(), HeaderValue::from_static("no"));
    answer
}

/// The event that carries a message.
pub(super) fn event(message: ServerJsonRpcMessage) -> ServerSseMessage {
    let mut event = ServerSseMessage::default();
    event.message = Some(Arc::new(message));
    event
}

impl Body for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.end.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        if let Poll::Ready(event) = self.events.poll_recv(context) {
            self.silence = None;
            return Poll::Ready(event.map(|event| Ok(Frame::data(text(&event)))));
        }
        let silence = self.silence.get_or_insert_with(|| Box::pin(tokio::time::sleep(KEEP_ALIVE)));
        if silence.as_mut().poll(context).is_ready() {
            self.silence = None;
            // The next silence begins when this was sent, which is asked for at once.
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(COMMENT)))));
        }
        Poll::Pending
    }
}

/// An event as sent. One without a message marks a point to resume from.
fn text(event: &ServerSseMessage) -> Bytes {
    let mut text = Vec::with_capacity(USUAL_EVENT);
    text.extend_from_slice(b"data: ");
    if let Some(message) = &event.message {
        let begin = text.len();
        if serde_json::to_writer(&mut text, message).is_err() {
            text.truncate(begin);
        }
    }
    text.push(b'\n');
    if let Some(id) = &event.event_id {
        text.extend_from_slice(format!("id: {id}\n").as_bytes());
    }
    if let Some(retry) = event.retry {
        text.extend_from_slice(format!("retry: {}\n", retry.as_millis()).as_bytes());
    }
    text.push(b'\n');
    text.into()
}
