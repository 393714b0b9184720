//! The trace file: everything that crossed the wires of servers, one JSON object a line.
//!
//! Owns: the shape of its lines; writing ([`mod@write`]) and reading ([`read`]) them. Nothing is lost:
//! a message is kept byte for byte. Secrets are taken out before anything comes here.
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

use crate::model::traffic::{Direction, Glance, Passed};
use crate::model::{CallId, Traffic};
use crate::util::base64;

/// The version of the format, in the header.
pub const VERSION: u32 = 1;

/// The first line of a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Header {
    /// The version of the format.
    pub toolhost_trace: u32,
    /// What wrote it.
    pub program: String,
    /// When the run began, in seconds since the Unix epoch.
    pub started: f64,
}

impl Header {
    /// The header of a run that begins now.
    pub fn new(now: Duration) -> Self {
        let program = format!("toolhost {}", env!("CARGO_PKG_VERSION"));
        Self { toolhost_trace: VERSION, program, started: now.as_secs_f64() }
    }
}

/// One item, in the shape of its line.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Row {
    n: u64,
    t: f64,
    server: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    call: Option<String>,
    what: What,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    way: Option<Way>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<Kind>,
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

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum What {
    #[default]
    Message,
    Head,
    Stderr,
    Noise,
    Opened,
    Closed,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Way {
    Sent,
    Received,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Request,
    Answer,
    Notification,
    Unknown,
}

impl Row {
    /// The line of an item.
    pub fn of(traffic: &Traffic) -> Self {
        let row = Self {
            n: traffic.sequence,
            t: traffic.at.as_secs_f64(),
            server: traffic.server.clone(),
            call: traffic.call.as_ref().map(|call| call.0.clone()),
            ..Self::default()
        };
        let plain =
            |what: What, text: &String| Self { what, text: Some(text.clone()), ..row.clone() };
        match &traffic.what {
            Passed::Message { direction, bytes, glance, latency } => Self {
                way: Some(way(*direction)),
                latency_ms: latency.map(millis),
                size: Some(bytes.len()),
                ..row.glanced(glance).with_bytes(bytes)
            },
            Passed::Head { direction, line, headers, latency } => Self {
                what: What::Head,
                way: Some(way(*direction)),
                line: Some(line.clone()),
                headers: Some(headers.clone()),
                latency_ms: latency.map(millis),
                ..row
            },
            Passed::Stderr(text) => plain(What::Stderr, text),
            Passed::Noise(text) => plain(What::Noise, text),
            Passed::Opened(text) => plain(What::Opened, text),
            Passed::Closed(text) => plain(What::Closed, text),
        }
    }

    fn glanced(self, glance: &Glance) -> Self {
        let (kind, id, method, error) = match glance {
            Glance::Request { id, method } => (Kind::Request, Some(id), Some(method), None),
            Glance::Answer { id, method, error } => {
                (Kind::Answer, Some(id), method.as_ref(), Some(*error))
            }
            Glance::Notification { method } => (Kind::Notification, None, Some(method), None),
            Glance::Unknown => (Kind::Unknown, None, None, None),
        };
        Self { kind: Some(kind), id: id.cloned(), method: method.cloned(), error, ..self }
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
        let what = match self.what {
            What::Message => Passed::Message {
                direction: direction(self.way?),
                bytes: match (self.text, self.base64) {
                    (Some(text), _) => text.into(),
                    (None, Some(coded)) => base64::decode(&coded)?.into(),
                    (None, None) => return None,
                },
                glance: match self.kind? {
                    Kind::Request => Glance::Request { id: self.id?, method: self.method? },
                    Kind::Answer => Glance::Answer {
                        id: self.id.unwrap_or_default(),
                        method: self.method,
                        error: self.error.unwrap_or_default(),
                    },
                    Kind::Notification => Glance::Notification { method: self.method? },
                    Kind::Unknown => Glance::Unknown,
                },
                latency,
            },
            What::Head => Passed::Head {
                direction: direction(self.way?),
                line: self.line?,
                headers: self.headers.unwrap_or_default(),
                latency,
            },
            What::Stderr => Passed::Stderr(self.text?),
            What::Noise => Passed::Noise(self.text?),
            What::Opened => Passed::Opened(self.text?),
            What::Closed => Passed::Closed(self.text?),
        };
        Some(Traffic {
            server: self.server,
            sequence: self.n,
            at: Duration::try_from_secs_f64(self.t).ok()?,
            call: self.call.map(CallId),
            what,
        })
    }
}

fn way(direction: Direction) -> Way {
    match direction {
        Direction::Sent => Way::Sent,
        Direction::Received => Way::Received,
    }
}

fn direction(way: Way) -> Direction {
    match way {
        Way::Sent => Direction::Sent,
        Way::Received => Direction::Received,
    }
}

/// Milliseconds, to the microsecond.
fn millis(duration: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "2^53 microseconds are 285 years")]
    let millis = duration.as_micros() as f64 / 1000.0;
    millis
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(what: Passed) -> Traffic {
        Traffic {
            server: "notes".to_owned(),
            sequence: 7,
            at: Duration::from_millis(1_795_326_611_250),
            call: Some(CallId("c1".to_owned())),
            what,
        }
    }

    fn message(bytes: &'static [u8], glance: Glance) -> Traffic {
        item(Passed::Message {
            direction: Direction::Received,
            bytes: Bytes::from_static(bytes),
            glance,
            latency: Some(Duration::from_micros(12_345)),
        })
    }

    #[test]
    fn a_line_is_what_the_table_says() {
        let glance = Glance::Answer { id: 3.into(), method: Some("ping".to_owned()), error: false };
        let line = serde_json::to_string(&Row::of(&message(b"{\"id\": 3}", glance))).unwrap();
        insta::assert_snapshot!(line, @r#"{"n":7,"t":1795326611.25,"server":"notes","call":"c1","what":"message","way":"received","kind":"answer","id":3,"method":"ping","error":false,"latency_ms":12.345,"size":9,"text":"{\"id\": 3}"}"#);
        let header = serde_json::to_value(Header::new(Duration::from_secs(5))).unwrap();
        assert_eq!((&header["toolhost_trace"], &header["started"]), (&1.into(), &5.0.into()));
    }

    #[test]
    fn what_is_written_reads_back() {
        let head = Passed::Head {
            direction: Direction::Sent,
            line: "POST http://127.0.0.1/mcp".to_owned(),
            headers: vec![("a".to_owned(), "b".to_owned()), ("a".to_owned(), "c".to_owned())],
            latency: None,
        };
        for traffic in [
            message(b"\xff\x00{", Glance::Unknown),
            message(b"{}", Glance::Answer { id: Value::Null, method: None, error: true }),
            message(b"{}", Glance::Request { id: "x".into(), method: "m".to_owned() }),
            message(b"{}", Glance::Notification { method: "n".to_owned() }),
            item(head),
            item(Passed::Stderr("\u{1b}[2J\r".to_owned())),
            item(Passed::Noise(String::new())),
            item(Passed::Opened("sh -c true".to_owned())),
            item(Passed::Closed("gone".to_owned())),
        ] {
            let line = serde_json::to_string(&Row::of(&traffic)).unwrap();
            assert!(!line.contains('\n'));
            let row: Row = serde_json::from_str(&line).unwrap();
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
            assert!(serde_json::from_str::<Row>(line).unwrap().traffic().is_none(), "{line}");
        }
    }
}
