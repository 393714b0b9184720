//! MCP over anything that carries one JSON-RPC message as one text.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::{BoxStream, Stream, StreamExt as _};
use rmcp::RoleServer;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::bounded_stream::{Backlog, MAX_UNANSWERED};
use crate::mcp::message::Envelope;
use crate::serve::shared_room::{LARGE, MessageRoom};

const LAST_WORDS: Duration = Duration::from_secs(5);

/// What a client sends, until it is gone or can no longer be understood.
type TextSource = BoxStream<'static, Result<String, TextError>>;

#[async_trait]
pub(super) trait TextSink: Send {
    async fn send(&mut self, text: String) -> io::Result<()>;
    async fn close(&mut self) -> io::Result<()>;
}

const MAX_ID: usize = 1_024;

/// Why a text cannot be read. The connection ends with it.
#[derive(Debug, thiserror::Error)]
pub(super) enum TextError {
    #[error("messages are limited to {} bytes", super::MAX_MESSAGE)]
    TooLong,
    /// It is not UTF-8.
    #[error("messages must be UTF-8")]
    NotText,
}

/// A message, or what is answered instead.
type Parsed = Result<Box<RxJsonRpcMessage<RoleServer>>, Value>;

fn parse(text: &str, room: &MessageRoom) -> Parsed {
    let place = room.try_place(text.as_bytes());
    let place = place.map_err(|why| error(&id(text.as_bytes()), -32600, &why.to_string()))?;
    match serde_json::from_str::<RxJsonRpcMessage<RoleServer>>(text) {
        Ok(mut message) => {
            message.insert_extension(Arc::new(place));
            Ok(Box::new(message))
        }
        Err(reason) => Err(why_unreadable(text.as_bytes(), &reason)),
    }
}

/// What is answered to a text that is not a message, for this reason.
pub(super) fn why_unreadable(text: &[u8], reason: &serde_json::Error) -> Value {
    if reason.is_data() {
        error(&id(text), -32600, &format!("not a JSON-RPC message: {reason}"))
    } else {
        error(&Value::Null, -32700, &format!("not JSON: {reason}"))
    }
}

fn error(id: &Value, code: i32, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

/// The id of a message that is not passed on.
fn id(text: &[u8]) -> Value {
    let envelope = std::str::from_utf8(text).ok().and_then(|text| Envelope::read(text).ok());
    let id = envelope.and_then(|envelope| envelope.id);
    id.filter(|id| id.is_number() || id.as_str().is_some_and(|id| id.len() <= MAX_ID))
        .unwrap_or_default()
}

/// One client's connection. Not generic: the SDK's service, which is large, is there once for all.
pub(in crate::serve) struct TextTransport {
    source: TextSource,
    sink: Arc<Mutex<dyn TextSink>>,
    backlog: Arc<Backlog>,
    room: MessageRoom,
    /// A message that is parsed where it does not delay others.
    parsing: Option<JoinHandle<Parsed>>,
    /// Fires when something could not be sent: nothing more is read then.
    lost: CancellationToken,
    /// Fires when the client is gone, although its calls may still run.
    gone: CancellationToken,
    /// How long a client that said its last word is taken to listen for answers.
    parting: Duration,
    /// Until when, once it said it.
    parted: Option<Instant>,
}

impl TextTransport {
    /// A connection whose messages take `room`, and that fires `gone` when the client leaves.
    pub(super) fn new(
        source: impl Stream<Item = Result<String, TextError>> + Send + 'static,
        sink: impl TextSink + 'static,
        room: MessageRoom,
        gone: CancellationToken,
    ) -> Self {
        let (backlog, lost) = (Arc::default(), CancellationToken::new());
        let (source, sink) = (source.boxed(), Arc::new(Mutex::new(sink)));
        let (parting, parted) = (Duration::ZERO, None);
        Self { source, sink, backlog, room, parsing: None, lost, gone, parting, parted }
    }

    /// Answers what was asked before the client said its last word, for at most so long.
    pub(super) fn with_parting(mut self, parting: Duration) -> Self {
        self.parting = parting;
        self
    }

    /// The next message of the client, or why there is none in a text that is not passed on; `None` when
    /// it is gone. May be cancelled and called again.
    async fn next(&mut self) -> Option<Result<Parsed, TextError>> {
        if self.parsing.is_none() {
            self.backlog.room().await;
            let text = match self.source.next().await? {
                Ok(text) => text,
                Err(error) => return Some(Err(error)),
            };
            if text.len() <= LARGE {
                return Some(Ok(parse(&text, &self.room)));
            }
            let room = self.room.clone();
            self.parsing = Some(tokio::task::spawn_blocking(move || parse(&text, &room)));
        }
        let parsed = self.parsing.as_mut()?.await;
        self.parsing = None;
        parsed.ok().map(Ok)
    }

    /// Answers a text that is not passed on. In its own task: the wait for the next message may be
    /// cancelled, and half a response would corrupt what follows.
    fn refuse(&self, error: &Value) -> JoinHandle<()> {
        let error = error.to_string();
        let (sink, unsent) = (Arc::clone(&self.sink), self.backlog.add_answer(None));
        let lost = self.lost.clone();
        tokio::spawn(async move {
            if sink.lock().await.send(error).await.is_err() {
                lost.cancel();
            }
            drop(unsent);
        })
    }
}

impl Transport<RoleServer> for TextTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (sink, unsent) = (Arc::clone(&self.sink), self.backlog.add(&message));
        let lost = self.lost.clone();
        async move {
            let sent = sink.lock().await.send(serde_json::to_string(&message)?).await;
            if sent.is_err() {
                lost.cancel();
            }
            drop(unsent);
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let lost = self.lost.clone();
            // What came after the last word would be another's.
            let next = async { if self.parted.is_none() { self.next().await } else { None } };
            let parsed = match lost.run_until_cancelled(next).await.flatten() {
                Some(Ok(parsed)) => parsed,
                Some(Err(reason)) => {
                    // Its last message; it may have stopped reading.
                    let refusal = self.refuse(&error(&Value::Null, -32700, &reason.to_string()));
                    let _slow_client = tokio::time::timeout(LAST_WORDS, refusal).await;
                    break;
                }
                None => {
                    let until = *self.parted.get_or_insert_with(|| Instant::now() + self.parting);
                    let answered = lost.run_until_cancelled(self.backlog.answered());
                    let _late = tokio::time::timeout_at(until, answered).await;
                    break;
                }
            };
            let message = match parsed {
                Ok(message) => *message,
                Err(refusal) => {
                    self.refuse(&refusal);
                    continue;
                }
            };
            if self.backlog.admit(&message) {
                return Some(message);
            }
            if let JsonRpcMessage::Request(request) = message {
                let id = serde_json::to_value(&request.id).unwrap_or_default();
                let reason = format!("{MAX_UNANSWERED} requests are already waiting for responses");
                self.refuse(&error(&id, -32603, &reason));
            }
        }
        self.gone.cancel();
        None
    }

    async fn close(&mut self) -> io::Result<()> {
        self.sink.lock().await.close().await
    }
}
