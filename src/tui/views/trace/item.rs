//! One item of the trace: a frame or a log line, and what it is about.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::model::traffic::{Direction, MessageInfo, TrafficKind};
use crate::model::{CapturedTraffic, Traffic};
use crate::present::traffic::{MAX_PARSED_BYTES, MAX_SUMMARY, summary};
use crate::util::text;

/// The memory of an item beside its content, in bytes.
const OVERHEAD: usize = 400;

/// One line of the trace: a message, a log line or an event of a connection.
#[derive(Debug, Clone)]
pub struct TraceItem {
    pub traffic: Traffic,
    /// How grave a log line is, which crossed no wire; `None` for everything that did.
    pub level: Option<String>,
    /// The size in bytes, before anything was cut.
    pub size: usize,
    pub is_cut: bool,
    /// The summary: the tool and its arguments, or the error.
    pub about: String,
    pub is_error: bool,
    pub pair: Option<u64>,
    pub client: Option<String>,
}

/// The JSON-RPC code of a protocol version that a server does not speak.
const UNSUPPORTED_VERSION: &str = "-32022 ";

impl TraceItem {
    pub fn of(seen: CapturedTraffic) -> Self {
        let CapturedTraffic { traffic, size, is_cut } = seen;
        let (about, is_bad) = summary(&traffic.kind);
        // The two eras find each other by a question that the other one refuses: nothing is wrong.
        let is_probe = match traffic.kind.method() {
            Some("server/discover") => true,
            Some("initialize") => about.starts_with(UNSUPPORTED_VERSION),
            _ => false,
        };
        let is_error = is_bad && !is_probe;
        Self { traffic, level: None, size, is_cut, about, is_error, pair: None, client: None }
    }

    pub fn logged(origin: &str, at: Duration, level: &str, text: &str) -> Self {
        let is_error = matches!(level, "error" | "critical" | "alert" | "emergency");
        let kept = text.get(..text.floor_char_boundary(MAX_PARSED_BYTES)).unwrap_or_default();
        let kind = TrafficKind::NonJsonLine(kept.to_owned());
        let traffic = Traffic { server: origin.to_owned(), sequence: 0, at, call: None, kind };
        let (size, is_cut) = (text.len(), text.len() > MAX_PARSED_BYTES);
        let (about, level) =
            (text::shorten(text, MAX_SUMMARY).into_owned(), Some(level.to_owned()));
        Self { traffic, level, size, is_cut, about, is_error, pair: None, client: None }
    }

    /// Method, number and outcome of a message; `None` when it is not JSON-RPC.
    pub fn glance(&self) -> Option<&MessageInfo> {
        match &self.traffic.kind {
            TrafficKind::Message { info, .. } => Some(info),
            _ => None,
        }
    }

    pub fn is_request(&self) -> bool {
        matches!(self.glance(), Some(MessageInfo::Request { .. }))
    }

    pub fn bytes(&self) -> &[u8] {
        match &self.traffic.kind {
            TrafficKind::Message { bytes, .. } => bytes,
            TrafficKind::HttpHead { line: text, .. }
            | TrafficKind::Stderr(text)
            | TrafficKind::NonJsonLine(text)
            | TrafficKind::Opened(text)
            | TrafficKind::Closed(text) => text.as_bytes(),
        }
    }

    /// The headers, of the head of an HTTP request or response.
    pub fn headers(&self) -> &[(String, String)] {
        match &self.traffic.kind {
            TrafficKind::HttpHead { headers, .. } => headers,
            _ => &[],
        }
    }

    /// How many bytes of memory it takes, about.
    pub fn weight(&self) -> usize {
        let headers = self.headers().iter().map(|(name, value)| name.len() + value.len() + 48);
        let texts = self.traffic.server.len() + self.about.len() + self.bytes().len();
        OVERHEAD + texts + headers.sum::<usize>()
    }
}

pub const MAX_ITEMS: usize = 10_000;
pub const BYTES: usize = 32 * 1024 * 1024;

/// The newest lines of the trace, bounded in number and bytes.
#[derive(Debug, Default)]
pub struct TraceRing {
    items: VecDeque<TraceItem>,
    first: u64,
    bytes: usize,
    open: HashMap<RequestKey, u64>,
}

/// The server, whether it was asked or asks itself, and the identity of the request: both sides
/// number theirs from 1.
type RequestKey = (String, bool, String);

impl TraceRing {
    /// Takes in a line; gives its number.
    pub fn push(&mut self, mut item: TraceItem) -> u64 {
        let number = self.end();
        item.pair = self.pair(&item, number);
        if let Some(at) = item.pair.and_then(|pair| self.position(pair)) {
            self.items[at].pair = Some(number);
        }
        self.bytes += item.weight();
        self.items.push_back(item);
        while self.items.len() > MAX_ITEMS || self.bytes > BYTES {
            self.drop_oldest();
        }
        number
    }

    pub fn get(&self, number: u64) -> Option<&TraceItem> {
        self.items.get(self.position(number)?)
    }

    fn position(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.first)?).ok()
    }

    pub fn first(&self) -> u64 {
        self.first
    }

    /// The number that the next line will have.
    pub fn end(&self) -> u64 {
        self.first + self.items.len() as u64
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// The approximate memory of all lines, in bytes.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// All of them with their numbers, the oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, &TraceItem)> + '_ {
        let number = |at: usize| self.first + at as u64;
        self.items.iter().enumerate().map(move |(at, item)| (number(at), item))
    }

    pub fn drain_items(&mut self) -> VecDeque<TraceItem> {
        self.first = self.end();
        self.bytes = 0;
        self.open.clear();
        std::mem::take(&mut self.items)
    }

    fn drop_oldest(&mut self) {
        let Some(item) = self.items.pop_front() else { return };
        let number = self.first;
        self.first += 1;
        self.bytes = self.bytes.saturating_sub(item.weight());
        if let Some(key) = key(&item).filter(|key| self.open.get(key) == Some(&number)) {
            self.open.remove(&key);
        }
    }

    /// The request that a response belongs to; remembers requests.
    fn pair(&mut self, item: &TraceItem, number: u64) -> Option<u64> {
        if let TrafficKind::Opened(_) = &item.traffic.kind {
            // Request IDs start over with each connection.
            self.open.retain(|(server, ..), _| *server != item.traffic.server);
        }
        let key = key(item)?;
        if item.is_request() {
            self.open.insert(key, number);
            return None;
        }
        let request = self.open.remove(&key);
        request.filter(|number| *number >= self.first)
    }
}

fn key(item: &TraceItem) -> Option<RequestKey> {
    let TrafficKind::Message { direction, info, .. } = &item.traffic.kind else { return None };
    let (id, is_answer) = match info {
        MessageInfo::Request { id, .. } => (id, false),
        MessageInfo::Response { id, .. } => (id, true),
        MessageInfo::Notification { .. } | MessageInfo::Unknown => return None,
    };
    let is_asked = (*direction == Direction::Sent) != is_answer;
    Some((item.traffic.server.clone(), is_asked, id.to_string()))
}
