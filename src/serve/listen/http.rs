//! Clients over Streamable HTTP, in both eras, and the handshake of those over WebSocket.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Context;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::access::{self, AccessError, AccessRules};
use super::authentication::{Authenticator, Requester};
use super::bounded_stream::BoundedStream;
use super::http_clients::HttpClients;
use super::http_sessions::KEPT_ANSWERS;
use super::mcp_service::{HttpAnswer, HttpRefusal, McpService, json, text};
use super::oauth::ProtectedResource;
use super::{MAX_MESSAGE, accept, web_socket};
use crate::serve::catalogue_server::{CatalogueServer, ListenerClosing};
use crate::serve::shared_room::{MessagePlace, MessageRoom, SMALL, SharedRoom};
use crate::util::lock::lock;

const MAX_CONNECTIONS: usize = 16_384;
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the head of a request may take, from the end of the one before.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may read nothing of what is sent to it.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long requests may go on after the server was told to end.
const DRAIN: Duration = Duration::from_secs(5);

pub struct HttpListener {
    server: Arc<CatalogueServer>,
    /// Answers requests with the owner's token.
    mcp: Arc<McpService>,
    rules: Arc<AccessRules>,
    /// `None` where everyone who can connect is the owner.
    authenticator: Option<Arc<Authenticator>>,
    clients: HttpClients,
    /// Whether its clients speak WebSocket.
    is_web_socket: bool,
    /// Fires before `end`.
    closing: CancellationToken,
    end: CancellationToken,
}

/// The connection that a request upgrades, and whose it is.
type Upgrade = Mutex<Option<(OnUpgrade, Requester)>>;

impl HttpListener {
    /// A listener for `server` for requests that satisfy `rules` and have a token that `authenticator`
    /// knows. Without one clients need no token: the file of the socket they came by, and the kernel, say
    /// who they are.
    pub fn new(
        server: &Arc<CatalogueServer>,
        rules: Arc<AccessRules>,
        authenticator: Option<Arc<Authenticator>>,
    ) -> Self {
        let transport = if authenticator.is_some() { "http" } else { "unix" };
        let (end, server) = (CancellationToken::new(), Arc::clone(server));
        let answers = SharedRoom::new(KEPT_ANSWERS);
        let clients = HttpClients::new(answers.of_one_token());
        let mcp = McpService::new(&server, transport.to_owned(), answers, end.clone());
        let (mcp, closing, is_web_socket) = (Arc::new(mcp), CancellationToken::new(), false);
        Self { server, mcp, rules, authenticator, clients, is_web_socket, closing, end }
    }

    /// The same for clients over WebSocket.
    #[must_use]
    pub fn over_web_socket(self) -> Self {
        Self { is_web_socket: true, ..self }
    }

    /// Serves all clients that connect until `stop` fires, and what they asked before for a moment longer.
    pub async fn serve(self, listener: TcpListener, stop: &CancellationToken) {
        let shared = Arc::new(self);
        let next = |context: &mut Context<'_>| listener.poll_accept(context);
        let most = if shared.is_web_socket { web_socket::MAX_CLIENTS } else { MAX_CONNECTIONS };
        let clients = accept::serve_each(next, most, stop, |(stream, _)| {
            let (shared, stop) = (Arc::clone(&shared), stop.clone());
            let _as_it_was = stream.set_nodelay(true);
            async move { shared.serve_connection(stream, &stop).await }
        })
        .await;
        drop(listener);
        shared.drain(&clients).await;
    }

