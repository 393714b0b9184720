//! The seam between our wire and the SDK's session: ids, answers, notifications.
//!
//! Owns: which request is pending, where its answer goes, and what is odd about the traffic. The
//! SDK keeps the session (ids, cancellation, requests of the server); answers keep their exact
//! text here, and the SDK only learns that one came. Never does: decide when to give up.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};

use bytes::Bytes;
use rmcp::RoleClient;
use rmcp::model::{
    ClientNotification, ClientRequest, CustomRequest, CustomResult, GetExtensions as _,
    JsonRpcMessage, JsonRpcRequest, JsonRpcResponse, RequestId, ServerRequest, ServerResult,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::handshake::{DISCOVER_ID, INITIALIZE_ID};
use super::message::{self, Message, Raw, Reading};
use super::news::{self, Audience, Ear};
use super::questions::{OpenQuestion, Questions};
use super::repeat::detour::Detour;
use super::wire::{Arrival, Frame, FrameKind, Wire};
use crate::model::{CallId, Event, EventSink, Fault, LogLevel, OfferList};

/// How many different doubts about a server's traffic are kept.
const DOUBTS_KEPT: usize = 20;
/// How much of a doubt is kept, in characters: it may quote what the server made up.
pub(super) const DOUBT_LENGTH: usize = 300;
/// How many ids of given-up requests are remembered, to know a late answer when it comes.
const RETIRED_KEPT: usize = 256;

/// Extra headers of one request (`Mcp-Param-*`), handed through the SDK to the wire.
#[derive(Debug, Clone)]
pub struct ParamHeaders(pub Vec<(String, String)>);

/// What a progress notification said.
#[derive(Debug, Clone)]
pub struct Progress {
    /// How far.
    pub done: f64,
    /// Of how much.
    pub total: Option<f64>,
    /// Doing what.
    pub message: Option<String>,
}

/// What an answer carries: its result, or why there is none.
type Outcome = Result<Raw, Fault>;

/// Receives progress; must return at once.
pub type ProgressListener = Arc<dyn Fn(Progress) + Send + Sync>;

/// Everything a connection and its SDK session share.
pub struct Session {
    /// The server's name, for events.
    pub server: String,
    wire: Arc<dyn Wire>,
    events: EventSink,
    state: StdMutex<State>,
    /// Cancelled when the wire is gone.
    pub gone: CancellationToken,
    /// Woken when the server says something about a task.
    pub task_news: Notify,
    /// What a run of calls that reads the wire has for the SDK.
    pub(super) detour: Arc<Detour<RxJsonRpcMessage<RoleClient>>>,
}

#[derive(Default)]
struct State {
    pending: HashMap<i64, Pending>,
    retired: VecDeque<i64>,
    /// The highest id that was sent; the SDK counts up from 0.
    newest: Option<i64>,
    /// Questions of the server whose answers are not handed over yet.
    questions: Questions,
    progress: HashMap<i64, ProgressListener>,
    /// Each doubt with how often it came, in order of first appearance.
    doubts: Vec<(String, u64)>,
    doubts_lost: u64,
    closed: Option<Fault>,
    audience: Audience,
}

struct Pending {
    outcome: Option<Result<Raw, Fault>>,
    stray: Option<String>,
    woken: Arc<Notify>,
    /// The call it is part of.
    call: Option<CallId>,
}

impl Session {
    /// A session over `wire`.
    pub fn new(server: String, wire: Arc<dyn Wire>, events: EventSink) -> Arc<Self> {
        Arc::new(Self {
            server,
            wire,
            events,
            state: StdMutex::default(),
            gone: CancellationToken::new(),
            task_news: Notify::new(),
            detour: Arc::default(),
        })
    }

    /// The wire below.
    pub fn wire(&self) -> &Arc<dyn Wire> {
        &self.wire
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes something odd; equal notes are counted.
    pub fn doubt(&self, text: impl Into<String>) {
        let text = message::head(&text.into(), DOUBT_LENGTH);
        let mut state = self.state();
        if let Some((_, count)) = state.doubts.iter_mut().find(|(known, _)| *known == text) {
            *count += 1;
        } else if state.doubts.len() < DOUBTS_KEPT {
            state.doubts.push((text, 1));
        } else {
            state.doubts_lost += 1;
        }
    }

    /// What was odd so far, for people.
    pub fn doubts(&self) -> Vec<String> {
        let state = self.state();
        let mut out: Vec<String> = state
            .doubts
            .iter()
            .map(|(text, count)| match count {
                1 => text.clone(),
                n => format!("{text} ({n} times)"),
            })
            .collect();
        if state.doubts_lost > 0 {
            out.push(format!("and {} more oddities", state.doubts_lost));
        }
        out
    }

    /// Why the wire is gone, once it is.
    pub fn closed(&self) -> Option<Fault> {
        self.state().closed.clone()
    }

    /// Grows each time the server says that this list changed.
    pub fn list_version(&self, list: OfferList) -> u64 {
        self.state().audience.version(list)
    }

    /// Hears what the server tells about its lists and resources from now on.
    pub fn ear(&self) -> Arc<Ear> {
        self.state().audience.ear()
    }

    /// Waits for an answer's arrival, a stray answer or the end of the wire.
    pub fn waker(&self, id: &RequestId) -> Arc<Notify> {
        let Some(id) = number(id) else { return Arc::new(Notify::new()) };
        let mut state = self.state();
        let pending = state.pending.entry(id).or_insert_with(Pending::new);
        Arc::clone(&pending.woken)
    }

    /// Takes the outcome of a request, if it came; it is not pending any more then.
    pub fn take_outcome(&self, id: &RequestId) -> Option<Result<Raw, Fault>> {
        let id = number(id)?;
        let mut state = self.state();
        let outcome = state.pending.get_mut(&id)?.outcome.take()?;
        state.pending.remove(&id);
        state.questions.ended(id);
        Some(outcome)
    }

    /// Whether an answer to some unknown request came while this one waited.
    pub fn stray(&self, id: &RequestId) -> Option<String> {
        self.state().pending.get(&number(id)?)?.stray.clone()
    }

    /// Whether a request was sent and nothing is known of its end.
    pub fn is_open(&self, id: &RequestId) -> bool {
        let state = self.state();
        state.closed.is_none() && number(id).is_some_and(|id| state.pending.contains_key(&id))
    }

    /// Gives a request up; an answer that comes later is known as late.
    pub fn retire(&self, id: &RequestId) {
        let Some(id) = number(id) else { return };
        let mut state = self.state();
        state.questions.ended(id);
        if state.pending.remove(&id).is_some() {
            state.retired.push_back(id);
            if state.retired.len() > RETIRED_KEPT {
                state.retired.pop_front();
            }
        }
    }

    /// Listens to the progress of one request.
    pub fn listen(&self, token: i64, listener: ProgressListener) {
        self.state().progress.insert(token, listener);
    }

    /// Stops listening.
    pub fn unlisten(&self, token: i64) {
        self.state().progress.remove(&token);
    }

    /// Takes in what came from the wire; returns what the SDK should know of it.
    fn route(&self, arrival: Arrival) -> Vec<RxJsonRpcMessage<RoleClient>> {
        match arrival {
            Arrival::Message { bytes, stream_of } => {
                self.route_bytes(&bytes, stream_of.as_ref().and_then(Value::as_i64))
            }
            Arrival::Noise(text) => {
                self.doubt(text);
                Vec::new()
            }
            Arrival::Failed { id, fault } => {
                id.as_i64().map(|id| self.failed(id, fault)).unwrap_or_default()
            }
            Arrival::Closed(fault) => {
                self.close(fault);
                Vec::new()
            }
        }
    }

    fn route_bytes(&self, bytes: &Bytes, of: Option<i64>) -> Vec<RxJsonRpcMessage<RoleClient>> {
        let messages = self.messages(bytes).into_iter();
        messages.filter_map(|message| self.route_message(message, of)).collect()
    }

    /// Routes a line that a run of calls read from the wire. Answers are offered to `run` with their
    /// ids; what it gives back is not its own.
    pub(super) fn route_around(
        &self,
        line: &[u8],
        run: &mut dyn FnMut(&Value, Outcome) -> Option<Outcome>,
    ) {
        for message in self.messages(&Bytes::copy_from_slice(line)) {
            let message = match message {
                Message::Answer { id, outcome } => match run(&id, outcome) {
                    Some(outcome) => Message::Answer { id, outcome },
                    None => continue,
                },
                other => other,
            };
            if let Some(message) = self.route_message(message, None) {
                self.detour.put(message);
            }
        }
    }

    /// The messages that came together, their doubts noted; none when it was no message.
    fn messages(&self, bytes: &Bytes) -> Vec<Message> {
        match message::read(bytes) {
            Reading::Messages(messages, doubts) => {
                for doubt in doubts {
                    self.doubt(doubt);
                }
                messages
            }
            Reading::Noise(line) => {
                self.doubt(noise(&line));
                Vec::new()
            }
            Reading::Broken(fault) => {
                self.close(fault);
                Vec::new()
            }
        }
    }

    /// Routes one message, which came on the stream of the request `of` if the wire has such
    /// streams; also used for those that came before the session existed.
    fn route_message(
        &self,
        message: Message,
        of: Option<i64>,
    ) -> Option<RxJsonRpcMessage<RoleClient>> {
        match message {
            Message::Answer { id, outcome } => self.answered(&id, outcome),
            Message::Request { id, method, params } => self.asked(id, &method, params, of),
            Message::Notification { method, params } => {
                self.told(&method, params);
                None
            }
        }
    }

    fn answered(
        &self,
        id: &Value,
        outcome: Result<Raw, Fault>,
    ) -> Option<RxJsonRpcMessage<RoleClient>> {
        let known = whole_number(id);
        let mut state = self.state();
        if let Some(number) = known
            && let Some(pending) = state.pending.get_mut(&number)
        {
            let first = pending.outcome.is_none();
            if first {
                pending.outcome = Some(outcome);
            }
            drop(state);
            if !first {
                self.doubt("a request was answered twice; the first answer counts");
            }
            if id.as_i64().is_none() {
                self.doubt(format!("the id {number} came back as {id}"));
            }
            return first.then(|| wake(number));
        }
        // The answer to the half of the handshake that was not needed any more.
        if known.is_some_and(|number| number == DISCOVER_ID || number == INITIALIZE_ID) {
            return None;
        }
        // An id of ours that is over says nothing about a request that still waits.
        let of_a_run = known.is_some_and(|number| self.detour.knows(number));
        if let Some(number) = known
            && (of_a_run || (0..=state.newest.unwrap_or(-1)).contains(&number))
        {
            let late = of_a_run || state.retired.contains(&number);
            drop(state);
            self.doubt(if late {
                "an answer came after its request was given up; ignored"
            } else {
                "a request was answered twice; the first answer counts"
            });
            return None;
        }
        let text = match outcome {
            Err(fault) if id.is_null() => format!("an error without an id: {}", fault.message()),
            _ => format!("an answer to unknown id {id}"),
        };
        let text = message::head(&text, DOUBT_LENGTH);
        for pending in state.pending.values_mut() {
            pending.stray.get_or_insert_with(|| text.clone());
            pending.woken.notify_one();
        }
        drop(state);
        self.doubt(text);
        None
    }

    fn failed(&self, id: i64, fault: Fault) -> Vec<RxJsonRpcMessage<RoleClient>> {
        let mut state = self.state();
        let Some(pending) = state.pending.get_mut(&id).filter(|p| p.outcome.is_none()) else {
            return Vec::new();
        };
        let stray = pending.stray.take();
        pending.outcome = Some(Err(match stray {
            Some(stray) => Fault::protocol(format!("{stray}, and none to the request")),
            None => fault,
        }));
        vec![wake(id)]
    }

    /// A request of the server. It goes to the SDK with its raw parameters, whatever it is.
    fn asked(
        &self,
        id: Value,
        method: &str,
        params: Option<Raw>,
        of: Option<i64>,
    ) -> Option<RxJsonRpcMessage<RoleClient>> {
        let key = id.to_string();
        let Ok(request_id) = serde_json::from_value::<RequestId>(id) else {
            self.doubt(format!("a {method} request has the id {key}; it gets no answer"));
            return None;
        };
        let params = match params.map(|raw| raw.parse()).transpose() {
            Ok(params) => params,
            Err(fault) => {
                self.doubt(format!("a {method} request could not be read: {}", fault.message()));
                return None;
            }
        };
        if let Err(why) = self.open_question(key, method, of) {
            self.doubt(format!("a {method} request gets no answer: {why}"));
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
    ) -> Result<(), &'static str> {
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
        self.question(id).is_some_and(|question| question.withdrawn)
    }

    /// Whether a person is being asked something that this request may be waiting for.
    pub fn is_asking(&self, id: &RequestId) -> bool {
        number(id).is_some_and(|id| self.state().questions.delay(id))
    }

    /// Remembers a page that the server asked to open, to know it when it is said to be done.
    pub fn remember_page(&self, id: &str) {
        self.state().questions.remember_page(id);
    }

    fn told(&self, method: &str, params: Option<Raw>) {
        let Ok(params) = params.map(|raw| raw.parse()).transpose() else {
            return self.doubt(format!("a {method} notification could not be read"));
        };
        let params = params.unwrap_or_default();
        match method {
            "notifications/progress" => self.progressed(&params),
            "notifications/message" => self.logged(&params),
            "notifications/cancelled" => {
                let id = params.get("requestId").map(Value::to_string).unwrap_or_default();
                self.state().questions.withdraw(&id);
            }
            "notifications/elicitation/complete" => {
                let id = params.get("elicitationId").and_then(Value::as_str).unwrap_or_default();
                let known = self.state().questions.is_page_done(id);
                if known {
                    let text = "it says that what it asked for on a page is done".to_owned();
                    self.events.emit(Event::Notice { origin: self.server.clone(), text });
                }
            }
            "notifications/tasks" | "notifications/tasks/status" => {
                self.task_news.notify_waiters();
            }
            _ => match news::read(method, &params) {
                Ok(Some(news)) => {
                    self.state().audience.hear(&news);
                    if let Some(event) = news.event(&self.server) {
                        self.events.emit(event);
                    }
                }
                Ok(None) => {}
                Err(why) => self.doubt(format!("a {method} notification {why}")),
            },
        }
    }

    fn progressed(&self, params: &Value) {
        let token = params.get("progressToken").and_then(Value::as_i64);
        let listener = token.and_then(|t| self.state().progress.get(&t).cloned());
        let progress = params.get("progress").and_then(Value::as_f64).filter(|p| p.is_finite());
        let (Some(listener), Some(progress)) = (listener, progress) else { return };
        listener(Progress {
            done: progress,
            total: params.get("total").and_then(Value::as_f64).filter(|t| t.is_finite()),
            message: params.get("message").and_then(Value::as_str).map(str::to_owned),
        });
    }

    fn logged(&self, params: &Value) {
        let text = match params.get("data") {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => return,
        };
        let level = params.get("level").and_then(Value::as_str).unwrap_or("info").to_owned();
        self.events.emit(Event::Log { origin: self.server.clone(), level: LogLevel(level), text });
    }

    /// Ends the session: the wire is gone.
    pub(super) fn close(&self, fault: Fault) {
        let mut state = self.state();
        state.closed.get_or_insert(fault);
        for pending in state.pending.values() {
            pending.woken.notify_one();
        }
        state.questions.end();
        drop(state);
        self.gone.cancel();
    }
}

impl Pending {
    fn new() -> Self {
        Self { outcome: None, stray: None, woken: Arc::new(Notify::new()), call: None }
    }
}

/// How a line that is no message is noted.
pub fn noise(line: &str) -> String {
    format!("non-protocol line on stdout: {line}")
}

/// The message that tells the SDK that the answer to `id` is here.
fn wake(id: i64) -> RxJsonRpcMessage<RoleClient> {
    JsonRpcMessage::Response(JsonRpcResponse {
        jsonrpc: rmcp::model::JsonRpcVersion2_0,
        id: RequestId::Number(id),
        result: ServerResult::CustomResult(CustomResult::new(Value::Null)),
    })
}

fn number(id: &RequestId) -> Option<i64> {
    match id {
        RequestId::Number(number) => Some(*number),
        RequestId::String(_) => None,
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

/// The transport the SDK sees.
pub struct SessionTransport {
    session: Arc<Session>,
    /// Whether a run of calls reads the wire.
    running: watch::Receiver<bool>,
    ready: VecDeque<RxJsonRpcMessage<RoleClient>>,
}

/// A message could not be handed to the server.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SendError(pub Fault);

impl SessionTransport {
    /// A transport over `session`, with what came before it existed.
    pub fn new(session: Arc<Session>, early: Vec<Message>) -> Self {
        let ready = early.into_iter().filter_map(|m| session.route_message(m, None)).collect();
        Self { running: session.detour.running(), session, ready }
    }
}

impl rmcp::transport::Transport<RoleClient> for SessionTransport {
    type Error = SendError;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let session = Arc::clone(&self.session);
        let frame = frame(&item);
        if let JsonRpcMessage::Request(request) = &item
            && let Some(id) = number(&request.id)
        {
            let mut state = session.state();
            state.newest = state.newest.max(Some(id));
            // It may have been given up before it came here.
            if !state.retired.contains(&id) {
                let pending = state.pending.entry(id).or_insert_with(Pending::new);
                pending.call = part_of(&request.request);
            }
        }
        let answers = answers(&item);
        // The server took its question back: it wants no answer.
        let unwanted = answers.as_ref().is_some_and(|id| session.is_withdrawn(id));
        let question = Question { session: Arc::clone(&session), id: answers };
        async move {
            let _until_handed_over = question;
            if unwanted {
                return Ok(());
            }
            let frame = frame.map_err(SendError)?;
            let id = match &frame.kind {
                FrameKind::Request { id, .. } => id.as_i64(),
                _ => None,
            };
            session.wire.send(frame).await.map_err(|fault| {
                if let Some(id) = id {
                    let _woken = session.failed(id, fault.clone());
                }
                SendError(fault)
            })
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let session = &self.session;
            if let Some(message) = self.ready.pop_front().or_else(|| session.detour.take()) {
                return Some(message);
            }
            if session.gone.is_cancelled() {
                return None;
            }
            if *self.running.borrow_and_update() {
                tokio::select! {
                    biased;
                    () = session.detour.came() => {}
                    () = session.gone.cancelled() => {}
                    _turned = self.running.changed() => {}
                }
                continue;
            }
            tokio::select! {
                biased;
                // The wire is let go of at once: a run waits for it.
                _turned = self.running.changed() => {}
                arrival = session.wire.receive() => self.ready.extend(session.route(arrival)),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// A question of the server, open until its answer is handed over or dropped.
struct Question {
    session: Arc<Session>,
    id: Option<RequestId>,
}

impl Drop for Question {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.session.close_question(id);
        }
    }
}

/// The question that a message of ours answers.
fn answers(item: &TxJsonRpcMessage<RoleClient>) -> Option<RequestId> {
    match item {
        JsonRpcMessage::Response(response) => Some(response.id.clone()),
        JsonRpcMessage::Error(error) => error.id.clone(),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
    }
}

/// Serialises a message of the SDK and says what it is.
fn frame(item: &TxJsonRpcMessage<RoleClient>) -> Result<Frame, Fault> {
    let bytes = serde_json::to_vec(item)
        .map_err(|error| Fault::internal(format!("a message cannot be serialised: {error}")))?;
    let mut call = None;
    let kind = match item {
        JsonRpcMessage::Request(request) => {
            call = part_of(&request.request);
            let (method, name, headers) = describe(&request.request);
            let id = serde_json::to_value(&request.id).unwrap_or_default();
            FrameKind::Request { id, method, name, headers }
        }
        JsonRpcMessage::Notification(notification) => match &notification.notification {
            ClientNotification::CancelledNotification(cancelled) => FrameKind::Notification {
                method: "notifications/cancelled".into(),
                cancels: serde_json::to_value(&cancelled.params.request_id).ok(),
            },
            other => {
                let value = serde_json::to_value(other).unwrap_or_default();
                let method = value.get("method").and_then(Value::as_str).unwrap_or_default();
                FrameKind::Notification { method: method.to_owned(), cancels: None }
            }
        },
        JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => FrameKind::Response,
    };
    Ok(Frame { bytes: bytes.into(), kind, call })
}

/// The call a request of ours is part of.
fn part_of(request: &ClientRequest) -> Option<CallId> {
    let ClientRequest::CustomRequest(custom) = request else { return None };
    custom.extensions().get().cloned()
}

/// Method, name and extra headers of a request. All of ours are custom ones to the SDK.
fn describe(request: &ClientRequest) -> (String, Option<String>, Vec<(String, String)>) {
    let ClientRequest::CustomRequest(custom) = request else {
        let value = serde_json::to_value(request).unwrap_or_default();
        let method = value.get("method").and_then(Value::as_str).unwrap_or_default();
        return (method.to_owned(), None, Vec::new());
    };
    let key = match custom.method.as_str() {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    };
    let name = key.and_then(|key| custom.params.as_ref()?.get(key)?.as_str()).map(str::to_owned);
    let headers =
        custom.extensions().get::<ParamHeaders>().map(|h| h.0.clone()).unwrap_or_default();
    (custom.method.clone(), name, headers)
}
