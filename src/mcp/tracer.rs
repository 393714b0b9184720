//! Reporting the traffic of one server to the listeners of its trace.
//!
//! One tracer serves all wires a server has one after the other. Without listeners it is a `None`,
//! and every report costs one branch.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

use super::message::{Incoming, ParsedInput, RawJson, RpcMessage};
use super::wire::{FrameKind, OutgoingFrame};
use crate::model::traffic::{Direction, MessageInfo, TrafficKind};
use crate::model::{CallId, Traffic, TrafficSink};
use crate::util::clock::{Clock as _, SystemClock};

/// How many requests without an answer are remembered for each direction.
const MAX_OPEN_REQUESTS: usize = 4096;
const MAX_STDERR_LINE: usize = 64 * 1024;

/// Reports what crosses the wires of one server. Cheap to clone.
#[derive(Clone, Default)]
pub struct Tracer(Option<Arc<TracerInner>>);

struct TracerInner {
    server: String,
    sink: TrafficSink,
    state: Mutex<TracerState>,
}

#[derive(Default)]
struct TracerState {
    sequence: u64,
    /// A wire was opened and is not known to be gone.
    is_open: bool,
    /// Requests of ours that are not answered yet.
    sent: OpenRequests,
    /// Requests of the server that are not answered yet.
    received: OpenRequests,
}

/// Requests that wait for their answers, by their ids as JSON.
#[derive(Default)]
struct OpenRequests(HashMap<String, OpenRequest>);

struct OpenRequest {
    method: String,
    at: Instant,
    call: Option<CallId>,
}

impl OpenRequests {
    fn add(&mut self, key: String, request: OpenRequest) {
        if self.0.len() >= MAX_OPEN_REQUESTS {
            let oldest = self.0.iter().min_by_key(|(_, request)| request.at);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.and_then(|key| self.0.remove(&key));
        }
        self.0.insert(key, request);
    }

    fn call(&self, id: &Value) -> Option<CallId> {
        self.0.get(&id.to_string())?.call.clone()
    }
}

struct TracedMessage {
    info: MessageInfo,
    call: Option<CallId>,
    latency: Option<Duration>,
}

impl std::fmt::Debug for Tracer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tracer({})", if self.is_on() { "on" } else { "off" })
    }
}

impl Tracer {
    /// Reports to `sink` what crosses the wires of `server`.
    pub fn new(server: &str, sink: TrafficSink) -> Self {
        let server = server.to_owned();
        Self(
            sink.is_configured()
                .then(|| Arc::new(TracerInner { server, sink, state: Mutex::default() })),
        )
    }

    pub fn off() -> Self {
        Self::default()
    }

    /// Whether a listener is attached: check before a report is prepared.
    pub fn is_on(&self) -> bool {
        self.0.as_ref().is_some_and(|watched| watched.sink.is_enabled())
    }

    /// A wire is about to be opened: to this command line or address. Ids start over.
    pub fn opened(&self, to: &str) {
        self.with(|watched, state| {
            state.is_open = true;
            state.sent.0.clear();
            state.received.0.clear();
            watched.emit(state, None, TrafficKind::Opened(to.to_owned()));
        });
    }

    pub fn closed(&self, why: &str) {
        self.with(|watched, state| {
            if std::mem::take(&mut state.is_open) {
                watched.emit(state, None, TrafficKind::Closed(why.to_owned()));
            }
        });
    }

    /// This message is on its way to the server.
    pub fn sent(&self, frame: &OutgoingFrame) {
        self.with(|watched, state| {
            let info = match &frame.kind {
                FrameKind::Request { id, method, .. } => {
                    MessageInfo::Request { id: id.clone(), method: method.clone() }
                }
                FrameKind::Notification { method, .. } => {
                    MessageInfo::Notification { method: method.clone() }
                }
                FrameKind::Response { id, is_error } => {
                    MessageInfo::Response { id: id.clone(), method: None, is_error: *is_error }
                }
                FrameKind::Other => MessageInfo::Unknown,
            };
            let traced = state.trace(Direction::Sent, info, None, frame.call.as_ref());
            watched.message(state, Direction::Sent, &frame.bytes, traced);
        });
    }

    /// This is passed on to the server for somebody else.
    pub fn relayed(&self, incoming: &Incoming) {
        self.with(|watched, state| {
            let traced = state.trace_all(Direction::Sent, incoming, None);
            watched.message(state, Direction::Sent, &incoming.bytes, traced);
        });
    }