    /// Answers the requests of one client, one after another, until it leaves, or `stop` fires and its last
    /// request is answered.
    pub(super) async fn serve_connection(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        stop: &CancellationToken,
    ) {
        let (stream, upgrade) = (BoundedStream::new(stream, WRITE_TIMEOUT), Upgrade::default());
        let (reading, upgrade) = (stream.reading(), &upgrade);
        let service = service_fn(|request| async move {
            Ok::<_, Infallible>(self.answer(request, upgrade).await)
        });
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
        {
            let connection = builder.serve_connection(TokioIo::new(stream), service);
            let mut connection = pin!(connection.with_upgrades());
            tokio::select! {
                // What a client does wrong ends its own connection.
                _ended = connection.as_mut() => {}
                () = stop.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    let _ended = connection.await;
                }
            }
            // A connection that failed gives its stream to nobody, and says so only when it is dropped.
        }
        let upgrade = lock(upgrade).take();
        if let (Some((upgrade, requester)), Some(authenticator)) = (upgrade, &self.authenticator)
            && let Ok(stream) = upgrade.await
        {
            let (stream, server) = (TokioIo::new(stream), &self.server);
            let serving =
                web_socket::serve(stream, reading, requester, server, authenticator, stop);
            Box::pin(serving).await;
        }
    }

    /// Ends subscriptions, gives `clients` a moment, then ends sessions and other streams.
    pub(super) async fn drain(&self, clients: &TaskTracker) {
        self.closing.cancel();
        if tokio::time::timeout(DRAIN, clients.wait()).await.is_err() {
            self.end.cancel();
            let _left = tokio::time::timeout(DRAIN, clients.wait()).await;
        }
        self.end.cancel();
    }

    async fn answer(&self, request: Request<Incoming>, upgrade: &Upgrade) -> HttpAnswer {
        let page = self.rules.page(request.headers());
        let mut answer = match (request.method(), request.uri().path()) {
            (&Method::GET, "/health") => text(StatusCode::OK, "ok"),
            (&Method::OPTIONS, _) if access::is_preflight(request.headers()) => {
                self.preflight(request)
            }
            (_, "/mcp") if self.is_web_socket => self.upgrade(request, upgrade),
            (_, "/mcp") => self.mcp(request).await,
            (&Method::GET, path) if let Some(metadata) = self.metadata(path) => metadata,
            _ => text(StatusCode::NOT_FOUND, "MCP is served at /mcp"),
        };
        if let Some(page) = page {
            access::allow(page, &mut answer);
        }
        // Nobody without a token keeps the place of a client by asking for other things.
        if self.is_web_socket && answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }

    /// What a browser asks, without a token, before a page may ask.
    fn preflight(&self, request: Request<Incoming>) -> HttpAnswer {
        let (head, _) = request.into_parts();
        match self.rules.check_place(&head) {
            Ok(()) => access::preflight(&head.headers),
            Err(error) => text(error.status(), &error.to_string()),
        }
    }

    fn upgrade(&self, mut request: Request<Incoming>, upgrade: &Upgrade) -> HttpAnswer {
        let upgraded = hyper::upgrade::on(&mut request);
        let (head, _) = request.into_parts();
        let admitted = self.rules.check(&head).and_then(|token| {
            self.authenticator.as_ref().ok_or(AccessError::Token)?.authenticate(token)
        });
        match admitted.map(|requester| (web_socket::open(&head), requester)) {
            Ok((Ok(answer), requester)) => {
                *lock(upgrade) = Some((upgraded, requester));
                answer
            }
            Ok((Err(reason), _)) => text(StatusCode::BAD_REQUEST, &reason.to_string()),
            Err(error) => self.refusal(error, &head),
        }
    }

    async fn admit(&self, head: &http::request::Parts) -> Result<Arc<McpService>, AccessError> {
        let Some(authenticator) = &self.authenticator else {
            self.rules.check_place(head)?;
            return Ok(Arc::clone(&self.mcp));
        };
        let token = self.rules.check(head)?;
        match authenticator.authenticate_anywhere(token).await? {
            Requester::Owner => Ok(Arc::clone(&self.mcp)),
            Requester::Client(identity) => self
                .clients
                .service(identity, &self.server, authenticator, &self.end)
                .ok_or(AccessError::TooManyClients),
        }
    }

    fn refusal(&self, error: AccessError, head: &http::request::Parts) -> HttpAnswer {
        let mut answer = text(error.status(), &error.to_string());
        let has_token = head.headers.contains_key(header::AUTHORIZATION);
        let challenge = match (error, self.resource()) {
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

    /// What a client can get a token for; WebSocket takes none of an authorization server.
    fn resource(&self) -> Option<&ProtectedResource> {
        let authenticator = self.authenticator.as_ref().filter(|_| !self.is_web_socket)?;
        authenticator.resource.as_ref()
    }

    /// The metadata of the resource, for everyone: it says where to get a token.
    fn metadata(&self, path: &str) -> Option<HttpAnswer> {
        Some(json(StatusCode::OK, &self.resource()?.metadata(path)?))
    }

    async fn mcp(&self, request: Request<Incoming>) -> HttpAnswer {
        let (mut head, body) = request.into_parts();
        let mcp = match self.admit(&head).await {
            Ok(mcp) => mcp,
            Err(error) => return self.refusal(error, &head),
        };
        let (body, place) = match read(body, &mcp.server.messages).await {
            Ok(read) => read,
            Err((status, message)) => return text(status, &message),
        };
        head.extensions.insert(Arc::new(place));
        head.extensions.insert(ListenerClosing(self.closing.clone()));
        mcp.answer(head, body).await
    }
}

async fn read(body: Incoming, room: &MessageRoom) -> Result<(Bytes, MessagePlace), HttpRefusal> {
    let too_large = |reason: String| (StatusCode::PAYLOAD_TOO_LARGE, reason);
    let too_long = || too_large(format!("messages are limited to {MAX_MESSAGE} bytes"));
    let size = body.size_hint();
    let stated = size.exact();
    // A message that is too large by its own account is not waited for.
    let size = usize::try_from(size.lower()).ok().filter(|size| *size <= MAX_MESSAGE);
    let size = size.ok_or_else(too_long)?;
    let mut place = room.place(size).await;
    let mut deadline = Instant::now() + BODY_TIMEOUT;
    let (mut body, mut message) = (Limited::new(body, MAX_MESSAGE), BytesMut::new());
    loop {
        let frame = tokio::time::timeout_at(deadline, body.frame()).await;
        let Ok(frame) = frame else {
            return Err((StatusCode::REQUEST_TIMEOUT, "the body took too long".to_owned()));
        };
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|error| {
            let is_long = error.is::<LengthLimitError>();
            let cut = (StatusCode::BAD_REQUEST, "the body ended early".to_owned());
            if is_long { too_long() } else { cut }
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if stated.is_none() && message.len() <= SMALL && message.len() + data.len() > SMALL {
            place = room.place(MAX_MESSAGE).await;
            deadline = Instant::now() + BODY_TIMEOUT;
        }
        message.extend_from_slice(&data);
    }
    let message = message.freeze();
    let parsing = room.parse_place(&mut place, &message).await;
    parsing.map_err(|reason| too_large(reason.to_string()))?;
    Ok((message, place))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::host::ToolHost;
    use crate::serve::catalogue_server::{ClientRegistry, ServeSettings};

    const ASK: &[u8] = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";

    const HANDSHAKE: &str = "GET /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n\
        Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\
        Authorization: Bearer 0123456789abcdef\r\n\r\n";

    fn listener_with(authenticator: Option<Arc<Authenticator>>) -> HttpListener {
        let clients = ClientRegistry::new();
        let host = clients.attach(ToolHost::builder()).build();
        let stop = CancellationToken::new();
        let server = CatalogueServer::new(host, clients, ServeSettings::default(), stop);
        let rules = Arc::new(AccessRules::new(Vec::new(), Vec::new()));
        HttpListener::new(&server, rules, authenticator)
    }

    fn listener() -> Arc<HttpListener> {
        Arc::new(listener_with(None))
    }

    fn web_socket() -> HttpListener {
        let issuer = url::Url::parse("https://issuer.example/").unwrap();
        let own = url::Url::parse("http://127.0.0.1:1/mcp").unwrap();
        let resource =
            ProtectedResource::new(issuer.as_str(), own, Vec::new(), Vec::new()).unwrap();
        let authenticator =
            Authenticator::new(Some(&"0123456789abcdef".into()), None, Some(resource));
        listener_with(Some(Arc::new(authenticator))).over_web_socket()
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_over_web_socket_that_reads_no_answer_to_its_handshake_is_let_go() {
        let (mut client, stream) = tokio::io::duplex(64);
        let (serving, stop) = (web_socket(), CancellationToken::new());
        let writing = async {
            client.write_all(HANDSHAKE.as_bytes()).await.unwrap();
            std::future::pending::<()>().await;
        };
        let serving =
            tokio::time::timeout(2 * WRITE_TIMEOUT, serving.serve_connection(stream, &stop));
        tokio::select! {
            () = writing => {}
            ended = serving => ended.unwrap(),
        }
    }

    #[tokio::test]
    async fn a_web_socket_that_is_refused_is_closed_and_led_to_no_authorization_server() {
        let (mut client, stream) = tokio::io::duplex(4096);
        let (serving, stop) = (web_socket(), CancellationToken::new());
        let refused = HANDSHAKE.replace("0123456789abcdef", "0123456789abcdee");
        client.write_all(refused.as_bytes()).await.unwrap();
        serving.serve_connection(stream, &stop).await;
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
        assert!(!answer.contains("resource_metadata"), "{answer}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_is_let_go() {
        // The head of the answer alone does not fit.
        let (mut client, stream) = tokio::io::duplex(64);
        client.write_all(ASK).await.unwrap();
        let stop = CancellationToken::new();
        let asked_at = Instant::now();
        listener().serve_connection(stream, &stop).await;
        assert!(asked_at.elapsed() >= WRITE_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_waits_ends_with_the_server_and_an_answer_is_finished_first() {
        let (mut client, stream) = tokio::io::duplex(64);
        let stop = CancellationToken::new();
        let until = stop.clone();
        let serving =
            tokio::spawn(async move { listener().serve_connection(stream, &until).await });
        client.write_all(ASK).await.unwrap();
        client.read_u8().await.unwrap();
        stop.cancel();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("ok\n"), "{answer}");
        serving.await.unwrap();
    }
}
