//! One connection to one server: the handshake over a wire, then requests with limits.
//!
//! Owns: deadlines of the handshake and of each request, cancellation, and the wording of what
//! went wrong. Never does: know tools, prompts or resources.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rmcp::RoleClient;
use rmcp::model::{
    CancelledNotificationParam, ClientCapabilities, ClientConfig, ClientRequest, CustomRequest,
    GetExtensions as _, Implementation, ProgressToken, ProtocolVersion, RequestId,
    ServerCapabilities, ServerPeerInfo,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, RunningService};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::handler::Handler;
use super::lifecycle::{Action, Agreement, Heard, Lifecycle, MODERN, Step};
use super::message::{self, Message, Raw, Reading};
use super::session::{
    DOUBT_LENGTH, ParamHeaders, ProgressListener, Session, SessionTransport, noise,
};
use super::wire::{Arrival, Frame, FrameKind, Wire};
use crate::config::spec::ProtocolChoice;
use crate::model::{Era, EventSink, Fault, FaultKind, JsonObject, Phase, Signal};

/// Ids of the handshake, far from those the SDK counts up from 0.
pub(super) const DISCOVER_ID: i64 = 2_147_483_001;
pub(super) const INITIALIZE_ID: i64 = 2_147_483_002;
/// How long a stdio server may be silent after `server/discover` before it gets `initialize` too.
const PROBE: Duration = Duration::from_secs(2);
/// How long after a stray answer the right one may still come.
const STRAY_GRACE: Duration = Duration::from_secs(2);
/// How long telling the server that a request was given up may take.
const CANCEL_LIMIT: Duration = Duration::from_secs(1);
/// How many messages of a server are kept that come before the handshake is over…
const EARLY_KEPT: usize = 100;
/// …and how many bytes of them.
const EARLY_BYTES: usize = 1 << 20;

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
}

/// Limits and listeners of one request.
pub struct RequestOptions {
    /// Ends the request after this much silence; progress starts it again.
    pub idle: Duration,
    /// Ends the request whatever happens.
    pub total: Duration,
    /// Gives the request up.
    pub cancel: CancellationToken,
    /// Hears progress.
    pub progress: Option<ProgressListener>,
    /// Extra headers for transports that have headers.
    pub headers: Vec<(String, String)>,
    /// The least level of the log lines that a server of the modern era is asked for; without one
    /// it sends none.
    pub log_level: Option<&'static str>,
    /// The step, for messages.
    pub phase: Phase,
}

/// A server that agreed to talk.
pub struct Connection {
    /// What was agreed on.
    pub agreement: Agreement,
    /// How long it took.
    pub connect_time: Duration,
    session: Arc<Session>,
    peer: Peer<RoleClient>,
    service: tokio::sync::Mutex<Option<RunningService<RoleClient, Handler>>>,
    name: String,
}

impl Connection {
    /// Opens a wire and agrees on a version.
    ///
    /// # Errors
    /// Why there is no connection, with the server's name, the phase and its last words. Whatever
    /// was started is ended before this returns.
    pub async fn open(open: &Opener, options: ConnectOptions) -> Result<Self, Fault> {
        let started = Instant::now();
        let mut handshake = Handshake::new(&options, started);
        let result = handshake.run(open).await;
        let (wire, doubts, early) = (handshake.wire.take(), handshake.doubts, handshake.early);
        let named = |fault: Fault| match fault.at_phase() {
            Some(_) => fault.server(&options.server),
            None => fault.server(&options.server).phase(Phase::Handshake),
        };
        match (result, wire) {
            (Ok(agreement), Some(wire)) => {
                wire.agreed(agreement.era, &agreement.version);
                Ok(Self::establish(agreement, wire, &options, doubts, early, started.elapsed()))
            }
            (result, wire) => {
                if let Some(wire) = wire {
                    wire.close().await;
                }
                let fault = result.err().unwrap_or_else(|| Fault::internal("no wire"));
                Err(named(fault.details(doubts)))
            }
        }
    }

    fn establish(
        agreement: Agreement,
        wire: Arc<dyn Wire>,
        options: &ConnectOptions,
        doubts: Vec<String>,
        early: Vec<Message>,
        connect_time: Duration,
    ) -> Self {
        let session = Session::new(options.server.clone(), wire, options.events.clone());
        for doubt in doubts {
            session.doubt(doubt);
        }
        let handler = Handler {
            server: options.server.clone(),
            config: client_config(&agreement.version, &options.roots),
            roots: options.roots.clone(),
            events: options.events.clone(),
        };
        let info = ServerPeerInfo::new(
            protocol_version(&agreement.version),
            // Capabilities are judged by us, from the raw value; the SDK needs none of them.
            ServerCapabilities::default(),
        );
        let transport = SessionTransport::new(Arc::clone(&session), early);
        let service = rmcp::service::serve_directly(handler, transport, Some(info));
        Self {
            agreement,
            connect_time,
            session,
            peer: service.peer().clone(),
            service: tokio::sync::Mutex::new(Some(service)),
            name: options.server.clone(),
        }
    }

