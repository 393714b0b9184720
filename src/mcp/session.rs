//! The seam between our wire and the SDK's session: ids, answers, notifications.
//!
//! Owns: our requests and their ids, which of them is pending, where its answer goes, and what is
//! odd about the traffic. The SDK keeps the rest of the session: what the server asks, and what
//! either side takes back. Never does: decide when to give up.

mod transport;

use std::collections::{HashMap, VecDeque};
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
use super::message::{self, Message, Raw, Reading};
use super::news::{self, Audience, Ear};
use super::outgoing::{AboutUs, Outgoing};
use super::questions::{OpenQuestion, Questions};
use super::repeat::detour::Detour;
use super::wire::{Arrival, Wire};
use crate::model::{CallId, Event, EventSink, Fault, LogLevel, OfferList};

pub use transport::SessionTransport;

/// How many different doubts about a server's traffic are kept.
const DOUBTS_KEPT: usize = 20;
/// How much of a doubt is kept, in characters: it may quote what the server made up.
pub(super) const DOUBT_LENGTH: usize = 300;
/// How many ids of given-up requests are remembered, to know a late answer when it comes.
const RETIRED_KEPT: usize = 256;

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
    /// What each request says about us.
    about: AboutUs,
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
    /// The id of the next request.
    next: i64,
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
    pub fn new(
        server: String,
        wire: Arc<dyn Wire>,
        events: EventSink,
        about: AboutUs,
    ) -> Arc<Self> {
        Arc::new(Self {
            server,
            wire,
            events,
            about,
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

    /// Sends a request, whose progress `listener` hears. What cannot be handed over is the outcome
    /// of the request, like an answer.
    pub async fn ask(
        self: &Arc<Self>,
        outgoing: &Outgoing<'_>,
        listener: Option<ProgressListener>,
    ) -> Asked {
        let listens = listener.is_some();
        let (id, woken) = {
            let mut state = self.state();
            let id = state.next;
            state.next += 1;
            let woken = Arc::new(Notify::new());
            let call = outgoing.call.cloned();
            let pending = Pending { outcome: None, stray: None, woken: Arc::clone(&woken), call };
            state.pending.insert(id, pending);
            state.progress.extend(listener.map(|listener| (id, listener)));
            (id, woken)
        };
        let asked = Asked { session: Arc::clone(self), id, woken, listens };
        let (session, frame) = (Arc::clone(self), outgoing.frame(id, &self.about));
        let mut sending = Box::pin(async move {
            if let Err(fault) = session.wire.send(frame).await {
                session.failed(id, fault);
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
    fn take_outcome(&self, id: i64) -> Option<Result<Raw, Fault>> {
        let mut state = self.state();
        let outcome = state.pending.get_mut(&id)?.outcome.take()?;
        state.pending.remove(&id);
        state.questions.ended(id);
        Some(outcome)
    }

    /// Gives a request up; an answer that comes later is known as late.
    fn retire(&self, id: i64, listens: bool) {
        let mut state = self.state();
        if listens {
            state.progress.remove(&id);
        }
        state.questions.ended(id);
        if state.pending.remove(&id).is_some() {
            state.retired.push_back(id);
            if state.retired.len() > RETIRED_KEPT {
                state.retired.pop_front();
            }
        }
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
                if let Some(id) = id.as_i64() {
                    self.failed(id, fault);
                }
                Vec::new()
            }
            Arrival::Closed(fault) => {
                self.close(fault);
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
    pub(super) fn route_around(
        &self,
        line: &[u8],
        run: &mut dyn FnMut(&Value, Outcome) -> Option<Outcome>,
    ) {
        for message in self.messages(&Bytes::copy_from_slice(line), None) {
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

    /// The messages that came together on the stream of the request `of`, their doubts noted; none
    /// when it was no message.
    fn messages(&self, bytes: &Bytes, of: Option<i64>) -> Vec<Message> {
        match message::read(bytes) {
            Reading::Messages(messages, doubts) => {
                for doubt in doubts {
                    self.doubt(doubt);
                }
                messages
            }
            Reading::Noise(line) => {
                self.doubt(noise(&line, self.wire.delimits_messages()));
                Vec::new()
            }
            Reading::Unreadable(fault) if self.wire.delimits_messages() => {
                let text = unreadable(&fault);
                if message::names_the_protocol(bytes) {
                    self.unmatched(&text, of);
                }
                self.doubt(text);
                Vec::new()
            }
            Reading::Unreadable(fault) | Reading::Broken(fault) => {
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
            Message::Answer { id, outcome } => {
                self.answered(&id, outcome);
                None
            }
            Message::Request { id, method, params } => self.asked(id, &method, params, of),
            Message::Notification { method, params } => {
                self.told(&method, params);
                None
            }
        }
    }

    fn answered(&self, id: &Value, outcome: Result<Raw, Fault>) {
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
                self.doubt("a request was answered twice; the first answer counts");
            }
            if id.as_i64().is_none() {
                self.doubt(format!("the id {number} came back as {id}"));
            }
            return;
        }
        // The answer to the half of the handshake that was not needed any more.
        if known.is_some_and(|number| number == DISCOVER_ID || number == INITIALIZE_ID) {
            return;
        }
        // An id of ours that is over says nothing about a request that still waits.
        let of_a_run = known.is_some_and(|number| self.detour.knows(number));
        if let Some(number) = known
            && (of_a_run || (0..state.next).contains(&number))
        {
            let late = of_a_run || state.retired.contains(&number);
            drop(state);
            self.doubt(if late {
                "an answer came after its request was given up; ignored"
            } else {
                "a request was answered twice; the first answer counts"
            });
            return;
        }
        let text = match outcome {
            Err(fault) if id.is_null() => format!("an error without an id: {}", fault.message()),
            _ => format!("an answer to unknown id {id}"),
        };
        drop(state);
        self.unmatched(&text, None);
        self.doubt(text);
    }

    /// Something came that may have been meant as the answer to the request `of`, or to any: the
    /// right one has to come soon.
    fn unmatched(&self, text: &str, of: Option<i64>) {
        let text = message::head(text, DOUBT_LENGTH);
        let mut state = self.state();
        let meant = |id: i64| of.is_none_or(|of| of == id);
        for (_, pending) in state.pending.iter_mut().filter(|(id, _)| meant(**id)) {
            pending.stray.get_or_insert_with(|| text.clone());
            pending.woken.notify_one();
        }
    }

    /// No answer will come to a request.
    fn failed(&self, id: i64, fault: Fault) {
        let mut state = self.state();
        let Some(pending) = state.pending.get_mut(&id).filter(|p| p.outcome.is_none()) else {
            return;
        };
        let stray = pending.stray.take();
        pending.outcome = Some(Err(match stray {
            Some(stray) => Fault::protocol(format!("{stray}, and none to the request")),
            None => fault,
        }));
        pending.woken.notify_one();
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

/// A request that was sent. Dropped, it is forgotten, and the server is not told.
pub struct Asked {
    session: Arc<Session>,
    /// Its id, which is the token of its progress too.
    pub id: i64,
    woken: Arc<Notify>,
    /// Somebody hears its progress.
    listens: bool,
}

impl Asked {
    /// Waits for its outcome, a stray answer, news of a question, or the end of the wire.
    pub async fn woken(&self) {
        self.woken.notified().await;
    }

    /// Takes its outcome, if it came.
    pub fn outcome(&self) -> Option<Result<Raw, Fault>> {
        self.session.take_outcome(self.id)
    }

    /// Whether an answer to some unknown request came while this one waited.
    pub fn stray(&self) -> Option<String> {
        self.session.state().pending.get(&self.id)?.stray.clone()
    }

    /// Whether nothing is known of its end.
    pub fn is_open(&self) -> bool {
        let state = self.session.state();
        state.closed.is_none() && state.pending.contains_key(&self.id)
    }

    /// Whether a person is being asked something that it may be waiting for.
    pub fn is_asking(&self) -> bool {
        self.session.state().questions.delay(self.id)
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.session.retire(self.id, self.listens);
    }
}

/// How something that is no message is noted: a line on stdout, or an event (`delimited`).
pub fn noise(text: &str, delimited: bool) -> String {
    let what = if delimited { "an event is not JSON" } else { "non-protocol line on stdout" };
    format!("{what}: {text}")
}

/// How something is noted that begins like a message and cannot be read. Hints of the fault are
/// about lines, and are left out.
pub fn unreadable(fault: &Fault) -> String {
    let begun = fault.detail_lines().first().map(|text| format!(": {text}"));
    format!("an event is not JSON{}", begun.unwrap_or_default())
}

/// An id as a whole number; `2.0` is 2, as JSON has only one kind of number.
pub(super) fn whole_number(id: &Value) -> Option<i64> {
    id.as_i64().or_else(|| {
        let float = id.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 1e15)?;
        #[expect(clippy::cast_possible_truncation, reason = "whole and far from the limits")]
        Some(float as i64)
    })
}
