//! One frame, or a request with its response, formatted for reading.

use serde_json::Value;

use crate::model::traffic::{Direction, TrafficFilter, TrafficKind};
use crate::tui::prelude::*;
use crate::tui::views::trace::item::TraceItem;
use crate::tui::widgets::filter::{FilterTerms, is_yes};
use crate::tui::widgets::scroll_text::TextLimits;

const MESSAGE_LIMITS: TextLimits =
    TextLimits::of_lines(5_000, "… more than 5,000 lines; y copies the frame");
const PAGE_LIMITS: TextLimits = TextLimits::of_lines(usize::MAX, "");

/// Which messages of a request and its response are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FrameScope {
    #[default]
    Chosen,
    /// The request and its response.
    Both,
    Request,
    /// Only the response of the pair.
    Answer,
}

impl FrameScope {
    /// The next way to show a pair of which the chosen frame is the request or not.
    #[must_use]
    pub fn next(self, is_request: bool) -> Self {
        match (self, is_request) {
            (Self::Chosen, true) | (Self::Request, _) => Self::Answer,
            (Self::Chosen, false) | (Self::Both, _) => Self::Request,
            (Self::Answer, _) => Self::Both,
        }
    }
}

/// The text of these frames, one after the other, with a heading each where there are several.
pub fn frame_text(items: &[&TraceItem]) -> ScrollText {
    let mut page = ScrollText::with_limits(PAGE_LIMITS);
    for item in items {
        if items.len() > 1 {
            let heading = if item.is_request() { "request" } else { "response" };
            page.line(Role::Title, heading);
        }
        add(&mut page, item);
    }
    page
}

fn add(page: &mut ScrollText, item: &TraceItem) {
    if let Some(call) = &item.traffic.call {
        page.line(Role::Dim, format!("call {}", call.0));
    }
    if item.is_cut {
        let (kept, size) = (item.bytes().len() as u64, item.size as u64);
        let part = format!("the first {} of {}", show_size(kept), show_size(size));
        page.line(Role::Dim, part);
    }
    match &item.traffic.kind {
        TrafficKind::Message { bytes, .. } => message(page, bytes, item.is_cut),
        _ => body(page, &String::from_utf8_lossy(item.bytes())),
    }
    for (name, value) in item.headers() {
        body(page, &format!("{name}: {value}"));
    }
}

fn message(page: &mut ScrollText, bytes: &[u8], is_cut: bool) {
    let parsed = (!is_cut).then(|| serde_json::from_slice::<Value>(bytes));
    match parsed {
        Some(Ok(value)) => {
            let mut own = ScrollText::with_limits(MESSAGE_LIMITS);
            own.json(&value);
            return page.append(own);
        }
        Some(Err(why)) => page.line(Role::Dim, format!("not JSON: {why}")),
        None => {}
    }
    body(page, &String::from_utf8_lossy(bytes));
}

fn body(page: &mut ScrollText, text: &str) {
    let mut own = ScrollText::with_limits(MESSAGE_LIMITS);
    own.text(Role::Plain, text);
    page.append(own);
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct TraceSearch {
    servers: Vec<String>,
    wire: TrafficFilter,
    call: Option<String>,
    client: Option<String>,
    error: Option<bool>,
    words: Vec<String>,
    without: Vec<String>,
}

impl TraceSearch {
    /// Reads `srv:files method:tools/* way:sent error:yes call:ID client:NAME words !unwanted`, in any
    /// order.
    /// `srv:=files` is exactly that server. Incomplete terms do not filter.
    pub fn of(text: &str) -> Self {
        let keys = ["srv", "method", "way", "error", "call", "client"];
        let terms = FilterTerms::of(text, &keys, false);
        let (words, without) = (terms.words, terms.excluded);
        let mut query = Self { words, without, ..Self::default() };
        for (key, value) in terms.values {
            match key {
                "srv" => query.servers.push(value.to_lowercase()),
                // A partially typed method matches by prefix.
                "method" => query.wire.methods.push(format!("{value}*")),
                "way" => query.wire.direction = direction(&value),
                "error" => query.error = Some(is_yes(&value)),
                "call" => query.call = Some(value),
                _ => query.client = Some(value.to_lowercase()),
            }
        }
        query
    }

    pub fn matches(&self, item: &TraceItem) -> bool {
        let is_of_call =
            |call: &String| item.traffic.call.as_ref().is_some_and(|own| own.0.starts_with(call));
        let is_of_client = |client: &String| {
            item.client.as_ref().is_some_and(|own| own.to_lowercase().contains(client))
        };
        self.wire.matches(&item.traffic.kind)
            && self.is_of_server(&item.traffic.server)
            && self.error.is_none_or(|error| error == item.is_error)
            && self.call.as_ref().is_none_or(is_of_call)
            && self.client.as_ref().is_none_or(is_of_client)
            && self.words.iter().all(|word| holds(item, word))
            && !self.without.iter().any(|word| holds(item, word))
    }

    fn is_of_server(&self, server: &str) -> bool {
        let server = server.to_lowercase();
        self.servers.is_empty()
            || self.servers.iter().any(|name| match name.strip_prefix('=') {
                Some(exactly) => server == exactly,
                None => server.contains(name),
            })
    }
}

/// `sent` and `received`, and as much of them as was written.
fn direction(word: &str) -> Option<Direction> {
    [("sent", Direction::Sent), ("received", Direction::Received)]
        .into_iter()
        .find(|(whole, _)| whole.starts_with(word))
        .map(|(_, direction)| direction)
}

fn holds(item: &TraceItem, word: &str) -> bool {
    let message = item.glance();
    let label = message.map_or("", |message| message.label());
    let method = message.and_then(|message| message.method()).unwrap_or_default();
    let headers = item.headers().iter().flat_map(|(name, value)| [name, value]);
    [item.bytes(), item.traffic.server.as_bytes(), item.about.as_bytes(), label.as_bytes()]
        .into_iter()
        .chain([method.as_bytes()])
        .chain(headers.map(String::as_bytes))
        .any(|text| text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes())))
}
