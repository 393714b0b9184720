//! The bounded ring of newest items, and the pairing of requests with responses.

use std::collections::{HashMap, VecDeque};

use super::item::{TraceContent, TraceItem};
use crate::model::traffic::{Direction, MessageInfo, TrafficKind};

/// The maximum number of lines that are kept.
pub const MAX_ITEMS: usize = 10_000;
pub const BYTES: usize = 32 * 1024 * 1024;

/// The newest lines of the trace, bounded in number and bytes.
#[derive(Debug, Default)]
pub struct TraceRing {
    items: VecDeque<TraceItem>,
    /// The number of the oldest one.
    first: u64,
    bytes: usize,
    open: HashMap<String, HashMap<(Requester, String), u64>>,
}

/// Which side sent a request: both sides number theirs from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Requester {
    Client,
    Server,
}

impl TraceRing {
    /// Takes in a line; gives its number.
    pub fn push(&mut self, mut item: TraceItem) -> u64 {
        let number = self.end();
        item.pair = self.pair(&item, number);
        if let Some(pair) = item.pair.and_then(|pair| self.get_mut(pair)) {
            pair.pair = Some(number);
        }
        self.bytes += item.weight();
        self.items.push_back(item);
        while self.items.len() > MAX_ITEMS || self.bytes > BYTES {
            self.drop_oldest();
        }
        number
    }

    pub fn get(&self, number: u64) -> Option<&TraceItem> {
        self.items.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// The number of the oldest line.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The number that the next line will have.
    pub fn end(&self) -> u64 {
        self.first + self.items.len() as u64
    }

    /// The number of lines that are kept.
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

    fn get_mut(&mut self, number: u64) -> Option<&mut TraceItem> {
        self.items.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    fn drop_oldest(&mut self) {
        let Some(item) = self.items.pop_front() else { return };
        let number = self.first;
        self.first += 1;
        self.bytes = self.bytes.saturating_sub(item.weight());
        if let Some((way, id)) = key(&item)
            && let Some(open) = self.open.get_mut(&item.server)
            && open.get(&(way, id.clone())) == Some(&number)
        {
            open.remove(&(way, id));
        }
    }

    /// The request that a response belongs to; remembers requests.
    fn pair(&mut self, item: &TraceItem, number: u64) -> Option<u64> {
        if let TraceContent::Wire(TrafficKind::Opened(_)) = &item.what {
            // Request IDs start over with each connection.
            self.open.remove(&item.server);
        }
        let key = key(item)?;
        if item.is_request() {
            self.open.entry(item.server.clone()).or_default().insert(key, number);
            return None;
        }
        let found = self.open.get_mut(&item.server)?.remove(&key);
        found.filter(|number| *number >= self.first)
    }
}

/// Who asked, and under which identity.
fn key(item: &TraceItem) -> Option<(Requester, String)> {
    let TraceContent::Wire(TrafficKind::Message { direction, info: glance, .. }) = &item.what
    else {
        return None;
    };
    let (id, is_answer) = match glance {
        MessageInfo::Request { id, .. } => (id, false),
        MessageInfo::Response { id, .. } => (id, true),
        MessageInfo::Notification { .. } | MessageInfo::Unknown => return None,
    };
    let way = match (direction, is_answer) {
        (Direction::Sent, false) | (Direction::Received, true) => Requester::Client,
        (Direction::Received, false) | (Direction::Sent, true) => Requester::Server,
    };
    Some((way, id.to_string()))
}
