//! A recording of one server, as exchanges: a request, what preceded its response, and the response.

use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::mcp::message::{Incoming, RpcMessage};
use crate::model::traffic::{Direction, MessageInfo, TrafficKind};
use crate::model::{CallId, Error, Traffic};
use crate::util::text;

const BY_METHOD: [&str; 3] = ["initialize", "server/discover", "ping"];
const SUMMARY_CHARS: usize = 80;

#[derive(Debug, Default)]
pub struct ServerRecording {
    /// Every request, in the order in which they were sent.
    pub(super) exchanges: Vec<RecordedExchange>,
    keys: HashMap<String, Vec<usize>>,
}

#[derive(Debug, Default)]
pub(super) struct RecordedExchange {
    pub(super) method: String,
    /// What a request must say to match; see [`key`].
    pub(super) key: String,
    pub(super) progress_token: Option<Value>,
    /// What the server sent before its response.
    pub(super) before: Vec<RecordedMessage>,
    /// The response, if it came.
    pub(super) answer: Option<Bytes>,
    /// What the server sent unprompted until the next request.
    pub(super) after: Vec<RecordedMessage>,
    id: Value,
    call: Option<CallId>,
}

/// Something the server sent besides its response.
#[derive(Debug)]
pub(super) struct RecordedMessage {
    pub(super) bytes: Bytes,
    pub(super) method: String,
    pub(super) expects_answer: bool,
}

impl RecordedExchange {
    pub(super) fn summary(&self) -> String {
        text::shorten(&self.key, SUMMARY_CHARS).into_owned()
    }
}

/// Method and parameters in a form in which equal requests are equal: `_meta` left out, keys in
/// order. Of the requests that open a conversation only the method counts.
pub(super) fn key(method: &str, params: &Value) -> String {
    if BY_METHOD.contains(&method) {
        return method.to_owned();
    }
    let mut params = params.clone();
    if let Value::Object(map) = &mut params {
        map.remove("_meta");
    }
    match ordered(params) {
        Value::Null => method.to_owned(),
        Value::Object(map) if map.is_empty() => method.to_owned(),
        params => format!("{method} {params}"),
    }
}

fn params(bytes: &Bytes) -> Value {
    let incoming = Incoming::read(bytes.clone());
    let params = incoming.messages().first().and_then(RpcMessage::params);
    params.and_then(|raw| raw.parse().ok()).unwrap_or_default()
}

fn ordered(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(ordered).collect(),
        Value::Object(map) => {
            let mut entries: Vec<(String, Value)> =
                map.into_iter().map(|(key, value)| (key, ordered(value))).collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(Map::from_iter(entries))
        }
        other => other,
    }
}

impl ServerRecording {
    /// The recording of `server` among `items`; without a name, of the only server there is.
    pub fn for_server(items: &[Traffic], server: Option<&str>) -> Result<Self, Error> {
        let names: BTreeSet<&str> = items.iter().map(|item| item.server.as_str()).collect();
        let names_text = names.iter().copied().collect::<Vec<_>>().join(", ");
        let server = match (server, names.len()) {
            (Some(server), _) if names.contains(server) => server,
            (Some(server), _) => {
                return Err(Error::usage(format!("nothing was recorded for '{server}'"))
                    .with_hint(format!("recorded: {names_text}")));
            }
            (None, 1) => names.first().copied().unwrap_or_default(),
            (None, 0) => return Err(Error::usage("the recording is empty")),
            (None, _) => {
                return Err(Error::usage("the recording holds several servers")
                    .with_hint(format!("--server NAME picks one of {names_text}")));
            }
        };
        let mut winding = RecordingBuilder::default();
        for item in items.iter().filter(|item| item.server == server) {
            winding.add(item);
        }
        let recording = winding.finish();
        if recording.exchanges.is_empty() {
            return Err(Error::usage(format!("no requests to '{server}' were recorded")));
        }
        Ok(recording)
    }

    pub fn len(&self) -> usize {
        self.exchanges.len()
    }

    /// The exchanges of equal requests, those with answers if there are any.
    pub(super) fn by_key(&self, key: &str) -> &[usize] {
        self.keys.get(key).map(Vec::as_slice).unwrap_or_default()
    }
}

