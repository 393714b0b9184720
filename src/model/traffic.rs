//! Traffic between toolhost and a server, as traces show it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::CallId;
use super::trace_row::TraceRow;
use crate::util::pattern;

/// One thing that crossed a wire or happened to it, in order.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "TraceRow", try_from = "TraceRow")]
pub struct Traffic {
    /// The server's name in the config files.
    pub server: String,
    /// Counts up from 1 for each server in one run, so that a gap can be seen.
    pub sequence: u64,
    /// When it happened, since the Unix epoch.
    pub at: Duration,
    /// The tool call it belongs to, if any.
    pub call: Option<CallId>,
    /// The message, the head or the event on the wire.
    pub kind: TrafficKind,
}

/// Whether toolhost sent or received an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From toolhost to the server.
    Sent,
    /// From the server to toolhost.
    Received,
}

/// What crossed a wire, or happened to it.
#[derive(Debug, Clone)]
pub enum TrafficKind {
    /// A message, or what should have been one.
    Message {
        /// Whether toolhost sent or received it.
        direction: Direction,
        /// Its bytes exactly as they crossed, the line end removed.
        bytes: Bytes,
        /// What it is, as far as known.
        info: MessageInfo,
        /// For a response: the time since its request was sent.
        latency: Option<Duration>,
    },
    /// The head of an HTTP request or response. Credentials have already been replaced.
    HttpHead {
        /// Whether toolhost sent or received it.
        direction: Direction,
        /// `POST http://…/mcp` or `200 OK`.
        line: String,
        /// Name and value, in order.
        headers: Vec<(String, String)>,
        /// For a response: the time since the request was sent.
        latency: Option<Duration>,
    },
    /// A line on the standard error of a child process.
    Stderr(String),
    /// Something that is not a message: a banner on stdout, a comment in an event stream.
    NonJsonLine(String),
    /// The wire was opened: the command line or address, without secrets.
    Opened(String),
    /// The wire was closed, with the reason.
    Closed(String),
}

/// The kind of a message, determined without parsing it deeply.
#[derive(Debug, Clone, PartialEq)]
pub enum MessageInfo {
    /// A request, which the other side must respond to.
    Request {
        /// The JSON-RPC id that joins request and response.
        id: Value,
        /// The JSON-RPC method, such as `tools/call`.
        method: String,
    },
    /// A result or an error.
    Response {
        /// The JSON-RPC id that joins request and response.
        id: Value,
        /// The method of the request it responds to, if known.
        method: Option<String>,
        /// Whether it is an error.
        is_error: bool,
    },
    /// A notification, which has no response.
    Notification {
        /// The JSON-RPC method, such as `tools/call`.
        method: String,
    },
    /// Not recognisable as a JSON-RPC message.
    Unknown,
}

impl TrafficKind {
    /// Its direction; output of a server other than messages counts as received. `None` for events
    /// of the wire itself.
    pub fn direction(&self) -> Option<Direction> {
        match self {
            Self::Message { direction, .. } | Self::HttpHead { direction, .. } => Some(*direction),
            Self::Stderr(_) | Self::NonJsonLine(_) => Some(Direction::Received),
            Self::Opened(_) | Self::Closed(_) => None,
        }
    }

    /// The method of a message; for a response, that of its request.
    pub fn method(&self) -> Option<&str> {
        match self {
            Self::Message { info, .. } => info.method(),
            _ => None,
        }
    }

    /// The time since the request it responds to was sent.
    pub fn latency(&self) -> Option<Duration> {
        match self {
            Self::Message { latency, .. } | Self::HttpHead { latency, .. } => *latency,
            _ => None,
        }
    }
}

impl MessageInfo {
    /// Its method; for a response, that of its request.
    pub fn method(&self) -> Option<&str> {
        match self {
            Self::Request { method, .. } | Self::Notification { method } => Some(method),
            Self::Response { method, .. } => method.as_deref(),
            Self::Unknown => None,
        }
    }

    /// Its JSON-RPC id, as text.
    pub fn id_text(&self) -> Option<String> {
        match self {
            Self::Request { id, .. } | Self::Response { id, .. } => {
                Some(id.as_str().map_or_else(|| id.to_string(), str::to_owned))
            }
            Self::Notification { .. } | Self::Unknown => None,
        }
    }

    /// What it is, in one word: its method, `result` or `error`.
    pub fn label(&self) -> &str {
        match self {
            Self::Request { method, .. } | Self::Notification { method } => method,
            Self::Response { is_error: true, .. } => "error",
            Self::Response { is_error: false, .. } => "result",
            Self::Unknown => "not a message",
        }
    }
}

/// Which items a viewer wants; the default shows all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrafficFilter {
    /// Method patterns: only matching messages are shown. Empty means all.
    pub methods: Vec<String>,
    pub direction: Option<Direction>,
}

