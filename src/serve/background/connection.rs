//! One connection to a background host, message by message.
//!
//! Owns: the handshake, how lines become messages, and the bound of a line. Never does: know what a
//! request is for.

use std::collections::BTreeMap;

use futures_util::StreamExt as _;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio_util::codec::{FramedRead, LinesCodec};

use super::protocol::{self, SentObservation};
use crate::host::link::{LinkError, Observation};
use crate::model::{CallId, Error, HostEvent, LogLevel};

/// The longest line that is read of a host, in bytes.
const MAX_ANSWER: usize = 256 << 20;
/// The identity of the first request of each connection.
const HANDSHAKE_ID: u64 = 0;

/// The parts of an open connection.
pub(super) struct HostConnection {
    input: FramedRead<OwnedReadHalf, LinesCodec>,
    output: OwnedWriteHalf,
    /// What goes out with the next line, in one write.
    held_back: String,
}

impl HostConnection {
    /// Begins to speak, as a front end called `name`, over a stream that was just opened. The host can
    /// answer while the front end does something else; [`HostConnection::handshake`] takes the answer.
    /// `None` when the host is gone.
    pub(super) async fn begin(stream: UnixStream, name: &str) -> Option<Self> {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "elicitation": { "form": {}, "url": {} }, "sampling": {} },
            "clientInfo": { "name": name, "version": env!("CARGO_PKG_VERSION") },
        });
        let hello = request(HANDSHAKE_ID, "initialize", &params);
        let (input, output) = stream.into_split();
        let input = FramedRead::new(input, LinesCodec::new_with_max_length(MAX_ANSWER));
        let mut connection = Self { input, output, held_back: String::new() };
        connection.send(&hello).await?;
        Some(connection)
    }

    /// The next line; `None` when the host is gone, or what it sends is not a line.
    pub(super) async fn next(&mut self) -> Option<String> {
        self.input.next().await?.ok()
    }

    /// Sends a line with its end; `None` when the host is gone.
    pub(super) async fn send(&mut self, line: &str) -> Option<()> {
        if self.held_back.is_empty() {
            return self.output.write_all(line.as_bytes()).await.ok();
        }
        let lines = std::mem::take(&mut self.held_back) + line;
        self.output.write_all(lines.as_bytes()).await.ok()
    }

    /// Takes the host's answer to the beginning; `None` when it does not agree. That the front end is
    /// ready goes out with its first request.
    pub(super) async fn handshake(&mut self) -> Option<()> {
        let answer = self.next().await?;
        let is_agreed =
            matches!(HostMessage::read(&answer, None)?, HostMessage::Answer(HANDSHAKE_ID, Ok(_)));
        let ready = json!({ "method": "notifications/initialized" });
        self.held_back = message(&ready);
        is_agreed.then_some(())
    }
}

/// A line of a host, its large parts as they came.
#[derive(Deserialize)]
struct HostLine<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<Value>,
}

/// What a host says.
pub(super) enum HostMessage {
    /// The answer to a request: the JSON of its result.
    Answer(u64, Result<String, LinkError>),
    /// The host ends, and the request with it.
    Ended,
    Request(Value, Value),
    /// How far the request is, or what was logged for it.
    Event(HostEvent),
    /// What is observed, in order.
    Observed(Vec<Observation>),
}

impl HostMessage {
    /// Reads a line during the request for `call`; `None` for one that says nothing to a front end.
    pub(super) fn read(line: &str, call: Option<&CallId>) -> Option<Self> {
        let HostLine { id, method, params, result, error } = serde_json::from_str(line).ok()?;
        let id: Option<Value> = id.and_then(|id| serde_json::from_str(id.get()).ok());
        if let (Some(id), None) = (&id, &method) {
            let answer = match error {
                Some(error) if code(&error) == Some(protocol::ENDED) => return Some(Self::Ended),
                Some(error) => Err(refusal(&error)),
                None => Ok(result.map_or("null", RawValue::get).to_owned()),
            };
            return Some(Self::Answer(id.as_u64()?, answer));
        }
        let params = params.and_then(|params| serde_json::from_str(params.get()).ok());
        let params: Value = params.unwrap_or_default();
        match (id, method.as_deref()) {
            (Some(id), Some(_)) => Some(Self::Request(id, params)),
            (None, Some(protocol::OBSERVED)) => {
                let lines = params.get(protocol::PAYLOAD).and_then(Value::as_str)?;
                Some(Self::Observed(SentObservation::read(lines)))
            }
            (None, Some("notifications/progress")) => {
                let number = |key: &str| params.get(key).and_then(Value::as_f64);
                let text = params.get("message").and_then(Value::as_str);
                Some(Self::Event(HostEvent::Progress {
                    call_id: call.cloned().unwrap_or_else(|| CallId(String::new())),
                    progress: number("progress")?,
                    total: number("total"),
                    message: text.map(str::to_owned),
                }))
            }
            (None, Some("notifications/message")) => {
                let text = |key: &str| params.get(key).and_then(Value::as_str).map(str::to_owned);
                Some(Self::Event(HostEvent::Log {
                    origin: text("logger")?,
                    call_id: call.cloned(),
                    level: LogLevel(text("level")?),
                    text: text("data")?,
                }))
            }
            _ => None,
        }
    }
}

fn code(error: &Value) -> Option<i32> {
    error.get("code").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok())
}

/// What an error of the protocol means: the host either ends, or refused.
fn refusal(error: &Value) -> LinkError {
    if code(error) == Some(protocol::NOT_CURRENT) {
        return LinkError::Unsent;
    }
    let words = error.get("message").and_then(Value::as_str).unwrap_or("no reason given");
    LinkError::Lost(
        Error::unreachable(format!("the background host refused: {words}"))
            .with_hint("--fresh runs without it"),
    )
}

/// One request as a line.
pub(super) fn request(id: u64, method: &str, params: &Value) -> String {
    #[derive(Serialize)]
    struct Request<'a> {
        jsonrpc: &'static str,
        id: u64,
        method: &'a str,
        params: &'a Value,
    }
    text(&Request { jsonrpc: "2.0", id, method, params }) + "\n"
}

/// One message as a line; `content` is everything but the version.
pub(super) fn message(content: &Value) -> String {
    #[derive(Serialize)]
    struct Versioned<'a> {
        jsonrpc: &'static str,
        #[serde(flatten)]
        content: &'a Value,
    }
    text(&Versioned { jsonrpc: "2.0", content }) + "\n"
}

/// A shape as the text that carries it.
pub(super) fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// A member of an object, both as JSON; `null` where there is none.
pub(super) fn member<'a>(object: &'a str, name: &str) -> &'a str {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(object).unwrap_or_default();
    members.get(name).map_or("null", |value| value.get())
}

/// The text in one member of an object, which is JSON; empty where there is none.
pub(super) fn payload(object: &str, name: &str) -> String {
    serde_json::from_str(member(object, name)).unwrap_or_default()
}

/// Reads what travels as a text in one member of an object, which is JSON.
pub(super) fn read_payload<T: DeserializeOwned>(object: &str, name: &str) -> Result<T, LinkError> {
    serde_json::from_str(&payload(object, name)).map_err(|error| {
        LinkError::Lost(Error::protocol(format!(
            "the background host's response is invalid: {error}"
        )))
    })
}
