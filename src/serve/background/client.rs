//! A front end's connection to a background host.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::protocol::{self, FrontEndQuestion, HostStatus, Payload};
use crate::config::spec::ProtocolChoice;
use crate::host::link::{
    HostLink, HostQuery, LinkError, Observation, ObservationSink, ObserveRequest,
};
use crate::host::policy::{Approval, ApprovalRequest, Approver};
use crate::host::request::{CallOutcome, CallRequest};
use crate::mcp::connection::{
    ConnectOptions, Connection, ProgressListener, RequestOptions, WireOpener,
};
use crate::mcp::message::INVALID_REQUEST;
use crate::mcp::tracer::Tracer;
use crate::mcp::transport::socket::SocketWire;
use crate::model::{
    CallId, Error, ErrorCause, ErrorKind, ErrorPhase, EventSink, HostEvent, JsonObject, Question,
    QuestionBody, QuestionHandler, QuestionReply,
};
use crate::util::lock::lock;
use crate::util::{json, stopped_process};

/// How long a host may take to accept a connection and answer its first message; then it counts as not
/// there.
const START_TIMEOUT: Duration = Duration::from_secs(5);
/// A host that said nothing for so long is asked for a sign of life before it is sent a request.
const QUIET: Duration = Duration::from_secs(1);
/// How often a host that is busy with a request is asked for a sign of life. One that gives none
/// until the next time counts as lost.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// The host limits calls; here they only must not wait for ever.
const FOREVER: Duration = Duration::from_hours(24 * 365);
/// How long a host that did not answer is not asked again.
const SILENCE: Duration = Duration::from_secs(30);
/// The longest message that is read of a host, in bytes.
const MAX_ANSWER: usize = 256 << 20;
const ENVELOPE: usize = 4 << 10;
/// How many calls of this process the host makes at once; further ones take turns.
const MAX_CALLS: usize = 200;

#[derive(Clone)]
pub struct AttachedFrontEnd {
    pub approver: Arc<dyn Approver>,
    pub inbox: Arc<dyn QuestionHandler>,
    /// Hears of progress, and what is logged.
    pub events: EventSink,
}

pub struct HostClient {
    path: PathBuf,
    /// The process that listened last; 0 before one did.
    pid: AtomicU32,
    /// Until when the host is not asked, because it did not answer.
    silent_until: Mutex<Option<Instant>>,
    /// The stream that detected the host; the first connection uses it.
    first: Mutex<Option<UnixStream>>,
    /// With the time of the last answer.
    connection: tokio::sync::Mutex<Option<(Arc<Connection>, Instant)>>,
    turns: Semaphore,
    name: String,
    front_end: AttachedFrontEnd,
}

struct HostRequest<'a> {
    method: &'a str,
    /// What is told of it when it has no answer.
    name: &'a str,
    params: Value,
    meta: Option<JsonObject>,
    call: Option<&'a CallId>,
    /// Where its observations go; `None` for the front end.
    sink: Option<&'a ObservationSink>,
    cancel: &'a CancellationToken,
}

/// Connects to the socket of a host of this user; `None` when no such host listens there. With the
/// stream its process.
async fn connect(path: &Path) -> Option<(UnixStream, u32)> {
    let connecting = tokio::time::timeout(START_TIMEOUT, UnixStream::connect(path));
    let stream = connecting.await.ok()?.ok()?;
    let peer = stream.peer_cred().ok()?;
    let is_own = peer.uid() == rustix::process::geteuid().as_raw();
    let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok())?;
    is_own.then_some((stream, pid))
}

impl HostClient {
    /// Connects to the host that listens at `path`; `None` when this user has none.
    pub async fn connect(path: &Path, name: &str, front_end: AttachedFrontEnd) -> Option<Self> {
        let (stream, pid) = connect(path).await?;
        let client = Self::at(path.to_owned(), name, front_end);
        client.pid.store(pid, Ordering::Relaxed);
        Some(Self { first: Mutex::new(Some(stream)), ..client })
    }

