//! The seam between our wire and the SDK's session: ids, answers, notifications.
//!
//! Owns: our requests and their ids, which of them is pending, where its answer goes, and what is
//! odd about the traffic. The SDK keeps the rest of the session: what the server asks, and what
//! either side takes back. Never does: decide when to give up.

mod transport;

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};
use std::task::Poll;

use bytes::Bytes;
use rmcp::RoleClient;
use rmcp::model::{CustomRequest, JsonRpcMessage, JsonRpcRequest, RequestId, ServerRequest};
use rmcp::service::RxJsonRpcMessage;
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::handshake::{DISCOVER_ID, INITIALIZE_ID};
use super::message::{self, ParsedInput, RawJson, RpcMessage, non_message, unreadable_message};
use super::notifications::{self, NotificationHub, NotificationListener};
use super::outgoing::{ClientMeta, OutgoingRequest};
use super::protocol_warning::{ProtocolWarning, WARNING_CHARS, WarningList};
use super::questions::{OpenQuestion, QuestionRejection, QuestionTable};
use super::read_handoff::ReadHandoff;
use super::retired_ids::RetiredIds;
use super::wire::{Arrival, Wire};
use crate::model::{CallId, Error, EventSink, HostEvent, ListKind, LogLevel};
use crate::util::text::truncate;

pub use transport::SessionTransport;

/// What a progress notification said.
#[derive(Debug, Clone)]
pub struct ProgressUpdate {
    /// How much is done, in units of the server's own.
    pub done: f64,
    /// How much there is to do, in the same units.
    pub total: Option<f64>,
    /// What is being done, in the server's words.
    pub message: Option<String>,
}

/// What an answer carries: its result, or why there is none.
type RequestOutcome = Result<RawJson, Error>;

/// Receives progress; must return at once.
pub type ProgressListener = Arc<dyn Fn(ProgressUpdate) + Send + Sync>;

/// Everything a connection and its SDK session share.
pub struct McpSession {
    /// The server's name, for events.
    pub server: String,
    wire: Arc<dyn Wire>,
    events: EventSink,
    /// What each request says about us.
    client_meta: ClientMeta,
    state: StdMutex<SessionState>,
    /// Cancelled when the wire is gone.
    pub closed_token: CancellationToken,
    /// Woken when the server says something about a task.
    pub task_updated: Notify,
    /// What a run of calls that reads the wire has for the SDK.
    pub(super) read_handoff: Arc<ReadHandoff<RxJsonRpcMessage<RoleClient>>>,
}

#[derive(Default)]
struct SessionState {
    pending: HashMap<i64, PendingOutcome>,
    retired: RetiredIds,
    /// The id of the next request.
    next_id: i64,
    /// Questions of the server whose answers are not handed over yet.
    questions: QuestionTable,
    progress: HashMap<i64, ProgressListener>,
    warnings: WarningList,
    closed: Option<Error>,
    /// We are closing the wire ourselves.
    closes: bool,
    notifications: NotificationHub,
}

struct PendingOutcome {
    outcome: Option<Result<RawJson, Error>>,
    unmatched_response: Option<String>,
    woken: Arc<Notify>,
    /// The call it is part of.
    call: Option<CallId>,
}

impl McpSession {
    /// A session over `wire`, with the warnings that there are already.
    pub fn new(
        server: String,
        wire: Arc<dyn Wire>,
        events: EventSink,
        about: ClientMeta,
        warnings: WarningList,
    ) -> Arc<Self> {
        Arc::new(Self {
            server,
            wire,
            events,
            client_meta: about,
            state: StdMutex::new(SessionState { warnings, ..SessionState::default() }),
            closed_token: CancellationToken::new(),
            task_updated: Notify::new(),
            read_handoff: Arc::default(),
        })
    }

    /// The wire that the session's messages cross.
    pub fn wire(&self) -> &Arc<dyn Wire> {
        &self.wire
    }

    fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a warning about the server; equal ones are counted.
    #[expect(clippy::needless_pass_by_value, reason = "warnings are made where they are added")]
    pub fn add_warning(&self, warning: ProtocolWarning) {
        self.state().warnings.add(&warning);
    }

