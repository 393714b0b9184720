//! Clients over WebSocket: one JSON-RPC message in each text frame.
//!
//! Owns: the handshake, which has to satisfy the same rules as a request over HTTP, and frames in
//! and out. Never does: take a binary frame for a message.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use http::{Response, StatusCode};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error as FrameError, Message};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::MAX_MESSAGE;
use super::access::AccessRules;
use super::authentication::Authenticator;
use super::connections;
use super::identity::Requester;
use super::text_transport::{TextError, TextSink, TextSource, TextTransport};
use crate::serve::catalogue_server::{CatalogueServer, ServedIdentity};

/// How many clients may be connected at once.
const MAX_CLIENTS: usize = 4_096;
/// How long the handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The subprotocol that clients may name.
const SUBPROTOCOL: &str = "mcp";

/// Serves all clients that connect until `stop` fires.
pub async fn serve(
    server: &Arc<CatalogueServer>,
    rules: &Arc<AccessRules>,
    authenticator: &Arc<Authenticator>,
    listener: TcpListener,
    stop: &CancellationToken,
) {
    let (clients, free) = (TaskTracker::new(), Arc::new(Semaphore::new(MAX_CLIENTS)));
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
        let (server, rules, stop) = (Arc::clone(server), Arc::clone(rules), stop.clone());
        let authenticator = Arc::clone(authenticator);
        clients.spawn(async move {
            let opened = open(stream, &rules, &authenticator);
            let opened = tokio::time::timeout(HANDSHAKE, opened).await;
            if let Ok(Ok((stream, requester))) = opened {
                let (server, identity) = match requester {
                    Requester::Owner => (server, None),
                    Requester::Client(client) => {
                        (server.for_client(client.scope.clone()), Some(client))
                    }
                };
                let session = format!("ws-{}", Uuid::new_v4().simple());
                let client = server.connect(ServedIdentity { session, is_alone: false });
                let (sink, source) = stream.split();
                let transport =
                    TextTransport::new(FrameSource(source), FrameSink(sink), client.gone());
                // What a client does wrong is told to the client.
                let serving = connections::serve(client, transport, &stop);
                if let Some(identity) = identity {
                    let invalid = authenticator.until_invalid(&identity, || identity.expires);
                    let mut serving = std::pin::pin!(serving);
                    tokio::select! {
                        _ended = &mut serving => {}
                        () = invalid => {
                            server.disconnect();
                            let _ended = serving.await;
                        }
                    }
                } else {
                    let _ended = serving.await;
                }
            }
            drop(place);
        });
    }
    clients.close();
    clients.wait().await;
}

async fn open(
    stream: TcpStream,
    rules: &AccessRules,
    authenticator: &Authenticator,
) -> Result<(WebSocketStream<TcpStream>, Requester), FrameError> {
    let limits = WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE));
    let mut requester = None;
    #[expect(clippy::result_large_err, reason = "the library's own type of a refusal")]
    let check = |request: &Request, mut answer: Response<()>| {
        let refuse = |status: StatusCode, words: String| -> ErrorResponse {
            let mut refused = Response::new(Some(words));
            *refused.status_mut() = status;
            refused
        };
        let (head, ()) = request.clone().into_parts();
        if head.uri.path() != "/mcp" {
            return Err(refuse(StatusCode::NOT_FOUND, "MCP is served at /mcp".to_owned()));
        }
        let admitted = rules.check(&head).and_then(|token| authenticator.authenticate(token));
        requester = Some(admitted.map_err(|error| refuse(error.status(), error.to_string()))?);
        let named = head.headers.get_all("sec-websocket-protocol").iter();
        let mut named = named.filter_map(|value| value.to_str().ok()).flat_map(|v| v.split(','));
        if named.any(|name| name.trim() == SUBPROTOCOL) {
            let name = http::HeaderValue::from_static(SUBPROTOCOL);
            answer.headers_mut().insert("sec-websocket-protocol", name);
        }
        Ok(answer)
    };
    let opened = tokio_tungstenite::accept_hdr_async_with_config(stream, check, Some(limits));
    let stream = opened.await?;
    Ok((stream, requester.ok_or(FrameError::ConnectionClosed)?))
}

struct FrameSource(SplitStream<WebSocketStream<TcpStream>>);

impl TextSource for FrameSource {
    async fn next(&mut self) -> Option<Result<String, TextError>> {
        loop {
            return match self.0.next().await? {
                Ok(Message::Text(text)) => Some(Ok(text.as_str().to_owned())),
                Ok(Message::Binary(_)) | Err(FrameError::Utf8(_)) => Some(Err(TextError::NotText)),
                Ok(Message::Close(_)) => None,
                // Pings are answered by the library.
                Ok(_) => continue,
                Err(FrameError::Capacity(_)) => Some(Err(TextError::TooLong)),
                Err(_) => None,
            };
        }
    }
}

struct FrameSink(SplitSink<WebSocketStream<TcpStream>, Message>);

impl TextSink for FrameSink {
    async fn send(&mut self, text: String) -> io::Result<()> {
        self.0.send(Message::text(text)).await.map_err(io::Error::other)
    }

    async fn close(&mut self) -> io::Result<()> {
        self.0.close().await.map_err(io::Error::other)
    }
}
