//! Clients over Streamable HTTP, in both eras.
//!
//! Owns: the connections, their limits, and the paths that are answered: `/mcp`, behind the access
//! rules, `/health` for balancers, and the metadata of a protected resource. The protocol itself is the SDK's.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Body as _;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::MAX_MESSAGE;
use super::access::{AccessError, AccessRules};
use super::authentication::Authenticator;
use super::http_answer::{HttpAnswer, text};
use super::http_clients::HttpClients;
use super::http_connection::{self, RequestBody};
use super::http_sessions::KeptAnswers;
use super::identity::Requester;
use super::mcp_service::McpService;
use crate::serve::catalogue_server::CatalogueServer;

/// How many connections may be open at once.
const MAX_CONNECTIONS: usize = 16_384;
/// How long the body of a request may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// How long requests may go on after the server was told to end.
const DRAIN: Duration = Duration::from_secs(5);

/// A listener for HTTP.
pub struct HttpListener {
    server: Arc<CatalogueServer>,
    /// Answers requests with the owner's token.
    mcp: Arc<McpService>,
    rules: Arc<AccessRules>,
    authenticator: Arc<Authenticator>,
    clients: HttpClients,
    /// Fires when sessions and streams have to end.
    end: CancellationToken,
}

impl HttpListener {
    /// A listener for `server` for requests that satisfy `rules` and have a token that
    /// `authenticator` knows.
    pub fn new(
        server: &Arc<CatalogueServer>,
        rules: Arc<AccessRules>,
        authenticator: Arc<Authenticator>,
    ) -> Self {
        let (end, server) = (CancellationToken::new(), Arc::clone(server));
        let answers = KeptAnswers::new();
        let clients = HttpClients::new(answers.of_one_token());
        let mcp = Arc::new(McpService::new(&server, "http".to_owned(), answers, end.clone()));
        Self { server, mcp, rules, authenticator, clients, end }
    }

    /// Serves all clients that connect until `stop` fires, and what they asked before for a moment longer.
    pub async fn serve(self, listener: TcpListener, stop: &CancellationToken) {
        let shared = Arc::new(self);
        let (clients, free) = (TaskTracker::new(), Arc::new(Semaphore::new(MAX_CONNECTIONS)));
        loop {
            let Ok(place) = Arc::clone(&free).acquire_owned().await else { break };
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            let Ok((stream, _)) = accepted else {
                // Out of descriptors: a client that leaves makes room.
                tokio::time::sleep(super::ACCEPT_PAUSE).await;
                continue;
            };
            let _as_it_was = stream.set_nodelay(true);
            let (shared, stop) = (Arc::clone(&shared), stop.clone());
            clients.spawn(async move {
                let answer = |request| {
                    let shared = Arc::clone(&shared);
                    async move { shared.answer(request).await }.boxed()
                };
                http_connection::serve(stream, answer, &stop).await;
                drop(place);
            });
        }
        drop(listener);
        clients.close();
        if tokio::time::timeout(DRAIN, clients.wait()).await.is_err() {
            shared.end.cancel();
            let _left = tokio::time::timeout(DRAIN, clients.wait()).await;
        }
        shared.end.cancel();
    }

    async fn answer(&self, request: Request<RequestBody>) -> HttpAnswer {
        match (request.method(), request.uri().path()) {
            (&Method::GET, "/health") => text(StatusCode::OK, "ok"),
            (_, "/mcp") => self.mcp(request).await,
            (&Method::GET, path) if let Some(metadata) = self.metadata(path) => metadata,
            _ => text(StatusCode::NOT_FOUND, "MCP is served at /mcp"),
        }
    }

    /// What answers a request with this head.
    async fn admit(&self, head: &http::request::Parts) -> Result<Arc<McpService>, AccessError> {
        let token = self.rules.check(head)?;
        match self.authenticator.authenticate_anywhere(token).await? {
            Requester::Owner => Ok(Arc::clone(&self.mcp)),
            Requester::Client(identity) => self
                .clients
                .service(identity, &self.server, &self.authenticator, &self.end)
                .ok_or(AccessError::TooManyClients),
        }
    }

    fn refusal(&self, error: AccessError, head: &http::request::Parts) -> HttpAnswer {
        let mut answer = text(error.status(), &error.to_string());
        let has_token = head.headers.contains_key(header::AUTHORIZATION);
        let challenge = match (error, self.authenticator.resource()) {
            (AccessError::Token | AccessError::Scope, Some(resource)) => {
                HeaderValue::try_from(resource.challenge(error, has_token)).ok()
            }
            (AccessError::Token, None) => {
                Some(HeaderValue::from_static("Bearer realm=\"toolhost\""))
            }
            _ => None,
        };
        if let Some(challenge) = challenge {
            answer.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        answer
    }

    /// The metadata of the resource, for everyone: it says where to get a token.
    fn metadata(&self, path: &str) -> Option<HttpAnswer> {
        let metadata = self.authenticator.resource()?.metadata(path)?;
        let mut answer = text(StatusCode::OK, &metadata);
        let json = HeaderValue::from_static("application/json");
        answer.headers_mut().insert(header::CONTENT_TYPE, json);
        Some(answer)
    }

    async fn mcp(&self, request: Request<RequestBody>) -> HttpAnswer {
        let (head, body) = request.into_parts();
        let mcp = match self.admit(&head).await {
            Ok(mcp) => mcp,
            Err(error) => return self.refusal(error, &head),
        };
        let too_large = || {
            let words = format!("messages are limited to {MAX_MESSAGE} bytes");
            text(StatusCode::PAYLOAD_TOO_LARGE, &words)
        };
        // A message that is too large by its own account is not waited for.
        if usize::try_from(body.size_hint().lower()).map_or(true, |size| size > MAX_MESSAGE) {
            return too_large();
        }
        let body = Limited::new(body, MAX_MESSAGE).collect();
        match tokio::time::timeout(BODY_TIMEOUT, body).await {
            Ok(Ok(body)) => match mcp.answer(head, body.to_bytes()).await {
                Ok(answer) => answer,
                Err(error) => text(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
            },
            Ok(Err(error)) if error.is::<LengthLimitError>() => too_large(),
            Ok(Err(_)) => text(StatusCode::BAD_REQUEST, "the body ended early"),
            Err(_) => text(StatusCode::REQUEST_TIMEOUT, "the body took too long"),
        }
    }
}