impl TrafficFilter {
    /// Whether an item is shown. The opening and closing of a wire always are.
    pub fn matches(&self, what: &TrafficKind) -> bool {
        let Some(direction) = what.direction() else { return true };
        let matches = |method: &str| self.methods.iter().any(|p| pattern::matches(p, method));
        self.direction.is_none_or(|only| only == direction)
            && (self.methods.is_empty() || what.method().is_some_and(matches))
    }
}

/// Shows or saves traffic. Disabled unless a trace was requested: check [`TrafficSink::is_enabled`]
/// before preparing anything for it.
#[derive(Clone, Default)]
pub struct TrafficSink {
    deliver: Option<Arc<dyn Fn(Traffic) + Send + Sync>>,
    gate: TraceGate,
}

impl TrafficSink {
    /// A sink that hands each item to `deliver`. It is called in order, on the path of every
    /// message, so it must be fast.
    pub fn new(deliver: impl Fn(Traffic) + Send + Sync + 'static) -> Self {
        Self { deliver: Some(Arc::new(deliver)), gate: TraceGate::default() }
    }

    /// A sink that drops everything.
    pub fn disabled() -> Self {
        Self::default()
    }

    /// The same sink behind a gate: disabled while the gate is closed.
    #[must_use]
    pub fn with_gate(self, gate: TraceGate) -> Self {
        Self { gate, ..self }
    }

    /// The gate of this sink.
    pub fn gate(&self) -> TraceGate {
        self.gate.clone()
    }

    /// Whether there is a viewer at all, watching or not.
    pub fn is_configured(&self) -> bool {
        self.deliver.is_some()
    }

    /// Whether a viewer is watching now; nothing is copied otherwise.
    pub fn is_enabled(&self) -> bool {
        self.deliver.is_some() && !self.gate.is_closed()
    }

    /// Hands one item to the viewer, which must not block.
    pub fn emit(&self, traffic: Traffic) {
        if let Some(deliver) = self.deliver.as_ref().filter(|_| !self.gate.is_closed()) {
            deliver(traffic);
        }
    }
}

/// Suspends the trace while inspecting every message would cost more than it is worth. Clones share
/// one gate.
#[derive(Debug, Clone, Default)]
pub struct TraceGate(Arc<AtomicUsize>);

impl TraceGate {
    /// Closes the gate until the returned guard is dropped.
    pub fn close(&self) -> TraceGateGuard {
        self.0.fetch_add(1, Ordering::Relaxed);
        TraceGateGuard(self.clone())
    }

    fn is_closed(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

/// Keeps a [`TraceGate`] closed until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct TraceGateGuard(TraceGate);

impl Drop for TraceGateGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for TrafficSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TrafficSink({})", if self.is_enabled() { "on" } else { "off" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(direction: Direction, info: MessageInfo) -> TrafficKind {
        TrafficKind::Message { direction, bytes: Bytes::from_static(b"{}"), info, latency: None }
    }

    #[test]
    fn a_filter_knows_methods_of_questions_and_answers() {
        use Direction::{Received, Sent};
        let filter = |methods: &[&str], only| TrafficFilter {
            methods: methods.iter().map(|m| (*m).to_owned()).collect(),
            direction: only,
        };
        let method = || "tools/call".to_owned();
        let question = message(Sent, MessageInfo::Request { id: 1.into(), method: method() });
        let info = MessageInfo::Response { id: 1.into(), method: Some(method()), is_error: false };
        let answered = message(Received, info);
        let lost =
            message(Received, MessageInfo::Response { id: 9.into(), method: None, is_error: true });
        let stderr = TrafficKind::Stderr("x".to_owned());
        let closed = TrafficKind::Closed("x".to_owned());
        let all = [&question, &answered, &lost, &stderr, &closed];
        let taken = |filter: &TrafficFilter| all.map(|item| filter.matches(item));
        assert_eq!(taken(&filter(&[], None)), [true; 5]);
        assert_eq!(taken(&filter(&["ping", "tools/*"], None)), [true, true, false, false, true]);
        assert_eq!(taken(&filter(&[], Some(Sent))), [true, false, false, false, true]);
        assert_eq!(taken(&filter(&[], Some(Received))), [false, true, true, true, true]);
    }

    #[test]
    fn behind_a_closed_gate_nothing_is_traced() {
        let messages = Arc::new(AtomicUsize::new(0));
        let counts = Arc::clone(&messages);
        let gate = TraceGate::default();
        let sink = TrafficSink::new(move |_| {
            counts.fetch_add(1, Ordering::Relaxed);
        });
        let sink = sink.with_gate(gate.clone());
        let traffic = || Traffic {
            server: "srv".to_owned(),
            sequence: 1,
            at: Duration::ZERO,
            call: None,
            kind: TrafficKind::Stderr("x".to_owned()),
        };
        sink.emit(traffic());
        let (first, second) = (gate.close(), sink.gate().close());
        assert!(sink.is_configured() && !sink.is_enabled());
        sink.emit(traffic());
        drop(first);
        assert!(!sink.is_enabled());
        drop(second);
        assert!(sink.is_enabled());
        sink.emit(traffic());
        assert_eq!(messages.load(Ordering::Relaxed), 2);
    }
}
