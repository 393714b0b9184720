//! A session over one wire: requests out; answers, questions and notifications in.

mod server_requests;

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, OnceLock, PoisonError};
use std::task::Poll;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use super::connection::RequestOptions;
use super::handshake::{DISCOVER_ID, INITIALIZE_ID, request_meta};
use super::lifecycle::Agreement;
use super::message::{
    Incoming, ParsedInput, RequestOutcome, RpcMessage, mentions_jsonrpc, non_message,
    unreadable_message,
};
use super::notifications::{NotificationHub, NotificationListener};
use super::questions::QuestionTable;
use super::responder::QuestionResponder;
use super::warnings::{WARNING_CHARS, WarningList};
use super::wire::{Arrival, FrameKind, OutgoingFrame, ProcessInfo, Wire};
use crate::model::{CallId, Era, Error, ErrorCause, ErrorKind, EventSink, JsonObject, ListKind};
use crate::util::text::truncate;

/// How many ids of abandoned requests are remembered; with more, the oldest are forgotten.
const MAX_RETIRED_IDS: usize = 256;
/// How many messages of a server are kept that come before the handshake is over…
const MAX_EARLY_MESSAGES: usize = 100;
/// …and how many bytes of them.
const MAX_EARLY_BYTES: usize = 1 << 20;
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a failed send waits for the end of the process that explains it.
const EXPLANATION_TIMEOUT: Duration = Duration::from_millis(500);

#[derive(Debug, Clone)]
pub struct ProgressUpdate {
    /// How much is done, in units of the server's own.
    pub done: f64,
    /// How much there is to do, in the same units.
    pub total: Option<f64>,
    /// What is being done, as the server worded it.
    pub message: Option<String>,
}

/// Receives progress; must return at once.
pub type ProgressListener = Arc<dyn Fn(ProgressUpdate) + Send + Sync>;

pub struct McpSession {
    pub server: String,
    wire: Arc<dyn Wire>,
    events: EventSink,
    /// The revision that each request names, in the modern era; known after the handshake.
    modern_version: OnceLock<String>,
    /// Answers what the server asks.
    pub respondent: QuestionResponder,
    state: StdMutex<SessionState>,
    next_id: AtomicI64,
    pub closed_token: CancellationToken,
    pub task_updated: Notify,
    request_ended: Notify,
}

#[derive(Default)]
struct SessionState {
    /// During the handshake: the requests and notifications to route after it.
    early: Option<Vec<RpcMessage>>,
    pending: BTreeMap<i64, PendingRequest>,
    /// Abandoned requests, whose late responses are ignored.
    retired: VecDeque<i64>,
    /// Questions of the server whose answers are not handed over yet.
    questions: QuestionTable,
    progress: BTreeMap<i64, ProgressListener>,
    warnings: WarningList,
    closed: Option<Error>,
    closes: bool,
    notifications: NotificationHub,
}

struct PendingRequest {
    /// Gets the answer, or why none will come.
    answer: oneshot::Sender<Result<RequestOutcome, Error>>,
    /// Woken by everything else that happens to it.
    news: Arc<Notify>,
    unmatched_response: Option<String>,
    has_progressed: bool,
    call: Option<CallId>,
}

/// A session that ends with its owner.
pub struct OwnedSession(pub Arc<McpSession>);

impl Drop for OwnedSession {
    fn drop(&mut self) {
        self.0.state().closes = true;
        self.0.close(closed_error());
    }
}

impl McpSession {
    /// Begins to read `wire`, with the warnings that there are already. Until
    /// [`begin_requests`](Self::begin_requests) only the handshake sends requests.
    pub fn begin(
        wire: Arc<dyn Wire>,
        respondent: QuestionResponder,
        warnings: WarningList,
    ) -> OwnedSession {
        let state = SessionState { warnings, early: Some(Vec::new()), ..SessionState::default() };
        let session = Arc::new(Self {
            server: respondent.server.clone(),
            wire,
            events: respondent.events.clone(),
            modern_version: OnceLock::new(),
            respondent,
            state: StdMutex::new(state),
            next_id: AtomicI64::new(0),
            closed_token: CancellationToken::new(),
            task_updated: Notify::new(),
            request_ended: Notify::new(),
        });
        let reader = Arc::clone(&session);
        tokio::spawn(async move { reader.closed_token.run_until_cancelled(reader.read()).await });
        OwnedSession(session)
    }

