//! Agreeing on a protocol version with a server, over one wire or two.
//!
//! Owns: the wait for the handshake's answers and its deadlines, what we say about ourselves, and
//! the wording of a handshake that failed. The order of things is decided by `lifecycle`. Never
//! does: anything after both sides agreed.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, ProtocolVersion};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::lifecycle::{Action, Agreement, Heard, Lifecycle, MODERN, Step};
use super::message::{self, Message, Reading};
use super::session::{DOUBT_LENGTH, noise, unreadable};
use super::wire::{Arrival, Frame, FrameKind, Wire};
use crate::config::spec::ProtocolChoice;
use crate::model::{Era, EventSink, Fault, FaultKind, Inbox};

/// Ids of the handshake, far from those the SDK counts up from 0.
pub(super) const DISCOVER_ID: i64 = 2_147_483_001;
pub(super) const INITIALIZE_ID: i64 = 2_147_483_002;
/// How long a stdio server may be silent after `server/discover` before it gets `initialize` too.
const PROBE: Duration = Duration::from_secs(2);
/// How many messages of a server are kept that come before the handshake is over…
const EARLY_KEPT: usize = 100;
/// …and how many bytes of them.
const EARLY_BYTES: usize = 1 << 20;

/// The extension by which a server may answer a call with a task (SEP-2663).
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Opens a fresh wire; called again when the handshake needs a fresh start.
pub type Opener = Arc<dyn Fn() -> Result<Arc<dyn Wire>, Fault> + Send + Sync>;

/// What a connection needs to know.
#[derive(Clone)]
pub struct ConnectOptions {
    /// The server's name, for messages and events.
    pub server: String,
    /// Which lifecycle to speak.
    pub protocol: ProtocolChoice,
    /// What was true last time.
    pub remembered: Option<Era>,
    /// Bound on opening and agreeing, restarts included.
    pub start_timeout: Duration,
    /// Whether silence after `server/discover` brings `initialize` on the same wire.
    pub probe_silence: bool,
    /// The roots the server may know.
    pub roots: Vec<String>,
    /// Where events go.
    pub events: EventSink,
    /// Who answers what the server asks.
    pub inbox: Arc<dyn Inbox>,
}

/// The handshake over one wire, or two.
pub(super) struct Handshake<'a> {
    options: &'a ConnectOptions,
    lifecycle: Lifecycle,
    pub(super) wire: Option<Arc<dyn Wire>>,
    pub(super) doubts: Vec<String>,
    pub(super) early: Vec<Message>,
    early_bytes: usize,
    started: Instant,
}

impl<'a> Handshake<'a> {
    pub(super) fn new(options: &'a ConnectOptions, started: Instant) -> Self {
        Self {
            options,
            lifecycle: Lifecycle::new(options.protocol, options.remembered),
            wire: None,
            doubts: Vec::new(),
            early: Vec::new(),
            early_bytes: 0,
            started,
        }
    }

    pub(super) async fn run(&mut self, open: &Opener) -> Result<Agreement, Fault> {
        let deadline = self.started + self.options.start_timeout;
        loop {
            let wire = open()?;
            self.wire = Some(Arc::clone(&wire));
            let first = self.lifecycle.start();
            match tokio::time::timeout_at(deadline, self.talk(&wire, first)).await {
                Err(_) => return Err(self.silent(&wire)),
                Ok(Ended::Agreed(agreement)) => return Ok(*agreement),
                Ok(Ended::Failed(fault)) => return Err(fault),
                Ok(Ended::StartAgain) => {
                    self.early.clear();
                    self.early_bytes = 0;
                    wire.close().await;
                }
            }
        }
    }

    fn silent(&self, wire: &Arc<dyn Wire>) -> Fault {
        let limit = self.options.start_timeout.as_secs_f64();
        let waiting = [DISCOVER_ID, INITIALIZE_ID]
            .into_iter()
            .find_map(|id| wire.waiting_for(&json!(id)))
            .map(|w| format!(", waiting for {w}"))
            .unwrap_or_default();
        let fault = Fault::timeout(format!("no answer within {limit} s (start timeout){waiting}"))
            .hint("give the entry a longer start_timeout if it is only slow");
        let tail = wire.vitals().stderr_tail;
        if tail.is_empty() && self.doubts.is_empty() {
            fault.detail("it said nothing at all")
        } else {
            let skip = tail.len().saturating_sub(5);
            fault.details(tail.into_iter().skip(skip).map(|line| format!("stderr: {line}")))
        }
    }

