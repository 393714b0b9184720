//! Negotiating a protocol version with a server, over one wire or two.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::lifecycle::{
    Agreement, HandshakeAction, HandshakeEvent, HandshakeRequest, Lifecycle, MODERN,
};
use super::message::{self, ParsedInput, RpcMessage, non_message, unreadable_message};
use super::responder::answerable;
use super::warnings::WarningList;
use super::wire::{Arrival, FrameKind, OutgoingFrame, Wire};
use crate::config::spec::ProtocolChoice;
use crate::model::{Era, Error, ErrorKind, EventSink, QuestionAbilities, QuestionHandler, Root};

/// Ids of the handshake, far from those of a session, which count up from 0.
pub(super) const DISCOVER_ID: i64 = 2_147_483_001;
pub(super) const INITIALIZE_ID: i64 = 2_147_483_002;
/// How long a stdio server may be silent after `server/discover` before it gets `initialize` too.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// How many messages of a server are kept that come before the handshake is over…
const MAX_EARLY_MESSAGES: usize = 100;
const MAX_EARLY_BYTES: usize = 1 << 20;

/// The extension by which a server may answer a call with a task (SEP-2663).
const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// Opens a fresh wire; called again when the handshake needs a fresh start.
pub type WireOpener = Arc<dyn Fn() -> Result<Arc<dyn Wire>, Error> + Send + Sync>;

#[derive(Clone)]
pub struct ConnectOptions {
    pub server: String,
    /// Which lifecycle to speak, as the entry says.
    pub protocol: ProtocolChoice,
    pub cached_era: Option<Era>,
    /// Bound on opening and agreeing, restarts included.
    pub start_timeout: Duration,
    /// Whether silence after `server/discover` brings `initialize` on the same wire.
    pub falls_back_on_silence: bool,
    pub roots: Vec<Root>,
    pub events: EventSink,
    /// Who answers what the server asks.
    pub inbox: Arc<dyn QuestionHandler>,
}

impl ConnectOptions {
    pub(super) fn questions(&self) -> QuestionAbilities {
        answerable(&self.roots, &*self.inbox)
    }
}

pub(super) struct Handshake<'a> {
    options: &'a ConnectOptions,
    lifecycle: Lifecycle,
    pub(super) wire: Option<Arc<dyn Wire>>,
    pub(super) warnings: WarningList,
    pub(super) early_messages: Vec<RpcMessage>,
    early_bytes: usize,
    started: Instant,
}

impl<'a> Handshake<'a> {
    pub(super) fn new(options: &'a ConnectOptions, started: Instant) -> Self {
        Self {
            options,
            lifecycle: Lifecycle::new(options.protocol, options.cached_era),
            wire: None,
            warnings: WarningList::default(),
            early_messages: Vec::new(),
            early_bytes: 0,
            started,
        }
    }

    pub(super) async fn run(&mut self, open: &WireOpener) -> Result<Agreement, Error> {
        let deadline = self.started + self.options.start_timeout;
        loop {
            let wire = open()?;
            self.wire = Some(Arc::clone(&wire));
            let first = self.lifecycle.start();
            match tokio::time::timeout_at(deadline, self.negotiate(&wire, first)).await {
                Err(_) => return Err(self.timeout_error(&wire)),
                Ok(HandshakeEnd::Agreed(agreement)) => return Ok(*agreement),
                Ok(HandshakeEnd::Failed(error)) => return Err(error),
                Ok(HandshakeEnd::Restart) => {
                    tracing::debug!(server = self.options.server, "handshake starts over");
                    self.early_messages.clear();
                    self.early_bytes = 0;
                    wire.close().await;
                }
            }
        }
    }

    fn timeout_error(&self, wire: &Arc<dyn Wire>) -> Error {
        let limit = self.options.start_timeout.as_secs_f64();
        let waiting = [DISCOVER_ID, INITIALIZE_ID]
            .into_iter()
            .find_map(|id| wire.waiting_for(&json!(id)))
            .map(|w| format!(", waiting for {w}"))
            .unwrap_or_default();
        let error =
            Error::timeout(format!("no response within {limit} s (start timeout){waiting}"))
                .with_hint("if it is only slow, set a longer start_timeout in its entry");
        let tail = wire.process_info().stderr_tail;
        if tail.is_empty() && self.warnings.is_empty() {
            error.with_detail("it sent nothing")
        } else {
            let skip = tail.len().saturating_sub(5);
            error.with_details(tail.into_iter().skip(skip).map(|line| format!("stderr: {line}")))
        }
    }