    /// The handshake is over: what the server said before is routed, and requests may be sent.
    pub fn begin_requests(self: &Arc<Self>, agreement: &Agreement) {
        self.wire.set_agreement(agreement.era, &agreement.version);
        if agreement.era == Era::Modern {
            let _first = self.modern_version.set(agreement.version.clone());
        }
        // Twice, because more may come meanwhile; then it no longer waits, however much is sent.
        for is_last in [false, true] {
            let early = {
                let mut state = self.state();
                let early = state.early.take().unwrap_or_default();
                state.early = (!is_last && !early.is_empty()).then(Vec::new);
                early
            };
            for message in early {
                self.deliver(message, None);
            }
        }
    }

    /// Keeps a message for the time after the handshake, if that is not over.
    fn keep_early(&self, message: RpcMessage) -> Option<RpcMessage> {
        let mut state = self.state();
        let Some(early) = &mut state.early else { return Some(message) };
        let bytes: usize = early.iter().map(RpcMessage::size).sum();
        if early.len() < MAX_EARLY_MESSAGES && bytes + message.size() <= MAX_EARLY_BYTES {
            early.push(message);
        } else {
            let text = "it sent too much before the handshake ended; some of it was dropped";
            state.warnings.add_once(text);
        }
        None
    }

    /// Takes the warnings along to another wire to the same server.
    pub fn take_warnings(&self) -> WarningList {
        std::mem::take(&mut self.state().warnings)
    }

    async fn read(self: &Arc<Self>) {
        loop {
            match self.wire.receive().await {
                Arrival::Message { incoming, stream_of } => {
                    let of = stream_of.as_ref().and_then(Value::as_i64);
                    for message in self.messages(incoming, of) {
                        self.route_message(message, of);
                    }
                }
                Arrival::Warning(warning) => self.add_warning(&warning),
                Arrival::Failed { id, error } => {
                    if let Some(id) = id.as_i64() {
                        self.fail_request(id, error);
                    }
                }
                Arrival::Closed(error) => return self.close(error),
            }
        }
    }

    pub fn wire(&self) -> &Arc<dyn Wire> {
        &self.wire
    }

    fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a warning about the server; equal ones are counted.
    pub fn add_warning(&self, warning: &str) {
        let mut state = self.state();
        // What is repeated during the handshake counts once.
        if state.early.is_some() {
            state.warnings.add_once(warning);
        } else {
            state.warnings.add(warning);
        }
    }

    pub fn protocol_warnings(&self) -> Vec<String> {
        self.state().warnings.lines()
    }

    pub fn close_reason(&self) -> Option<Error> {
        self.state().closed.clone()
    }

    /// Ends the session and everything that was started for it. Idempotent.
    pub async fn end(&self) {
        self.state().closes = true;
        self.wire.close().await;
        self.close(closed_error());
    }

    pub fn process_info(&self) -> ProcessInfo {
        self.wire.process_info()
    }

    /// Waits for the end of the connection; why it ended.
    pub async fn wait_closed(&self) -> Error {
        self.closed_token.cancelled().await;
        self.close_reason().unwrap_or_else(closed_error).with_server(&self.server)
    }

    /// Grows each time the server says that its tools changed.
    pub fn tool_list_version(&self) -> u64 {
        self.state().notifications.version(ListKind::Tools)
    }

    /// Receives the server's notifications about its lists and resources from now on.
    pub fn listener(&self) -> Arc<NotificationListener> {
        self.state().notifications.listener()
    }

