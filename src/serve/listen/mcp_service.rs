//! The SDK's service for Streamable HTTP, and how many sessions it may have.
//!
//! Owns: its settings, and the bound of the sessions that one token opens. Never does: look at a token.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::MAX_MESSAGE;
use crate::serve::catalogue_server::{CatalogueServer, ServedClient, ServedIdentity};

/// How many sessions of the older era the holders of one token may have open at once.
const MAX_SESSIONS: usize = 1_024;
/// How long a session may be silent in both directions, also while a person is asked.
const SESSION_IDLE: Duration = Duration::from_mins(30);

/// Too many sessions are open for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{MAX_SESSIONS} sessions are open; end one, or try again later")]
pub(super) struct SessionLimitError;

/// What answers the requests of one client, or of all that have the owner's token.
#[derive(Clone)]
pub(super) struct McpService {
    service: StreamableHttpService<ServedClient, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
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
            .with_cancellation_token(end);
        let server = Arc::clone(server);
        let connect = move || {
            let identity = ServedIdentity { session: session.clone(), is_alone: false };
            Ok(server.connect(identity))
        };
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(SESSION_IDLE);
        let sessions = Arc::new(sessions);
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
    ) -> Result<Response<BoxBody<Bytes, Infallible>>, SessionLimitError> {
        if self.sessions.sessions.read().await.len() >= MAX_SESSIONS && begins_session(&body) {
            return Err(SessionLimitError);
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
