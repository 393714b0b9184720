//! The wire against real sockets: one test for each promise and each way a server can break one.

mod broken;
mod exchange;
pub(super) mod socket;
pub(super) mod tls;
mod traced;
mod with_sse;

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use url::Url;

use super::{HttpLimits, HttpTarget, HttpWire};
use crate::mcp::wire::{Arrival, Frame, FrameKind, Wire as _};
use crate::model::{Era, Fault, FaultKind};
use crate::net::peer::{Peer, Reply};

const JSON: [&str; 2] = ["Content-Type: application/json", "Transfer-Encoding: chunked"];

pub(super) fn target(url: Url) -> HttpTarget {
    let limits = HttpLimits {
        reconnect_wait: Duration::from_millis(1),
        steady: Duration::from_mins(1),
        ..HttpLimits::default()
    };
    HttpTarget { limits, ..HttpTarget::new(url) }
}

pub(super) fn wire_to(url: Url) -> HttpWire {
    HttpWire::connect(target(url)).unwrap()
}

fn wire(peer: &Peer) -> HttpWire {
    wire_to(peer.url("/mcp"))
}

pub(super) fn legacy(peer: &Peer) -> HttpWire {
    let wire = wire(peer);
    wire.agreed(Era::Legacy, "2025-11-25");
    wire
}

pub(super) fn modern(peer: &Peer) -> HttpWire {
    let wire = wire(peer);
    wire.agreed(Era::Modern, "2026-07-28");
    wire
}

fn request(id: u64, method: &str) -> Frame {
    let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": {} });
    Frame {
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

fn notification(method: &str, cancels: Option<Value>) -> Frame {
    let body = json!({ "jsonrpc": "2.0", "method": method });
    Frame {
        bytes: Bytes::from(body.to_string()),
        call: None,
        kind: FrameKind::Notification { method: method.to_owned(), cancels },
    }
}

fn initialized() -> Frame {
    notification("notifications/initialized", None)
}

/// What became of one request.
#[derive(Debug)]
pub(super) struct Outcome {
    messages: Vec<String>,
    noise: Vec<String>,
    pub(super) fault: Option<Fault>,
}

impl Outcome {
    fn fault(&self, kind: FaultKind, part: &str) -> &Fault {
        let fault = self.fault.as_ref().unwrap_or_else(|| panic!("no fault: {self:?}"));
        assert_eq!(fault.kind(), kind, "{fault:?}");
        let text = format!("{} {:?}", fault.message(), fault.detail_lines());
        assert!(text.contains(part), "'{part}' is not in: {text}");
        fault
    }
}

/// Sends a request and reads to its ending.
pub(super) async fn call(wire: &HttpWire, id: u64, method: &str) -> Outcome {
    let mut outcome = Outcome { messages: Vec::new(), noise: Vec::new(), fault: None };
    if let Err(fault) = wire.send(request(id, method)).await {
        outcome.fault = Some(fault);
        return outcome;
    }
    loop {
        match wire.receive().await {
            Arrival::Message { bytes, .. } => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let value: Value = serde_json::from_str(&text).unwrap_or_default();
                outcome.messages.push(text);
                if value["id"] == id && value.get("method").is_none() {
                    return outcome;
                }
            }
            Arrival::Noise(noise) => outcome.noise.push(noise),
            Arrival::Failed { id: failed, fault } => {
                assert_eq!(failed, id);
                outcome.fault = Some(fault);
                return outcome;
            }
            Arrival::Closed(fault) => panic!("closed: {fault}"),
        }
    }
}

/// One request to a server that gives `reply` to everything.
async fn ask(reply: impl Fn() -> Reply + Send + Sync + 'static) -> Outcome {
    let peer = Peer::start(move |_, _| reply()).await;
    call(&legacy(&peer), 1, "tools/list").await
}

/// The same with a response of this status and body.
async fn ask_status(status: &'static str, headers: &'static [&str], body: &'static str) -> Outcome {
    ask(move || Reply::full(status, headers, body)).await
}
