//! A front end's connection to a background host.
//!
//! Owns: one exchange per request, over its own connection: the request, the questions to this front
//! end's user, what is observed meanwhile, and what the end of the connection means. Never
//! does: start a host, or choose which one is meant.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::connection::{
    self, HostConnection, HostMessage, member, message, payload, read_payload, text,
};
use super::protocol::{self, FrontEndQuestion, HostStatus, SentOutcome};
use crate::host::approval::{Approval, Approver};
use crate::host::link::{HostLink, HostQuery, LinkError, ObservationSink, ObserveRequest};
use crate::host::request::{CallOutcome, CallRequest};
use crate::model::{
    CallId, Error, ErrorKind, ErrorPhase, EventSink, HostEvent, QuestionBody, QuestionHandler,
    QuestionReply, Signal,
};
use crate::util::stopped_process;

/// How long connecting and the handshake may take; then the host counts as not there.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a host that is busy with a request is asked for a sign of life. One that gives none
/// until the next time counts as lost.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// How long a host that did not answer is not asked again.
const SILENCE: Duration = Duration::from_secs(30);
/// The identities of the messages of one connection, after the handshake.
const REQUEST_ID: u64 = 1;
const PING_ID: u64 = 2;

/// The front end whose person answers, and who hears of progress.
#[derive(Clone)]
pub struct AttachedFrontEnd {
    /// Approves calls.
    pub approver: Arc<dyn Approver>,
    /// Answers what servers ask.
    pub inbox: Arc<dyn QuestionHandler>,
    /// Hears of progress, and what is logged.
    pub events: EventSink,
}

/// A background host, as a front end uses it.
pub struct HostClient {
    path: PathBuf,
    /// The process that listened last; 0 before one did.
    pid: AtomicU32,
    /// Until when the host is not asked, because it did not answer.
    silent_until: Mutex<Option<Instant>>,
    /// The connection that detected the host, after its handshake; the first request uses it.
    first: Mutex<Option<HostConnection>>,
    /// What this program calls itself in the host's records.
    name: String,
    front_end: AttachedFrontEnd,
}

/// A request and its handlers.
struct HostRequest<'a> {
    method: &'static str,
    params: Value,
    cancel: &'a CancellationToken,
    /// What is being done, for messages.
    what: &'a str,
    /// What this front end calls the call, in its events.
    call: Option<CallId>,
    /// Who hears what is observed meanwhile.
    sink: Option<&'a ObservationSink>,
}

/// Connects to the socket of a host of this user and begins to speak; `None` when no such host listens
/// there.
async fn connect(path: &Path, name: &str) -> Option<(HostConnection, u32)> {
    let connecting = tokio::time::timeout(HANDSHAKE_TIMEOUT, UnixStream::connect(path));
    let stream = connecting.await.ok()?.ok()?;
    let peer = stream.peer_cred().ok()?;
    let is_own = peer.uid() == rustix::process::geteuid().as_raw();
    let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok())?;
    if is_own { Some((HostConnection::begin(stream, name).await?, pid)) } else { None }
}

impl HostClient {
    /// Connects to the host that listens at `path`; `None` when this user has none.
    pub async fn connect(path: &Path, name: &str, front_end: AttachedFrontEnd) -> Option<Self> {
        let (connection, pid) = connect(path, name).await?;
        let (path, name) = (path.to_owned(), name.to_owned());
        let (pid, first) = (AtomicU32::new(pid), Mutex::new(Some(connection)));
        Some(Self { path, pid, silent_until: Mutex::default(), first, name, front_end })
    }

    /// Uses the host that listens at `path` at the time of a request, whichever it is by then. A
    /// request finds out whether there is one.
    pub fn at(path: PathBuf, name: &str, front_end: AttachedFrontEnd) -> Self {
        let (pid, first, name) = (AtomicU32::new(0), Mutex::default(), name.to_owned());
        Self { path, pid, silent_until: Mutex::default(), first, name, front_end }
    }

    /// What the host says of itself.
    ///
    /// # Errors
    /// As [`HostLink::query`].
    pub async fn status(&self) -> Result<HostStatus, LinkError> {
        self.command(protocol::STATUS).await
    }

    /// Tells the host to end; it may still be ending when this returns.
    ///
    /// # Errors
    /// As [`HostLink::query`].
    pub async fn stop(&self) -> Result<(), LinkError> {
        self.forget_silence();
        self.command::<bool>(protocol::STOP).await.map(drop)
    }