    /// What was odd so far, for people.
    pub fn protocol_warnings(&self) -> Vec<String> {
        self.state().warnings.lines()
    }

    /// Why the wire is gone, once it is.
    pub fn close_reason(&self) -> Option<Error> {
        self.state().closed.clone()
    }

    /// Says that we close the wire, so that its end is no surprise.
    pub fn begin_close(&self) {
        self.state().closes = true;
    }

    /// Grows each time the server says that this list changed.
    pub fn list_version(&self, list: ListKind) -> u64 {
        self.state().notifications.version(list)
    }

    /// Hears what the server tells about its lists and resources from now on.
    pub fn listener(&self) -> Arc<NotificationListener> {
        self.state().notifications.listener()
    }

    /// Sends a request, whose progress `listener` hears. What cannot be handed over is the outcome
    /// of the request, like an answer.
    pub async fn send_request(
        self: &Arc<Self>,
        outgoing: &OutgoingRequest<'_>,
        listener: Option<ProgressListener>,
    ) -> SentRequest {
        let listens = listener.is_some();
        let (id, woken) = {
            let mut state = self.state();
            let id = state.next_id;
            state.next_id += 1;
            let woken = Arc::new(Notify::new());
            let call = outgoing.call.cloned();
            let pending = PendingOutcome {
                outcome: None,
                unmatched_response: None,
                woken: Arc::clone(&woken),
                call,
            };
            state.pending.insert(id, pending);
            state.progress.extend(listener.map(|listener| (id, listener)));
            (id, woken)
        };
        let asked = SentRequest { session: Arc::clone(self), id, woken, wants_progress: listens };
        let (session, frame) = (Arc::clone(self), outgoing.frame(id, &self.client_meta));
        let mut sending = Box::pin(async move {
            if let Err(error) = session.wire.send(frame).await {
                session.fail_request(id, error);
            }
        });
        // Mostly it is handed over at once. Otherwise that goes on by itself: who gives the request
        // up must not leave half a message behind.
        let at_once = poll_fn(|cx| Poll::Ready(sending.as_mut().poll(cx).is_ready())).await;
        if !at_once {
            tokio::spawn(sending);
        }
        asked
    }

    /// Takes the outcome of a request, if it came; it is not pending any more then.
    fn take_outcome(&self, id: i64) -> Option<Result<RawJson, Error>> {
        let mut state = self.state();
        let outcome = state.pending.get_mut(&id)?.outcome.take()?;
        state.pending.remove(&id);
        state.questions.request_ended(id);
        Some(outcome)
    }

    /// Gives a request up; an answer that comes later is known as late.
    fn retire(&self, id: i64, listens: bool) {
        let mut state = self.state();
        if listens {
            state.progress.remove(&id);
        }
        state.questions.request_ended(id);
        if state.pending.remove(&id).is_some() {
            state.retired.insert(id);
        }
    }

    /// Takes in what came from the wire; returns what the SDK should know of it.
    fn route(&self, arrival: Arrival) -> Vec<RxJsonRpcMessage<RoleClient>> {
        match arrival {
            Arrival::Message { bytes, stream_of } => {
                self.route_bytes(&bytes, stream_of.as_ref().and_then(Value::as_i64))
            }
            Arrival::Warning(warning) => {
                self.add_warning(warning);
                Vec::new()
            }
            Arrival::Failed { id, error } => {
                if let Some(id) = id.as_i64() {
                    self.fail_request(id, error);
                }
                Vec::new()
            }
            Arrival::Closed(error) => {
                self.close(error);
                Vec::new()
            }
        }
    }

    fn route_bytes(&self, bytes: &Bytes, of: Option<i64>) -> Vec<RxJsonRpcMessage<RoleClient>> {
        let messages = self.messages(bytes, of).into_iter();
        messages.filter_map(|message| self.route_message(message, of)).collect()
    }

