//! The SDK's service for Streamable HTTP, and how many sessions it may have.
//!
//! Owns: its settings, and that a request which finds no room is told to come back later. Never does:
//! look at a token.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use rmcp::transport::common::http_header::HEADER_SESSION_ID;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::MAX_MESSAGE;
use super::http_sessions::{HttpSessions, SessionError};
use crate::serve::catalogue_server::{CatalogueServer, ServedClient, ServedIdentity};

/// What answers the requests of one client, or of all that have the owner's token.
#[derive(Clone)]
pub(super) struct McpService {
    service: StreamableHttpService<ServedClient, HttpSessions>,
    sessions: Arc<HttpSessions>,
}

impl McpService {
    /// A service for `server` whose clients that name no session of their own call in `session`. It
    /// ends when `end` fires.
    pub(super) fn new(
        server: &Arc<CatalogueServer>,
        session: String,
        end: CancellationToken,
    ) -> Self {
        // The rules of the listener are stricter than the SDK's, and come before.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(MAX_MESSAGE)
            .with_cancellation_token(end.clone());
        let sessions = HttpSessions::new(server, &session, end);
        let mut config = config;
        config.session_store = Some(Arc::clone(&sessions) as _);
        let server = Arc::clone(server);
        let connect = move || {
            let identity = ServedIdentity { session: session.clone(), is_alone: false };
            Ok(server.connect(identity))
        };
        let service = StreamableHttpService::new(connect, Arc::clone(&sessions), config);
        Self { service, sessions }
    }

    /// Answers one request.
    ///
    /// # Errors
    /// When the request opens a session and there are too many.
    pub(super) async fn answer(
        &self,
        head: Parts,
        body: Bytes,
    ) -> Result<Response<BoxBody<Bytes, Infallible>>, SessionError> {
        // The SDK would answer that with an error of its own.
        if !head.headers.contains_key(HEADER_SESSION_ID)
            && begins_session(&body)
            && !self.sessions.has_room()
        {
            return Err(SessionError::TooMany);
        }
        Ok(self.service.handle(Request::from_parts(head, Full::new(body))).await)
    }
}

/// Whether a message asks for a session of its own.
fn begins_session(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct MessageHead<'a> {
        #[serde(borrow)]
        method: Option<Cow<'a, str>>,
    }
    serde_json::from_slice::<MessageHead<'_>>(body)
        .is_ok_and(|head| head.method.is_some_and(|method| method == "initialize"))
}
