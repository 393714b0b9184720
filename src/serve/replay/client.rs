//! Messages to and from the client of a replay, within bounds.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::StreamExt as _;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;
use tokio_util::codec::{AnyDelimiterCodec, AnyDelimiterCodecError, FramedRead};

use super::WarningSink;
use crate::mcp::message::{
    INVALID_REQUEST, Incoming, PARSE_ERROR, ParsedInput, RpcMessage, trim_bytes,
};
use crate::mcp::wire::MESSAGE_LIMIT;
use crate::model::Error;

const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);
/// How many messages may come while such an answer is waited for.
const MAX_QUEUED: usize = 1_000;

pub(super) enum ClientEnd {
    Disconnected,
    ProtocolError(Error),
}

pub(super) struct ReplayClient<R, W> {
    input: FramedRead<R, AnyDelimiterCodec>,
    output: W,
    /// What came and was not handed over yet.
    queued: VecDeque<RpcMessage>,
    questions: u64,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> ReplayClient<R, W> {
    pub(super) fn new(input: R, output: W) -> Self {
        let end = b"\n".to_vec();
        let lines = AnyDelimiterCodec::new_with_max_length(end.clone(), end, MESSAGE_LIMIT);
        let input = FramedRead::new(input, lines);
        Self { input, output, queued: VecDeque::new(), questions: 0 }
    }

    /// The next message of the client; anything but JSON is refused and skipped.
    pub(super) async fn next(&mut self) -> Result<RpcMessage, ClientEnd> {
        loop {
            if let Some(message) = self.queued.pop_front() {
                return Ok(message);
            }
            let messages = self.read().await?;
            self.queued.extend(messages);
        }
    }

    /// Reads the messages of one line. Cancel-safe.
    async fn read(&mut self) -> Result<Vec<RpcMessage>, ClientEnd> {
        loop {
            let line = match self.input.next().await {
                Some(Ok(line)) => line,
                Some(Err(AnyDelimiterCodecError::MaxChunkLengthExceeded)) => {
                    let limit = MESSAGE_LIMIT >> 20;
                    let what = format!("limit: a message of the client is larger than {limit} MiB");
                    return Err(ClientEnd::ProtocolError(Error::protocol(what)));
                }
                Some(Err(AnyDelimiterCodecError::Io(_))) | None => {
                    return Err(ClientEnd::Disconnected);
                }
            };
            if line.trim_ascii().is_empty() {
                continue;
            }
            let Incoming { bytes, input } = Incoming::read(line);
            let (code, text) = match input {
                ParsedInput::Messages(messages, _) if messages.is_empty() => {
                    (INVALID_REQUEST, "not a JSON-RPC message".to_owned())
                }
                ParsedInput::Messages(messages, _) => return Ok(messages),
                ParsedInput::NonMessage(text) => {
                    let bytes = trim_bytes(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes));
                    let is_json = serde_json::from_slice::<IgnoredAny>(bytes).is_ok();
                    let code = if is_json { INVALID_REQUEST } else { PARSE_ERROR };
                    (code, format!("not a JSON-RPC message: {text}"))
                }
                ParsedInput::Unreadable(error) | ParsedInput::Broken(error) => {
                    (PARSE_ERROR, error.message().to_owned())
                }
            };
            self.refuse(&Value::Null, code, &text).await?;
        }
    }

    pub(super) async fn send(&mut self, message: &Value) -> Result<(), ClientEnd> {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        let written = async {
            self.output.write_all(&line).await?;
            self.output.flush().await
        };
        // A client that does not listen any more has left.
        written.await.map_err(|_| ClientEnd::Disconnected)
    }

    pub(super) async fn answer(&mut self, id: &Value, result: Value) -> Result<(), ClientEnd> {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result })).await
    }

    /// Answers the request `id` with a JSON-RPC error.
    pub(super) async fn refuse(
        &mut self,
        id: &Value,
        code: i64,
        text: &str,
    ) -> Result<(), ClientEnd> {
        let error = json!({ "code": code, "message": text });
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error })).await
    }

    /// Asks a recorded question and waits for any answer.
    pub(super) async fn ask(
        &mut self,
        mut question: Value,
        method: &str,
        note: WarningSink<'_>,
    ) -> Result<(), ClientEnd> {
        self.questions += 1;
        let id = Value::from(format!("replay-{}", self.questions));
        if let Some(slot) = question.get_mut("id") {
            *slot = id.clone();
        }
        self.send(&question).await?;
        let answered = timeout(ANSWER_TIMEOUT, async {
            loop {
                let mut messages = self.read().await?;
                let is_answer = |message: &RpcMessage| match message {
                    RpcMessage::Response { id: answered, .. } => *answered == id,
                    _ => false,
                };
                let is_answered = messages.iter().any(is_answer);
                messages.retain(|message| !is_answer(message));
                if self.queued.len() < MAX_QUEUED {
                    self.queued.extend(messages);
                }
                if is_answered {
                    return Ok(());
                }
            }
        });
        answered.await.unwrap_or_else(|_| {
            note(&format!("no response to {method} within {} s", ANSWER_TIMEOUT.as_secs()));
            Ok(())
        })
    }
}
