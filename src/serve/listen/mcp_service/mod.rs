//! Answering requests over Streamable HTTP by the SDK's service.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, header};
use http_body_util::Full;
use rmcp::transport::common::http_header::HEADER_SESSION_ID;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::MAX_MESSAGE;
use super::http_answer::HttpAnswer;
use super::http_sessions::{HttpSessions, KeptAnswers, SessionError};
use super::subscription_body::subscription_body;
use crate::serve::catalogue_server::{
    CatalogueServer, ServedClient, ServedIdentity, SubscriptionHandoff,
};
use crate::serve::shared_room::{LARGE, MessageRoom};

/// What a client of the newer era sends to hear of changes.
const LISTEN: &str = "subscriptions/listen";

/// What answers the requests of one client, or of all that have the owner's token.
pub(super) struct McpService {
    server: Arc<CatalogueServer>,
    service: StreamableHttpService<ServedClient, HttpSessions>,
    sessions: Arc<HttpSessions>,
    end: CancellationToken,
}

impl McpService {
    /// A service for `server` whose clients that name no session of their own call in `session`. It
    /// keeps for them what `answers` has room for, and ends when `end` fires.
    pub(super) fn new(
        server: &Arc<CatalogueServer>,
        session: String,
        answers: KeptAnswers,
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
        let sessions = HttpSessions::new(server, &session, answers, end.clone());
        let connected = Arc::clone(server);
        let connect = move || {
            let identity = ServedIdentity { session: session.clone(), is_alone: false };
            Ok(connected.connect(identity))
        };
        let service = StreamableHttpService::new(connect, Arc::clone(&sessions), config);
        Self { server: Arc::clone(server), service, sessions, end }
    }

    pub(super) async fn answer(
        self: &Arc<Self>,
        head: Parts,
        body: Bytes,
    ) -> Result<HttpAnswer, SessionError> {
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
        serving.await.ok().flatten().unwrap_or(Err(SessionError::Ended))
    }

    pub(super) fn messages(&self) -> &MessageRoom {
        self.server.messages()
    }

    async fn serve(&self, mut head: Parts, body: Bytes) -> Result<HttpAnswer, SessionError> {
        let is_in_session = head.headers.contains_key(HEADER_SESSION_ID);
        let method = if is_in_session { None } else { method(&body) };
        // The SDK would answer that with its own error.
        if method.as_deref() == Some("initialize") && !self.sessions.has_room() {
            return Err(SessionError::TooMany);
        }
        let subscribes = method.as_deref() == Some(LISTEN);
        let (handoff, subscription) = SubscriptionHandoff::new();
        if subscribes {
            head.extensions.insert(handoff);
        }
        let request = Request::from_parts(head, Full::new(body));
        let mut answer = self.service.handle(request).await;
        let content = answer.headers().get(header::CONTENT_TYPE);
        if content.is_none_or(|content| content != "text/event-stream") {
            return Ok(answer);
        }
        if subscribes {
            let end = self.end.clone();
            answer = answer.map(|request| subscription_body(request, subscription, end));
        }
        Ok(answer)
    }
}

/// What a message asks for.
fn method(body: &[u8]) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct MessageHead<'a> {
        #[serde(borrow)]
        method: Option<Cow<'a, str>>,
    }
    serde_json::from_slice::<MessageHead<'_>>(body).ok()?.method
}
