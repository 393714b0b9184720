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

use super::message::{self, ParsedInput, RawJson, RpcMessage};
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
    token: Option<Value>,
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

/// The part of parameters that links a notification to a request.
#[derive(Deserialize, Default)]
struct MessageMeta {
    #[serde(rename = "_meta")]
    meta: Option<Box<Self>>,
    #[serde(rename = "progressToken")]
    token: Option<Value>,
}

impl MessageMeta {
    fn of(params: Option<&RawJson>) -> Self {
        params.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }
}

struct TracedMessage {
    summary: MessageInfo,
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

    /// This message is on its way to the server, as part of `call`.
    pub fn sent(&self, bytes: &Bytes, call: Option<&CallId>) {
        self.with(|watched, state| {
            if !watched.sink.is_enabled() {
                state.sequence += 1;
                return note_unwatched(bytes, call, &mut state.sent, &mut state.received);
            }
            let messages = match message::read(bytes) {
                ParsedInput::Messages(messages, _) => messages,
                ParsedInput::NonMessage(_)
                | ParsedInput::Unreadable(_)
                | ParsedInput::Broken(_) => Vec::new(),
            };
            let traced = trace_messages(&messages, call, &mut state.sent, &mut state.received);
            watched.message(state, Direction::Sent, bytes, traced);
        });
    }