    /// Uses the host that listens at `path` at the time of a request, whichever it is by then. A
    /// request finds out whether there is one.
    pub fn at(path: PathBuf, name: &str, front_end: AttachedFrontEnd) -> Self {
        Self {
            path,
            pid: AtomicU32::new(0),
            silent_until: Mutex::default(),
            first: Mutex::default(),
            connection: tokio::sync::Mutex::default(),
            turns: Semaphore::new(MAX_CALLS),
            name: name.to_owned(),
            front_end,
        }
    }

    pub async fn status(&self) -> Result<HostStatus, LinkError> {
        self.command(protocol::STATUS).await
    }

    /// Tells the host to end; it may still be ending when this returns.
    pub async fn stop(&self) -> Result<(), LinkError> {
        self.forget_silence();
        self.command::<bool>(protocol::STOP).await.map(drop)
    }

    /// Asks a host again that did not answer: it may have been let go on.
    pub fn forget_silence(&self) {
        *lock(&self.silent_until) = None;
    }

    /// Lets the host look whether it is still what was trusted; whether it lives on.
    pub async fn recheck(&self) -> Result<bool, LinkError> {
        self.command(protocol::RECHECK).await
    }

    async fn command<T: DeserializeOwned>(&self, method: &str) -> Result<T, LinkError> {
        read(&self.ask(method, method, json!({}), &CancellationToken::new()).await?)
    }

    /// The answer to a request that is not MCP, as the text of its JSON.
    async fn ask(
        &self,
        method: &str,
        name: &str,
        params: Value,
        cancel: &CancellationToken,
    ) -> Result<String, LinkError> {
        let request =
            HostRequest { method, name, params, meta: None, call: None, sink: None, cancel };
        Ok(read::<Payload<String>>(&self.exchange(request).await?)?.payload)
    }

    /// The open connection, or a new one.
    async fn open(&self) -> Result<Arc<Connection>, LinkError> {
        let silent_until = *lock(&self.silent_until);
        if silent_until.is_some_and(|until| Instant::now() < until) {
            return Err(LinkError::Unsent);
        }
        let mut slot = self.connection.lock().await;
        if let Some((connection, last)) = &*slot {
            let is_there = last.elapsed() < QUIET || ping(connection, START_TIMEOUT).await.is_ok();
            match connection.close_reason() {
                None if is_there => return Ok(Arc::clone(connection)),
                None => return Err(self.go_on_without()),
                Some(_) => *slot = None,
            }
        }
        let first = lock(&self.first).take();
        let stream = if let Some(stream) = first {
            stream
        } else {
            let (stream, pid) = connect(&self.path).await.ok_or(LinkError::Unsent)?;
            self.pid.store(pid, Ordering::Relaxed);
            stream
        };
        let wire = Arc::new(SocketWire::over(stream, MAX_ANSWER, Tracer::off()));
        let open: WireOpener = Arc::new(move || Ok(Arc::clone(&wire) as _));
        let options = ConnectOptions {
            server: "the background host".to_owned(),
            protocol: ProtocolChoice::Legacy,
            cached_era: None,
            start_timeout: START_TIMEOUT,
            falls_back_on_silence: false,
            roots: Vec::new(),
            events: EventSink::discard(),
            inbox: Arc::new(self.front_end.clone()),
        };
        match Connection::open(&open, options).await {
            Ok(connection) => {
                let (connection, _) = slot.insert((Arc::new(connection), Instant::now()));
                Ok(Arc::clone(connection))
            }
            Err(error) if error.kind() == ErrorKind::Timeout => Err(self.go_on_without()),
            Err(_) => Err(LinkError::Unsent),
        }
    }

    /// Goes on without a host that does not read its requests.
    fn go_on_without(&self) -> LinkError {
        let until = Some(Instant::now() + SILENCE);
        *lock(&self.silent_until) = until;
        let text = format!("{}; going on without it", self.silence());
        self.front_end.events.emit(HostEvent::Warning { text });
        LinkError::Unsent
    }