    /// Talks over one wire until the lifecycle has decided.
    async fn talk(&mut self, wire: &Arc<dyn Wire>, first: Step) -> Ended {
        let mut action = self.send(wire, first).await;
        let mut probe = Instant::now() + PROBE;
        loop {
            match action {
                Action::Send(step) => {
                    action = self.send(wire, step).await;
                    continue;
                }
                Action::Ready(agreement) => return self.ready(wire, agreement).await,
                Action::Fail(fault) => return Ended::Failed(fault),
                Action::Restart => return Ended::StartAgain,
                Action::Wait => {}
            }
            action = tokio::select! {
                biased;
                arrival = wire.receive() => self.arrived(wire, arrival).await,
                () = tokio::time::sleep_until(probe), if self.options.probe_silence => {
                    probe += Duration::from_hours(24);
                    self.lifecycle.hear(Heard::Silence)
                }
            };
        }
    }

    async fn ready(&mut self, wire: &Arc<dyn Wire>, agreement: Box<Agreement>) -> Ended {
        if agreement.era == Era::Legacy {
            wire.agreed(agreement.era, &agreement.version);
            let method = "notifications/initialized";
            let bytes = json!({ "jsonrpc": "2.0", "method": method }).to_string();
            let kind = FrameKind::Notification { method: method.into(), cancels: None };
            if let Err(fault) = wire.send(Frame { bytes: bytes.into(), kind, call: None }).await {
                return Ended::Failed(fault);
            }
        }
        Ended::Agreed(agreement)
    }

    /// Sends a step. It is small enough for the pipe of a server that talks before it reads.
    async fn send(&mut self, wire: &Arc<dyn Wire>, step: Step) -> Action {
        let (id, method, params) = match step {
            Step::Discover => {
                let meta = request_meta(MODERN, &self.options.roots);
                (DISCOVER_ID, "server/discover", json!({ "_meta": meta }))
            }
            Step::Initialize(version) => {
                let params = json!({
                    "protocolVersion": version,
                    "capabilities": capabilities(Era::Legacy, &self.options.roots),
                    "clientInfo": client_info(),
                });
                (INITIALIZE_ID, "initialize", params)
            }
        };
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let kind = FrameKind::Request {
            id: json!(id),
            method: method.into(),
            name: None,
            headers: Vec::new(),
        };
        let frame = Frame { bytes: Bytes::from(message.to_string()), kind, call: None };
        match wire.send(frame).await {
            Ok(()) => Action::Wait,
            Err(fault) => self.gone(wire, fault).await,
        }
    }

    /// The wire failed while sending: prefer what the other side has to say about it.
    async fn gone(&mut self, wire: &Arc<dyn Wire>, fault: Fault) -> Action {
        let told = async {
            loop {
                if let Arrival::Closed(told) = wire.receive().await {
                    return told;
                }
            }
        };
        let told = tokio::time::timeout(Duration::from_millis(500), told).await;
        let fault =
            if fault.kind() == FaultKind::Unreachable { told.unwrap_or(fault) } else { fault };
        self.lifecycle.hear(Heard::Gone(fault))
    }

    async fn arrived(&mut self, wire: &Arc<dyn Wire>, arrival: Arrival) -> Action {
        let bytes = match arrival {
            Arrival::Message { bytes, .. } => bytes,
            Arrival::Noise(text) => {
                self.doubt(&text);
                return Action::Wait;
            }
            Arrival::Failed { id, fault } => {
                // The wire reports the end of every exchange, settled or not.
                let open = match id.as_i64() {
                    Some(DISCOVER_ID) => self.lifecycle.waits_for_discover(),
                    Some(INITIALIZE_ID) => self.lifecycle.waits_for_initialize(),
                    _ => false,
                };
                return if open { self.lifecycle.hear(Heard::Gone(fault)) } else { Action::Wait };
            }
            Arrival::Closed(fault) => return self.lifecycle.hear(Heard::Gone(fault)),
        };
        match message::read(&bytes) {
            Reading::Noise(line) => {
                self.doubt(&noise(&line, wire.delimits_messages()));
                Action::Wait
            }
            // The transport tells when no other comes.
            Reading::Unreadable(fault) if wire.delimits_messages() => {
                self.doubt(&unreadable(&fault));
                Action::Wait
            }
            Reading::Unreadable(fault) | Reading::Broken(fault) => {
                self.lifecycle.hear(Heard::Gone(fault))
            }
            Reading::Messages(messages, doubts) => {
                for doubt in doubts {
                    self.doubt(&doubt);
                }
                self.messages(wire, messages).await
            }
        }
    }