    /// This came from the server, on the stream of the request `stream_of` when wires have such
    /// streams.
    pub fn received(&self, incoming: &Incoming, stream_of: Option<&Value>) {
        self.with(|watched, state| {
            let call = stream_of.and_then(|id| state.sent.call(id));
            let is_text = match &incoming.input {
                ParsedInput::Messages(messages, _) => messages.is_empty(),
                ParsedInput::NonMessage(_) => true,
                ParsedInput::Unreadable(_) | ParsedInput::Broken(_) => false,
            };
            match std::str::from_utf8(&incoming.bytes) {
                Ok(text) if is_text => {
                    watched.emit(state, call, TrafficKind::NonJsonLine(text.to_owned()));
                }
                _ => {
                    let traced = state.trace_all(Direction::Received, incoming, call.as_ref());
                    watched.message(state, Direction::Received, &incoming.bytes, traced);
                }
            }
        });
    }

    /// The head of an HTTP request or response, credentials already replaced.
    pub fn head(
        &self,
        direction: Direction,
        line: String,
        headers: Vec<(String, String)>,
        latency: Option<Duration>,
        call: Option<&CallId>,
    ) {
        self.with(|watched, state| {
            let head = TrafficKind::HttpHead { direction, line, headers, latency };
            watched.emit(state, call.cloned(), head);
        });
    }

    /// Something that is not a message: a comment of an event stream, a page where JSON belongs.
    pub fn non_message(&self, text: &str, call: Option<&CallId>) {
        self.with(|watched, state| {
            watched.emit(state, call.cloned(), TrafficKind::NonJsonLine(text.to_owned()));
        });
    }

    pub fn call_of(&self, id: &Value) -> Option<CallId> {
        let watched = self.0.as_ref()?;
        watched.state.lock().unwrap_or_else(PoisonError::into_inner).sent.call(id)
    }

    /// A line on the standard error of a child process.
    pub fn stderr(&self, line: &str) {
        self.with(|watched, state| watched.emit(state, None, TrafficKind::Stderr(line.to_owned())));
    }

