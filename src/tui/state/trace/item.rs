//! One item of the trace: a frame or a log line, and what it is about.

use std::time::Duration;

use serde_json::Value;

use crate::model::traffic::{Direction, MessageInfo, TrafficKind};
use crate::model::{CallId, CapturedTraffic, Traffic};
use crate::util::text;

/// The largest message that is looked into for its line, in bytes.
const MAX_PARSED_BYTES: usize = 16 * 1024;
/// The maximum number of characters of what it is about.
const ABOUT: usize = 160;
/// The memory of an item beside its content, in bytes.
const OVERHEAD: usize = 400;

/// One line of the trace: a message, a log line or an event of a connection.
#[derive(Debug, Clone)]
pub struct TraceItem {
    /// Whose wire it crossed, or who logged it.
    pub server: String,
    /// When, since the Unix epoch.
    pub at: Duration,
    pub what: TraceContent,
    /// The size in bytes, before anything was cut.
    pub size: usize,
    /// Whether only its start was kept.
    pub is_cut: bool,
    /// The summary: the tool and its arguments, or the error.
    pub about: String,
    pub is_error: bool,
    /// The request it answers, or its response.
    pub pair: Option<u64>,
    pub call: Option<CallId>,
    pub client: Option<String>,
    sequence: u64,
}

#[derive(Debug, Clone)]
pub enum TraceContent {
    Wire(TrafficKind),
    Log { level: String, text: String },
}

impl TraceItem {
    pub fn of(seen: CapturedTraffic) -> Self {
        let CapturedTraffic { traffic, size, is_cut } = seen;
        let Traffic { server, sequence, at, call, kind: what } = traffic;
        let (about, is_bad) = about(&what);
        // A server of an older era does not know what toolhost asks first: nothing is wrong with it.
        let is_probe = matches!(&what, TrafficKind::Message {
            info: MessageInfo::Response { method: Some(method), .. }, ..
        } if method == "server/discover");
        let is_bad = is_bad && !is_probe;
        let about = text::shorten(&about, ABOUT).into_owned();
        let what = TraceContent::Wire(what);
        Self {
            server,
            at,
            what,
            size,
            is_cut,
            about,
            is_error: is_bad,
            pair: None,
            call,
            client: None,
            sequence,
        }
    }

    /// A line of a log.
    pub fn logged(origin: &str, at: Duration, level: &str, text: &str) -> Self {
        let about = text::shorten(text, ABOUT).into_owned();
        let is_bad = matches!(level, "error" | "critical" | "alert" | "emergency");
        let kept = text.get(..text.floor_char_boundary(MAX_PARSED_BYTES)).unwrap_or_default();
        let what = TraceContent::Log { level: level.to_owned(), text: kept.to_owned() };
        Self {
            server: origin.to_owned(),
            at,
            what,
            size: text.len(),
            is_cut: text.len() > MAX_PARSED_BYTES,
            about,
            is_error: is_bad,
            pair: None,
            call: None,
            client: None,
            sequence: 0,
        }
    }

    /// Method, number and outcome of a message; `None` when it is not JSON-RPC.
    pub fn glance(&self) -> Option<&MessageInfo> {
        match &self.what {
            TraceContent::Wire(TrafficKind::Message { info: glance, .. }) => Some(glance),
            _ => None,
        }
    }

    /// The time since the request it answers was sent.
    pub fn latency(&self) -> Option<Duration> {
        match &self.what {
            TraceContent::Wire(passed) => passed.latency(),
            TraceContent::Log { .. } => None,
        }
    }

    pub fn is_request(&self) -> bool {
        matches!(self.glance(), Some(MessageInfo::Request { .. }))
    }

    pub fn bytes(&self) -> &[u8] {
        match &self.what {
            TraceContent::Wire(TrafficKind::Message { bytes, .. }) => bytes,
            TraceContent::Wire(TrafficKind::HttpHead { line, .. }) => line.as_bytes(),
            TraceContent::Wire(
                TrafficKind::Stderr(text)
                | TrafficKind::NonJsonLine(text)
                | TrafficKind::Opened(text)
                | TrafficKind::Closed(text),
            )
            | TraceContent::Log { text, .. } => text.as_bytes(),
        }
    }

