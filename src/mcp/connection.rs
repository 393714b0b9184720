//! One connection to one server: requests with limits, after a handshake.
//!
//! Owns: deadlines of each request, cancellation, and the wording of what went wrong. Never does:
//! know tools, prompts or resources.

mod held;

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{CancelledNotificationParam, RequestId, ServerCapabilities, ServerPeerInfo};
use rmcp::service::{Peer, RunningService};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::handler::Handler;
use super::handshake::{Handshake, client_config, protocol_version, request_meta};
use super::lifecycle::Agreement;
use super::message::{Message, Raw};
use super::outgoing::{AboutUs, Outgoing};
use super::respondent::Respondent;
use super::session::{Asked, ProgressListener, Session, SessionTransport};
use super::transport::http::HttpWire;
use super::wire::Wire;
use crate::model::{CallId, Era, Fault, FaultKind, JsonObject, OfferList, Phase, Signal};

pub use super::handshake::{ConnectOptions, Opener};
pub use held::Held;

/// How long after a stray answer the right one may still come.
const STRAY_GRACE: Duration = Duration::from_secs(2);
/// How long telling the server that a request was given up may take.
const CANCEL_LIMIT: Duration = Duration::from_secs(1);
/// Which log lines a request asks for (revision 2026-07-28).
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// Limits and listeners of one request.
#[derive(Clone)]
pub struct RequestOptions {
    /// Ends the request after this much silence; progress starts it again, and it stands still
    /// while the server waits for a person's answer.
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
    /// The tool call it is part of, for questions and the trace.
    pub call: Option<CallId>,
}

impl RequestOptions {
    /// A request that nobody watches, with these limits.
    pub fn within(idle: Duration, total: Duration, phase: Phase) -> Self {
        Self {
            idle,
            total,
            cancel: CancellationToken::new(),
            progress: None,
            headers: Vec::new(),
            log_level: None,
            phase,
            call: None,
        }
    }
}

/// A server that agreed to talk.
pub struct Connection {
    /// What was agreed on.
    pub agreement: Agreement,
    /// How long it took.
    pub connect_time: Duration,
    session: Arc<Session>,
    respondent: Arc<Respondent>,
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
        let about = AboutUs::of(&agreement, &options.roots);
        let session = Session::new(options.server.clone(), wire, options.events.clone(), about);
        for doubt in doubts {
            session.doubt(doubt);
        }
        let respondent = Arc::new(Respondent {
            server: options.server.clone(),
            roots: options.roots.clone(),
            events: options.events.clone(),
            inbox: Arc::clone(&options.inbox),
        });
        let handler = Handler {
            config: client_config(&agreement, &options.roots),
            session: Arc::clone(&session),
            respondent: Arc::clone(&respondent),
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
            respondent,
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
        // A wire that could not connect says so: nothing was sent then.
        let named = |fault: Fault| match fault.at_phase() {
            Some(Phase::Start) => fault.server(&self.name),
            _ => fault.server(&self.name).phase(options.phase),
        };
        if let Some(fault) = self.session.closed() {
            return Err(named(fault));
        }
        let modern = self.agreement.era == Era::Modern;
        let outgoing = Outgoing {
            method,
            params: &params,
            headers: &options.headers,
            log_level: options.log_level.filter(|_| modern),
            call: options.call.as_ref(),
        };
        let activity = Arc::new(Notify::new());
        let listener = options.progress.as_ref().map(|listener| -> ProgressListener {
            let (listener, activity) = (Arc::clone(listener), Arc::clone(&activity));
            Arc::new(move |progress| {
                activity.notify_one();
                listener(progress);
            })
        });
        let asked = self.session.ask(&outgoing, listener).await;
        let verdict = self.wait(&asked, &activity, method, options).await;
        if let Err(fault) = &verdict
            && asked.is_open()
        {
            self.give_up(asked.id, fault.message()).await;
        }
        verdict.map_err(named)
    }