    /// Asks a host again that did not answer: it may have been let go on.
    pub fn forget_silence(&self) {
        *self.silent_until.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Lets the host look whether it is still what was trusted; whether it lives on.
    ///
    /// # Errors
    /// As [`HostLink::query`].
    pub async fn recheck(&self) -> Result<bool, LinkError> {
        self.command(protocol::RECHECK).await
    }

    async fn command<T: DeserializeOwned>(&self, method: &'static str) -> Result<T, LinkError> {
        let never = CancellationToken::new();
        let request = HostRequest {
            method,
            params: json!({}),
            cancel: &never,
            what: method,
            call: None,
            sink: None,
        };
        read_payload(&self.exchange(request).await?, protocol::PAYLOAD)
    }

    /// Whether a host may listen, as far as can be told without a connection: a process that serves
    /// others asks before each of its calls.
    fn may_listen(&self) -> bool {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        first.is_some() || self.path.exists()
    }

    async fn open(&self) -> Option<HostConnection> {
        let silent_until = *self.silent_until.lock().unwrap_or_else(PoisonError::into_inner);
        if silent_until.is_some_and(|until| Instant::now() < until) {
            return None;
        }
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut connection = if let Some(connection) = first {
            connection
        } else {
            let (connection, pid) = connect(&self.path, &self.name).await?;
            self.pid.store(pid, Ordering::Relaxed);
            connection
        };
        match tokio::time::timeout(HANDSHAKE_TIMEOUT, connection.handshake()).await {
            Ok(agreed) => agreed.map(|()| connection),
            Err(_elapsed) => {
                let until = Some(Instant::now() + SILENCE);
                *self.silent_until.lock().unwrap_or_else(PoisonError::into_inner) = until;
                let text = format!("{}; going on without it", self.silence());
                self.front_end.events.emit(HostEvent::Warning { text });
                None
            }
        }
    }

    /// That the host does not answer, and why if that shows.
    fn silence(&self) -> String {
        let pid = self.pid();
        let reason = if stopped_process::is_stopped(pid) {
            format!("it was stopped ('kill -CONT {pid}' lets it go on, 'toolhost down' ends it)")
        } else {
            "'toolhost down' ends it".to_owned()
        };
        format!("the background host (pid {pid}) does not respond: {reason}")
    }

    /// Sends one request and waits for its result, which is JSON.
    async fn exchange(&self, request: HostRequest<'_>) -> Result<String, LinkError> {
        let HostRequest { method, params, cancel, what, call, sink } = request;
        let line = connection::request(REQUEST_ID, method, &params);
        if line.len() > protocol::MAX_REQUEST {
            return Err(LinkError::Unsent);
        }
        let mut connection = self.open().await.ok_or(LinkError::Unsent)?;
        // Without its end the host takes no line for a request.
        connection.send(&line).await.ok_or(LinkError::Unsent)?;
        let (answers, mut answered) = mpsc::channel::<String>(16);
        // Dropped, the questions that are still open are taken back.
        let mut questions = JoinSet::new();
        let mut ping = tokio::time::interval(PING_INTERVAL);
        ping.reset();
        let mut is_ping_open = false;
        loop {
            tokio::select! {
                line = connection.next() => {
                    let Some(line) = line else { return Err(self.lost(what)) };
                    match HostMessage::read(&line, call.as_ref()) {
                        Some(HostMessage::Answer(PING_ID, _)) => is_ping_open = false,
                        Some(HostMessage::Answer(_, answer)) => return answer,
                        Some(HostMessage::Ended) => return Err(self.lost(what)),
                        Some(HostMessage::Request(id, params)) => {
                            let (front_end, answers) = (self.front_end.clone(), answers.clone());
                            questions.spawn(async move {
                                let answer = answer(&front_end, &params).await;
                                let line = message(&json!({ "id": id, "result": answer }));
                                let _request_over = answers.send(line).await;
                            });
                        }
                        Some(HostMessage::Event(event)) => self.front_end.events.emit(event),
                        Some(HostMessage::Observed(seen)) => {
                            if let Some(sink) = sink {
                                for seen in seen {
                                    sink(seen);
                                }
                            }
                        }
                        None => {}
                    }
                }
                Some(answer) = answered.recv() => {
                    let _noticed_by_the_reader = connection.send(&answer).await;
                }
                () = cancel.cancelled() => {
                    let params = json!({ "requestId": REQUEST_ID, "reason": "cancelled" });
                    let notice = json!({ "method": "notifications/cancelled", "params": params });
                    let _ended_anyway = connection.send(&message(&notice)).await;
                    let words = format!("'{what}' was cancelled");
                    let kind = ErrorKind::Interrupted(Signal::Interrupt);
                    return Err(LinkError::Lost(Error::new(kind, words)));
                }
                _ = ping.tick() => {
                    if is_ping_open {
                        return Err(self.unanswered(what));
                    }
                    is_ping_open = true;
                    let ping = json!({ "id": PING_ID, "method": "ping" });
                    let _noticed_by_the_reader = connection.send(&message(&ping)).await;
                }
            }
        }
    }

    fn lost(&self, what: &str) -> LinkError {
        Self::unknown_outcome(format!(
            "the background host (pid {}) ended while '{what}' ran",
            self.pid()
        ))
    }

    fn unanswered(&self, what: &str) -> LinkError {
        Self::unknown_outcome(format!("the outcome of '{what}' is not known: {}", self.silence()))
    }

    fn unknown_outcome(words: String) -> LinkError {
        LinkError::Lost(
            Error::unreachable(words)
                .with_phase(ErrorPhase::Call)
                .with_detail("the call was sent; whether it was executed is not known")
                .with_hint("see 'toolhost audit'; --fresh calls without the host"),
        )
    }
}

#[async_trait]
impl HostLink for HostClient {
    fn pid(&self) -> u32 {
        self.pid.load(Ordering::Relaxed)
    }