    /// Sends a request and waits for its answer, within limits.
    ///
    /// # Errors
    /// The server's own error (kind tool), a broken answer, silence, the end of the connection, or
    /// that the request was given up. The server is told when we stop waiting.
    pub async fn request(
        &self,
        method: &str,
        params: Value,
        options: &RequestOptions,
    ) -> Result<Raw, Fault> {
        let named = |fault: Fault| fault.server(&self.name).phase(options.phase);
        if let Some(fault) = self.session.closed() {
            return Err(named(fault));
        }
        let mut request = CustomRequest::new(method, Some(params));
        if !options.headers.is_empty() {
            request.extensions_mut().insert(ParamHeaders(options.headers.clone()));
        }
        let mut settings = PeerRequestOptions::no_options();
        if let Some(level) = options.log_level.filter(|_| self.agreement.era == Era::Modern) {
            let mut meta = JsonObject::new();
            meta.insert("io.modelcontextprotocol/logLevel".to_owned(), level.into());
            settings = settings.with_meta(meta.into());
        }
        let request = ClientRequest::CustomRequest(request);
        let sent = self.peer.send_request_with_option(request, settings).await;
        let Ok(mut handle) = sent else {
            return Err(named(self.end_of_connection().await));
        };
        let mut guard = PendingGuard { session: &self.session, id: handle.id.clone(), token: None };
        let verdict = self.wait(&mut handle, &mut guard, method, options).await;
        if let Err(fault) = &verdict
            && self.session.is_open(&handle.id)
        {
            self.give_up(&handle.id, fault.message()).await;
        }
        verdict.map_err(named)
    }

    async fn wait(
        &self,
        handle: &mut RequestHandle<RoleClient>,
        guard: &mut PendingGuard<'_>,
        method: &str,
        options: &RequestOptions,
    ) -> Result<Raw, Fault> {
        let id = handle.id.clone();
        let waker = self.session.waker(&id);
        let activity = Arc::new(tokio::sync::Notify::new());
        if let (Some(listener), Some(token)) = (&options.progress, token(&handle.progress_token)) {
            let (listener, activity) = (Arc::clone(listener), Arc::clone(&activity));
            self.session.listen(
                token,
                Arc::new(move |progress| {
                    activity.notify_one();
                    listener(progress);
                }),
            );
            guard.token = Some(token);
        }
        let start = Instant::now();
        let last = start + options.total;
        let mut idle = (start + options.idle).min(last);
        let mut stray_until: Option<Instant> = None;
        loop {
            if let Some(outcome) = self.session.take_outcome(&id) {
                return self.judged(outcome).await;
            }
            if let Some(fault) = self.session.closed() {
                return Err(fault);
            }
            let until = stray_until.map_or(idle, |s| s.min(idle));
            tokio::select! {
                biased;
                answered = &mut handle.rx => {
                    if let Some(outcome) = self.session.take_outcome(&id) {
                        return self.judged(outcome).await;
                    }
                    return Err(match answered {
                        Ok(Err(rmcp::ServiceError::Cancelled { .. })) => {
                            Fault::new(FaultKind::Interrupted(Signal::Interrupt), "cancelled")
                        }
                        _ => self.end_of_connection().await,
                    });
                }
                () = options.cancel.cancelled() => {
                    let interrupted = FaultKind::Interrupted(Signal::Interrupt);
                    return Err(Fault::new(interrupted, format!("{method} was given up")));
                }
                () = activity.notified() => idle = (Instant::now() + options.idle).min(last),
                () = waker.notified() => {
                    if self.session.stray(&id).is_some() {
                        stray_until.get_or_insert(Instant::now() + STRAY_GRACE);
                    }
                }
                () = tokio::time::sleep_until(until) => {
                    return Err(self.too_late(&id, method, options, Instant::now() >= last));
                }
            }
        }
    }

    /// A send that failed because the process died is told as the death, not as a broken pipe.
    async fn judged(&self, outcome: Result<Raw, Fault>) -> Result<Raw, Fault> {
        match outcome {
            Err(fault)
                if fault.kind() == FaultKind::Unreachable
                    && self.session.wire().vitals().pid.is_some() =>
            {
                let died = self.session.gone.cancelled();
                match tokio::time::timeout(Duration::from_millis(500), died).await {
                    Ok(()) => Err(self.session.closed().unwrap_or(fault)),
                    Err(_) => Err(fault),
                }
            }
            other => other,
        }
    }

    async fn end_of_connection(&self) -> Fault {
        let gone = self.session.gone.cancelled();
        let _late = tokio::time::timeout(Duration::from_millis(500), gone).await;
        self.session.closed().unwrap_or_else(|| Fault::unreachable("the connection is closed"))
    }