    /// This came from the server, on the stream of the request `stream_of` when wires have such
    /// streams.
    pub fn received(&self, bytes: &Bytes, stream_of: Option<&Value>) {
        self.with(|watched, state| {
            if !watched.sink.is_enabled() {
                state.sequence += 1;
                return note_unwatched(bytes, None, &mut state.received, &mut state.sent);
            }
            let call = stream_of.and_then(|id| state.sent.call(id));
            let messages = match message::read(bytes) {
                ParsedInput::Messages(messages, _) if !messages.is_empty() => messages,
                ParsedInput::Messages(..) | ParsedInput::NonMessage(_) => {
                    if let Ok(text) = std::str::from_utf8(bytes) {
                        return watched.emit(
                            state,
                            call,
                            TrafficKind::NonJsonLine(text.to_owned()),
                        );
                    }
                    Vec::new()
                }
                ParsedInput::Unreadable(_) | ParsedInput::Broken(_) => Vec::new(),
            };
            let traced =
                trace_messages(&messages, call.as_ref(), &mut state.received, &mut state.sent);
            watched.message(state, Direction::Received, bytes, traced);
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
        let TracedMessage { summary: info, call, latency } = traced;
        let bytes = bytes.clone();
        self.emit(state, call, TrafficKind::Message { direction, bytes, info, latency });
    }
}

/// Notes the requests among `messages` in `asking`, finds those that their answers belong to in
/// `requests`, and says what the first one is; several at once are rare.
fn trace_messages(
    messages: &[RpcMessage],
    call: Option<&CallId>,
    asking: &mut OpenRequests,
    requests: &mut OpenRequests,
) -> TracedMessage {
    let mut first = None;
    for message in messages {
        let traced = match message {
            RpcMessage::Request { id, method, params } => {
                let token = call.and_then(|_| MessageMeta::of(params.as_ref()).meta?.token);
                let at = SystemClock.now();
                let request =
                    OpenRequest { method: method.clone(), at, call: call.cloned(), token };
                asking.add(id.to_string(), request);
                let info = MessageInfo::Request { id: id.clone(), method: method.clone() };
                TracedMessage { summary: info, call: call.cloned(), latency: None }
            }
            RpcMessage::Response { id, outcome } => {
                let request = requests.0.remove(&id.to_string());
                let now = SystemClock.now();
                TracedMessage {
                    latency: request.as_ref().map(|requests| now.duration_since(requests.at)),
                    call: request
                        .as_ref()
                        .and_then(|requests| requests.call.clone())
                        .or(call.cloned()),
                    summary: MessageInfo::Response {
                        id: id.clone(),
                        method: request.map(|requests| requests.method),
                        is_error: outcome.is_err(),
                    },
                }
            }
            RpcMessage::Notification { method, params } => {
                let call =
                    call.cloned().or_else(|| progress_call(method, params.as_ref(), requests));
                let info = MessageInfo::Notification { method: method.clone() };
                TracedMessage { summary: info, call, latency: None }
            }
        };
        first.get_or_insert(traced);
    }
    first.unwrap_or_else(|| TracedMessage {
        summary: MessageInfo::Unknown,
        call: call.cloned(),
        latency: None,
    })
}

/// Tracks the open requests while there is no viewer, so that a viewer that starts during a call
/// learns which request the response belongs to. Anything but plain messages is skipped.
fn note_unwatched(
    bytes: &[u8],
    call: Option<&CallId>,
    asking: &mut OpenRequests,
    requests: &mut OpenRequests,
) {
    #[derive(Deserialize)]
    struct MessageHead {
        id: Option<Value>,
        method: Option<String>,
    }
    match serde_json::from_slice(bytes) {
        Ok(MessageHead { id: Some(id), method: Some(method) }) => {
            // The token of the progress of a request of ours is its id.
            let (key, at) = (id.to_string(), SystemClock.now());
            let token = call.is_some().then_some(id);
            asking.add(key, OpenRequest { method, at, call: call.cloned(), token });
        }
        Ok(MessageHead { id: Some(id), method: None }) => drop(requests.0.remove(&id.to_string())),
        _ => {}
    }
}

fn progress_call(
    method: &str,
    params: Option<&RawJson>,
    requests: &OpenRequests,
) -> Option<CallId> {
    if method != "notifications/progress" {
        return None;
    }
    let token = MessageMeta::of(params).token?;
    let request = requests.0.values().find(|requests| requests.token.as_ref() == Some(&token));
    request?.call.clone()
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

    #[test]
    fn an_answer_inherits_method_call_and_time_from_its_request() {
        let (tracer, traffic) = captured();
        let call = CallId("c1".into());
        let request = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":7}}}"#;
        tracer.sent(&bytes(request), Some(&call));
        let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}"#;
        tracer.received(&bytes(progress), None);
        tracer.received(&bytes(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#), None);
        tracer.received(&bytes(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#), None);
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
        let request = |id: u8| {
            let meta = format!(r#"{{"_meta":{{"progressToken":{id}}}}}"#);
            bytes(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{meta}}}"#
            ))
        };
        let answer =
            |id: u8| bytes(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"id":[1]}}}}"#));
        tracer.sent(&request(1), Some(&call));
        tracer.sent(&request(2), Some(&call));
        tracer.received(&answer(1), None);
        tracer.received(&bytes("no message"), None);
        assert!(traffic.lock().unwrap().is_empty());
        drop(unwatched);
        let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}"#;
        tracer.received(&bytes(progress), None);
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
        tracer.received(&bytes(question), None);
        let no = r#"{"jsonrpc":"2.0","id":"q","error":{"code":-1,"message":"no"}}"#;
        tracer.sent(&bytes(no), None);
        let traffic = traffic.lock().unwrap();
        let TrafficKind::Message { info, direction, .. } = &traffic[1].kind else { panic!() };
        let method = Some("elicitation/create".to_owned());
        assert_eq!(*info, MessageInfo::Response { id: "q".into(), method, is_error: true });
        assert_eq!(*direction, Direction::Sent);
    }

    #[test]
    fn what_is_no_message_is_told_as_it_is() {
        let (tracer, traffic) = captured();
        tracer.received(&bytes("Welcome \u{1b}[2J"), None);
        tracer.received(&Bytes::from_static(b"\xff\xfe"), None);
        tracer.received(&bytes("{\"half"), None);
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
            let request = OpenRequest { method: "ping".to_owned(), at, call: None, token: None };
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
        off.sent(&bytes("{}"), None);
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
