//! The trace file: all traffic of servers, one JSON object per line.
//!
//! The first line of a run is its header; a file may hold several runs, one after the other:
//!
//! ```json
//! {"toolhost_trace":1,"program":"toolhost 0.1.0","started":1795326611.25}
//! ```
//!
//! Each further line is one item:
//!
//! | key | what |
//! |---|---|
//! | `n` | counts up from 1 for each server in one run |
//! | `t` | when, in seconds since the Unix epoch |
//! | `server` | the server's name |
//! | `call` | the tool call it belongs to, if any |
//! | `what` | `message`, `head`, `stderr`, `noise`, `opened` or `closed` |
//! | `way` | `sent` (to the server) or `received`; of messages and heads |
//! | `kind` | of a message: `request`, `answer`, `notification` or `unknown` |
//! | `id` | of a request or an answer, as it was |
//! | `method` | of a message; of an answer that of its request, when known |
//! | `error` | of an answer: whether it is an error |
//! | `latency_ms` | of an answer or the head of a response: since its request was sent |
//! | `size` | of a message, in bytes |
//! | `text` | the message exactly, without its line end; or the line, the noise, the reason |
//! | `base64` | in place of `text`, for bytes that are not UTF-8 |
//! | `line` | of a head: `POST http://…/mcp` or `200 OK` |
//! | `headers` | of a head: pairs of name and value, in order |

pub mod read;
pub mod write;

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::traffic::{Direction, MessageInfo, TrafficKind};
use crate::model::{CallId, Traffic};
use crate::util::base64;
use crate::util::number::millis;

pub const VERSION: u32 = 1;

/// The first line of a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct TraceHeader {
    /// The version of the format.
    pub toolhost_trace: u32,
    pub program: String,
    /// When the run began, in seconds since the Unix epoch.
    pub started: f64,
}

impl TraceHeader {
    pub fn new(now: Duration) -> Self {
        let program = format!("toolhost {}", env!("CARGO_PKG_VERSION"));
        Self { toolhost_trace: VERSION, program, started: now.as_secs_f64() }
    }
}

