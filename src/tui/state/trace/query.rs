//! The filter of the trace.

use super::item::{TraceContent, TraceItem};
use crate::model::traffic::{Direction, TrafficFilter};
use crate::tui::state::filter::{FilterSyntax, is_yes};

#[derive(Debug, Clone, Copy)]
enum TraceFilterKey {
    Server,
    Method,
    Direction,
    Error,
    Call,
    Client,
}

const SYNTAX: FilterSyntax<TraceFilterKey> = FilterSyntax {
    keys: &[
        ("srv", TraceFilterKey::Server),
        ("method", TraceFilterKey::Method),
        ("way", TraceFilterKey::Direction),
        ("error", TraceFilterKey::Error),
        ("call", TraceFilterKey::Call),
        ("client", TraceFilterKey::Client),
    ],
    has_quotes: false,
};

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
        let terms = SYNTAX.parse(text);
        let (words, without) = (terms.words, terms.excluded);
        let mut query = Self { words, without, ..Self::default() };
        for (key, value) in terms.values {
            match key {
                TraceFilterKey::Server => query.servers.push(value.to_lowercase()),
                // A partially typed method matches by prefix.
                TraceFilterKey::Method => query.wire.methods.push(format!("{value}*")),
                TraceFilterKey::Direction => query.wire.direction = direction(&value),
                TraceFilterKey::Error => query.error = Some(is_yes(&value)),
                TraceFilterKey::Call => query.call = Some(value),
                TraceFilterKey::Client => query.client = Some(value.to_lowercase()),
            }
        }
        query
    }

    pub fn matches(&self, item: &TraceItem) -> bool {
        let passes = match &item.what {
            TraceContent::Wire(passed) => self.wire.matches(passed),
            TraceContent::Log { .. } => {
                self.wire.methods.is_empty() && self.wire.direction != Some(Direction::Sent)
            }
        };
        passes
            && self.is_of_server(&item.server)
            && self.error.is_none_or(|error| error == item.is_error)
            && self
                .call
                .as_ref()
                .is_none_or(|call| item.call.as_ref().is_some_and(|own| own.0.starts_with(call)))
            && self.client.as_ref().is_none_or(|client| {
                item.client.as_ref().is_some_and(|own| own.to_lowercase().contains(client))
            })
            && self.words.iter().all(|word| holds(item, word))
            && !self.without.iter().any(|word| holds(item, word))
    }

    fn is_of_server(&self, server: &str) -> bool {
        let server = server.to_lowercase();
        self.servers.is_empty()
            || self.servers.iter().any(|wanted| match wanted.strip_prefix('=') {
                Some(exactly) => server == exactly,
                None => server.contains(wanted),
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
    let glance = item.glance();
    let said = glance.map_or("", |glance| glance.label());
    let method = glance.and_then(|glance| glance.method()).unwrap_or_default();
    let headers = item.headers().iter().flat_map(|(name, value)| [name, value]);
    [item.bytes(), item.server.as_bytes(), item.about.as_bytes(), said.as_bytes()]
        .into_iter()
        .chain([method.as_bytes()])
        .chain(headers.map(String::as_bytes))
        .any(|text| text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes())))
}
