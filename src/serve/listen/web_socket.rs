//! Clients over WebSocket: one JSON-RPC message in each text frame.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, SplitSink, SplitStream, Stream};
use futures_util::{SinkExt as _, StreamExt as _};
use http::request::Parts;
use http::{HeaderValue, Request, header};
use http_body_util::{BodyExt as _, Empty};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error as FrameError, Message};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::authentication::{Authenticator, Requester};
use super::bounded_stream::ReadingMessage;
use super::mcp_service::HttpAnswer;
use super::text_transport::{TextError, TextSink, TextTransport};
use super::{MAX_MESSAGE, accept};
use crate::serve::catalogue_server::{CatalogueServer, ServedIdentity};

pub(super) const MAX_CLIENTS: usize = 4_096;
const FIRST_MESSAGE: Duration = Duration::from_mins(1);
/// How long a client may be silent before it is asked whether it is there, and how long it may take
/// to say so.
const SILENCE: Duration = Duration::from_secs(30);
const SUBPROTOCOL: &str = "mcp";

/// The answer to a request that opens a connection.
pub(super) fn open(head: &Parts) -> Result<HttpAnswer, FrameError> {
    let request = Request::from_parts(head.clone(), ());
    let mut answer = create_response_with_body(&request, || Empty::new().boxed())?;
    let named = head.headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    let mut named = named.filter_map(|value| value.to_str().ok()).flat_map(|v| v.split(','));
    if named.any(|name| name.trim() == SUBPROTOCOL) {
        let name = HeaderValue::from_static(SUBPROTOCOL);
        answer.headers_mut().insert(header::SEC_WEBSOCKET_PROTOCOL, name);
    }
    Ok(answer)
}

/// Serves a client after its handshake, until it leaves, its token is not valid any more, or `stop` fires.
pub(super) async fn serve<T: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: T,
    reading: ReadingMessage,
    requester: Requester,
    server: &Arc<CatalogueServer>,
    authenticator: &Authenticator,
    stop: &CancellationToken,
) {
    let limits = WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE));
    let stream = WebSocketStream::from_raw_socket(stream, Role::Server, Some(limits));
    let (server, identity) = match requester {
        Requester::Owner => (Arc::clone(server), None),
        Requester::Client(client) => (server.for_client(client.scope.clone()), Some(client)),
    };
    let session = format!("ws-{}", Uuid::new_v4().simple());
    let client = server.connect(ServedIdentity { session, is_alone: false });
    let (sink, frames) = stream.await.split();
    let sink = Arc::new(Mutex::new(sink));
    let room = server.messages.clone();
    reading.within(room.clone());
    let texts = FrameSource::new(frames, &sink, reading).texts();
    let transport = TextTransport::new(texts, FrameSink(sink), room, client.gone.clone());
    let invalid = async {
        match &identity {
            Some(client) => authenticator.until_invalid(client, || client.expires).await,
            None => std::future::pending().await,
        }
    };
    // Errors of a client are reported to the client.
    let mut serving = Box::pin(accept::serve(client, transport, stop));
    tokio::select! {
        _ended = &mut serving => {}
        () = invalid => {
            server.disconnect();
            let _ended = serving.await;
        }
    }
}

struct FrameSource<T> {
    frames: SplitStream<WebSocketStream<T>>,
    sink: SharedSink<T>,
    reading: ReadingMessage,
    /// Whether a message arrived; the client must send its first one within [`FIRST_MESSAGE`].
    has_spoken: bool,
    /// When the client last sent anything, or was last pinged.
    since: Instant,
    is_asked: bool,
}

impl<T: AsyncRead + AsyncWrite + Unpin> FrameSource<T> {
    fn new(
        frames: SplitStream<WebSocketStream<T>>,
        sink: &SharedSink<T>,
        reading: ReadingMessage,
    ) -> Self {
        let (sink, since) = (Arc::clone(sink), Instant::now());
        Self { frames, sink, reading, has_spoken: false, since, is_asked: false }
    }

    /// The next frame; `None` when the client is gone, or does not say that it is there.
    async fn frame(&mut self) -> Option<Result<Message, FrameError>> {
        loop {
            let patience = if self.has_spoken { SILENCE } else { FIRST_MESSAGE };
            let due = self.since + patience;
            if let Ok(frame) = tokio::time::timeout_at(due, self.frames.next()).await {
                (self.since, self.is_asked) = (Instant::now(), false);
                return frame;
            }
            if !self.has_spoken || self.is_asked {
                return None;
            }
            (self.since, self.is_asked) = (Instant::now(), true);
            let ping = async { self.sink.lock().await.send(Message::Ping(Bytes::new())).await };
            // One that takes nothing does not answer either.
            let _unsent = tokio::time::timeout(SILENCE, ping).await;
        }
    }