    /// Sends a request. What cannot be handed over is the outcome of the request, like an answer.
    pub async fn send_request(
        self: &Arc<Self>,
        method: &str,
        params: &JsonObject,
        options: &RequestOptions,
    ) -> SentRequest {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mut sent = JsonObject::from_iter([("_meta".into(), self.request_meta(id, options))]);
        sent.extend(params.clone());
        let mut frame = OutgoingFrame::request(id, method, &sent);
        frame.call.clone_from(&options.call);
        if let FrameKind::Request { headers, .. } = &mut frame.kind {
            headers.clone_from(&options.headers);
        }
        self.send_frame(id, frame, options.progress.clone()).await
    }

    /// What a request says about us; nothing that was said in a handshake.
    fn request_meta(&self, id: i64, options: &RequestOptions) -> Value {
        let mut meta = JsonObject::new();
        if let Some(version) = self.modern_version.get() {
            let questions = match options.questions {
                Some(client) => self.respondent.abilities_for(client),
                None => self.respondent.abilities(),
            };
            meta = request_meta(version, questions);
            let key = "io.modelcontextprotocol/logLevel".to_owned();
            meta.extend(options.log_level.map(|level| (key, level.into())));
        }
        meta.extend(options.meta.clone().unwrap_or_default());
        meta.insert("progressToken".to_owned(), id.into());
        Value::Object(meta)
    }

    pub(super) async fn send_frame(
        self: &Arc<Self>,
        id: i64,
        frame: OutgoingFrame,
        listener: Option<ProgressListener>,
    ) -> SentRequest {
        let (sender, answer) = oneshot::channel();
        let news = Arc::new(Notify::new());
        {
            let mut state = self.state();
            let pending = PendingRequest {
                answer: sender,
                news: Arc::clone(&news),
                unmatched_response: None,
                has_progressed: false,
                call: frame.call.clone(),
            };
            if state.closed.is_none() {
                state.pending.insert(id, pending);
            }
            state.progress.extend(listener.map(|listener| (id, listener)));
        }
        let request = SentRequest { session: Arc::clone(self), id, answer, news };
        let session = Arc::clone(self);
        let mut sending = Box::pin(async move {
            if let Err(error) = session.wire.send(frame).await {
                session.fail_request(id, error);
            }
        });
        // Mostly it is handed over at once. Otherwise that goes on by itself: who gives the request
        // up must not leave half a message behind.
        let at_once = poll_fn(|cx| Poll::Ready(sending.as_mut().poll(cx).is_ready())).await;
        if !at_once {
            let closed = self.closed_token.clone();
            tokio::spawn(async move { closed.run_until_cancelled(sending).await });
        }
        request
    }

    /// Nobody waits for a request any more; an answer that comes later is known as late. What the
    /// server asked for it alone is not answered further.
    fn retire(&self, id: i64) {
        let mut state = self.state();
        if state.pending.remove(&id).is_some() {
            if state.retired.len() >= MAX_RETIRED_IDS {
                state.retired.pop_front();
            }
            state.retired.push_back(id);
        }
        state.progress.remove(&id);
        state.questions.request_ended(id);
        drop(state);
        self.request_ended.notify_waiters();
    }

    /// Tells the server that nobody waits for this request any more.
    pub async fn cancel_request(&self, id: i64, reason: &str) {
        let params = json!({ "requestId": id, "reason": reason });
        let frame = OutgoingFrame::notification("notifications/cancelled", Some(params));
        let _late = tokio::time::timeout(CANCEL_TIMEOUT, self.wire.send(frame)).await;
    }

    /// Reports a send that failed because the process died as the death, not as a broken pipe.
    pub(super) async fn explain_outcome(&self, outcome: RequestOutcome) -> RequestOutcome {
        match outcome {
            Err(error) if self.process_info().pid.is_some() => Err(self.explain(error).await),
            other => other,
        }
    }

    /// Why the wire ended, if it ends now that something could not be sent.
    pub(super) async fn explain(&self, error: Error) -> Error {
        if error.kind() != ErrorKind::Unreachable {
            return error;
        }
        let ended = tokio::time::timeout(EXPLANATION_TIMEOUT, self.closed_token.cancelled());
        let _late = Box::pin(ended).await;
        self.close_reason().unwrap_or(error)
    }