    /// Routes a line that a run of calls read from the wire. Answers are offered to `run` with their
    /// ids; what it gives back is not its own.
    pub(super) fn route_run_line(
        &self,
        line: &[u8],
        run: &mut dyn FnMut(&Value, RequestOutcome) -> Option<RequestOutcome>,
    ) {
        for message in self.messages(&Bytes::copy_from_slice(line), None) {
            let message = match message {
                RpcMessage::Response { id, outcome } => match run(&id, outcome) {
                    Some(outcome) => RpcMessage::Response { id, outcome },
                    None => continue,
                },
                other => other,
            };
            if let Some(message) = self.route_message(message, None) {
                self.read_handoff.push(message);
            }
        }
    }

    /// The messages that came together on the stream of the request `of`, their warnings noted; none
    /// when it was no message.
    fn messages(&self, bytes: &Bytes, of: Option<i64>) -> Vec<RpcMessage> {
        match message::read(bytes) {
            ParsedInput::Messages(messages, warnings) => {
                for warning in warnings {
                    self.add_warning(warning);
                }
                messages
            }
            ParsedInput::NonMessage(line) => {
                self.add_warning(non_message(line, self.wire.delimits_messages()));
                Vec::new()
            }
            ParsedInput::Unreadable(error) if self.wire.delimits_messages() => {
                let warning = unreadable_message(&error);
                if message::mentions_jsonrpc(bytes) {
                    self.note_unmatched_response(&warning, of);
                }
                self.add_warning(warning);
                Vec::new()
            }
            ParsedInput::Unreadable(error) | ParsedInput::Broken(error) => {
                self.close(error);
                Vec::new()
            }
        }
    }

    /// Routes one message, which came on the stream of the request `of` if the wire has such
    /// streams; also used for those that came before the session existed.
    fn route_message(
        &self,
        message: RpcMessage,
        of: Option<i64>,
    ) -> Option<RxJsonRpcMessage<RoleClient>> {
        match message {
            RpcMessage::Response { id, outcome } => {
                self.handle_response(&id, outcome);
                None
            }
            RpcMessage::Request { id, method, params } => {
                self.handle_request(id, &method, params, of)
            }
            RpcMessage::Notification { method, params } => {
                self.handle_notification(&method, params);
                None
            }
        }
    }

    fn handle_response(&self, id: &Value, outcome: Result<RawJson, Error>) {
        let known = whole_number(id);
        let mut state = self.state();
        if let Some(number) = known
            && let Some(pending) = state.pending.get_mut(&number)
        {
            let first = pending.outcome.is_none();
            if first {
                pending.outcome = Some(outcome);
                pending.woken.notify_one();
            }
            drop(state);
            if !first {
                self.add_warning(ProtocolWarning::AnsweredTwice);
            }
            if id.as_i64().is_none() {
                self.add_warning(ProtocolWarning::IdRewritten {
                    sent: number,
                    came: id.to_string(),
                });
            }
            return;
        }
        // The answer to the half of the handshake that was not needed any more.
        if known.is_some_and(|number| number == DISCOVER_ID || number == INITIALIZE_ID) {
            return;
        }
        // An id of ours that is over says nothing about a request that still waits.
        let of_a_run = known.is_some_and(|number| self.read_handoff.has_issued(number));
        if let Some(number) = known
            && (of_a_run || (0..state.next_id).contains(&number))
        {
            let late = of_a_run || state.retired.contains(number);
            drop(state);
            self.add_warning(if late {
                ProtocolWarning::LateAnswer
            } else {
                ProtocolWarning::AnsweredTwice
            });
            return;
        }
        let warning = match outcome {
            Err(error) if id.is_null() => {
                ProtocolWarning::ErrorWithoutId(error.message().to_owned())
            }
            _ => ProtocolWarning::UnknownId(id.to_string()),
        };
        drop(state);
        self.note_unmatched_response(&warning, None);
        self.add_warning(warning);
    }

    /// Something came that may have been meant as the answer to the request `of`, or to any: the
    /// right one has to come soon.
    fn note_unmatched_response(&self, warning: &ProtocolWarning, of: Option<i64>) {
        let text = truncate(&warning.to_string(), WARNING_CHARS);
        let mut state = self.state();
        let meant = |id: i64| of.is_none_or(|of| of == id);
        for (_, pending) in state.pending.iter_mut().filter(|(id, _)| meant(**id)) {
            pending.unmatched_response.get_or_insert_with(|| text.clone());
            pending.woken.notify_one();
        }
    }

