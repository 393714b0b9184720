//! The adapter between our wire and the SDK's session: ids, answers, notifications.
//!
//! Owns: our requests and their ids, which of them are pending, where their responses go, and the
//! warnings about the traffic. The SDK keeps the rest of the session: the server's requests, and
//! cancellations by either side. Never does: decide when to abandon a request.

mod sent_request;
mod server_notifications;
mod server_requests;
mod transport;

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};
use std::task::Poll;

use bytes::Bytes;
use rmcp::RoleClient;
use rmcp::service::RxJsonRpcMessage;
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::handshake::{DISCOVER_ID, INITIALIZE_ID};
use super::message::{self, ParsedInput, RawJson, RpcMessage, non_message, unreadable_message};
use super::notifications::{NotificationHub, NotificationListener};
use super::outgoing::{ClientMeta, OutgoingRequest};
use super::protocol_warning::{ProtocolWarning, WARNING_CHARS, WarningList};
use super::questions::QuestionTable;
use super::read_handoff::ReadHandoff;
use super::retired_ids::RetiredIds;
use super::wire::{Arrival, Wire};
use crate::model::{CallId, Error, EventSink, ListKind};
use crate::util::text::truncate;

pub use sent_request::{ProgressRegistration, SentRequest};
pub use transport::SessionTransport;

#[derive(Debug, Clone)]
pub struct ProgressUpdate {
    /// How much is done, in units of the server's own.
    pub done: f64,
    /// How much there is to do, in the same units.
    pub total: Option<f64>,
    /// What is being done, as the server worded it.
    pub message: Option<String>,
}

/// What an answer carries: its result, or why there is none.
type RequestOutcome = Result<RawJson, Error>;

/// Receives progress; must return at once.
pub type ProgressListener = Arc<dyn Fn(ProgressUpdate) + Send + Sync>;

/// Everything a connection and its SDK session share.
pub struct McpSession {
    pub server: String,
    wire: Arc<dyn Wire>,
    events: EventSink,
    client_meta: ClientMeta,
    state: StdMutex<SessionState>,
    pub closed_token: CancellationToken,
    pub task_updated: Notify,
    request_ended: Notify,
    pub(super) read_handoff: Arc<ReadHandoff<RxJsonRpcMessage<RoleClient>>>,
}

#[derive(Default)]
struct SessionState {
    pending: HashMap<i64, PendingOutcome>,
    retired: RetiredIds,
    next_id: i64,
    /// Questions of the server whose answers are not handed over yet.
    questions: QuestionTable,
    progress: HashMap<i64, ProgressListener>,
    warnings: WarningList,
    closed: Option<Error>,
    closes: bool,
    notifications: NotificationHub,
}

struct PendingOutcome {
    outcome: Option<Result<RawJson, Error>>,
    unmatched_response: Option<String>,
    woken: Arc<Notify>,
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
            request_ended: Notify::new(),
            read_handoff: Arc::default(),
        })
    }

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

    pub fn protocol_warnings(&self) -> Vec<String> {
        self.state().warnings.lines()
    }

    pub fn close_reason(&self) -> Option<Error> {
        self.state().closed.clone()
    }

    /// Notes that we are closing the wire, so that its end is expected.
    pub fn begin_close(&self) {
        self.state().closes = true;
    }

    /// Grows each time the server says that this list changed.
    pub fn list_version(&self, list: ListKind) -> u64 {
        self.state().notifications.version(list)
    }

    /// Receives the server's notifications about its lists and resources from now on.
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
        let registration =
            listens.then(|| ProgressRegistration { session: Arc::clone(self), token: id });
        let request = SentRequest { session: Arc::clone(self), id, woken, progress: registration };
        let (session, frame) = (Arc::clone(self), outgoing.frame(id, &self.client_meta));
        let mut sending = Box::pin(async move {
            match session.wire.send(frame).await {
                Ok(None) => {}
                Ok(Some(answer)) => session.take_answer(id, &answer),
                Err(error) => session.fail_request(id, error),
            }
        });
        // Mostly it is handed over at once. Otherwise that goes on by itself: who gives the request
        // up must not leave half a message behind.
        let at_once = poll_fn(|cx| Poll::Ready(sending.as_mut().poll(cx).is_ready())).await;
        if !at_once {
            tokio::spawn(sending);
        }
        request
    }

    /// Takes the outcome of a request, if it came; it is not pending any more then.
    fn take_outcome(&self, id: i64) -> Option<Result<RawJson, Error>> {
        let mut state = self.state();
        let outcome = state.pending.get_mut(&id)?.outcome.take()?;
        state.pending.remove(&id);
        state.questions.request_ended(id);
        self.request_ended.notify_waiters();
        Some(outcome)
    }

    /// Gives a request up; an answer that comes later is known as late.
    fn retire(&self, id: i64) {
        let mut state = self.state();
        state.questions.request_ended(id);
        self.request_ended.notify_waiters();
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

    /// Takes the answer to a request that the wire got with it. The SDK has no part in answers.
    fn take_answer(&self, id: i64, bytes: &Bytes) {
        for message in self.messages(bytes, Some(id)) {
            if let RpcMessage::Response { id, outcome } = message {
                self.handle_response(&id, outcome);
            }
        }
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
                self.handle_notification(&method, params, of);
                None
            }
        }
    }

    fn handle_response(&self, id: &Value, outcome: Result<RawJson, Error>) {
        let number = whole_number(id);
        let mut state = self.state();
        if let Some(number) = number
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
        if number.is_some_and(|number| number == DISCOVER_ID || number == INITIALIZE_ID) {
            return;
        }
        // An id of ours that is over says nothing about a request that still waits.
        let of_a_run = number.is_some_and(|number| self.read_handoff.has_issued(number));
        if let Some(number) = number
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

    fn fail_request(&self, id: i64, error: Error) {
        let mut state = self.state();
        let Some(pending) = state.pending.get_mut(&id).filter(|p| p.outcome.is_none()) else {
            return;
        };
        let unmatched = pending.unmatched_response.take();
        pending.outcome = Some(Err(match unmatched {
            Some(unmatched) => Error::protocol(format!("{unmatched}, but none to the request")),
            None => error,
        }));
        pending.woken.notify_one();
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

/// An id as a whole number; `2.0` is 2, as JSON has only one kind of number.
pub(super) fn whole_number(id: &Value) -> Option<i64> {
    id.as_i64().or_else(|| {
        let float = id.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 1e15)?;
        #[expect(clippy::cast_possible_truncation, reason = "whole and far from the limits")]
        Some(float as i64)
    })
}
