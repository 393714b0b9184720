//! A traffic item in the shape of its JSON, as traces have it on a line.
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

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::CallId;
use super::traffic::{Direction, MessageInfo, Traffic, TrafficKind};
use crate::util::base64;
use crate::util::units::millis;

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

impl From<Traffic> for TraceRow {
    fn from(traffic: Traffic) -> Self {
        let row = Self {
            sequence: traffic.sequence,
            at: traffic.at.as_secs_f64(),
            server: traffic.server,
            call: traffic.call.map(|call| call.0.to_string()),
            ..Self::default()
        };
        let (kind, text) = match traffic.kind {
            TrafficKind::Message { direction, bytes, info, latency } => {
                let (text, base64) = match std::str::from_utf8(&bytes) {
                    Ok(text) => (Some(text.to_owned()), None),
                    Err(_) => (None, Some(base64::encode(&bytes))),
                };
                return Self {
                    direction: Some(direction),
                    latency_ms: latency.map(millis),
                    size: Some(bytes.len()),
                    text,
                    base64,
                    ..row.with_info(info)
                };
            }
            TrafficKind::HttpHead { direction, line, headers, latency } => {
                return Self {
                    kind: TraceRowKind::Head,
                    direction: Some(direction),
                    line: Some(line),
                    headers: Some(headers),
                    latency_ms: latency.map(millis),
                    ..row
                };
            }
            TrafficKind::Stderr(text) => (TraceRowKind::Stderr, text),
            TrafficKind::NonJsonLine(text) => (TraceRowKind::NonJsonLine, text),
            TrafficKind::Opened(text) => (TraceRowKind::Opened, text),
            TrafficKind::Closed(text) => (TraceRowKind::Closed, text),
        };
        Self { kind, text: Some(text), ..row }
    }
}

impl TraceRow {
    fn with_info(self, info: MessageInfo) -> Self {
        let (message_kind, id, method, error) = match info {
            MessageInfo::Request { id, method } => {
                (TraceRowMessageKind::Request, Some(id), Some(method), None)
            }
            MessageInfo::Response { id, method, is_error } => {
                (TraceRowMessageKind::Response, Some(id), method, Some(is_error))
            }
            MessageInfo::Notification { method } => {
                (TraceRowMessageKind::Notification, None, Some(method), None)
            }
            MessageInfo::Unknown => (TraceRowMessageKind::Unknown, None, None, None),
        };
        Self { message_kind: Some(message_kind), id, method, error, ..self }
    }
}

impl TryFrom<TraceRow> for Traffic {
    type Error = &'static str;

    fn try_from(row: TraceRow) -> Result<Self, Self::Error> {
        traffic(row).ok_or("the row is incomplete")
    }
}

/// `None` when something is missing.
fn traffic(row: TraceRow) -> Option<Traffic> {
    let latency = row.latency_ms.and_then(|ms| Duration::try_from_secs_f64(ms / 1000.0).ok());
    let kind = match row.kind {
        TraceRowKind::Message => TrafficKind::Message {
            direction: row.direction?,
            bytes: match (row.text, row.base64) {
                (Some(text), _) => text.into(),
                (None, Some(coded)) => base64::decode(&coded)?.into(),
                (None, None) => return None,
            },
            info: match row.message_kind? {
                TraceRowMessageKind::Request => {
                    MessageInfo::Request { id: row.id?, method: row.method? }
                }
                TraceRowMessageKind::Response => MessageInfo::Response {
                    id: row.id.unwrap_or_default(),
                    method: row.method,
                    is_error: row.error.unwrap_or_default(),
                },
                TraceRowMessageKind::Notification => {
                    MessageInfo::Notification { method: row.method? }
                }
                TraceRowMessageKind::Unknown => MessageInfo::Unknown,
            },
            latency,
        },
        TraceRowKind::Head => TrafficKind::HttpHead {
            direction: row.direction?,
            line: row.line?,
            headers: row.headers.unwrap_or_default(),
            latency,
        },
        TraceRowKind::Stderr => TrafficKind::Stderr(row.text?),
        TraceRowKind::NonJsonLine => TrafficKind::NonJsonLine(row.text?),
        TraceRowKind::Opened => TrafficKind::Opened(row.text?),
        TraceRowKind::Closed => TrafficKind::Closed(row.text?),
    };
    Some(Traffic {
        server: row.server,
        sequence: row.sequence,
        at: Duration::try_from_secs_f64(row.at).ok()?,
        call: row.call.map(|call| CallId(call.into())),
        kind,
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

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
        let line = serde_json::to_string(&message(b"{\"id\": 3}", info)).unwrap();
        insta::assert_snapshot!(line, @r#"{"n":7,"t":1795326611.25,"server":"notes","call":"c1","what":"message","way":"received","kind":"answer","id":3,"method":"ping","error":false,"latency_ms":12.345,"size":9,"text":"{\"id\": 3}"}"#);
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
            let line = serde_json::to_string(&traffic).unwrap();
            assert!(!line.contains('\n'));
            let read: Traffic = serde_json::from_str(&line).unwrap();
            assert_eq!(format!("{read:?}"), format!("{traffic:?}"), "{line}");
        }
    }

    #[test]
    fn a_line_that_lacks_something_is_refused() {
        for line in [
            r#"{"n":1,"t":1,"server":"a","what":"message","way":"sent","kind":"request","text":""}"#,
            r#"{"n":1,"t":1,"server":"a","what":"head","way":"sent"}"#,
            r#"{"n":1,"t":-1,"server":"a","what":"noise","text":""}"#,
        ] {
            let error = serde_json::from_str::<Traffic>(line).unwrap_err();
            assert!(error.to_string().contains("incomplete"), "{line}: {error}");
        }
    }
}