    async fn next(&mut self) -> Option<Result<String, TextError>> {
        loop {
            let frame = self.frame().await?;
            self.has_spoken |= matches!(frame, Ok(Message::Text(_)));
            self.reading.complete();
            return match frame {
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

    fn texts(self) -> impl Stream<Item = Result<String, TextError>> {
        stream::unfold(self, |mut source| async move { Some((source.next().await?, source)) })
    }
}

type SharedSink<T> = Arc<Mutex<SplitSink<WebSocketStream<T>, Message>>>;

struct FrameSink<T>(SharedSink<T>);

#[async_trait]
impl<T: AsyncRead + AsyncWrite + Unpin + Send> TextSink for FrameSink<T> {
    async fn send(&mut self, text: String) -> io::Result<()> {
        self.0.lock().await.send(Message::text(text)).await.map_err(io::Error::other)
    }

    async fn close(&mut self) -> io::Result<()> {
        self.0.lock().await.close().await.map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::DuplexStream;

    use super::*;
    use crate::serve::listen::bounded_stream::BoundedStream;
    use crate::serve::shared_room::MessageRoom;

    /// What the server reads of a client, and the client.
    async fn connected() -> (FrameSource<DuplexStream>, WebSocketStream<DuplexStream>) {
        let (server, client) = tokio::io::duplex(4_096);
        let server = WebSocketStream::from_raw_socket(server, Role::Server, None).await;
        let client = WebSocketStream::from_raw_socket(client, Role::Client, None).await;
        let (sink, frames) = server.split();
        let sink = Arc::new(Mutex::new(sink));
        (FrameSource::new(frames, &sink, ReadingMessage::default()), client)
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_says_nothing_after_the_handshake_is_let_go() {
        let (mut source, _client) = connected().await;
        assert!(tokio::time::timeout(FIRST_MESSAGE * 2, source.next()).await.unwrap().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_asks_and_never_reads_is_let_go() {
        let (server, client) = tokio::io::duplex(4_096);
        let server = BoundedStream::new(server, SILENCE);
        let server = WebSocketStream::from_raw_socket(server, Role::Server, None).await;
        let mut client = WebSocketStream::from_raw_socket(client, Role::Client, None).await;
        let (sink, frames) = server.split();
        let sink = Arc::new(Mutex::new(sink));
        let source = FrameSource::new(frames, &sink, ReadingMessage::default());
        let gone = CancellationToken::new();
        let mut transport =
            TextTransport::new(source.texts(), FrameSink(sink), MessageRoom::new(), gone.clone());
        for id in 0..64_i64 {
            let message = "much ".repeat(100);
            let error = rmcp::model::ErrorData::internal_error(message, None);
            let answer = rmcp::model::ServerJsonRpcMessage::error(
                error,
                Some(rmcp::model::RequestId::Number(id)),
            );
            tokio::spawn(rmcp::transport::Transport::send(&mut transport, answer));
        }
        // It is heard of, but never reads.
        let talking = tokio::spawn(async move {
            let ping = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
            while client.send(Message::text(ping)).await.is_ok() {
                tokio::time::sleep(SILENCE / 4).await;
            }
        });
        let begun = Instant::now();
        while rmcp::transport::Transport::receive(&mut transport).await.is_some() {}
        assert!(begun.elapsed() <= SILENCE * 2 && gone.is_cancelled(), "{:?}", begun.elapsed());
        let closing = rmcp::transport::Transport::close(&mut transport);
        tokio::time::timeout(SILENCE, closing).await.expect("the end is not waited for").ok();
        drop(transport);
        talking.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_client_stays_as_long_as_it_answers_pings() {
        let (mut source, mut client) = connected().await;
        client.send(Message::text("hello")).await.unwrap();
        assert_eq!(source.next().await.unwrap().unwrap(), "hello");
        // Reading answers them.
        let reading = tokio::spawn(async move {
            let first = client.next().await;
            (client, first)
        });
        let silent = tokio::time::timeout(SILENCE * 3 / 2, source.next()).await;
        assert!(silent.is_err(), "it was let go");
        let (mut client, ping) = reading.await.unwrap();
        assert!(matches!(ping, Some(Ok(Message::Ping(_)))), "{ping:?}");
        client.flush().await.unwrap();
        assert!(tokio::time::timeout(SILENCE, source.next()).await.is_err(), "it was let go");
        // From here on it reads nothing.
        assert!(tokio::time::timeout(SILENCE * 3, source.next()).await.unwrap().is_none());
    }
}