    async fn messages(&mut self, wire: &Arc<dyn Wire>, messages: Vec<Message>) -> Action {
        let mut action = Action::Wait;
        for message in messages {
            match message {
                // What is decided stays decided; the session knows these ids too.
                message @ Message::Answer { .. } if !matches!(action, Action::Wait) => {
                    self.keep(message);
                }
                Message::Answer { id, outcome }
                    if id == DISCOVER_ID && self.lifecycle.waits_for_discover() =>
                {
                    action = self.lifecycle.hear(Heard::Discover(outcome));
                }
                Message::Answer { id, outcome }
                    if id == INITIALIZE_ID && self.lifecycle.waits_for_initialize() =>
                {
                    action = self.lifecycle.hear(Heard::Initialize(outcome));
                }
                Message::Answer { id, outcome } => {
                    // An error without an id is all that some servers say to what they reject.
                    match outcome {
                        Err(fault) if id.is_null() && matches!(action, Action::Wait) => {
                            action = self.lifecycle.hear(self.lifecycle.refusal(fault));
                        }
                        _ => self.doubt(&format!("an answer to unknown id {id}")),
                    }
                }
                Message::Request { id, method, .. } if method == "ping" => {
                    let bytes = json!({ "jsonrpc": "2.0", "id": id, "result": {} }).to_string();
                    let frame =
                        Frame { bytes: bytes.into(), kind: FrameKind::Response, call: None };
                    if let Err(fault) = wire.send(frame).await {
                        return self.gone(wire, fault).await;
                    }
                }
                other => self.keep(other),
            }
        }
        action
    }

    /// Keeps a message for the session that is to come.
    fn keep(&mut self, message: Message) {
        let size = message.size();
        if self.early.len() < EARLY_KEPT && self.early_bytes + size <= EARLY_BYTES {
            self.early_bytes += size;
            self.early.push(message);
        } else {
            self.doubt("it talks too much before the handshake is over; not all was heard");
        }
    }

    fn doubt(&mut self, text: &str) {
        let text = message::head(text, DOUBT_LENGTH);
        if self.doubts.len() < 20 && !self.doubts.contains(&text) {
            self.doubts.push(text);
        }
    }
}

/// How a talk over one wire ended.
enum Ended {
    Agreed(Box<Agreement>),
    Failed(Fault),
    StartAgain,
}

/// What we tell a server about ourselves. Depends on configuration only, so that a server offers
/// the same tools at a desk and in CI.
pub(super) fn client_config(agreement: &Agreement, roots: &[String]) -> ClientConfig {
    let capabilities: ClientCapabilities =
        serde_json::from_value(capabilities(agreement.era, roots)).unwrap_or_default();
    let info = Implementation::new("toolhost", env!("CARGO_PKG_VERSION"));
    ClientConfig::new(capabilities, info)
        .with_protocol_version(protocol_version(&agreement.version))
}

/// What every request of the modern era says about us, in its `_meta`.
pub(super) fn request_meta(version: &str, roots: &[String]) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": client_info(),
        "io.modelcontextprotocol/clientCapabilities": capabilities(Era::Modern, roots),
    })
}

pub(super) fn capabilities(era: Era, roots: &[String]) -> Value {
    let mut capabilities = json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {} });
    if !roots.is_empty() {
        capabilities["roots"] = json!({});
    }
    if era == Era::Modern {
        // Legacy tasks need no word of ours, and that era knows no extensions.
        capabilities["extensions"] = json!({ TASKS: {} });
    }
    capabilities
}

pub(super) fn protocol_version(version: &str) -> ProtocolVersion {
    serde_json::from_value(Value::String(version.to_owned())).unwrap_or_default()
}

pub(super) fn client_info() -> Value {
    json!({ "name": "toolhost", "version": env!("CARGO_PKG_VERSION") })
}