#[derive(Default)]
struct RecordingBuilder {
    exchanges: Vec<RecordedExchange>,
    /// Indices of requests without an answer, oldest first.
    open: Vec<usize>,
    /// What was sent before the first request.
    early: Vec<RecordedMessage>,
}

impl RecordingBuilder {
    fn add(&mut self, item: &Traffic) {
        let (direction, bytes, info) = match &item.kind {
            // Ids start over.
            TrafficKind::Opened(_) => return self.open.clear(),
            TrafficKind::Message { direction, bytes, info, .. } => (*direction, bytes, info),
            _ => return,
        };
        match (direction, info) {
            (Direction::Sent, MessageInfo::Request { id, method }) => {
                self.add_request(id, method, bytes, item.call.as_ref());
            }
            (Direction::Received, MessageInfo::Response { id, .. }) => {
                let at = self.open.iter().position(|open| self.has_id(*open, id));
                if let Some(at) = at
                    && let Some(exchange) = self.exchanges.get_mut(self.open.remove(at))
                {
                    exchange.answer = Some(bytes.clone());
                }
            }
            (Direction::Received, MessageInfo::Notification { method }) => {
                self.add_server_message(item, bytes, method, false);
            }
            (Direction::Received, MessageInfo::Request { method, .. }) => {
                self.add_server_message(item, bytes, method, true);
            }
            // What the client told or answered is the next client's business.
            _ => {}
        }
    }

    fn has_id(&self, index: usize, id: &Value) -> bool {
        self.exchanges.get(index).is_some_and(|exchange| exchange.id == *id)
    }

    fn add_request(&mut self, id: &Value, method: &str, bytes: &Bytes, call: Option<&CallId>) {
        // The same request on its way once more, to another address.
        if self.open.iter().any(|open| self.has_id(*open, id)) {
            return;
        }
        let params = params(bytes);
        self.open.push(self.exchanges.len());
        self.exchanges.push(RecordedExchange {
            method: method.to_owned(),
            key: key(method, &params),
            progress_token: params.get("_meta").and_then(|meta| meta.get("progressToken")).cloned(),
            id: id.clone(),
            call: call.cloned(),
            ..RecordedExchange::default()
        });
    }

    /// Something the server said: it belongs to the request that it names, to one of the same tool
    /// call, or to the newest one that waits.
    fn add_server_message(&mut self, item: &Traffic, bytes: &Bytes, method: &str, asks: bool) {
        let params = params(bytes);
        let token = params.get("progressToken");
        let subscription = params.get("_meta").and_then(|meta| meta.get(super::SUBSCRIPTION));
        let open = |predicate: &dyn Fn(&RecordedExchange) -> bool| {
            self.open.iter().rev().copied().find(|i| self.exchanges.get(*i).is_some_and(predicate))
        };
        let named = open(&|exchange| {
            (token.is_some() && exchange.progress_token.as_ref() == token)
                || (subscription.is_some() && Some(&exchange.id) == subscription)
        });
        let same_call = || open(&|exchange| item.call.is_some() && exchange.call == item.call);
        let newest = || self.open.last().copied();
        let owner = named.or_else(same_call).or_else(newest);
        let (bytes, method) = (bytes.clone(), method.to_owned());
        let message = RecordedMessage { bytes, method, expects_answer: asks };
        if let Some(exchange) = owner.and_then(|owner| self.exchanges.get_mut(owner)) {
            exchange.before.push(message);
        } else if asks {
            // A question out of the blue cannot be tied to anything the next client does.
        } else if let Some(last) = self.exchanges.last_mut() {
            last.after.push(message);
        } else {
            self.early.push(message);
        }
    }

    fn finish(mut self) -> ServerRecording {
        if let Some(first) = self.exchanges.first_mut() {
            first.before.splice(0..0, self.early.drain(..));
        }
        let mut keys: HashMap<String, Vec<usize>> = HashMap::new();
        for answered in [true, false] {
            for (index, exchange) in self.exchanges.iter().enumerate() {
                let indexes = keys.entry(exchange.key.clone()).or_default();
                // One that was never answered counts only when none of its kind was.
                if exchange.answer.is_some() == answered && (answered || indexes.is_empty()) {
                    indexes.push(index);
                }
            }
        }
        ServerRecording { exchanges: self.exchanges, keys }
    }
}
