//! A front end's connection to a background host.
//!
//! Owns: one exchange for each request, over a connection of its own: the handshake, the request,
//! the questions that come back to this front end's person, and what the end of the connection
//! means. Never does: start a host, or choose which one is meant.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::codec::{FramedRead, LinesCodec};
use tokio_util::sync::CancellationToken;

use super::protocol::{self, FrontEndQuestion, HostStatus};
use crate::host::approval::{Approval, Approver};
use crate::host::link::{HostLink, HostQuery, LinkError};
use crate::host::request::{CallOutcome, CallRequest};
use crate::model::{
    CallId, Error, ErrorKind, ErrorPhase, EventSink, HostEvent, LogLevel, QuestionBody,
    QuestionHandler, QuestionReply, Signal,
};

/// How long connecting and the handshake may take; then the host counts as not there.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a host that is busy with a request is asked for a sign of life. One that gives none
/// until the next time counts as lost.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// The longest line that is read of a host, in bytes.
const MAX_ANSWER: usize = 256 << 20;
/// The identities of the messages of one connection.
const HANDSHAKE_ID: u64 = 0;
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
    pid: u32,
    /// The connection that showed that the host is there; the first request takes it.
    first: Mutex<Option<UnixStream>>,
    /// What this program calls itself in the host's records.
    name: String,
    front_end: AttachedFrontEnd,
}

/// A request and whatever it may meet on the way.
struct HostRequest<'a> {
    method: &'static str,
    params: Value,
    cancel: &'a CancellationToken,
    /// What is being done, for messages.
    what: &'a str,
}

/// The parts of an open connection.
struct HostConnection {
    input: FramedRead<OwnedReadHalf, LinesCodec>,
    output: OwnedWriteHalf,
}

/// Connects to the socket of a host of this user; `None` when no such host listens there.
async fn connect(path: &Path) -> Option<(UnixStream, u32)> {
    let connecting = tokio::time::timeout(HANDSHAKE_TIMEOUT, UnixStream::connect(path));
    let stream = connecting.await.ok()?.ok()?;
    let peer = stream.peer_cred().ok()?;
    let is_own = peer.uid() == rustix::process::geteuid().as_raw();
    let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok())?;
    is_own.then_some((stream, pid))
}

impl HostClient {
    /// Connects to the host that listens at `path`; `None` when there is none of this user.
    pub async fn connect(path: &Path, name: &str, front_end: AttachedFrontEnd) -> Option<Self> {
        let (stream, pid) = connect(path).await?;
        let (path, name) = (path.to_owned(), name.to_owned());
        Some(Self { path, pid, first: Mutex::new(Some(stream)), name, front_end })
    }

    /// What the host says of itself.
    ///
    /// # Errors
    /// As [`HostLink::query`].
    pub async fn status(&self) -> Result<HostStatus, LinkError> {
        self.command(protocol::STATUS).await
    }

    /// Tells the host to end; it goes on to end when this returns.
    ///
    /// # Errors
    /// As [`HostLink::query`].
    pub async fn stop(&self) -> Result<(), LinkError> {
        self.command::<bool>(protocol::STOP).await.map(drop)
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
        let request = HostRequest { method, params: json!({}), cancel: &never, what: method };
        read_payload(&self.exchange(request).await?, protocol::PAYLOAD)
    }

    async fn open(&self) -> Option<HostConnection> {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        let stream = match first {
            Some(stream) => stream,
            None => connect(&self.path).await?.0,
        };
        let (input, output) = stream.into_split();
        let input = FramedRead::new(input, LinesCodec::new_with_max_length(MAX_ANSWER));
        let mut connection = HostConnection { input, output };
        let handshake = connection.handshake(&self.name);
        tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await.ok()??;
        Some(connection)
    }

    /// Sends one request and waits for its result.
    async fn exchange(&self, request: HostRequest<'_>) -> Result<Value, LinkError> {
        let HostRequest { method, params, cancel, what } = request;
        let line = message(&json!({ "id": REQUEST_ID, "method": method, "params": params }));
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
                line = connection.input.next() => {
                    let Some(Ok(line)) = line else { return Err(self.lost(what)) };
                    match HostMessage::read(&line) {
                        Some(HostMessage::Answer(PING_ID, _)) => is_ping_open = false,
                        Some(HostMessage::Answer(_, answer)) => return answer,
                        Some(HostMessage::Request(id, params)) => {
                            let (front_end, answers) = (self.front_end.clone(), answers.clone());
                            questions.spawn(async move {
                                let answer = answer(&front_end, &params).await;
                                let line = message(&json!({ "id": id, "result": answer }));
                                let _request_over = answers.send(line).await;
                            });
                        }
                        Some(HostMessage::Event(event)) => self.front_end.events.emit(event),
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
                    let words = format!("'{what}' was interrupted");
                    let kind = ErrorKind::Interrupted(Signal::Interrupt);
                    return Err(LinkError::Lost(Error::new(kind, words)));
                }
                _ = ping.tick() => {
                    if is_ping_open {
                        return Err(self.lost(what));
                    }
                    is_ping_open = true;
                    let ping = json!({ "id": PING_ID, "method": "ping" });
                    let _noticed_by_the_reader = connection.send(&message(&ping)).await;
                }
            }
        }
    }

    fn lost(&self, what: &str) -> LinkError {
        let words = format!("the background host (pid {}) ended while '{what}' ran", self.pid);
        LinkError::Lost(
            Error::unreachable(words)
                .with_phase(ErrorPhase::Call)
                .with_detail("it was sent; whether it was carried out is not known")
                .with_hint("see 'toolhost audit'; --fresh makes a call without the host"),
        )
    }
}