    /// That the host does not answer, and why if that shows.
    fn silence(&self) -> String {
        let pid = self.pid();
        let reason = if stopped_process::is_stopped(pid) {
            format!("it was stopped ('kill -CONT {pid}' resumes it, 'toolhost down' stops it)")
        } else {
            "'toolhost down' stops it".to_owned()
        };
        format!("the background host (pid {pid}) does not respond: {reason}")
    }

    /// A listener of progress, which hands on the observations that it brings: to `sink`, or to the
    /// front end.
    fn progress(&self, sink: Option<&ObservationSink>) -> ProgressListener {
        let (sink, events) = (sink.cloned(), self.front_end.events.clone());
        Arc::new(move |update| {
            for observation in Observation::read(&update.message.unwrap_or_default()) {
                match (&sink, observation) {
                    (Some(sink), observation) => sink(observation),
                    (None, Observation::Event(event)) => events.emit(event),
                    (None, _) => {}
                }
            }
        })
    }

    /// Sends a request and waits for its answer, as the text of its JSON.
    async fn exchange(&self, request: HostRequest<'_>) -> Result<String, LinkError> {
        let HostRequest { method, name, params, meta, call, sink, cancel } = request;
        let too_long = (protocol::MAX_REQUEST - ENVELOPE) as u64;
        if json::is_longer_than(&(&params, &meta), too_long) {
            return Err(LinkError::Unsent);
        }
        let cancelled = || LinkError::Lost(Error::interrupted(format!("'{name}' was cancelled")));
        let opened = cancel.run_until_cancelled(self.open()).await;
        let connection = opened.unwrap_or_else(|| Err(cancelled()))?;
        let options = RequestOptions {
            cancel: cancel.clone(),
            progress: Some(self.progress(sink)),
            meta,
            call: call.cloned(),
            ..RequestOptions::with_timeouts(FOREVER, FOREVER, ErrorPhase::Call)
        };
        let outcome = tokio::select! {
            biased;
            outcome = connection.request(method, params, &options) => outcome,
            () = silence_of(&connection) => {
                let reason = format!("the outcome of '{name}' is not known: {}", self.silence());
                return Err(unknown_outcome(reason));
            }
        };
        match outcome {
            Ok(answer) => {
                if let Some((_, last)) = &mut *self.connection.lock().await {
                    *last = Instant::now();
                }
                Ok(answer.get().to_owned())
            }
            Err(_) if cancel.is_cancelled() => Err(cancelled()),
            Err(error) => Err(self.explain(&error, name)),
        }
    }

    /// Why the request `name` has no answer.
    fn explain(&self, error: &Error, name: &str) -> LinkError {
        let ended = i64::from(protocol::ENDED);
        match error.cause() {
            ErrorCause::Rpc { code }
                if code == i64::from(protocol::NOT_BEGUN) || code == INVALID_REQUEST =>
            {
                LinkError::Unsent
            }
            ErrorCause::Rpc { code } if code != ended => LinkError::Lost(
                Error::unreachable(format!("the background host refused: {}", error.message()))
                    .with_hint("--fresh runs without it"),
            ),
            _ => unknown_outcome(format!(
                "the background host (pid {}) ended while '{name}' ran",
                self.pid()
            )),
        }
    }
}

/// Waits until the host gives no sign of life.
async fn silence_of(connection: &Connection) {
    loop {
        tokio::time::sleep(PING_INTERVAL).await;
        // That the connection has ended is the outcome of the request.
        if ping(connection, PING_INTERVAL).await.is_err() && connection.close_reason().is_none() {
            return;
        }
    }
}

async fn ping(connection: &Connection, limit: Duration) -> Result<(), Error> {
    let options = RequestOptions::with_timeouts(limit, limit, ErrorPhase::Call);
    connection.request("ping", json!({}), &options).await.map(drop)
}

fn unknown_outcome(reason: String) -> LinkError {
    LinkError::Lost(
        Error::unreachable(reason)
            .with_phase(ErrorPhase::Call)
            .with_detail("the request was sent; whether it was executed is not known")
            .with_hint("see 'toolhost audit'; --fresh does it without the host"),
    )
}