    /// Talks over one wire until the lifecycle has decided.
    async fn negotiate(&mut self, wire: &Arc<dyn Wire>, first: HandshakeRequest) -> HandshakeEnd {
        let mut action = self.send(wire, first).await;
        let mut probe = Instant::now() + PROBE_TIMEOUT;
        loop {
            match action {
                HandshakeAction::Send(step) => {
                    action = self.send(wire, step).await;
                    continue;
                }
                HandshakeAction::Ready(agreement) => return self.ready(wire, agreement).await,
                HandshakeAction::Fail(error) => return HandshakeEnd::Failed(error),
                HandshakeAction::Restart => return HandshakeEnd::Restart,
                HandshakeAction::Wait => {}
            }
            action = tokio::select! {
                biased;
                arrival = wire.receive() => self.handle_arrival(wire, arrival).await,
                () = tokio::time::sleep_until(probe), if self.options.falls_back_on_silence => {
                    probe += Duration::from_hours(24);
                    self.lifecycle.handle(HandshakeEvent::Silence)
                }
            };
        }
    }

    async fn ready(&mut self, wire: &Arc<dyn Wire>, agreement: Box<Agreement>) -> HandshakeEnd {
        if agreement.era == Era::Legacy {
            wire.set_agreement(agreement.era, &agreement.version);
            let method = "notifications/initialized";
            let bytes = json!({ "jsonrpc": "2.0", "method": method }).to_string();
            let kind = FrameKind::Notification { method: method.into(), cancels: None };
            if let Err(error) =
                wire.send(OutgoingFrame { bytes: bytes.into(), kind, call: None }).await
            {
                return HandshakeEnd::Failed(error);
            }
        }
        HandshakeEnd::Agreed(agreement)
    }

    /// Sends a step. It is small enough for the pipe of a server that talks before it reads.
    async fn send(&mut self, wire: &Arc<dyn Wire>, step: HandshakeRequest) -> HandshakeAction {
        let (id, method, params) = match step {
            HandshakeRequest::Discover => {
                let meta = request_meta(MODERN, self.options.questions());
                (DISCOVER_ID, "server/discover", json!({ "_meta": meta }))
            }
            HandshakeRequest::Initialize(version) => {
                let params = json!({
                    "protocolVersion": version,
                    "capabilities": capabilities(Era::Legacy, self.options.questions()),
                    "clientInfo": client_info(),
                });
                (INITIALIZE_ID, "initialize", params)
            }
        };
        tracing::debug!(server = self.options.server, method, "handshake request sent");
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let kind = FrameKind::Request {
            id: json!(id),
            method: method.into(),
            name: None,
            headers: Vec::new(),
        };
        let frame = OutgoingFrame { bytes: Bytes::from(message.to_string()), kind, call: None };
        match wire.send(frame).await {
            Ok(None) => HandshakeAction::Wait,
            Ok(Some(bytes)) => {
                let answer = Arrival::Message { bytes, stream_of: Some(json!(id)) };
                self.handle_arrival(wire, answer).await
            }
            Err(error) => self.wire_failed(wire, error).await,
        }
    }

    /// The wire failed while sending: prefer what the other side has to say about it.
    async fn wire_failed(&mut self, wire: &Arc<dyn Wire>, error: Error) -> HandshakeAction {
        let cause = async {
            loop {
                if let Arrival::Closed(cause) = wire.receive().await {
                    return cause;
                }
            }
        };
        let error = if error.kind() == ErrorKind::Unreachable && wire.explains_failed_sends() {
            tokio::time::timeout(Duration::from_millis(500), cause).await.unwrap_or(error)
        } else {
            error
        };
        self.lifecycle.handle(HandshakeEvent::WireClosed(error))
    }

    async fn handle_arrival(&mut self, wire: &Arc<dyn Wire>, arrival: Arrival) -> HandshakeAction {
        let bytes = match arrival {
            Arrival::Message { bytes, .. } => bytes,
            Arrival::Warning(warning) => {
                self.warnings.add_once(&warning);
                return HandshakeAction::Wait;
            }
            Arrival::Failed { id, error } => {
                // The wire reports the end of every exchange, settled or not.
                let open = match id.as_i64() {
                    Some(DISCOVER_ID) => self.lifecycle.waits_for_discover(),
                    Some(INITIALIZE_ID) => self.lifecycle.waits_for_initialize(),
                    _ => false,
                };
                return match open {
                    true if wire.process_info().pid.is_some() => {
                        self.wire_failed(wire, error).await
                    }
                    true => self.lifecycle.handle(HandshakeEvent::WireClosed(error)),
                    false => HandshakeAction::Wait,
                };
            }
            Arrival::Closed(error) => {
                return self.lifecycle.handle(HandshakeEvent::WireClosed(error));
            }
        };
        match message::read(&bytes) {
            ParsedInput::NonMessage(line) => {
                self.warnings.add_once(&non_message(&line, wire.delimits_messages()));
                HandshakeAction::Wait
            }
            // The transport tells when no other comes.
            ParsedInput::Unreadable(error) if wire.delimits_messages() => {
                self.warnings.add_once(&unreadable_message(&error));
                HandshakeAction::Wait
            }
            ParsedInput::Unreadable(error) | ParsedInput::Broken(error) => {
                self.lifecycle.handle(HandshakeEvent::WireClosed(error))
            }
            ParsedInput::Messages(messages, warnings) => {
                for warning in warnings {
                    self.warnings.add_once(&warning);
                }
                self.handle_messages(wire, messages).await
            }
        }
    }

