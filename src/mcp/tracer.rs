//! What crosses the wires of one server, told to whoever looks.
//!
//! Owns: the numbers of what passed, which answer belongs to which request and to which tool call,
//! and how long it took. Each wire reports what crosses it, byte for byte. Never does: change or
//! hold back a message, or take secrets out of one (`audit::Masker` does, behind the sink); wires
//! replace credentials in the heads they report.
//!
//! One tracer serves all wires a server has one after the other. When nobody looks it is a `None`,
//! and every report costs one branch.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

use super::message::{self, Message, Raw, Reading};
use crate::model::traffic::{Direction, Glance, Passed};
use crate::model::{CallId, Traffic, TrafficSink};
use crate::util::clock::{Clock as _, SystemClock};

/// How many requests without an answer are remembered for each direction.
const OPEN: usize = 4096;
/// The longest line of stderr that is reported as one.
const LINE: usize = 64 * 1024;

/// Reports what crosses the wires of one server. Cheap to clone.
#[derive(Clone, Default)]
pub struct Tracer(Option<Arc<Watched>>);

struct Watched {
    server: String,
    sink: TrafficSink,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sequence: u64,
    /// A wire was opened and is not known to be gone.
    open: bool,
    /// What we asked.
    sent: Unanswered,
    /// What the server asked.
    received: Unanswered,
}

/// Requests that wait for their answers, by their ids as JSON.
#[derive(Default)]
struct Unanswered(HashMap<String, Asked>);

struct Asked {
    method: String,
    at: Instant,
    call: Option<CallId>,
    /// The progress token, of a request that is part of a call.
    token: Option<Value>,
}

impl Unanswered {
    fn add(&mut self, key: String, asked: Asked) {
        if self.0.len() >= OPEN {
            let oldest = self.0.iter().min_by_key(|(_, asked)| asked.at);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.and_then(|key| self.0.remove(&key));
        }
        self.0.insert(key, asked);
    }

    fn call(&self, id: &Value) -> Option<CallId> {
        self.0.get(&id.to_string())?.call.clone()
    }
}

/// The part of parameters that links a notification to a request.
#[derive(Deserialize, Default)]
struct Links {
    #[serde(rename = "_meta")]
    meta: Option<Box<Self>>,
    #[serde(rename = "progressToken")]
    token: Option<Value>,
}

impl Links {
    fn of(params: Option<&Raw>) -> Self {
        params.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }
}

