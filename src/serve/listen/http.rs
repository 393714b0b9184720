//! Clients over Streamable HTTP, in both eras.
//!
//! Owns: the connections, their limits, and the two paths that are answered: `/mcp`, behind the
//! access rules, and `/health` for balancers. The protocol itself is the SDK's.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::MAX_MESSAGE;
use super::access::AccessRules;
use crate::serve::catalogue_server::{CatalogueServer, ServedClient, ServedIdentity};

/// How many connections may be open at once.
const MAX_CONNECTIONS: usize = 16_384;
/// How long the head of a request may take.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the body of a request may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// How long requests may go on after the server was told to end.
const DRAIN: Duration = Duration::from_secs(5);

type Answer = Response<BoxBody<Bytes, Infallible>>;
type McpService = StreamableHttpService<ServedClient, LocalSessionManager>;

/// A listener for HTTP.
pub struct HttpListener {
    mcp: McpService,
    rules: Arc<AccessRules>,
    /// Fires when sessions and streams have to end.
    end: CancellationToken,
}

impl HttpListener {
    /// A listener for `server` for requests that satisfy `rules`.
    pub fn new(server: &Arc<CatalogueServer>, rules: Arc<AccessRules>) -> Self {
        let end = CancellationToken::new();
        // The rules of this listener are stricter than the SDK's, and come before.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(MAX_MESSAGE)
            .with_cancellation_token(end.clone());
        let server = Arc::clone(server);
        let connect = move || {
            let identity = ServedIdentity { session: "http".to_owned(), is_alone: false };
            Ok(server.connect(identity))
        };
        let mcp = StreamableHttpService::new(connect, Arc::default(), config);
        Self { mcp, rules, end }
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
                let service = service_fn(|request| {
                    let shared = Arc::clone(&shared);
                    async move { Ok::<_, Infallible>(shared.answer(request).await) }
                });
                let mut builder = http1::Builder::new();
                builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
                let connection = builder.serve_connection(TokioIo::new(stream), service);
                let mut connection = std::pin::pin!(connection);
                // What a client does wrong ends its own connection.
                tokio::select! {
                    _ended = &mut connection => {}
                    () = stop.cancelled() => {
                        connection.as_mut().graceful_shutdown();
                        let _ended = connection.await;
                    }
                }
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

    async fn answer(&self, request: Request<Incoming>) -> Answer {
        match (request.method(), request.uri().path()) {
            (&Method::GET, "/health") => text(StatusCode::OK, "ok"),
            (_, "/mcp") => self.mcp(request).await,
            _ => text(StatusCode::NOT_FOUND, "MCP is served at /mcp"),
        }
    }

    async fn mcp(&self, request: Request<Incoming>) -> Answer {
        let (head, body) = request.into_parts();
        if let Err(error) = self.rules.check(&head) {
            let mut answer = text(error.status(), &error.to_string());
            if answer.status() == StatusCode::UNAUTHORIZED {
                let scheme = HeaderValue::from_static("Bearer realm=\"toolhost\"");
                answer.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
            }
            return answer;
        }
        let body = Limited::new(body, MAX_MESSAGE).collect();
        match tokio::time::timeout(BODY_TIMEOUT, body).await {
            Ok(Ok(body)) => {
                self.mcp.handle(Request::from_parts(head, Full::new(body.to_bytes()))).await
            }
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                let words = format!("a message may be {MAX_MESSAGE} bytes long");
                text(StatusCode::PAYLOAD_TOO_LARGE, &words)
            }
            Ok(Err(_)) => text(StatusCode::BAD_REQUEST, "the body ended early"),
            Err(_) => text(StatusCode::REQUEST_TIMEOUT, "the body took too long"),
        }
    }
}

fn text(status: StatusCode, words: &str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(format!("{words}\n"))).boxed());
    *answer.status_mut() = status;
    answer
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}