    async fn handle_messages(
        &mut self,
        wire: &Arc<dyn Wire>,
        messages: Vec<RpcMessage>,
    ) -> HandshakeAction {
        let mut action = HandshakeAction::Wait;
        for message in messages {
            match message {
                // What is decided stays decided; the session knows these ids too.
                message @ RpcMessage::Response { .. }
                    if !matches!(action, HandshakeAction::Wait) =>
                {
                    self.keep_early(message);
                }
                RpcMessage::Response { id, outcome }
                    if id == DISCOVER_ID && self.lifecycle.waits_for_discover() =>
                {
                    action = self.lifecycle.handle(HandshakeEvent::Discover(outcome));
                }
                RpcMessage::Response { id, outcome }
                    if id == INITIALIZE_ID && self.lifecycle.waits_for_initialize() =>
                {
                    action = self.lifecycle.handle(HandshakeEvent::Initialize(outcome));
                }
                RpcMessage::Response { id, outcome } => {
                    // An error without an id is all that some servers say to what they reject.
                    match outcome {
                        Err(error) if id.is_null() && matches!(action, HandshakeAction::Wait) => {
                            action = self.lifecycle.handle(self.lifecycle.refusal(error));
                        }
                        _ => self.warnings.add_once(&format!("a response to unknown id {id}")),
                    }
                }
                RpcMessage::Request { id, method, .. } if method == "ping" => {
                    let bytes = json!({ "jsonrpc": "2.0", "id": id, "result": {} }).to_string();
                    let frame = OutgoingFrame {
                        bytes: bytes.into(),
                        kind: FrameKind::Response,
                        call: None,
                    };
                    if let Err(error) = wire.send(frame).await {
                        return self.wire_failed(wire, error).await;
                    }
                }
                other => self.keep_early(other),
            }
        }
        action
    }

    fn keep_early(&mut self, message: RpcMessage) {
        let size = message.size();
        if self.early_messages.len() < MAX_EARLY_MESSAGES
            && self.early_bytes + size <= MAX_EARLY_BYTES
        {
            self.early_bytes += size;
            self.early_messages.push(message);
        } else {
            let text = "it sent too much before the handshake ended; some of it was dropped";
            self.warnings.add_once(text);
        }
    }
}

enum HandshakeEnd {
    Agreed(Box<Agreement>),
    Failed(Error),
    Restart,
}

/// What every request of the modern era says about us, in its `_meta`.
pub(super) fn request_meta(version: &str, questions: QuestionAbilities) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": client_info(),
        "io.modelcontextprotocol/clientCapabilities": capabilities(Era::Modern, questions),
    })
}

/// What we declare to be able to do; written as the JSON object that servers get.
pub(super) struct DeclaredCapabilities {
    pub era: Era,
    pub questions: QuestionAbilities,
}

impl Serialize for DeclaredCapabilities {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Names<const N: usize>([(&'static str, bool); N]);
        impl<const N: usize> Serialize for Names<N> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let named = self.0.iter().filter(|(_, is_named)| *is_named);
                serializer.collect_map(named.map(|(name, _)| (name, Names([]))))
            }
        }
        let QuestionAbilities { forms, urls, sampling, roots } = self.questions;
        let mut declared = serializer.serialize_map(None)?;
        if forms || urls {
            declared.serialize_entry("elicitation", &Names([("form", forms), ("url", urls)]))?;
        }
        if sampling {
            declared.serialize_entry("sampling", &Names([]))?;
        }
        if roots {
            declared.serialize_entry("roots", &Names([]))?;
        }
        if self.era == Era::Modern {
            // Legacy tasks need no word of ours, and that era knows no extensions.
            declared.serialize_entry("extensions", &Names([(TASKS_EXTENSION, true)]))?;
        }
        declared.end()
    }
}

pub(super) fn capabilities(era: Era, questions: QuestionAbilities) -> Value {
    // An object with texts as its keys can always be made.
    serde_json::to_value(DeclaredCapabilities { era, questions }).unwrap_or_default()
}

pub(super) fn client_info() -> Value {
    json!({ "name": "toolhost", "version": env!("CARGO_PKG_VERSION") })
}