/// A message as it will be told.
struct Told {
    glance: Glance,
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
        Self(sink.is_there().then(|| Arc::new(Watched { server, sink, state: Mutex::default() })))
    }

    /// A tracer that nobody looks at.
    pub fn off() -> Self {
        Self::default()
    }

    /// Whether anybody looks: check before something is prepared for a report.
    pub fn is_on(&self) -> bool {
        self.0.as_ref().is_some_and(|watched| watched.sink.is_on())
    }

    /// A wire is about to be opened: to this command line or address. Ids begin anew.
    pub fn opened(&self, to: &str) {
        self.with(|watched, state| {
            state.open = true;
            state.sent.0.clear();
            state.received.0.clear();
            watched.emit(state, None, Passed::Opened(to.to_owned()));
        });
    }

    /// The wire is gone, and why. Only the first reason is told.
    pub fn closed(&self, why: &str) {
        self.with(|watched, state| {
            if std::mem::take(&mut state.open) {
                watched.emit(state, None, Passed::Closed(why.to_owned()));
            }
        });
    }

    /// This message is on its way to the server, as part of `call`.
    pub fn sent(&self, bytes: &Bytes, call: Option<&CallId>) {
        self.with(|watched, state| {
            let messages = match message::read(bytes) {
                Reading::Messages(messages, _) => messages,
                Reading::Noise(_) | Reading::Unreadable(_) | Reading::Broken(_) => Vec::new(),
            };
            let told = tell(&messages, call, &mut state.sent, &mut state.received);
            watched.message(state, Direction::Sent, bytes, told);
        });
    }

    /// This came from the server, on the stream of the request `stream_of` when wires have such
    /// streams.
    pub fn received(&self, bytes: &Bytes, stream_of: Option<&Value>) {
        self.with(|watched, state| {
            let call = stream_of.and_then(|id| state.sent.call(id));
            let messages = match message::read(bytes) {
                Reading::Messages(messages, _) if !messages.is_empty() => messages,
                Reading::Messages(..) | Reading::Noise(_) => {
                    if let Ok(text) = std::str::from_utf8(bytes) {
                        return watched.emit(state, call, Passed::Noise(text.to_owned()));
                    }
                    Vec::new()
                }
                Reading::Unreadable(_) | Reading::Broken(_) => Vec::new(),
            };
            let told = tell(&messages, call.as_ref(), &mut state.received, &mut state.sent);
            watched.message(state, Direction::Received, bytes, told);
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
            let head = Passed::Head { direction, line, headers, latency };
            watched.emit(state, call.cloned(), head);
        });
    }

    /// Something that is no message: a comment of an event stream, a page where JSON belongs.
    pub fn noise(&self, text: &str, call: Option<&CallId>) {
        self.with(|watched, state| {
            watched.emit(state, call.cloned(), Passed::Noise(text.to_owned()));
        });
    }

    /// The call that the request of this id, which waits for its answer, is part of.
    pub fn call_of(&self, id: &Value) -> Option<CallId> {
        let watched = self.0.as_ref()?;
        watched.state.lock().unwrap_or_else(PoisonError::into_inner).sent.call(id)
    }

    /// A line on the standard error of a child process.
    pub fn stderr(&self, line: &str) {
        self.with(|watched, state| watched.emit(state, None, Passed::Stderr(line.to_owned())));
    }

    fn with(&self, report: impl FnOnce(&Watched, &mut State)) {
        if let Some(watched) = &self.0 {
            // Held until the sink has it, so that the numbers and the order agree.
            report(watched, &mut watched.state.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

impl Watched {
    fn emit(&self, state: &mut State, call: Option<CallId>, what: Passed) {
        state.sequence += 1;
        self.sink.emit(Traffic {
            server: self.server.clone(),
            sequence: state.sequence,
            at: SystemClock.unix(),
            call,
            what,
        });
    }

    fn message(&self, state: &mut State, direction: Direction, bytes: &Bytes, told: Told) {
        let Told { glance, call, latency } = told;
        let bytes = bytes.clone();
        self.emit(state, call, Passed::Message { direction, bytes, glance, latency });
    }
}

/// Notes the requests among `messages` in `asking`, finds those that their answers belong to in
/// `asked`, and says what the first one is; several at once are rare.
fn tell(
    messages: &[Message],
    call: Option<&CallId>,
    asking: &mut Unanswered,
    asked: &mut Unanswered,
) -> Told {
    let mut first = None;
    for message in messages {
        let told = match message {
            Message::Request { id, method, params } => {
                let token = call.and_then(|_| Links::of(params.as_ref()).meta?.token);
                let at = SystemClock.now();
                let known = Asked { method: method.clone(), at, call: call.cloned(), token };
                asking.add(id.to_string(), known);
                let glance = Glance::Request { id: id.clone(), method: method.clone() };
                Told { glance, call: call.cloned(), latency: None }
            }
            Message::Answer { id, outcome } => {
                let request = asked.0.remove(&id.to_string());
                let now = SystemClock.now();
                Told {
                    latency: request.as_ref().map(|asked| now.duration_since(asked.at)),
                    call: request.as_ref().and_then(|asked| asked.call.clone()).or(call.cloned()),
                    glance: Glance::Answer {
                        id: id.clone(),
                        method: request.map(|asked| asked.method),
                        error: outcome.is_err(),
                    },
                }
            }
            Message::Notification { method, params } => {
                let call = call.cloned().or_else(|| reported(method, params.as_ref(), asked));
                let glance = Glance::Notification { method: method.clone() };
                Told { glance, call, latency: None }
            }
        };
        first.get_or_insert(told);
    }
    first.unwrap_or_else(|| Told { glance: Glance::Unknown, call: call.cloned(), latency: None })
}

/// The call whose progress a notification reports.
fn reported(method: &str, params: Option<&Raw>, asked: &Unanswered) -> Option<CallId> {
    if method != "notifications/progress" {
        return None;
    }
    let token = Links::of(params).token?;
    let request = asked.0.values().find(|asked| asked.token.as_ref() == Some(&token));
    request?.call.clone()
}

/// Cuts a stream of stderr into lines for a tracer.
pub struct StderrLines {
    tracer: Tracer,
    open: Vec<u8>,
    /// Whether the open line is the rest of one that was reported in pieces.
    continues: bool,
}

impl StderrLines {
    /// Lines for `tracer`.
    pub fn new(tracer: Tracer) -> Self {
        Self { tracer, open: Vec::new(), continues: false }
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
            } else if self.open.len() >= LINE {
                // A cut shows, also to whoever looks for secrets beside it.
                self.report("…");
                self.continues = true;
            }
        }
    }

    /// Reports a line that has no end.
    pub fn flush(&mut self) {
        self.report("");
    }

    fn report(&mut self, end: &str) {
        let line = std::mem::take(&mut self.open);
        let begin = if std::mem::take(&mut self.continues) { "…" } else { "" };
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
        let kept = Arc::new(Mutex::new(Vec::new()));
        let sink = {
            let kept = Arc::clone(&kept);
            TrafficSink::new(move |traffic| kept.lock().unwrap().push(traffic))
        };
        (Tracer::new("srv", sink), kept)
    }

    fn bytes(text: &str) -> Bytes {
        Bytes::copy_from_slice(text.as_bytes())
    }

    #[test]
    fn an_answer_inherits_method_call_and_time_from_its_request() {
        let (tracer, kept) = captured();
        let call = CallId("c1".to_owned());
        let request = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":7}}}"#;
        tracer.sent(&bytes(request), Some(&call));
        let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}"#;
        tracer.received(&bytes(progress), None);
        tracer.received(&bytes(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#), None);
        tracer.received(&bytes(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#), None);
        let kept = kept.lock().unwrap();
        assert!(kept.iter().take(3).all(|traffic| traffic.call.as_ref() == Some(&call)));
        let numbers: Vec<u64> = kept.iter().map(|traffic| traffic.sequence).collect();
        assert_eq!(numbers, [1, 2, 3, 4]);
        let Passed::Message { glance, latency, bytes: exact, .. } = &kept[2].what else { panic!() };
        let method = Some("tools/call".to_owned());
        assert_eq!(*glance, Glance::Answer { id: 3.into(), method, error: false });
        assert!(latency.is_some());
        assert_eq!(exact, &bytes(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#));
        // The second answer is nobody's.
        let Passed::Message { glance, latency, .. } = &kept[3].what else { panic!() };
        assert_eq!(*glance, Glance::Answer { id: 3.into(), method: None, error: false });
        assert!(latency.is_none() && kept[3].call.is_none());
    }

    #[test]
    fn questions_of_the_server_and_our_answers_belong_together_too() {
        let (tracer, kept) = captured();
        let asked = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}"#;
        tracer.received(&bytes(asked), None);
        let no = r#"{"jsonrpc":"2.0","id":"q","error":{"code":-1,"message":"no"}}"#;
        tracer.sent(&bytes(no), None);
        let kept = kept.lock().unwrap();
        let Passed::Message { glance, direction, .. } = &kept[1].what else { panic!() };
        let method = Some("elicitation/create".to_owned());
        assert_eq!(*glance, Glance::Answer { id: "q".into(), method, error: true });
        assert_eq!(*direction, Direction::Sent);
    }

    #[test]
    fn what_is_no_message_is_told_as_it_is() {
        let (tracer, kept) = captured();
        tracer.received(&bytes("Welcome \u{1b}[2J"), None);
        tracer.received(&Bytes::from_static(b"\xff\xfe"), None);
        tracer.received(&bytes("{\"half"), None);
        let kept = kept.lock().unwrap();
        assert!(matches!(&kept[0].what, Passed::Noise(text) if text == "Welcome \u{1b}[2J"));
        for (index, exact) in [(1, &b"\xff\xfe"[..]), (2, b"{\"half")] {
            let Passed::Message { glance, bytes, .. } = &kept[index].what else { panic!() };
            assert_eq!((glance, &bytes[..]), (&Glance::Unknown, exact));
        }
    }

    #[test]
    fn memory_is_bounded_and_the_newest_requests_are_kept() {
        let mut open = Unanswered::default();
        for id in 0..OPEN + 10 {
            let at = SystemClock.now();
            let asked = Asked { method: "ping".to_owned(), at, call: None, token: None };
            open.add(id.to_string(), asked);
        }
        assert_eq!(open.0.len(), OPEN);
        assert!(open.0.contains_key(&(OPEN + 9).to_string()));
    }

    #[test]
    fn stderr_comes_line_by_line_however_it_is_cut() {
        let (tracer, kept) = captured();
        let mut lines = StderrLines::new(tracer);
        for piece in [&b"on"[..], b"e\r\n\ntw", b"o\nthree"] {
            lines.push(piece);
        }
        lines.flush();
        let kept = kept.lock().unwrap();
        let texts: Vec<&str> = kept
            .iter()
            .map(|traffic| match &traffic.what {
                Passed::Stderr(text) => text.as_str(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(texts, ["one", "", "two", "three"]);
    }

    #[test]
    fn a_line_in_pieces_shows_its_cuts() {
        let (tracer, kept) = captured();
        let mut lines = StderrLines::new(tracer);
        lines.push(&vec![b'x'; LINE]);
        lines.push(b"rest\nnext\n");
        let kept = kept.lock().unwrap();
        let texts = kept.iter().map(|traffic| match &traffic.what {
            Passed::Stderr(text) => text.trim_start_matches('x').to_owned(),
            other => panic!("{other:?}"),
        });
        assert_eq!(texts.collect::<Vec<_>>(), ["…", "…rest", "next"]);
    }

    #[test]
    fn nobody_looks_and_nothing_is_kept() {
        let off = Tracer::new("srv", TrafficSink::off());
        assert!(!off.is_on());
        off.sent(&bytes("{}"), None);
    }

    #[test]
    fn a_wire_closes_once() {
        let (tracer, kept) = captured();
        tracer.closed("nothing was open");
        tracer.opened("sh -c true");
        tracer.closed("the process exited with 0");
        tracer.closed("again");
        assert_eq!(kept.lock().unwrap().len(), 2);
    }
}