    async fn call(&self, request: &CallRequest) -> Result<Result<CallOutcome, Error>, LinkError> {
        if !self.may_listen() {
            return Err(LinkError::Unsent);
        }
        let params = json!({
            "name": request.name,
            "arguments": {},
            "_meta": { protocol::CALL: text(request), "progressToken": REQUEST_ID },
        });
        let (method, what) = ("tools/call", request.name.as_str());
        let (cancel, call) = (&request.cancel, request.id.clone());
        let sent = HostRequest { method, params, cancel, what, call, sink: None };
        let result = self.exchange(sent).await?;
        let ended: Result<SentOutcome, Error> =
            read_payload(member(&result, "_meta"), protocol::OUTCOME)?;
        Ok(ended.map(Into::into))
    }

    async fn query(
        &self,
        query: &HostQuery,
        cancel: &CancellationToken,
    ) -> Result<String, LinkError> {
        let params = json!({ protocol::PAYLOAD: text(query) });
        let (method, what) = (protocol::QUERY, "the list");
        let sent = HostRequest { method, params, cancel, what, call: None, sink: None };
        let answer = payload(&self.exchange(sent).await?, protocol::PAYLOAD);
        if answer.is_empty() { Err(LinkError::Unsent) } else { Ok(answer) }
    }

    async fn observe(
        &self,
        wanted: &ObserveRequest,
        sink: &ObservationSink,
        cancel: &CancellationToken,
    ) -> Result<(), LinkError> {
        let params = json!({ protocol::PAYLOAD: text(wanted) });
        let (method, what) = (protocol::OBSERVE, "observing");
        let sent = HostRequest { method, params, cancel, what, call: None, sink: Some(sink) };
        let ended = self.exchange(sent).await;
        if cancel.is_cancelled() { Ok(()) } else { ended.map(drop) }
    }
}

/// Puts a question to this front end's person.
async fn answer(front_end: &AttachedFrontEnd, params: &Value) -> Value {
    let unattended = || json!({ "action": "cancel", "_meta": { protocol::UNATTENDED: true } });
    let question = params.get("_meta").and_then(|meta| meta.get(protocol::QUESTION)?.as_str());
    let question = question.and_then(|text| serde_json::from_str::<FrontEndQuestion>(text).ok());
    let Some(question) = question else {
        return unattended();
    };
    let mut is_sample = false;
    let reply = match question {
        FrontEndQuestion::Server(question) => {
            is_sample = matches!(question.body, QuestionBody::Sampling { .. });
            let reply = front_end.inbox.ask(question.clone()).await;
            // The host's own event stays in its process.
            front_end.events.emit(HostEvent::QuestionAnswered {
                kind: question.body.kind(),
                message: question.body.message().to_owned(),
                server: question.server,
                call_id: question.call,
                round: question.round,
                outcome: reply.outcome(),
            });
            reply
        }
        FrontEndQuestion::Approval(approval) => {
            match front_end.approver.ask(&approval.request()).await {
                Approval::Granted => QuestionReply::Accept(json!({ protocol::APPROVE: true })),
                Approval::Refused => QuestionReply::Decline,
                Approval::Unavailable => QuestionReply::Unattended,
            }
        }
    };
    match reply {
        // A sample is the whole result, any other answer the content of one.
        QuestionReply::Accept(sample) if is_sample => sample,
        QuestionReply::Accept(content) => json!({ "action": "accept", "content": content }),
        QuestionReply::Decline => json!({ "action": "decline" }),
        QuestionReply::Cancel => json!({ "action": "cancel" }),
        QuestionReply::Unattended => unattended(),
    }
}
