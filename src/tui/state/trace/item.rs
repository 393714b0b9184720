//! One line of the trace: what crossed a wire, or what was logged, and what it is about.
//!
//! Owns: the few words that stand in its line, found once when it comes. Never does: change what
//! crossed.

use std::time::Duration;

use serde_json::Value;

use crate::model::traffic::{Direction, Glance, Passed};
use crate::model::{CallId, Traffic};
use crate::tui::event::wire::Seen;
use crate::util::text;

/// The largest message that is looked into for its line, in bytes.
const LOOKED_INTO: usize = 16 * 1024;
/// The most characters of what it is about.
const ABOUT: usize = 160;
/// What an item takes beside its content, in bytes.
const OVERHEAD: usize = 400;

/// One line.
#[derive(Debug, Clone)]
pub struct Item {
    /// Whose wire it crossed, or who logged it.
    pub server: String,
    /// When, since the Unix epoch.
    pub at: Duration,
    /// What it was.
    pub what: What,
    /// How large it was, in bytes.
    pub size: usize,
    /// Whether only its beginning was kept.
    pub is_cut: bool,
    /// What it is about: the tool and its arguments, the error.
    pub about: String,
    /// Whether it tells that something went wrong.
    pub is_bad: bool,
    /// The request it answers, or its answer.
    pub pair: Option<u64>,
    /// The call it belongs to.
    pub call: Option<CallId>,
    sequence: u64,
}

/// What it was.
#[derive(Debug, Clone)]
pub enum What {
    /// Something that crossed a wire, or happened to it.
    Wire(Passed),
    /// A line of a log.
    Log {
        /// How grave it is.
        level: String,
        /// What it says.
        text: String,
    },
}

impl Item {
    /// What crossed a wire.
    pub fn of(seen: Seen) -> Self {
        let Seen { traffic, size, is_cut } = seen;
        let Traffic { server, sequence, at, call, what } = traffic;
        let (about, is_bad) = about(&what);
        let about = text::shorten(&about, ABOUT).into_owned();
        let what = What::Wire(what);
        Self { server, at, what, size, is_cut, about, is_bad, pair: None, call, sequence }
    }

    /// A line of a log.
    pub fn logged(origin: &str, at: Duration, level: &str, text: &str) -> Self {
        let about = text::shorten(text, ABOUT).into_owned();
        let is_bad = matches!(level, "error" | "critical" | "alert" | "emergency");
        let kept = text.get(..text.floor_char_boundary(LOOKED_INTO)).unwrap_or_default();
        let what = What::Log { level: level.to_owned(), text: kept.to_owned() };
        Self {
            server: origin.to_owned(),
            at,
            what,
            size: text.len(),
            is_cut: text.len() > LOOKED_INTO,
            about,
            is_bad,
            pair: None,
            call: None,
            sequence: 0,
        }
    }

    /// What a message is.
    pub fn glance(&self) -> Option<&Glance> {
        match &self.what {
            What::Wire(Passed::Message { glance, .. }) => Some(glance),
            _ => None,
        }
    }

    /// Which way it went.
    pub fn way(&self) -> Option<Direction> {
        match &self.what {
            What::Wire(passed) => passed.way(),
            What::Log { .. } => Some(Direction::Received),
        }
    }

    /// How long it took since what it answers was sent.
    pub fn latency(&self) -> Option<Duration> {
        match &self.what {
            What::Wire(passed) => passed.latency(),
            What::Log { .. } => None,
        }
    }

    /// Whether it asks for an answer.
    pub fn is_request(&self) -> bool {
        matches!(self.glance(), Some(Glance::Request { .. }))
    }

    /// Its text, as far as it was kept.
    pub fn bytes(&self) -> &[u8] {
        match &self.what {
            What::Wire(Passed::Message { bytes, .. }) => bytes,
            What::Wire(Passed::Head { line, .. }) => line.as_bytes(),
            What::Wire(
                Passed::Stderr(text)
                | Passed::Noise(text)
                | Passed::Opened(text)
                | Passed::Closed(text),
            )
            | What::Log { text, .. } => text.as_bytes(),
        }
    }

    /// The headers, of the head of an HTTP request or response.
    pub fn headers(&self) -> &[(String, String)] {
        match &self.what {
            What::Wire(Passed::Head { headers, .. }) => headers,
            _ => &[],
        }
    }

    /// As it stands in a trace file; `None` for a line of a log, which crossed no wire.
    pub fn traffic(&self) -> Option<Traffic> {
        let What::Wire(what) = &self.what else { return None };
        Some(Traffic {
            server: self.server.clone(),
            sequence: self.sequence,
            at: self.at,
            call: self.call.clone(),
            what: what.clone(),
        })
    }

    /// How many bytes of memory it takes, about.
    pub(super) fn weight(&self) -> usize {
        let headers = self.headers().iter().map(|(name, value)| name.len() + value.len() + 48);
        let texts = self.server.len() + self.about.len() + self.bytes().len();
        OVERHEAD + texts + headers.sum::<usize>()
    }
}

/// What it is about, and whether it tells that something went wrong.
fn about(what: &Passed) -> (String, bool) {
    match what {
        Passed::Message { bytes, glance, .. } => message(bytes, glance),
        Passed::Head { direction, line, .. } => {
            let failed = *direction == Direction::Received && line.starts_with(['4', '5']);
            (line.clone(), failed)
        }
        Passed::Stderr(text) | Passed::Noise(text) => (first_line(text), false),
        Passed::Opened(to) => (format!("opened: {}", first_line(to)), false),
        Passed::Closed(why) => (format!("closed: {}", first_line(why)), false),
    }
}

fn first_line(text: &str) -> String {
    text::shorten(text.lines().next().unwrap_or_default(), ABOUT).into_owned()
}

fn message(bytes: &[u8], glance: &Glance) -> (String, bool) {
    if *glance == Glance::Unknown {
        let beginning = bytes.get(..ABOUT * 4).unwrap_or(bytes);
        return (String::from_utf8_lossy(beginning).into_owned(), true);
    }
    let error = matches!(glance, Glance::Answer { error: true, .. });
    let looked_into = bytes.len() <= LOOKED_INTO;
    let parsed = looked_into.then(|| serde_json::from_slice::<Value>(bytes).ok()).flatten();
    let Some(parsed) = parsed else { return (String::new(), error) };
    match glance {
        Glance::Answer { error: true, .. } => {
            let error = &parsed["error"];
            let said = error["message"].as_str().unwrap_or_default();
            (format!("{} {said}", error["code"]), true)
        }
        Glance::Answer { .. } => result(&parsed["result"]),
        Glance::Request { .. } | Glance::Notification { .. } | Glance::Unknown => {
            (parameters(&parsed["params"]), false)
        }
    }
}

/// What an answer says in few words.
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

/// What is asked for or told: its name or address, and what comes with it.
fn parameters(params: &Value) -> String {
    let named = ["name", "uri", "level", "progress", "requestId"];
    let name = named.iter().find_map(|key| params.get(key));
    let rest = ["arguments", "data", "message", "reason"];
    let rest = rest.iter().find_map(|key| params.get(key));
    let words = [name, rest].into_iter().flatten();
    let words = words.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    words.collect::<Vec<_>>().join(" ")
}