    /// The messages that came together on the stream of the request `of`, their warnings noted; none
    /// when it was no message.
    fn messages(&self, incoming: Incoming, of: Option<i64>) -> Vec<RpcMessage> {
        match incoming.input {
            ParsedInput::Messages(messages, warnings) => {
                for warning in &warnings {
                    self.add_warning(warning);
                }
                return messages;
            }
            ParsedInput::NonMessage(line) => {
                self.add_warning(&non_message(&line, self.wire.delimits_messages()));
            }
            ParsedInput::Unreadable(error) if self.wire.delimits_messages() => {
                let warning = unreadable_message(&error);
                if mentions_jsonrpc(&incoming.bytes) {
                    self.note_unmatched_response(&warning, of);
                }
                self.add_warning(&warning);
            }
            ParsedInput::Unreadable(error) | ParsedInput::Broken(error) => self.close(error),
        }
        Vec::new()
    }

    /// Routes one message, which came on the stream of the request `of` if the wire has such streams.
    fn route_message(self: &Arc<Self>, message: RpcMessage, of: Option<i64>) {
        let waits = match &message {
            RpcMessage::Response { .. } => false,
            RpcMessage::Request { method, .. } => method != "ping",
            RpcMessage::Notification { .. } => true,
        };
        let message = if waits { self.keep_early(message) } else { Some(message) };
        if let Some(message) = message {
            self.deliver(message, of);
        }
    }

    fn deliver(self: &Arc<Self>, message: RpcMessage, of: Option<i64>) {
        match message {
            RpcMessage::Response { id, outcome } => self.handle_response(&id, outcome),
            RpcMessage::Request { id, method, params } => {
                self.handle_request(id, method, params, of);
            }
            RpcMessage::Notification { method, params } => {
                self.handle_notification(&method, params, of);
            }
        }
    }

    fn handle_response(&self, id: &Value, outcome: RequestOutcome) {
        let number = whole_number(id);
        let pending = number.and_then(|number| self.state().pending.remove(&number));
        if let (Some(sent), Some(pending)) = (number, pending) {
            if id.as_i64().is_none() {
                self.add_warning(&format!("the id {sent} was returned as {id}"));
            }
            // Who waited for it may have just given up.
            let _unheard = pending.answer.send(Ok(outcome));
            return;
        }
        let mut state = self.state();
        if state.early.is_some() && id.is_null() && outcome.is_err() {
            // All that some servers say to what they reject: it concerns the newest request.
            let mut newest = [INITIALIZE_ID, DISCOVER_ID].into_iter();
            if let Some(pending) = newest.find_map(|id| state.pending.remove(&id)) {
                let _unheard = pending.answer.send(Ok(outcome));
                return;
            }
        }
        // The answer to the half of the handshake that was not needed any more.
        if number.is_some_and(|number| {
            [DISCOVER_ID, INITIALIZE_ID].contains(&number)
                && (state.early.is_none() || state.retired.contains(&number))
        }) {
            return;
        }
        // An id of ours that is over says nothing about a request that still waits.
        if let Some(number) = number
            && (0..self.next_id.load(Ordering::Relaxed)).contains(&number)
        {
            let late = state.retired.contains(&number);
            drop(state);
            self.add_warning(if late {
                "a response arrived after its request was abandoned; ignored"
            } else {
                "a request got two responses; the first one counts"
            });
            return;
        }
        let warning = match outcome {
            Err(error) if id.is_null() => format!("an error without an id: {}", error.message()),
            _ => format!("a response to unknown id {id}"),
        };
        drop(state);
        self.note_unmatched_response(&warning, None);
        self.add_warning(&warning);
    }

    /// Something came that may have been meant as the answer to the request `of`, or to any: the
    /// right one has to come soon.
    fn note_unmatched_response(&self, warning: &str, of: Option<i64>) {
        let text = truncate(warning, WARNING_CHARS);
        let mut state = self.state();
        if state.early.is_some() {
            // Each step of the handshake has an end of its own.
            return;
        }
        let meant = |id: i64| of.is_none_or(|of| of == id);
        for (_, pending) in state.pending.iter_mut().filter(|(id, _)| meant(**id)) {
            pending.unmatched_response.get_or_insert_with(|| text.clone());
            pending.news.notify_one();
        }
    }

