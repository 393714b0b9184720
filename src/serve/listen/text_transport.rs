//! MCP over anything that carries one JSON-RPC message as one text.
//!
//! Owns: answering a text that is not a message with an error, without closing the connection. Never
//! does: frame texts; the adapters handle lines and WebSocket frames.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rmcp::RoleServer;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::backlog::{Backlog, MAX_UNANSWERED};
use super::client_message;

/// How long the last message to a client may take.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Where a client's texts come from.
#[async_trait]
pub(super) trait TextSource: Send {
    /// The next text; `None` when the client is gone or can no longer be understood.
    async fn next(&mut self) -> Option<Result<String, TextError>>;
}

/// Where texts for a client go.
#[async_trait]
pub(super) trait TextSink: Send {
    /// Sends one text.
    async fn send(&mut self, text: String) -> io::Result<()>;
    /// Says that nothing follows.
    async fn close(&mut self) -> io::Result<()>;
}

/// Why a text cannot be read. The connection ends with it.
#[derive(Debug, thiserror::Error)]
pub(super) enum TextError {
    /// It is longer than a message may be.
    #[error("messages are limited to {} bytes", super::MAX_MESSAGE)]
    TooLong,
    /// It is not UTF-8.
    #[error("messages must be UTF-8")]
    NotText,
}

/// One client's connection. Not generic: the SDK's service, which is large, is there once for all.
pub(super) struct TextTransport {
    source: Box<dyn TextSource>,
    sink: Arc<Mutex<dyn TextSink>>,
    backlog: Arc<Backlog>,
    /// Fires when something could not be sent: nothing more is read then.
    lost: CancellationToken,
    /// Fires when the client is gone, although its calls may still run.
    gone: CancellationToken,
}

impl TextTransport {
    /// A connection that fires `gone` when the client leaves.
    pub(super) fn new(
        source: impl TextSource + 'static,
        sink: impl TextSink + 'static,
        gone: CancellationToken,
    ) -> Self {
        let (backlog, lost) = (Arc::default(), CancellationToken::new());
        let (source, sink) = (Box::new(source), Arc::new(Mutex::new(sink)));
        Self { source, sink, backlog, lost, gone }
    }

    /// Answers a text that is not passed on. In its own task: the wait for the next message may be
    /// cancelled, and half a response would corrupt what follows.
    fn refuse(&self, id: &Value, code: i32, words: &str) -> JoinHandle<()> {
        let error =
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": words } });
        let (sink, unsent) = (Arc::clone(&self.sink), self.backlog.add_answer(None));
        let lost = self.lost.clone();
        tokio::spawn(async move {
            if sink.lock().await.send(error.to_string()).await.is_err() {
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
            let next = async {
                self.backlog.room().await;
                self.source.next().await
            };
            let text = match self.lost.run_until_cancelled(next).await.flatten() {
                Some(Ok(text)) => text,
                Some(Err(error)) => {
                    // Its last message; it may have stopped reading.
                    let told = self.refuse(&Value::Null, -32700, &error.to_string());
                    let _slow_client = tokio::time::timeout(LAST_WORDS, told).await;
                    break;
                }
                None => break,
            };
            let message = match client_message::read(&text) {
                Ok(message) => message,
                Err(reason) => {
                    match serde_json::from_str::<Value>(&text) {
                        Ok(value) => {
                            let id = value.get("id").cloned().unwrap_or_default();
                            let words = format!("not a JSON-RPC message: {reason}");
                            self.refuse(&id, -32600, &words);
                        }
                        Err(reason) => {
                            let words = format!("not JSON: {reason}");
                            self.refuse(&Value::Null, -32700, &words);
                        }
                    }
                    continue;
                }
            };
            if self.backlog.admit(&message) {
                return Some(message);
            }
            if let JsonRpcMessage::Request(request) = message {
                let id = serde_json::to_value(&request.id).unwrap_or_default();
                let words = format!("{MAX_UNANSWERED} requests are already waiting for responses");
                self.refuse(&id, -32603, &words);
            }
        }
        self.gone.cancel();
        None
    }

    async fn close(&mut self) -> io::Result<()> {
        self.sink.lock().await.close().await
    }
}
