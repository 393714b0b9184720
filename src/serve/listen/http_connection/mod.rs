//! One connection of an HTTP client.
//!
//! Owns: its requests, one after another, how long each side may be silent, and that an idle
//! connection costs little: hyper's buffers exist only while there is a request, and a response
//! that stays open for events does without them. Never does: know what a request means.

mod activity;
mod open_answer;
mod prefixed_io;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::combinators::BoxBody;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::http_answer::HttpAnswer;
use activity::{Activity, Pause};
pub(super) use activity::{RequestBody, StaysOpen};
use prefixed_io::PrefixedIo;

/// How long the head of a request may take, and how long a client may take to begin its first.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection on which a request was answered waits for the next one.
const KEEP_ALIVE: Duration = Duration::from_mins(1);
/// How long hyper waits for the next request before the connection waits without it.
const IDLE: Duration = Duration::from_millis(100);
/// How long a client may read nothing of what is sent to it.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// How much of a request is read before hyper is there to read the rest.
const FIRST_READ: usize = 2_048;

enum RequestsEnd<T> {
    Closed,
    Idle(T, Bytes),
    /// The answer to its last request stays open; its head was sent.
    Open(T, BoxBody<Bytes, Infallible>),
}

/// Answers the requests of a client, of which `read` was read already, until it leaves, is silent for too long, or `stop` fires and its
/// last request is answered. An answer with the extension [`StaysOpen`] is the last one.
pub(super) async fn serve<T, A>(mut io: T, mut read: Bytes, answer: A, stop: &CancellationToken)
where
    T: AsyncRead + AsyncWrite + Unpin,
    A: Fn(Request<RequestBody>) -> Pin<Box<dyn Future<Output = HttpAnswer> + Send>>,
{
    let mut patience = HEAD_TIMEOUT;
    loop {
        if read.is_empty() {
            tokio::select! {
                () = stop.cancelled() => return,
                first = tokio::time::timeout(patience, first_bytes(&mut io)) => match first {
                    Ok(Some(bytes)) => read = bytes,
                    Ok(None) | Err(_) => return,
                },
            }
        }
        // Boxed: a connection that waits has none of it.
        match Box::pin(serve_requests(io, read, &answer, stop)).await {
            RequestsEnd::Closed => return,
            RequestsEnd::Idle(same, bytes) => (io, read) = (same, bytes),
            RequestsEnd::Open(same, body) => return open_answer::carry(same, body).await,
        }
        patience = KEEP_ALIVE;
    }
}

/// What a client sends first; `None` when it leaves.
async fn first_bytes<T: AsyncRead + Unpin>(io: &mut T) -> Option<Bytes> {
    // The buffer is there only while it is filled.
    poll_fn(|context| {
        let mut space = [0; FIRST_READ];
        let mut buffer = ReadBuf::new(&mut space);
        Pin::new(&mut *io).poll_read(context, &mut buffer).map(|read| {
            let bytes = buffer.filled();
            (read.is_ok() && !bytes.is_empty()).then(|| Bytes::copy_from_slice(bytes))
        })
    })
    .await
}

/// Answers requests, of which `read` was read already, until the client asks nothing for a moment.
async fn serve_requests<T, A>(
    io: T,
    read: Bytes,
    answer: &A,
    stop: &CancellationToken,
) -> RequestsEnd<T>
where
    T: AsyncRead + AsyncWrite + Unpin,
    A: Fn(Request<RequestBody>) -> Pin<Box<dyn Future<Output = HttpAnswer> + Send>>,
{
    let activity = Arc::new(Activity::default());
    let service = service_fn(|request: Request<Incoming>| {
        let (activity, version) = (Arc::clone(&activity), request.version());
        let open = activity.begin_request();
        let answering = answer(request.map(|body| RequestBody::new(body, &activity)));
        async move {
            let answer = answering.await;
            Ok::<_, Infallible>(activity.send(answer, version, open))
        }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    let io = PrefixedIo::new(io, read, Arc::clone(&activity));
    let mut connection = builder.serve_connection(TokioIo::new(io), service);
    let (mut stopped, mut is_stopping) = (pin!(stop.cancelled()), false);
    let mut timer = pin!(tokio::time::sleep(IDLE));
    let pause = poll_fn(|context| {
        if !is_stopping && stopped.as_mut().poll(context).is_ready() {
            is_stopping = true;
            Pin::new(&mut connection).graceful_shutdown();
        }
        // What a client does wrong ends its own connection.
        if Pin::new(&mut connection).poll(context).is_ready() {
            return Poll::Ready(Pause::Close);
        }
        poll_pause(&activity, timer.as_mut(), context)
    });
    match pause.await {
        Pause::Close => RequestsEnd::Closed,
        // All that was to be sent is: hyper ends each poll with that, or is blocked.
        Pause::Idle | Pause::Open => {
            let parts = connection.into_parts();
            let io = parts.io.into_inner().into_inner();
            match activity.take_open_answer() {
                Some(body) => RequestsEnd::Open(io, body),
                // Where nothing was read, it would keep the whole buffer.
                None if parts.read_buf.is_empty() => RequestsEnd::Idle(io, Bytes::new()),
                None => RequestsEnd::Idle(io, parts.read_buf),
            }
        }
    }
}

/// Waits until a connection must be taken from hyper, which has nothing more to do for it.
fn poll_pause(
    activity: &Activity,
    mut timer: Pin<&mut tokio::time::Sleep>,
    context: &mut Context<'_>,
) -> Poll<Pause> {
    while let Some((pause, due)) = activity.next_pause() {
        if due <= Instant::now() {
            return Poll::Ready(pause);
        }
        // One that fires too early costs less than to set it for each request.
        if timer.is_elapsed() || timer.deadline() > due {
            timer.as_mut().reset(due);
        }
        if timer.as_mut().poll(context).is_pending() {
            break;
        }
    }
    Poll::Pending
}
