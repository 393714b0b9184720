//! A front end's connection to a background host.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::codec::LinesCodecError;
use tokio_util::sync::CancellationToken;

use super::connection::{self, LineConnection, message};
use super::host_message::{HostMessage, read};
use super::protocol::{
    self, CallMeta, FrontEndQuestion, HostStatus, OutcomeMeta, Payload, SentCall,
};
use crate::host::approval::{Approval, Approver};
use crate::host::link::{HostLink, HostQuery, LinkError, ObservationSink, ObserveRequest};
use crate::host::request::{CallOutcome, CallRequest};
use crate::model::{
    CallId, Error, ErrorKind, ErrorPhase, EventSink, HostEvent, QuestionBody, QuestionHandler,
    QuestionReply, Signal,
};
use crate::util::{local_peer, stopped_process};

/// How long a host may take to accept a connection and read its request; then it counts as not there.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a call may be begun. Shorter than [`READ_TIMEOUT`], so that no host begins a call that its
/// front end has given up.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(4);
/// How often a host that is busy with a request is asked for a sign of life. One that gives none
/// until the next time counts as lost.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// How long a host may take to read that its request is given up.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long a host that did not answer is not asked again.
const SILENCE: Duration = Duration::from_secs(30);
/// The longest line that is read of a host, in bytes.
const MAX_ANSWER: usize = 256 << 20;
/// The identities of the messages of one connection.
const REQUEST_ID: u64 = 1;
const PING_ID: u64 = 2;

#[derive(Clone)]
pub struct AttachedFrontEnd {
    pub approver: Arc<dyn Approver>,
    /// Answers what servers ask.
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
    /// The connection that detected the host; the first request uses it.
    first: Mutex<Option<LineConnection>>,
    name: String,
    front_end: AttachedFrontEnd,
}

struct HostRequest<'a> {
    line: String,
    cancel: &'a CancellationToken,
    what: &'a str,
    call: Option<CallId>,
    sink: Option<&'a ObservationSink>,
}

#[derive(Serialize)]
struct CallParams<'a> {
    name: &'a str,
    #[serde(rename = "_meta")]
    meta: CallMeta<&'a CallRequest>,
}

#[derive(Deserialize)]
struct CallResult {
    #[serde(rename = "_meta")]
    meta: OutcomeMeta,
}

/// Connects to the socket of a host of this user; `None` when no such host listens there. With the
/// connection its process.
async fn connect(path: &Path) -> Option<(LineConnection, u32)> {
    let connecting = tokio::time::timeout(READ_TIMEOUT, UnixStream::connect(path));
    let stream = connecting.await.ok()?.ok()?;
    let peer = stream.peer_cred().ok()?;
    let is_own = peer.uid() == rustix::process::geteuid().as_raw();
    let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok())?;
    is_own.then(|| (LineConnection::new(stream, MAX_ANSWER), pid))
}

