//! Answering requests over Streamable HTTP by the SDK's service.
//!
//! HTTP responses.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::common::http_header::HEADER_SESSION_ID;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::http_sessions::{HttpSessions, SessionError};
use super::{MAX_MESSAGE, text_transport};
use crate::mcp::message::Envelope;
use crate::serve::catalogue_server::{CatalogueServer, ServedClient, ServedIdentity};
use crate::serve::shared_room::{LARGE, SharedRoom};

#[cfg(test)]
mod tests;

/// What answers the requests of one client, or of all that have the owner's token.
pub(super) struct McpService {
    pub(super) server: Arc<CatalogueServer>,
    service: StreamableHttpService<ServedClient, HttpSessions>,
    sessions: Arc<HttpSessions>,
}

impl McpService {
    /// A service for `server` whose clients that name no session of their own call in `session`. It
    /// keeps for them what `answers` has room for, and ends when `end` fires.
    pub(super) fn new(
        server: &Arc<CatalogueServer>,
        session: String,
        answers: SharedRoom,
        end: CancellationToken,
    ) -> Self {
        // The rules of the listener are stricter than the SDK's, and come before.
        // The SDK waits for the first message in any case: when that is the answer, it needs no stream.
        let config = StreamableHttpServerConfig::default()
            .with_json_response(true)
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(MAX_MESSAGE)
            .with_cancellation_token(end.clone());
        let sessions = HttpSessions::new(server, &session, answers, end);
        let connected = Arc::clone(server);
        let connect = move || {
            let identity = ServedIdentity { session: session.clone(), is_alone: false };
            Ok(connected.connect(identity))
        };
        let service = StreamableHttpService::new(connect, Arc::clone(&sessions), config);
        Self { server: Arc::clone(server), service, sessions }
    }

    pub(super) async fn answer(self: &Arc<Self>, head: Parts, body: Bytes) -> HttpAnswer {
        if body.len() <= LARGE {
            return self.serve(head, body).await;
        }
        // The SDK parses it while it is polled.
        let (service, cancelled) = (Arc::clone(self), CancellationToken::new());
        let _cancelled_when_dropped = cancelled.clone().drop_guard();
        let serving = tokio::task::spawn_blocking(move || {
            let serving = cancelled.run_until_cancelled(service.serve(head, body));
            tokio::runtime::Handle::current().block_on(serving)
        });
        serving.await.ok().flatten().unwrap_or_else(|| unavailable(SessionError::Ended))
    }

    async fn serve(&self, head: Parts, body: Bytes) -> HttpAnswer {
        // The SDK would answer that with its own error.
        let is_in_session = head.headers.contains_key(HEADER_SESSION_ID);
        if !is_in_session && !self.sessions.has_room() && is_initialize(&body) {
            return unavailable(SessionError::TooMany);
        }
        let is_json = is_json(&head.headers);
        let request = Request::from_parts(head, Full::new(body.clone()));
        let answer = self.service.handle(request).await;
        // The SDK says the same of another media type and of a text that is no message.
        if answer.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE
            && is_json
            && let Err(reason) = serde_json::from_slice::<ClientJsonRpcMessage>(&body)
        {
            let error = text_transport::why_unreadable(&body, &reason);
            return json(StatusCode::BAD_REQUEST, &error.to_string());
        }
        answer
    }
}

fn unavailable(reason: SessionError) -> HttpAnswer {
    text(StatusCode::SERVICE_UNAVAILABLE, &reason.to_string())
}

fn is_json(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = media_type.and_then(|media_type| media_type.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}

fn is_initialize(body: &[u8]) -> bool {
    let envelope = std::str::from_utf8(body).ok().and_then(|text| Envelope::read(text).ok());
    envelope.and_then(|envelope| envelope.method).is_some_and(|method| method == "initialize")
}

pub(super) type HttpAnswer = Response<BoxBody<Bytes, Infallible>>;

/// Why a request is refused: the status of the answer, and its text.
pub(super) type HttpRefusal = (StatusCode, String);

pub(super) fn text(status: StatusCode, message: &str) -> HttpAnswer {
    answer(status, HeaderValue::from_static("text/plain; charset=utf-8"), message)
}

pub(super) fn json(status: StatusCode, document: &str) -> HttpAnswer {
    answer(status, HeaderValue::from_static("application/json"), document)
}

fn answer(status: StatusCode, content_type: HeaderValue, content: &str) -> HttpAnswer {
    let mut answer = Response::new(Full::new(Bytes::from(format!("{content}\n"))).boxed());
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, content_type);
    answer
}