    /// The headers, of the head of an HTTP request or response.
    pub fn headers(&self) -> &[(String, String)] {
        match &self.what {
            TraceContent::Wire(TrafficKind::HttpHead { headers, .. }) => headers,
            _ => &[],
        }
    }

    /// The message for a trace file; `None` for a log line, which crossed no wire.
    pub fn traffic(&self) -> Option<Traffic> {
        let TraceContent::Wire(what) = &self.what else { return None };
        Some(Traffic {
            server: self.server.clone(),
            sequence: self.sequence,
            at: self.at,
            call: self.call.clone(),
            kind: what.clone(),
        })
    }

    /// How many bytes of memory it takes, about.
    pub(super) fn weight(&self) -> usize {
        let headers = self.headers().iter().map(|(name, value)| name.len() + value.len() + 48);
        let texts = self.server.len() + self.about.len() + self.bytes().len();
        OVERHEAD + texts + headers.sum::<usize>()
    }
}

/// The summary of the content, and whether it reports an error.
fn about(what: &TrafficKind) -> (String, bool) {
    match what {
        TrafficKind::Message { bytes, info: glance, .. } => message(bytes, glance),
        TrafficKind::HttpHead { direction, line, .. } => {
            let failed = *direction == Direction::Received && line.starts_with(['4', '5']);
            (line.clone(), failed)
        }
        TrafficKind::Stderr(text) | TrafficKind::NonJsonLine(text) => (first_line(text), false),
        TrafficKind::Opened(to) => (format!("opened: {}", first_line(to)), false),
        TrafficKind::Closed(why) => (format!("closed: {}", first_line(why)), false),
    }
}

fn first_line(text: &str) -> String {
    text::shorten(text.lines().next().unwrap_or_default(), ABOUT).into_owned()
}

fn message(bytes: &[u8], glance: &MessageInfo) -> (String, bool) {
    if *glance == MessageInfo::Unknown {
        let beginning = bytes.get(..ABOUT * 4).unwrap_or(bytes);
        return (String::from_utf8_lossy(beginning).into_owned(), true);
    }
    let error = matches!(glance, MessageInfo::Response { is_error: true, .. });
    let looked_into = bytes.len() <= MAX_PARSED_BYTES;
    let parsed = looked_into.then(|| serde_json::from_slice::<Value>(bytes).ok()).flatten();
    let Some(parsed) = parsed else { return (String::new(), error) };
    match glance {
        MessageInfo::Response { is_error: true, .. } => {
            let error = &parsed["error"];
            let text = error["message"].as_str().unwrap_or_default();
            (format!("{} {text}", error["code"]), true)
        }
        MessageInfo::Response { .. } => result(&parsed["result"]),
        MessageInfo::Request { .. } | MessageInfo::Notification { .. } | MessageInfo::Unknown => {
            (parameters(&parsed["params"]), false)
        }
    }
}

/// The summary of a response.
fn result(result: &Value) -> (String, bool) {
    for list in ["tools", "resources", "prompts", "content", "contents", "messages"] {
        let Some(items) = result[list].as_array() else { continue };
        let failed = result["isError"] == true;
        let first = items.first().and_then(|item| item["text"].as_str()).unwrap_or_default();
        return match (failed, list) {
            (true, _) => (format!("isError {first}"), true),
            (false, "content" | "contents") => (format!("{list}[{}] {first}", items.len()), false),
            (false, _) => (format!("{list}[{}]", items.len()), false),
        };
    }
    (String::new(), false)
}

/// The summary of a request or notification: its name or address and its parameters.
fn parameters(params: &Value) -> String {
    let named = ["name", "uri", "level", "progress", "requestId"];
    let name = named.iter().find_map(|key| params.get(key));
    let rest = ["arguments", "data", "message", "reason"];
    let rest = rest.iter().find_map(|key| params.get(key));
    let words = [name, rest].into_iter().flatten();
    let words = words.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    words.collect::<Vec<_>>().join(" ")
}