    fn too_late(
        &self,
        id: &RequestId,
        method: &str,
        options: &RequestOptions,
        total: bool,
    ) -> Fault {
        if let Some(stray) = self.session.stray(id) {
            return Fault::protocol(format!("{stray}, and none to {method}"));
        }
        let waiting =
            serde_json::to_value(id).ok().and_then(|id| self.session.wire().waiting_for(&id));
        let waiting = waiting.map(|w| format!(", waiting for {w}")).unwrap_or_default();
        let message = if total {
            let limit = options.total.as_secs_f64();
            format!("no answer to {method} within {limit} s in all (max_total){waiting}")
        } else {
            let limit = options.idle.as_secs_f64();
            format!("no answer to {method} and no progress for {limit} s (timeout){waiting}")
        };
        Fault::timeout(message).details(self.session.doubts())
    }

    async fn give_up(&self, id: &RequestId, reason: &str) {
        let param = CancelledNotificationParam::new(Some(id.clone()), Some(reason.to_owned()));
        let _told = tokio::time::timeout(CANCEL_LIMIT, self.peer.notify_cancelled(param)).await;
    }

    /// What was odd about the traffic so far.
    pub fn doubts(&self) -> Vec<String> {
        self.session.doubts()
    }

    /// Notes something odd.
    pub fn doubt(&self, text: impl Into<String>) {
        self.session.doubt(text);
    }

    /// Why the connection is gone, once it is.
    pub fn closed(&self) -> Option<Fault> {
        self.session.closed()
    }

    /// Grows each time the server says that its tools changed.
    pub fn tool_list_version(&self) -> u64 {
        self.session.tool_list_version()
    }

    /// What the wire can tell about the other side.
    pub fn vitals(&self) -> super::wire::Vitals {
        self.session.wire().vitals()
    }

    /// Ends the connection and whatever was started for it. Idempotent.
    pub async fn close(&self) {
        self.session.wire().close().await;
        if let Some(service) = self.service.lock().await.take() {
            service.cancellation_token().cancel();
        }
    }
}

/// Forgets a request when its caller stops waiting, however that happens.
struct PendingGuard<'a> {
    session: &'a Session,
    id: RequestId,
    token: Option<i64>,
}

impl Drop for PendingGuard<'_> {
    fn drop(&mut self) {
        self.session.retire(&self.id);
        if let Some(token) = self.token {
            self.session.unlisten(token);
        }
    }
}

fn token(token: &ProgressToken) -> Option<i64> {
    serde_json::to_value(token).ok()?.as_i64()
}

/// What we tell a server about ourselves. Depends on configuration only, so that a server offers
/// the same tools at a desk and in CI.
fn client_config(version: &str, roots: &[String]) -> ClientConfig {
    let capabilities: ClientCapabilities =
        serde_json::from_value(capabilities(roots)).unwrap_or_default();
    let info = Implementation::new("toolhost", env!("CARGO_PKG_VERSION"));
    ClientConfig::new(capabilities, info).with_protocol_version(protocol_version(version))
}

fn capabilities(roots: &[String]) -> Value {
    let mut capabilities = json!({ "elicitation": { "form": {}, "url": {} } });
    if !roots.is_empty() {
        capabilities["roots"] = json!({});
    }
    capabilities
}

fn protocol_version(version: &str) -> ProtocolVersion {
    serde_json::from_value(Value::String(version.to_owned())).unwrap_or_default()
}

fn client_info() -> Value {
    json!({ "name": "toolhost", "version": env!("CARGO_PKG_VERSION") })
}

/// The handshake over one wire, or two.
struct Handshake<'a> {
    options: &'a ConnectOptions,
    lifecycle: Lifecycle,
    wire: Option<Arc<dyn Wire>>,
    doubts: Vec<String>,
    early: Vec<Message>,
    early_bytes: usize,
    started: Instant,
}

impl<'a> Handshake<'a> {
    fn new(options: &'a ConnectOptions, started: Instant) -> Self {
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

    async fn run(&mut self, open: &Opener) -> Result<Agreement, Fault> {
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
            if let Err(fault) = wire.send(Frame { bytes: bytes.into(), kind }).await {
                return Ended::Failed(fault);
            }
        }
        Ended::Agreed(agreement)
    }

    /// Sends a step. It is small enough for the pipe of a server that talks before it reads.
    async fn send(&mut self, wire: &Arc<dyn Wire>, step: Step) -> Action {
        let (id, method, params) = match step {
            Step::Discover => {
                let meta = json!({
                    "io.modelcontextprotocol/protocolVersion": MODERN,
                    "io.modelcontextprotocol/clientInfo": client_info(),
                    "io.modelcontextprotocol/clientCapabilities": capabilities(&self.options.roots),
                });
                (DISCOVER_ID, "server/discover", json!({ "_meta": meta }))
            }
            Step::Initialize(version) => {
                let params = json!({
                    "protocolVersion": version,
                    "capabilities": capabilities(&self.options.roots),
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
        let frame = Frame { bytes: Bytes::from(message.to_string()), kind };
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
                self.doubt(&noise(&line));
                Action::Wait
            }
            Reading::Broken(fault) => self.lifecycle.hear(Heard::Gone(fault)),
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
                    let frame = Frame { bytes: bytes.into(), kind: FrameKind::Response };
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
