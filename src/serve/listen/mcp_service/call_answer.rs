//! The response to a plain call over HTTP, in the form of the SDK's responses.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use rmcp::model::{ErrorCode, JsonRpcMessage, ServerJsonRpcMessage};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::serve::catalogue_server::ServedCall;
use crate::serve::listen::event_body::{event, event_stream};
use crate::serve::listen::http_answer::{HttpAnswer, text};
use crate::serve::listen::http_sessions::SessionError;

/// How many events wait for a client that is slow to read.
const EVENT_QUEUE: usize = 16;

/// Answers a call, which is cancelled when this is dropped, or its client leaves the stream. Ends
/// early when `end` fires.
pub(super) async fn answer(mut call: ServedCall, end: &CancellationToken) -> HttpAnswer {
    match end.run_until_cancelled(call.next()).await.flatten() {
        Some(first @ (JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_))) => whole(&first),
        Some(first) => stream(first, call, end.clone()),
        None => text(StatusCode::INTERNAL_SERVER_ERROR, "the server ended during the call"),
    }
}

/// What a request is answered with whose session ended meanwhile. Its client has to begin a new one.
pub(super) fn session_failure(error: SessionError) -> HttpAnswer {
    text(StatusCode::NOT_FOUND, &error.to_string())
}

fn whole(message: &ServerJsonRpcMessage) -> HttpAnswer {
    let body = match serde_json::to_vec(message) {
        Ok(body) => body,
        Err(error) => {
            let reason = format!("the response cannot be written: {error}");
            return text(StatusCode::INTERNAL_SERVER_ERROR, &reason);
        }
    };
    let mut answer = Response::new(Full::new(Bytes::from(body)).boxed());
    *answer.status_mut() = status(message);
    let json = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(header::CONTENT_TYPE, json);
    answer
}

/// What the revision of 2026-07-28 says of errors.
fn status(message: &ServerJsonRpcMessage) -> StatusCode {
    let JsonRpcMessage::Error(error) = message else { return StatusCode::OK };
    match error.error.code {
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
        | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
        | ErrorCode::HEADER_MISMATCH => StatusCode::BAD_REQUEST,
        ErrorCode::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

fn stream(first: ServerJsonRpcMessage, mut call: ServedCall, end: CancellationToken) -> HttpAnswer {
    let (events, read) = mpsc::channel(EVENT_QUEUE);
    // Its own task: the call continues while the client is slow to read.
    tokio::spawn(async move {
        let passing_on = async {
            let mut next = Some(first);
            while let Some(message) = next {
                if events.send(event(message)).await.is_err() {
                    return;
                }
                next = call.next().await;
            }
        };
        tokio::select! {
            () = events.closed() => {}
            () = passing_on => {}
        }
    });
    event_stream(read, end)
}