    fn with(&self, report: impl FnOnce(&TracerInner, &mut TracerState)) {
        if let Some(watched) = &self.0 {
            // Held until the sink has it, so that the numbers and the order agree.
            report(watched, &mut watched.state.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

impl TracerInner {
    fn emit(&self, state: &mut TracerState, call: Option<CallId>, what: TrafficKind) {
        state.sequence += 1;
        if !self.sink.is_enabled() {
            return;
        }
        self.sink.emit(Traffic {
            server: self.server.clone(),
            sequence: state.sequence,
            at: SystemClock.unix(),
            call,
            kind: what,
        });
    }

    fn message(
        &self,
        state: &mut TracerState,
        direction: Direction,
        bytes: &Bytes,
        traced: TracedMessage,
    ) {
        let TracedMessage { info, call, latency } = traced;
        let bytes = bytes.clone();
        self.emit(state, call, TrafficKind::Message { direction, bytes, info, latency });
    }
}

impl TracerState {
    /// Notes each message that came together, and says what the first one is; several are rare.
    fn trace_all(
        &mut self,
        direction: Direction,
        incoming: &Incoming,
        call: Option<&CallId>,
    ) -> TracedMessage {
        let mut first = None;
        for message in incoming.messages() {
            let (info, params) = match message {
                RpcMessage::Request { id, method, .. } => {
                    (MessageInfo::Request { id: id.clone(), method: method.clone() }, None)
                }
                RpcMessage::Notification { method, params } => {
                    (MessageInfo::Notification { method: method.clone() }, params.as_ref())
                }
                RpcMessage::Response { id, outcome } => {
                    let (id, is_error) = (id.clone(), outcome.is_err());
                    (MessageInfo::Response { id, method: None, is_error }, None)
                }
            };
            let traced = self.trace(direction, info, params, call);
            first.get_or_insert(traced);
        }
        first.unwrap_or_else(|| self.trace(direction, MessageInfo::Unknown, None, call))
    }

    /// Notes a request, finds the one that an answer or a notification belongs to. While nobody
    /// watches too, so that a viewer that comes during a call learns which request is answered.
    fn trace(
        &mut self,
        direction: Direction,
        mut info: MessageInfo,
        params: Option<&RawJson>,
        call: Option<&CallId>,
    ) -> TracedMessage {
        let (asking, answering) = match direction {
            Direction::Sent => (&mut self.sent, &mut self.received),
            Direction::Received => (&mut self.received, &mut self.sent),
        };
        let (mut call, mut latency) = (call.cloned(), None);
        match &mut info {
            MessageInfo::Request { id, method } => {
                let at = SystemClock.now();
                let request = OpenRequest { method: method.clone(), at, call: call.clone() };
                asking.add(id.to_string(), request);
            }
            MessageInfo::Response { id, method, .. } => {
                if let Some(request) = answering.0.remove(&id.to_string()) {
                    latency = Some(SystemClock.now().duration_since(request.at));
                    *method = Some(request.method);
                    call = request.call.or(call);
                }
            }
            MessageInfo::Notification { method } if method == "notifications/progress" => {
                // The token of the progress of a request of ours is its id.
                let token = || serde_json::from_str::<Progress>(params?.get()).ok();
                call = call.or_else(|| answering.call(&token()?.token));
            }
            MessageInfo::Notification { .. } | MessageInfo::Unknown => {}
        }
        TracedMessage { info, call, latency }
    }
}

/// The parameter that links a notification to a request.
#[derive(Deserialize)]
struct Progress {
    #[serde(rename = "progressToken")]
    token: Value,
}

pub struct StderrLines {
    tracer: Tracer,
    open: Vec<u8>,
    /// Whether the open line is the rest of one that was reported in pieces.
    is_continuation: bool,
}

impl StderrLines {
    pub fn new(tracer: Tracer) -> Self {
        Self { tracer, open: Vec::new(), is_continuation: false }
    }

    /// Takes in a piece of the stream. A line beyond 64 KiB is reported in pieces.
    pub fn push(&mut self, bytes: &[u8]) {
        if !self.tracer.is_on() {
            return;
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.open.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.flush();
            } else if self.open.len() >= MAX_STDERR_LINE {
                // A mark shows the cut, also to the masker, which looks for secrets next to cuts.
                self.report("…");
                self.is_continuation = true;
            }
        }
    }

    pub fn flush(&mut self) {
        self.report("");
    }

    fn report(&mut self, end: &str) {
        let line = std::mem::take(&mut self.open);
        let begin = if std::mem::take(&mut self.is_continuation) { "…" } else { "" };
        if !line.is_empty() {
            let text = String::from_utf8_lossy(&line);
            let text = text.strip_suffix('\n').unwrap_or(&text);
            let text = text.strip_suffix('\r').unwrap_or(text);
            self.tracer.stderr(&format!("{begin}{text}{end}"));
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A tracer of a server `srv` and everything it reported so far.
    pub(crate) fn captured() -> (Tracer, Arc<Mutex<Vec<Traffic>>>) {
        let log = Arc::new(Mutex::new(Vec::new()));
        let sink = {
            let log = Arc::clone(&log);
            TrafficSink::new(move |traffic| log.lock().unwrap().push(traffic))
        };
        (Tracer::new("srv", sink), log)
    }

    fn bytes(text: &str) -> Bytes {
        Bytes::copy_from_slice(text.as_bytes())
    }

    fn incoming(text: &str) -> Incoming {
        Incoming::read(bytes(text))
    }

    fn request(id: u8, call: &CallId) -> OutgoingFrame {
        let kind = FrameKind::Request {
            id: id.into(),
            method: "tools/call".to_owned(),
            name: None,
            headers: Vec::new(),
        };
        let meta = format!(r#"{{"_meta":{{"progressToken":{id}}}}}"#);
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{meta}}}"#);
        OutgoingFrame { bytes: text.into(), kind, call: Some(call.clone()) }
    }

    #[test]
    fn an_answer_inherits_method_call_and_time_from_its_request() {
        let (tracer, traffic) = captured();
        let call = CallId("c1".into());
        tracer.sent(&request(3, &call));
        let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":3,"progress":1}}"#;
        tracer.received(&incoming(progress), None);
        tracer.received(&incoming(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#), None);
        tracer.received(&incoming(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#), None);
        let traffic = traffic.lock().unwrap();
        assert!(traffic.iter().take(3).all(|traffic| traffic.call.as_ref() == Some(&call)));
        let numbers: Vec<u64> = traffic.iter().map(|traffic| traffic.sequence).collect();
        assert_eq!(numbers, [1, 2, 3, 4]);
        let TrafficKind::Message { info, latency, bytes: exact, .. } = &traffic[2].kind else {
            panic!()
        };
        let method = Some("tools/call".to_owned());
        assert_eq!(*info, MessageInfo::Response { id: 3.into(), method, is_error: false });
        assert!(latency.is_some());
        assert_eq!(exact, &bytes(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#));
        // The second answer belongs to no request.
        let TrafficKind::Message { info, latency, .. } = &traffic[3].kind else { panic!() };
        assert_eq!(*info, MessageInfo::Response { id: 3.into(), method: None, is_error: false });
        assert!(latency.is_none() && traffic[3].call.is_none());
    }

    #[test]
    fn a_viewer_that_comes_later_knows_the_requests_that_were_sent_before() {
        use crate::model::TraceGate;
        let (tracer, traffic) = captured();
        let gate = TraceGate::default();
        let sink = tracer.0.as_ref().unwrap().sink.clone().with_gate(gate.clone());
        let tracer = Tracer::new("srv", sink);
        let unwatched = gate.close();
        let call = CallId("c1".into());
        let answer =
            |id: u8| incoming(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"id":[1]}}}}"#));
        tracer.sent(&request(1, &call));
        tracer.sent(&request(2, &call));
        tracer.received(&answer(1), None);
        tracer.received(&incoming("no message"), None);
        assert!(traffic.lock().unwrap().is_empty());
        drop(unwatched);
        let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}"#;
        tracer.received(&incoming(progress), None);
        tracer.received(&answer(2), None);
        tracer.received(&answer(1), None);
        let traffic = traffic.lock().unwrap();
        let summaries: Vec<_> = traffic
            .iter()
            .map(|summaries| (summaries.sequence, summaries.call.is_some()))
            .collect();
        assert_eq!(summaries, [(5, true), (6, true), (7, false)]);
        let TrafficKind::Message { info, latency, .. } = &traffic[1].kind else { panic!() };
        let method = Some("tools/call".to_owned());
        assert_eq!(*info, MessageInfo::Response { id: 2.into(), method, is_error: false });
        assert!(latency.is_some());
    }

    #[test]
    fn questions_of_the_server_and_our_answers_belong_together_too() {
        let (tracer, traffic) = captured();
        let question = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}"#;
        tracer.received(&incoming(question), None);
        let no = r#"{"jsonrpc":"2.0","id":"q","error":{"code":-1,"message":"no"}}"#;
        let kind = FrameKind::Response { id: "q".into(), is_error: true };
        tracer.sent(&OutgoingFrame { bytes: bytes(no), kind, call: None });
        let traffic = traffic.lock().unwrap();
        let TrafficKind::Message { info, direction, .. } = &traffic[1].kind else { panic!() };
        let method = Some("elicitation/create".to_owned());
        assert_eq!(*info, MessageInfo::Response { id: "q".into(), method, is_error: true });
        assert_eq!(*direction, Direction::Sent);
    }

    #[test]
    fn what_is_no_message_is_told_as_it_is() {
        let (tracer, traffic) = captured();
        tracer.received(&incoming("Welcome \u{1b}[2J"), None);
        tracer.received(&Incoming::read(Bytes::from_static(b"\xff\xfe")), None);
        tracer.received(&incoming("{\"half"), None);
        let traffic = traffic.lock().unwrap();
        assert!(
            matches!(&traffic[0].kind, TrafficKind::NonJsonLine(text) if text == "Welcome \u{1b}[2J")
        );
        for (index, exact) in [(1, &b"\xff\xfe"[..]), (2, b"{\"half")] {
            let TrafficKind::Message { info, bytes, .. } = &traffic[index].kind else { panic!() };
            assert_eq!((info, &bytes[..]), (&MessageInfo::Unknown, exact));
        }
    }

    #[test]
    fn memory_is_bounded_and_the_newest_requests_are_kept() {
        let mut open = OpenRequests::default();
        for id in 0..MAX_OPEN_REQUESTS + 10 {
            let at = SystemClock.now();
            let request = OpenRequest { method: "ping".to_owned(), at, call: None };
            open.add(id.to_string(), request);
        }
        assert_eq!(open.0.len(), MAX_OPEN_REQUESTS);
        assert!(open.0.contains_key(&(MAX_OPEN_REQUESTS + 9).to_string()));
    }

    #[test]
    fn stderr_comes_line_by_line_however_it_is_cut() {
        let (tracer, traffic) = captured();
        let mut lines = StderrLines::new(tracer);
        for piece in [&b"on"[..], b"e\r\n\ntw", b"o\nthree"] {
            lines.push(piece);
        }
        lines.flush();
        let traffic = traffic.lock().unwrap();
        let texts: Vec<&str> = traffic
            .iter()
            .map(|traffic| match &traffic.kind {
                TrafficKind::Stderr(text) => text.as_str(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(texts, ["one", "", "two", "three"]);
    }

    #[test]
    fn a_line_in_pieces_shows_its_cuts() {
        let (tracer, traffic) = captured();
        let mut lines = StderrLines::new(tracer);
        lines.push(&vec![b'x'; MAX_STDERR_LINE]);
        lines.push(b"rest\nnext\n");
        let traffic = traffic.lock().unwrap();
        let texts = traffic.iter().map(|traffic| match &traffic.kind {
            TrafficKind::Stderr(text) => text.trim_start_matches('x').to_owned(),
            other => panic!("{other:?}"),
        });
        assert_eq!(texts.collect::<Vec<_>>(), ["…", "…rest", "next"]);
    }

    #[test]
    fn without_a_listener_nothing_is_kept() {
        let off = Tracer::new("srv", TrafficSink::disabled());
        assert!(!off.is_on());
        off.sent(&request(1, &CallId("c1".into())));
    }

    #[test]
    fn a_wire_closes_once() {
        let (tracer, traffic) = captured();
        tracer.closed("nothing was open");
        tracer.opened("sh -c true");
        tracer.closed("the process exited with 0");
        tracer.closed("again");
        assert_eq!(traffic.lock().unwrap().len(), 2);
    }
}