#[async_trait]
impl HostLink for HostClient {
    fn pid(&self) -> u32 {
        self.pid
    }

    async fn call(&self, request: &CallRequest) -> Result<Result<CallOutcome, Error>, LinkError> {
        let params = json!({
            "name": request.name,
            "arguments": {},
            "_meta": { protocol::CALL: text(request), "progressToken": REQUEST_ID },
        });
        let (method, what) = ("tools/call", request.name.as_str());
        let sent = HostRequest { method, params, cancel: &request.cancel, what };
        let result = self.exchange(sent).await?;
        read_payload(result.get("_meta").unwrap_or(&Value::Null), protocol::OUTCOME)
    }

    async fn query(
        &self,
        query: &HostQuery,
        cancel: &CancellationToken,
    ) -> Result<String, LinkError> {
        let params = json!({ protocol::PAYLOAD: text(query) });
        let (method, what) = (protocol::QUERY, "the list");
        let sent = HostRequest { method, params, cancel, what };
        let mut result = self.exchange(sent).await?;
        match result.get_mut(protocol::PAYLOAD).map(Value::take) {
            Some(Value::String(answer)) => Ok(answer),
            _ => Err(LinkError::Unsent),
        }
    }
}

impl HostConnection {
    async fn send(&mut self, line: &str) -> Option<()> {
        self.output.write_all(line.as_bytes()).await.ok()
    }

    async fn handshake(&mut self, name: &str) -> Option<()> {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "elicitation": { "form": {}, "url": {} }, "sampling": {} },
            "clientInfo": { "name": name, "version": env!("CARGO_PKG_VERSION") },
        });
        let hello = json!({ "id": HANDSHAKE_ID, "method": "initialize", "params": params });
        self.send(&message(&hello)).await?;
        let answer = self.input.next().await?.ok()?;
        let is_agreed =
            matches!(HostMessage::read(&answer)?, HostMessage::Answer(HANDSHAKE_ID, Ok(_)));
        let ready = json!({ "method": "notifications/initialized" });
        if is_agreed { self.send(&message(&ready)).await } else { None }
    }
}

/// What a host says.
enum HostMessage {
    Answer(u64, Result<Value, LinkError>),
    Request(Value, Value),
    /// How far the request is, or what was logged for it.
    Event(HostEvent),
}

impl HostMessage {
    /// Reads a line; `None` for one that says nothing to a front end.
    fn read(line: &str) -> Option<Self> {
        let mut message: Value = serde_json::from_str(line).ok()?;
        let id = message.get("id").cloned();
        let params = message.get("params").cloned().unwrap_or_default();
        match (id, message.get("method").and_then(Value::as_str)) {
            (Some(id), Some(_)) => Some(Self::Request(id, params)),
            (Some(id), None) => {
                let answer = match message.get_mut("error").map(Value::take) {
                    Some(error) => Err(refusal(&error)),
                    None => Ok(message.get_mut("result").map(Value::take).unwrap_or_default()),
                };
                Some(Self::Answer(id.as_u64()?, answer))
            }
            (None, Some("notifications/progress")) => {
                let number = |key: &str| params.get(key).and_then(Value::as_f64);
                let text = params.get("message").and_then(Value::as_str);
                Some(Self::Event(HostEvent::Progress {
                    call_id: CallId(String::new()),
                    progress: number("progress")?,
                    total: number("total"),
                    message: text.map(str::to_owned),
                }))
            }
            (None, Some("notifications/message")) => {
                let text = |key: &str| params.get(key).and_then(Value::as_str).map(str::to_owned);
                Some(Self::Event(HostEvent::Log {
                    origin: text("logger")?,
                    call_id: None,
                    level: LogLevel(text("level")?),
                    text: text("data")?,
                }))
            }
            _ => None,
        }
    }
}

/// What an error of the protocol means: the host either ends, or refused.
fn refusal(error: &Value) -> LinkError {
    let code = error.get("code").and_then(Value::as_i64);
    if code == Some(i64::from(protocol::NOT_CURRENT)) {
        return LinkError::Unsent;
    }
    let words = error.get("message").and_then(Value::as_str).unwrap_or("no reason given");
    LinkError::Lost(
        Error::unreachable(format!("the background host refused: {words}"))
            .with_hint("--fresh does without it"),
    )
}

/// Puts a question to this front end's person.
async fn answer(front_end: &AttachedFrontEnd, params: &Value) -> Value {
    let meta = params.get("_meta").cloned().unwrap_or_default();
    let unattended = || json!({ "action": "cancel", "_meta": { protocol::UNATTENDED: true } });
    let Ok(question) = read_payload::<FrontEndQuestion>(&meta, protocol::QUESTION) else {
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

/// One message as a line.
fn message(content: &Value) -> String {
    let mut message = json!({ "jsonrpc": "2.0" });
    if let (Some(message), Some(content)) = (message.as_object_mut(), content.as_object()) {
        message.extend(content.clone());
    }
    format!("{message}\n")
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Reads what travels as a text in one member.
fn read_payload<T: DeserializeOwned>(holder: &Value, member: &str) -> Result<T, LinkError> {
    let text = holder.get(member).and_then(Value::as_str).unwrap_or_default();
    serde_json::from_str(text).map_err(|error| {
        LinkError::Lost(Error::protocol(format!(
            "the background host's answer is unreadable: {error}"
        )))
    })
}