fn read<T: DeserializeOwned>(json: &str) -> Result<T, LinkError> {
    serde_json::from_str(json).map_err(|error| {
        LinkError::Lost(Error::protocol(format!(
            "the background host's response is invalid: {error}"
        )))
    })
}

#[async_trait]
impl HostLink for HostClient {
    fn pid(&self) -> u32 {
        self.pid.load(Ordering::Relaxed)
    }

    async fn call(&self, request: &CallRequest) -> Result<Result<CallOutcome, Error>, LinkError> {
        #[derive(Deserialize)]
        struct CallResult {
            #[serde(rename = "_meta")]
            meta: OutcomeMeta,
        }
        #[derive(Deserialize)]
        struct OutcomeMeta {
            #[serde(rename = "dev.toolhost/outcome")]
            outcome: String,
        }
        // One that serves others says whose call it is.
        let client_name = request.client_name.clone().or_else(|| Some(self.name.clone()));
        let call = CallRequest { client_name, ..request.clone() };
        let call = serde_json::to_value(&call).map_err(|_unwritable| LinkError::Unsent)?;
        let meta = std::iter::once((protocol::CALL.to_owned(), call)).collect();
        let _turn = request.cancel.run_until_cancelled(self.turns.acquire()).await;
        let (name, cancel, call) = (request.name.as_str(), &request.cancel, request.id.as_ref());
        let (method, params) = ("tools/call", json!({ "name": name }));
        let request =
            HostRequest { method, name, params, meta: Some(meta), call, sink: None, cancel };
        read(&read::<CallResult>(&self.exchange(request).await?)?.meta.outcome)
    }

    async fn query(
        &self,
        query: &HostQuery,
        cancel: &CancellationToken,
    ) -> Result<String, LinkError> {
        let params = json!(Payload { payload: query });
        self.ask(protocol::QUERY, query.subject(), params, cancel).await
    }

    async fn observe(
        &self,
        request: &ObserveRequest,
        sink: &ObservationSink,
        cancel: &CancellationToken,
    ) -> Result<(), LinkError> {
        let (method, params) = (protocol::OBSERVE, json!(Payload { payload: request }));
        let (name, sink) = ("observing", Some(sink));
        let request = HostRequest { method, name, params, meta: None, call: None, sink, cancel };
        let ended = self.exchange(request).await;
        if cancel.is_cancelled() { Ok(()) } else { ended.map(drop) }
    }
}

/// The host asks in forms, which carry what it asks.
#[async_trait]
impl QuestionHandler for AttachedFrontEnd {
    async fn ask(&self, question: Question) -> QuestionReply {
        let QuestionBody::Form { schema, .. } = question.body else {
            return QuestionReply::Unattended;
        };
        let text = schema.get(protocol::QUESTION).and_then(Value::as_str).unwrap_or_default();
        let reply = match serde_json::from_str::<FrontEndQuestion<ApprovalRequest<'_>>>(text) {
            Err(_) => QuestionReply::Unattended,
            Ok(FrontEndQuestion::Server(question)) => {
                let reply = self.inbox.ask(question.clone()).await;
                // The host's own event stays in its process.
                self.events.emit(HostEvent::QuestionAnswered {
                    kind: question.body.kind().into(),
                    message: question.body.message().to_owned(),
                    server: question.server,
                    call_id: question.call,
                    round: question.round,
                    outcome: reply.outcome(),
                });
                reply
            }
            Ok(FrontEndQuestion::Approval(request)) => match self.approver.ask(&request).await {
                Approval::Granted => QuestionReply::Accept(json!({ protocol::APPROVE: true })),
                Approval::Refused => QuestionReply::Decline,
                Approval::Unavailable => QuestionReply::Unattended,
            },
        };
        QuestionReply::Accept(json!({ protocol::REPLY: reply }))
    }

    fn allows_concurrent(&self) -> bool {
        true
    }
}