/// One item, in the shape of its line.
#[derive(Debug, Clone, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TraceRow {
    #[serde(rename = "n")]
    sequence: u64,
    #[serde(rename = "t")]
    at: f64,
    server: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    call: Option<String>,
    #[serde(rename = "what")]
    kind: TraceRowKind,
    #[serde(rename = "way", default, skip_serializing_if = "Option::is_none")]
    direction: Option<Direction>,
    #[serde(rename = "kind", default, skip_serializing_if = "Option::is_none")]
    message_kind: Option<TraceRowMessageKind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latency_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    headers: Option<Vec<(String, String)>>,
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TraceRowKind {
    #[default]
    Message,
    Head,
    Stderr,
    #[serde(rename = "noise")]
    NonJsonLine,
    Opened,
    Closed,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TraceRowMessageKind {
    Request,
    #[serde(rename = "answer")]
    Response,
    Notification,
    Unknown,
}

impl TraceRow {
    /// The line of an item.
    pub fn of(traffic: &Traffic) -> Self {
        let row = Self {
            sequence: traffic.sequence,
            at: traffic.at.as_secs_f64(),
            server: traffic.server.clone(),
            call: traffic.call.as_ref().map(|call| call.0.to_string()),
            ..Self::default()
        };
        let plain = |kind: TraceRowKind, text: &String| Self {
            kind,
            text: Some(text.clone()),
            ..row.clone()
        };
        match &traffic.kind {
            TrafficKind::Message { direction, bytes, info, latency } => Self {
                direction: Some(*direction),
                latency_ms: latency.map(millis),
                size: Some(bytes.len()),
                ..row.with_info(info).with_bytes(bytes)
            },
            TrafficKind::HttpHead { direction, line, headers, latency } => Self {
                kind: TraceRowKind::Head,
                direction: Some(*direction),
                line: Some(line.clone()),
                headers: Some(headers.clone()),
                latency_ms: latency.map(millis),
                ..row
            },
            TrafficKind::Stderr(text) => plain(TraceRowKind::Stderr, text),
            TrafficKind::NonJsonLine(text) => plain(TraceRowKind::NonJsonLine, text),
            TrafficKind::Opened(text) => plain(TraceRowKind::Opened, text),
            TrafficKind::Closed(text) => plain(TraceRowKind::Closed, text),
        }
    }

    fn with_info(self, info: &MessageInfo) -> Self {
        let (message_kind, id, method, error) = match info {
            MessageInfo::Request { id, method } => {
                (TraceRowMessageKind::Request, Some(id), Some(method), None)
            }
            MessageInfo::Response { id, method, is_error: error } => {
                (TraceRowMessageKind::Response, Some(id), method.as_ref(), Some(*error))
            }
            MessageInfo::Notification { method } => {
                (TraceRowMessageKind::Notification, None, Some(method), None)
            }
            MessageInfo::Unknown => (TraceRowMessageKind::Unknown, None, None, None),
        };
        Self {
            message_kind: Some(message_kind),
            id: id.cloned(),
            method: method.cloned(),
            error,
            ..self
        }
    }

    fn with_bytes(self, bytes: &Bytes) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self { text: Some(text.to_owned()), ..self },
            Err(_) => Self { base64: Some(base64::encode(bytes)), ..self },
        }
    }

    /// The item of a line; `None` when something is missing in it.
    pub fn traffic(self) -> Option<Traffic> {
        let latency = self.latency_ms.and_then(|ms| Duration::try_from_secs_f64(ms / 1000.0).ok());
        let kind = match self.kind {
            TraceRowKind::Message => TrafficKind::Message {
                direction: self.direction?,
                bytes: match (self.text, self.base64) {
                    (Some(text), _) => text.into(),
                    (None, Some(coded)) => base64::decode(&coded)?.into(),
                    (None, None) => return None,
                },
                info: match self.message_kind? {
                    TraceRowMessageKind::Request => {
                        MessageInfo::Request { id: self.id?, method: self.method? }
                    }
                    TraceRowMessageKind::Response => MessageInfo::Response {
                        id: self.id.unwrap_or_default(),
                        method: self.method,
                        is_error: self.error.unwrap_or_default(),
                    },
                    TraceRowMessageKind::Notification => {
                        MessageInfo::Notification { method: self.method? }
                    }
                    TraceRowMessageKind::Unknown => MessageInfo::Unknown,
                },
                latency,
            },
            TraceRowKind::Head => TrafficKind::HttpHead {
                direction: self.direction?,
                line: self.line?,
                headers: self.headers.unwrap_or_default(),
                latency,
            },
            TraceRowKind::Stderr => TrafficKind::Stderr(self.text?),
            TraceRowKind::NonJsonLine => TrafficKind::NonJsonLine(self.text?),
            TraceRowKind::Opened => TrafficKind::Opened(self.text?),
            TraceRowKind::Closed => TrafficKind::Closed(self.text?),
        };
        Some(Traffic {
            server: self.server,
            sequence: self.sequence,
            at: Duration::try_from_secs_f64(self.at).ok()?,
            call: self.call.map(|call| CallId(call.into())),
            kind,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(what: TrafficKind) -> Traffic {
        Traffic {
            server: "notes".to_owned(),
            sequence: 7,
            at: Duration::from_millis(1_795_326_611_250),
            call: Some(CallId("c1".into())),
            kind: what,
        }
    }

    fn message(bytes: &'static [u8], info: MessageInfo) -> Traffic {
        item(TrafficKind::Message {
            direction: Direction::Received,
            bytes: Bytes::from_static(bytes),
            info,
            latency: Some(Duration::from_micros(12_345)),
        })
    }

    #[test]
    fn a_line_is_what_the_table_says() {
        let info = MessageInfo::Response {
            id: 3.into(),
            method: Some("ping".to_owned()),
            is_error: false,
        };
        let line = serde_json::to_string(&TraceRow::of(&message(b"{\"id\": 3}", info))).unwrap();
        insta::assert_snapshot!(line, @r#"{"n":7,"t":1795326611.25,"server":"notes","call":"c1","what":"message","way":"received","kind":"answer","id":3,"method":"ping","error":false,"latency_ms":12.345,"size":9,"text":"{\"id\": 3}"}"#);
        let header = serde_json::to_value(TraceHeader::new(Duration::from_secs(5))).unwrap();
        assert_eq!((&header["toolhost_trace"], &header["started"]), (&1.into(), &5.0.into()));
    }

    #[test]
    fn what_is_written_reads_back() {
        let head = TrafficKind::HttpHead {
            direction: Direction::Sent,
            line: "POST http://127.0.0.1/mcp".to_owned(),
            headers: vec![("a".to_owned(), "b".to_owned()), ("a".to_owned(), "c".to_owned())],
            latency: None,
        };
        for traffic in [
            message(b"\xff\x00{", MessageInfo::Unknown),
            message(b"{}", MessageInfo::Response { id: Value::Null, method: None, is_error: true }),
            message(b"{}", MessageInfo::Request { id: "x".into(), method: "m".to_owned() }),
            message(b"{}", MessageInfo::Notification { method: "n".to_owned() }),
            item(head),
            item(TrafficKind::Stderr("\u{1b}[2J\r".to_owned())),
            item(TrafficKind::NonJsonLine(String::new())),
            item(TrafficKind::Opened("sh -c true".to_owned())),
            item(TrafficKind::Closed("gone".to_owned())),
        ] {
            let line = serde_json::to_string(&TraceRow::of(&traffic)).unwrap();
            assert!(!line.contains('\n'));
            let row: TraceRow = serde_json::from_str(&line).unwrap();
            assert_eq!(format!("{:?}", row.traffic().unwrap()), format!("{traffic:?}"), "{line}");
        }
    }

    #[test]
    fn a_line_that_lacks_something_is_none() {
        for line in [
            r#"{"n":1,"t":1,"server":"a","what":"message","way":"sent","kind":"request","text":""}"#,
            r#"{"n":1,"t":1,"server":"a","what":"head","way":"sent"}"#,
            r#"{"n":1,"t":-1,"server":"a","what":"noise","text":""}"#,
        ] {
            assert!(serde_json::from_str::<TraceRow>(line).unwrap().traffic().is_none(), "{line}");
        }
    }
}