    /// No answer will come to a request.
    fn fail_request(&self, id: i64, error: Error) {
        let mut state = self.state();
        let Some(pending) = state.pending.get_mut(&id).filter(|p| p.outcome.is_none()) else {
            return;
        };
        let unmatched = pending.unmatched_response.take();
        pending.outcome = Some(Err(match unmatched {
            Some(unmatched) => Error::protocol(format!("{unmatched}, and none to the request")),
            None => error,
        }));
        pending.woken.notify_one();
    }

    /// A request of the server. It goes to the SDK with its raw parameters, whatever it is.
    fn handle_request(
        &self,
        id: Value,
        method: &str,
        params: Option<RawJson>,
        of: Option<i64>,
    ) -> Option<RxJsonRpcMessage<RoleClient>> {
        let key = id.to_string();
        let Ok(request_id) = serde_json::from_value::<RequestId>(id) else {
            let method = method.to_owned();
            self.add_warning(ProtocolWarning::UnusableRequestId { method, id: key });
            return None;
        };
        let params = match params.map(|raw| raw.parse()).transpose() {
            Ok(params) => params,
            Err(error) => {
                self.add_warning(ProtocolWarning::UnreadableRequest {
                    method: method.to_owned(),
                    reason: error.message().to_owned(),
                });
                return None;
            }
        };
        if let Err(reason) = self.open_question(key, method, of) {
            let method = method.to_owned();
            self.add_warning(ProtocolWarning::RejectedRequest { method, reason });
            return None;
        }
        let request = ServerRequest::CustomRequest(CustomRequest::new(method, params));
        Some(JsonRpcMessage::Request(JsonRpcRequest::new(request_id, request)))
    }

    /// Takes note of a question and of the requests that may be waiting for its answer: the one on
    /// whose stream it came, or all that are part of calls.
    fn open_question(
        &self,
        key: String,
        method: &str,
        of: Option<i64>,
    ) -> Result<(), QuestionRejection> {
        let mut guard = self.state();
        let state = &mut *guard;
        let of = of.filter(|id| state.pending.contains_key(id));
        let waiting = state.pending.iter().filter(|(id, pending)| match of {
            Some(of) => **id == of,
            None => pending.call.is_some(),
        });
        let mut waiting: Vec<(i64, Option<CallId>)> =
            waiting.map(|(id, pending)| (*id, pending.call.clone())).collect();
        let call = match waiting.as_mut_slice() {
            [(_, call)] => call.take(),
            _ => None,
        };
        let requests: Vec<i64> = waiting.into_iter().map(|(id, _)| id).collect();
        for id in &requests {
            if let Some(pending) = state.pending.get(id) {
                pending.woken.notify_one();
            }
        }
        state.questions.open(key, OpenQuestion::new(method, requests, call))
    }

    fn close_question(&self, id: &RequestId) {
        let Ok(key) = serde_json::to_string(id) else { return };
        let mut state = self.state();
        for id in state.questions.close(&key) {
            if let Some(pending) = state.pending.get(&id) {
                pending.woken.notify_one();
            }
        }
    }

    /// The question with this id, as long as it is open.
    pub fn question(&self, id: &RequestId) -> Option<OpenQuestion> {
        self.state().questions.get(&serde_json::to_string(id).ok()?)
    }

    fn is_withdrawn(&self, id: &RequestId) -> bool {
        self.question(id).is_some_and(|question| question.is_withdrawn)
    }

    /// Remembers a page that the server asked to open, to know it when it is said to be done.
    pub fn remember_page(&self, id: &str) {
        self.state().questions.remember_page(id);
    }