impl HostClient {
    /// Connects to the host that listens at `path`; `None` when this user has none.
    pub async fn connect(path: &Path, name: &str, front_end: AttachedFrontEnd) -> Option<Self> {
        let (connection, pid) = connect(path).await?;
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
        *self.silent_until.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Lets the host look whether it is still what was trusted; whether it lives on.
    pub async fn recheck(&self) -> Result<bool, LinkError> {
        self.command(protocol::RECHECK).await
    }

    async fn command<T: DeserializeOwned>(&self, method: &'static str) -> Result<T, LinkError> {
        let never = CancellationToken::new();
        let line = connection::request(REQUEST_ID, method, &json!({}));
        let request = HostRequest { line, cancel: &never, what: method, call: None, sink: None };
        let answer: Payload<T> = read(&self.exchange(request).await?)?;
        Ok(answer.payload)
    }

    /// Whether a host may listen, as far as can be told without a connection: a process that serves
    /// others asks before each of its calls.
    fn may_listen(&self) -> bool {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        first.is_some() || self.path.exists()
    }

    async fn open(&self) -> Option<LineConnection> {
        let silent_until = *self.silent_until.lock().unwrap_or_else(PoisonError::into_inner);
        if silent_until.is_some_and(|until| Instant::now() < until) {
            return None;
        }
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        if first.is_some() {
            return first;
        }
        let (connection, pid) = connect(&self.path).await?;
        self.pid.store(pid, Ordering::Relaxed);
        Some(connection)
    }

    /// Goes on without a host that does not read its requests.
    fn go_on_without(&self) -> LinkError {
        let until = Some(Instant::now() + SILENCE);
        *self.silent_until.lock().unwrap_or_else(PoisonError::into_inner) = until;
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

    async fn exchange(&self, request: HostRequest<'_>) -> Result<String, LinkError> {
        let HostRequest { line, cancel, what, call, sink } = request;
        if line.is_empty() || line.len() > protocol::MAX_REQUEST {
            return Err(LinkError::Unsent);
        }
        let mut connection = self.open().await.ok_or(LinkError::Unsent)?;
        let sending = tokio::time::timeout(READ_TIMEOUT, connection.send(&line));
        // Without its end the host takes no line for a request.
        match cancel.run_until_cancelled(sending).await {
            Some(Ok(Some(()))) => {}
            Some(Ok(None)) => return Err(LinkError::Unsent),
            Some(Err(_elapsed)) => return Err(self.go_on_without()),
            None => return Err(Self::cancelled(what)),
        }
        let (answers, mut answered) = mpsc::channel::<String>(16);
        // Dropped, the questions that are still open are taken back.
        let mut questions = JoinSet::new();
        let mut sign_of_life = pin!(tokio::time::sleep(READ_TIMEOUT));
        let (mut is_read, mut is_ping_open) = (false, false);
        loop {
            tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    let params = json!({ "requestId": REQUEST_ID, "reason": "cancelled" });
                    let notice = json!({ "method": "notifications/cancelled", "params": params });
                    let notice = message(&notice);
                    let _ended_anyway =
                        tokio::time::timeout(LAST_WORDS, connection.send(&notice)).await;
                    return Err(Self::cancelled(what));
                }
                line = connection.next() => {
                    let line = match line {
                        Some(Ok(line)) => line,
                        // So ends a connection whose other end left something unread.
                        Some(Err(LinesCodecError::Io(error)))
                            if !is_read && error.kind() == io::ErrorKind::ConnectionReset =>
                        {
                            return Err(LinkError::Unsent);
                        }
                        Some(Err(_)) | None => return Err(self.lost(what)),
                    };
                    is_read = true;
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
                        Some(HostMessage::Observed(observations)) => {
                            if let Some(sink) = sink {
                                for observation in observations {
                                    sink(observation);
                                }
                            }
                        }
                        None => {}
                    }
                }
                Some(answer) = answered.recv() => {
                    self.say(&mut connection, &answer, cancel, what).await?;
                }
                () = &mut sign_of_life => {
                    if is_ping_open {
                        return Err(self.unanswered(what));
                    }
                    if !is_read && connection.has_unread() {
                        return Err(self.go_on_without());
                    }
                    (is_read, is_ping_open) = (true, true);
                    sign_of_life.as_mut().reset(Instant::now() + PING_INTERVAL);
                    let ping = json!({ "id": PING_ID, "method": "ping" });
                    self.say(&mut connection, &message(&ping), cancel, what).await?;
                }
            }
        }
    }

    /// Sends a line during a request.
    async fn say(
        &self,
        connection: &mut LineConnection,
        line: &str,
        cancel: &CancellationToken,
        what: &str,
    ) -> Result<(), LinkError> {
        let sending = tokio::time::timeout(READ_TIMEOUT, connection.send(line));
        match cancel.run_until_cancelled(sending).await {
            // That the host is gone is noticed by the reader.
            Some(Ok(_)) => Ok(()),
            Some(Err(_elapsed)) => Err(self.unanswered(what)),
            None => Err(Self::cancelled(what)),
        }
    }

    fn cancelled(what: &str) -> LinkError {
        let kind = ErrorKind::Interrupted(Signal::Interrupt);
        LinkError::Lost(Error::new(kind, format!("'{what}' was cancelled")))
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

    fn unknown_outcome(reason: String) -> LinkError {
        LinkError::Lost(
            Error::unreachable(reason)
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
        let call = SentCall {
            front_end: self.name.clone(),
            begins_by: local_peer::monotonic_time() + BEGIN_TIMEOUT,
            request,
        };
        let params = CallParams { name: &request.name, meta: CallMeta { call } };
        let line = connection::request(REQUEST_ID, protocol::CALL, &params);
        let (cancel, call) = (&request.cancel, request.id.clone());
        let sent = HostRequest { line, cancel, what: &request.name, call, sink: None };
        let result: CallResult = read(&self.exchange(sent).await?)?;
        Ok(result.meta.outcome.map(Into::into))
    }

    async fn query(
        &self,
        query: &HostQuery,
        cancel: &CancellationToken,
    ) -> Result<String, LinkError> {
        let line = connection::request(REQUEST_ID, protocol::QUERY, &Payload { payload: query });
        let sent = HostRequest { line, cancel, what: "the list", call: None, sink: None };
        let answer: Payload<String> = read(&self.exchange(sent).await?)?;
        Ok(answer.payload)
    }

    async fn observe(
        &self,
        request: &ObserveRequest,
        sink: &ObservationSink,
        cancel: &CancellationToken,
    ) -> Result<(), LinkError> {
        let line =
            connection::request(REQUEST_ID, protocol::OBSERVE, &Payload { payload: request });
        let sent = HostRequest { line, cancel, what: "observing", call: None, sink: Some(sink) };
        let ended = self.exchange(sent).await;
        if cancel.is_cancelled() { Ok(()) } else { ended.map(drop) }
    }
}

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