    async fn wait(
        &self,
        asked: &Asked,
        activity: &Notify,
        method: &str,
        options: &RequestOptions,
    ) -> Result<Raw, Fault> {
        let start = Instant::now();
        let last = start + options.total;
        let mut idle = (start + options.idle).min(last);
        let mut stray_until: Option<Instant> = None;
        let mut asking = false;
        loop {
            if let Some(outcome) = asked.outcome() {
                return self.judged(outcome).await;
            }
            if let Some(fault) = self.session.closed() {
                return Err(fault);
            }
            // A server that waits for a person is not silent.
            let was_asking = std::mem::replace(&mut asking, asked.is_asking());
            if was_asking && !asking {
                idle = (Instant::now() + options.idle).min(last);
            }
            let silence = if asking { last } else { idle };
            let until = stray_until.map_or(silence, |s| s.min(silence));
            tokio::select! {
                biased;
                () = asked.woken() => {
                    if asked.stray().is_some() {
                        stray_until.get_or_insert(Instant::now() + STRAY_GRACE);
                    }
                }
                () = options.cancel.cancelled() => {
                    let interrupted = FaultKind::Interrupted(Signal::Interrupt);
                    return Err(Fault::new(interrupted, format!("{method} was given up")));
                }
                () = activity.notified() => idle = (Instant::now() + options.idle).min(last),
                () = tokio::time::sleep_until(until) => {
                    return Err(self.too_late(asked, method, options, Instant::now() >= last));
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
        asked: &Asked,
        method: &str,
        options: &RequestOptions,
        total: bool,
    ) -> Fault {
        if let Some(stray) = asked.stray() {
            return Fault::protocol(format!("{stray}, and none to {method}"));
        }
        let waiting = self.session.wire().waiting_for(&asked.id.into());
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

    async fn give_up(&self, id: i64, reason: &str) {
        let id = RequestId::Number(id);
        let param = CancelledNotificationParam::new(Some(id), Some(reason.to_owned()));
        let _told = tokio::time::timeout(CANCEL_LIMIT, self.peer.notify_cancelled(param)).await;
    }

    /// What the connection and the SDK share.
    pub(super) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Answers what this server asks.
    pub(super) fn respondent(&self) -> &Respondent {
        &self.respondent
    }

    /// Remembers a page that the server asked to open (see [`Session::remember_page`]).
    pub(super) fn remember_page(&self, id: &str) {
        self.session.remember_page(id);
    }

    /// Waits until the server says something about a task.
    pub(super) async fn task_news(&self) {
        self.session.task_news.notified().await;
    }

    /// A fault of this server, in a step.
    pub(super) fn named(&self, fault: Fault, phase: Phase) -> Fault {
        fault.server(&self.name).phase(phase)
    }

    /// The wire, if it is one over Streamable HTTP.
    pub fn http(&self) -> Option<&HttpWire> {
        self.session.wire().as_http()
    }

    /// The `_meta` of a request that is written without the SDK: what the SDK adds, without the
    /// token of progress that nobody would hear. Empty before the modern era.
    pub fn request_meta(&self, log_level: Option<&str>) -> JsonObject {
        if self.agreement.era != Era::Modern {
            return JsonObject::new();
        }
        let meta = request_meta(&self.agreement.version, &self.respondent.roots);
        let Value::Object(mut meta) = meta else { return JsonObject::new() };
        if let Some(level) = log_level {
            meta.insert(LOG_LEVEL.to_owned(), level.into());
        }
        meta
    }

    /// The server's name in the files.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the server declared a capability, or an extension of the protocol.
    pub fn declares(&self, capability: &str) -> bool {
        let declared = &self.agreement.capabilities;
        declared.get(capability).or_else(|| declared.get("extensions")?.get(capability)).is_some()
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

    /// Fires when the connection is gone.
    pub fn gone(&self) -> CancellationToken {
        self.session.gone.clone()
    }

    /// Grows each time the server says that its tools changed.
    pub fn tool_list_version(&self) -> u64 {
        self.session.list_version(OfferList::Tools)
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
