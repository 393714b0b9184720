//! A connection between a front end and a background host, line by line.

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

/// The code of an error that only means that something went wrong (JSON-RPC 2.0).
pub(in crate::serve) const INTERNAL: i32 = -32_603;

/// The lines in both directions, at either end.
pub(in crate::serve) struct LineConnection {
    /// What the other end sends.
    pub(in crate::serve) input: FramedRead<OwnedReadHalf, LinesCodec>,
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

    pub(in crate::serve) fn number(&self) -> Option<u64> {
        self.id?.get().parse().ok()
    }
}

/// One request as a line; empty when it cannot be written.
pub(in crate::serve) fn request(id: u64, method: &str, params: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Request<'a, P> {
        jsonrpc: &'static str,
        id: u64,
        method: &'a str,
        params: &'a P,
    }
    line(&Request { jsonrpc: "2.0", id, method, params }).unwrap_or_default()
}

pub(in crate::serve) fn answer(id: u64, result: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Answer<'a, R> {
        jsonrpc: &'static str,
        id: u64,
        result: &'a R,
    }
    let answer = line(&Answer { jsonrpc: "2.0", id, result });
    answer.unwrap_or_else(|unwritable| error(id, INTERNAL, &unwritable.to_string()))
}

/// The answer to a request that failed as a line.
pub(in crate::serve) fn error(id: u64, code: i32, reason: &str) -> String {
    message(&json!({ "id": id, "error": { "code": code, "message": reason } }))
}

/// One message as a line; `content` is everything but the version.
pub(in crate::serve) fn message(content: &Value) -> String {
    #[derive(Serialize)]
    struct Versioned<'a> {
        jsonrpc: &'static str,
        #[serde(flatten)]
        content: &'a Value,
    }
    line(&Versioned { jsonrpc: "2.0", content }).unwrap_or_default()
}

/// JSON on one line, with its end. A part that came from another program may have line breaks between
/// its tokens; elsewhere JSON has none.
fn line(value: &impl Serialize) -> serde_json::Result<String> {
    let mut text = serde_json::to_string(value)?;
    if text.contains(['\n', '\r']) {
        text = text.replace(['\n', '\r'], " ");
    }
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_message_is_one_line_whatever_is_in_it() {
        let raw =
            RawValue::from_string("{\n  \"a\": \"x\\n\",\r\n  \"b\": 1\n}".to_owned()).unwrap();
        let line = request(1, "m", &raw);
        assert_eq!(line.lines().count(), 1, "{line}");
        let read: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read["params"], json!({ "a": "x\n", "b": 1 }));
    }

    #[test]
    fn a_result_that_cannot_be_written_is_an_error() {
        // A key of JSON is a text.
        let line = answer(7, &BTreeMap::from([((1, 2), 3)]));
        let parts = MessageParts::read(&line).unwrap();
        assert_eq!(parts.number(), Some(7));
        assert_eq!(parts.error.unwrap()["code"], INTERNAL);
    }
}