    fn fail_request(&self, id: i64, error: Error) {
        let Some(pending) = self.state().pending.remove(&id) else { return };
        let is_session_lost = error.cause() == ErrorCause::SessionLost;
        let error = match pending.unmatched_response {
            Some(unmatched) => Error::protocol(format!("{unmatched}, but none to the request")),
            None => error,
        };
        let _unheard = pending.answer.send(Err(error.clone()));
        if is_session_lost {
            // Nothing can be sent in it any more; the next call begins another one.
            self.close(error);
        }
    }

    pub(super) fn close(&self, error: Error) {
        let mut state = self.state();
        if state.closed.is_none() && !state.closes && state.early.is_none() {
            let (kind, pending) = (error.kind().as_str(), state.pending.len());
            tracing::warn!(server = self.server, kind, pending, "server gone");
        }
        state.closed.get_or_insert(error);
        // Whoever waits sees that nobody will answer.
        state.pending.clear();
        state.questions.close_all();
        drop(state);
        self.closed_token.cancel();
    }
}

/// A request that was sent. Dropped, it is forgotten, and the server is not told. Until then its
/// progress is heard, which goes on after the answer when that is a task.
pub struct SentRequest {
    session: Arc<McpSession>,
    pub id: i64,
    answer: oneshot::Receiver<Result<RequestOutcome, Error>>,
    news: Arc<Notify>,
}

/// What happened to a request that is not answered yet.
#[derive(Debug, Default)]
pub struct RequestNews {
    pub unmatched_response: Option<String>,
    pub has_progressed: bool,
    pub waits_for_person: bool,
}

impl SentRequest {
    /// Waits for the outcome. Cancel-safe; not to be asked again after it came.
    async fn outcome(&mut self) -> RequestOutcome {
        self.answer_or_failure().await?
    }

    /// The same, with why no answer comes told from a refusal.
    pub(super) async fn answer_or_failure(&mut self) -> Result<RequestOutcome, Error> {
        match (&mut self.answer).await {
            Ok(answer) => answer,
            Err(_) => Err(self.session.close_reason().unwrap_or_else(closed_error)),
        }
    }

    /// The outcome as whoever waits for it is told it.
    pub async fn explained_outcome(&mut self) -> RequestOutcome {
        let outcome = self.outcome().await;
        let explained = self.session.explain_outcome(outcome).await;
        explained.map_err(|error| error.with_server(&self.session.server))
    }

    /// Tells the server that we no longer wait for the response.
    pub async fn cancel(&self, reason: &str) {
        if self.is_open() {
            self.session.cancel_request(self.id, reason).await;
        }
    }

    pub async fn outcome_or_news(&mut self) -> Option<RequestOutcome> {
        let news = Arc::clone(&self.news);
        tokio::select! {
            biased;
            outcome = self.outcome() => Some(outcome),
            () = news.notified() => None,
        }
    }

    pub fn news(&self) -> RequestNews {
        let mut state = self.session.state();
        let waits_for_person = state.questions.waits_for_person(self.id);
        let Some(pending) = state.pending.get_mut(&self.id) else { return RequestNews::default() };
        RequestNews {
            unmatched_response: pending.unmatched_response.clone(),
            has_progressed: std::mem::take(&mut pending.has_progressed),
            waits_for_person,
        }
    }

    pub fn is_open(&self) -> bool {
        self.session.state().pending.contains_key(&self.id)
    }
}

impl Drop for SentRequest {
    fn drop(&mut self) {
        self.session.retire(self.id);
    }
}

fn closed_error() -> Error {
    Error::unreachable("the connection is closed")
}

/// An id as a whole number; `2.0` is 2, as JSON has only one kind of number.
pub(super) fn whole_number(id: &Value) -> Option<i64> {
    id.as_i64().or_else(|| {
        let float = id.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 1e15)?;
        #[expect(clippy::cast_possible_truncation, reason = "whole and far from the limits")]
        Some(float as i64)
    })
}
