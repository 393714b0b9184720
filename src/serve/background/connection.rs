//! A connection between a front end and a background host, line by line.
//!
//! Owns: how messages become lines, the parts of a line, and the bound of a line. Never does: know what a
//! message means.

use std::borrow::Cow;

use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio_util::codec::{FramedRead, LinesCodec, LinesCodecError};

use crate::util::local_peer;

/// The lines in both directions, at either end.
pub(in crate::serve) struct LineConnection {
    /// What the other end sends.
    pub(in crate::serve) input: FramedRead<OwnedReadHalf, LinesCodec>,
    /// What it is sent.
    pub(in crate::serve) output: OwnedWriteHalf,
}

impl LineConnection {
    /// A connection whose other end may send lines of `max_length` bytes.
    pub(in crate::serve) fn new(stream: UnixStream, max_length: usize) -> Self {
        let (input, output) = stream.into_split();
        let input = FramedRead::new(input, LinesCodec::new_with_max_length(max_length));
        Self { input, output }
    }

    /// The next line; `None` at the end. May be dropped while it waits.
    pub(in crate::serve) async fn next(&mut self) -> Option<Result<String, LinesCodecError>> {
        self.input.next().await
    }

    /// Sends a line with its end; `None` when the other end is gone.
    pub(in crate::serve) async fn send(&mut self, line: &str) -> Option<()> {
        self.output.write_all(line.as_bytes()).await.ok()
    }

    /// Whether the other end has not read all that it was sent.
    pub(in crate::serve) fn has_unread(&self) -> bool {
        local_peer::has_unread(self.output.as_ref())
    }
}

/// A JSON-RPC message as it came, in parts.
#[derive(Deserialize)]
pub(in crate::serve) struct MessageParts<'a> {
    #[serde(borrow)]
    pub(in crate::serve) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(in crate::serve) method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(in crate::serve) params: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(in crate::serve) result: Option<&'a RawValue>,
    pub(in crate::serve) error: Option<Value>,
}

impl<'a> MessageParts<'a> {
    /// The parts of a line; `None` for one that is not JSON.
    pub(in crate::serve) fn read(line: &'a str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }

    /// The id, of a message of this program.
    pub(in crate::serve) fn number(&self) -> Option<u64> {
        self.id?.get().parse().ok()
    }
}

/// One request as a line.
pub(in crate::serve) fn request(id: u64, method: &str, params: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Request<'a, P> {
        jsonrpc: &'static str,
        id: u64,
        method: &'a str,
        params: &'a P,
    }
    text(&Request { jsonrpc: "2.0", id, method, params }) + "\n"
}

/// The answer to a request as a line.
pub(in crate::serve) fn answer(id: u64, result: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Answer<'a, R> {
        jsonrpc: &'static str,
        id: u64,
        result: &'a R,
    }
    text(&Answer { jsonrpc: "2.0", id, result }) + "\n"
}

/// The answer to a request that failed as a line.
pub(in crate::serve) fn error(id: u64, code: i32, words: &str) -> String {
    message(&json!({ "id": id, "error": { "code": code, "message": words } }))
}

/// One message as a line; `content` is everything but the version.
pub(in crate::serve) fn message(content: &Value) -> String {
    #[derive(Serialize)]
    struct Versioned<'a> {
        jsonrpc: &'static str,
        #[serde(flatten)]
        content: &'a Value,
    }
    text(&Versioned { jsonrpc: "2.0", content }) + "\n"
}

/// A shape as JSON. Nothing that is sent holds the text of another, which may have line breaks.
pub(in crate::serve) fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