    fn handle_notification(&self, method: &str, params: Option<RawJson>) {
        let Ok(params) = params.map(|raw| raw.parse()).transpose() else {
            return self.add_warning(ProtocolWarning::UnreadableNotification(method.to_owned()));
        };
        let params = params.unwrap_or_default();
        match method {
            "notifications/progress" => self.handle_progress(&params),
            "notifications/message" => self.handle_log(&params),
            "notifications/cancelled" => {
                let id = params.get("requestId").map(Value::to_string).unwrap_or_default();
                self.state().questions.withdraw(&id);
            }
            "notifications/elicitation/complete" => {
                let id = params.get("elicitationId").and_then(Value::as_str).unwrap_or_default();
                let known = self.state().questions.take_page(id);
                if known {
                    let text = "it says that what it asked for on a page is done".to_owned();
                    self.events.emit(HostEvent::Notice { origin: self.server.clone(), text });
                }
            }
            "notifications/tasks" | "notifications/tasks/status" => {
                self.task_updated.notify_waiters();
            }
            _ => match notifications::read(method, &params) {
                Ok(Some(news)) => {
                    self.state().notifications.publish(&news);
                    if let Some(event) = news.event(&self.server) {
                        self.events.emit(event);
                    }
                }
                Ok(None) => {}
                Err(flaw) => self.add_warning(ProtocolWarning::FlawedNotification {
                    method: method.to_owned(),
                    flaw,
                }),
            },
        }
    }

    fn handle_progress(&self, params: &Value) {
        let token = params.get("progressToken").and_then(Value::as_i64);
        let listener = token.and_then(|t| self.state().progress.get(&t).cloned());
        let progress = params.get("progress").and_then(Value::as_f64).filter(|p| p.is_finite());
        let (Some(listener), Some(progress)) = (listener, progress) else { return };
        listener(ProgressUpdate {
            done: progress,
            total: params.get("total").and_then(Value::as_f64).filter(|t| t.is_finite()),
            message: params.get("message").and_then(Value::as_str).map(str::to_owned),
        });
    }

    fn handle_log(&self, params: &Value) {
        let text = match params.get("data") {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => return,
        };
        let level = params.get("level").and_then(Value::as_str).unwrap_or("info").to_owned();
        self.events.emit(HostEvent::Log {
            origin: self.server.clone(),
            level: LogLevel(level),
            text,
        });
    }

    /// Ends the session: the wire is gone.
    pub(super) fn close(&self, error: Error) {
        let mut state = self.state();
        if state.closed.is_none() && !state.closes {
            let (kind, pending) = (error.kind().as_str(), state.pending.len());
            tracing::warn!(server = self.server, kind, pending, "server gone");
        }
        state.closed.get_or_insert(error);
        for pending in state.pending.values() {
            pending.woken.notify_one();
        }
        state.questions.close_all();
        drop(state);
        self.closed_token.cancel();
    }
}

/// A request that was sent. Dropped, it is forgotten, and the server is not told.
pub struct SentRequest {
    session: Arc<McpSession>,
    /// Its id, which is the token of its progress too.
    pub id: i64,
    woken: Arc<Notify>,
    /// Whether a listener hears its progress.
    wants_progress: bool,
}

impl SentRequest {
    /// Waits for its outcome, an unmatched response, news of a question, or the end of the wire.
    pub async fn wait_for_change(&self) {
        self.woken.notified().await;
    }

    /// Takes its outcome, if it came.
    pub fn take_outcome(&self) -> Option<Result<RawJson, Error>> {
        self.session.take_outcome(self.id)
    }

    /// Whether an answer to some unknown request came while this one waited.
    pub fn unmatched_response(&self) -> Option<String> {
        self.session.state().pending.get(&self.id)?.unmatched_response.clone()
    }

    /// Whether nothing is known of its end.
    pub fn is_open(&self) -> bool {
        let state = self.session.state();
        state.closed.is_none() && state.pending.contains_key(&self.id)
    }

    /// Whether a person is being asked something that it may be waiting for.
    pub fn waits_for_person(&self) -> bool {
        self.session.state().questions.waits_for_person(self.id)
    }
}

impl Drop for SentRequest {
    fn drop(&mut self) {
        self.session.retire(self.id, self.wants_progress);
    }
}

/// An id as a whole number; `2.0` is 2, as JSON has only one kind of number.
pub(super) fn whole_number(id: &Value) -> Option<i64> {
    id.as_i64().or_else(|| {
        let float = id.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 1e15)?;
        #[expect(clippy::cast_possible_truncation, reason = "whole and far from the limits")]
        Some(float as i64)
    })
}
