//! Tests of the HTTP wire against real sockets.

mod broken;
mod exchange;
pub(super) mod socket;
mod sse_wire;
pub(super) mod tls;
mod traced;
mod web_socket;

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use url::Url;

use super::{HttpLimits, HttpTarget, HttpWire};
use crate::mcp::wire::{Arrival, FrameKind, OutgoingFrame, Wire as _};
use crate::model::{Era, Error, ErrorKind};
use crate::net::test_server::{TestResponse, TestServer};

const JSON: [&str; 2] = ["Content-Type: application/json", "Transfer-Encoding: chunked"];

pub(super) fn target(url: Url) -> HttpTarget {
    let limits = HttpLimits {
        reconnect_wait: Duration::from_millis(1),
        stable_after: Duration::from_mins(1),
        ..HttpLimits::default()
    };
    HttpTarget { limits, ..HttpTarget::new(url) }
}

pub(super) fn wire_to(url: Url) -> HttpWire {
    HttpWire::connect(target(url)).unwrap()
}

fn wire(peer: &TestServer) -> HttpWire {
    wire_to(peer.url("/mcp"))
}

pub(super) fn legacy(peer: &TestServer) -> HttpWire {
    let wire = wire(peer);
    wire.set_agreement(Era::Legacy, "2025-11-25");
    wire
}

pub(super) fn modern(peer: &TestServer) -> HttpWire {
    let wire = wire(peer);
    wire.set_agreement(Era::Modern, "2026-07-28");
    wire
}

fn request(id: u64, method: &str) -> OutgoingFrame {
    let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": {} });
    OutgoingFrame {
        bytes: Bytes::from(body.to_string()),
        call: None,
        kind: FrameKind::Request {
            id: json!(id),
            method: method.to_owned(),
            name: None,
            headers: Vec::new(),
        },
    }
}

fn notification(method: &str, cancels: Option<Value>) -> OutgoingFrame {
    let body = json!({ "jsonrpc": "2.0", "method": method });
    OutgoingFrame {
        bytes: Bytes::from(body.to_string()),
        call: None,
        kind: FrameKind::Notification { method: method.to_owned(), cancels },
    }
}

fn initialized() -> OutgoingFrame {
    notification("notifications/initialized", None)
}

/// What became of one request.
#[derive(Debug)]
pub(super) struct WireCallOutcome {
    messages: Vec<String>,
    warnings: Vec<String>,
    pub(super) error: Option<Error>,
}

impl WireCallOutcome {
    fn error(&self, kind: ErrorKind, part: &str) -> &Error {
        let error = self.error.as_ref().unwrap_or_else(|| panic!("no fault: {self:?}"));
        assert_eq!(error.kind(), kind, "{error:?}");
        let text = format!("{} {:?}", error.message(), error.details());
        assert!(text.contains(part), "'{part}' is not in: {text}");
        error
    }
}

/// Sends a request and reads to its ending.
pub(super) async fn call(wire: &HttpWire, id: u64, method: &str) -> WireCallOutcome {
    let mut outcome = WireCallOutcome { messages: Vec::new(), warnings: Vec::new(), error: None };
    if let Err(error) = wire.send(request(id, method)).await {
        outcome.error = Some(error);
        return outcome;
    }
    loop {
        match wire.receive().await {
            Arrival::Message { incoming, .. } => {
                let text = String::from_utf8_lossy(&incoming.bytes).into_owned();
                let value: Value = serde_json::from_str(&text).unwrap_or_default();
                outcome.messages.push(text);
                if value["id"] == id && value.get("method").is_none() {
                    return outcome;
                }
            }
            Arrival::Warning(warning) => outcome.warnings.push(warning.clone()),
            Arrival::Failed { id: failed, error } => {
                assert_eq!(failed, id);
                outcome.error = Some(error);
                return outcome;
            }
            Arrival::Closed(error) => panic!("closed: {error}"),
        }
    }
}

/// One request to a server that gives `reply` to everything.
async fn ask(reply: impl Fn() -> TestResponse + Send + Sync + 'static) -> WireCallOutcome {
    let peer = TestServer::start(move |_, _| reply()).await;
    call(&legacy(&peer), 1, "tools/list").await
}

async fn ask_status(
    status: &'static str,
    headers: &'static [&str],
    body: &'static str,
) -> WireCallOutcome {
    ask(move || TestResponse::full(status, headers, body)).await
}
