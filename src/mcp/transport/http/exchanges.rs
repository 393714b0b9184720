//! The HTTP requests in flight.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::util::lock::lock;
use crate::util::units::show_size;

#[derive(Debug, Clone)]
pub(super) enum ExchangeStage {
    Connecting,
    /// The request is on its way or was received.
    Sent,
    /// The head of the response came, and its body not to the end.
    Answering {
        status: u16,
        kind: String,
    },
    Continuing {
        attempt: u32,
    },
}

/// A request under way, and how far it has come.
pub(super) struct HttpExchange {
    pub stop: CancellationToken,
    stage: Mutex<ExchangeStage>,
    bytes_read: AtomicU64,
}

impl HttpExchange {
    pub(super) fn set_stage(&self, stage: ExchangeStage) {
        *lock(&self.stage) = stage;
    }

    pub(super) fn add_bytes_read(&self, bytes: usize) {
        self.bytes_read.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn waiting_for(&self) -> String {
        match &*lock(&self.stage) {
            ExchangeStage::Connecting => "the connection".to_owned(),
            ExchangeStage::Sent => "response headers".to_owned(),
            ExchangeStage::Answering { status, kind } => {
                let read = show_size(self.bytes_read.load(Ordering::Relaxed));
                format!("the response (status {status}, {kind}, {read} so far)")
            }
            ExchangeStage::Continuing { attempt } => {
                format!("a new connection for the rest of the response (attempt {attempt})")
            }
        }
    }
}

/// The requests in flight, by their ids as JSON.
#[derive(Default)]
pub(super) struct ExchangeTable(Mutex<HashMap<String, Arc<HttpExchange>>>);

impl ExchangeTable {
    /// A new request; `closed` stops it too.
    pub(super) fn begin(&self, id: &Value, closed: &CancellationToken) -> Arc<HttpExchange> {
        let exchange = Arc::new(HttpExchange {
            stop: closed.child_token(),
            stage: Mutex::new(ExchangeStage::Connecting),
            bytes_read: AtomicU64::new(0),
        });
        lock(&self.0).insert(id.to_string(), Arc::clone(&exchange));
        exchange
    }

    /// The request is over, unless another one uses its id by now.
    pub(super) fn end(&self, id: &Value, exchange: &Arc<HttpExchange>) {
        let (mut all, key) = (lock(&self.0), id.to_string());
        if all.get(&key).is_some_and(|current| Arc::ptr_eq(current, exchange)) {
            all.remove(&key);
        }
    }

    /// Stops a request; nothing more is reported for it.
    pub(super) fn cancel(&self, id: &Value) {
        let exchange = lock(&self.0).remove(&id.to_string());
        if let Some(exchange) = exchange {
            exchange.stop.cancel();
        }
    }

    pub(super) fn waiting_for(&self, id: &Value) -> Option<String> {
        lock(&self.0).get(&id.to_string()).map(|exchange| exchange.waiting_for())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_says_what_it_waits_for_until_it_is_over() {
        let (running, closed) = (ExchangeTable::default(), CancellationToken::new());
        let exchange = running.begin(&json!(1), &closed);
        let waiting = || running.waiting_for(&json!(1));
        assert_eq!(waiting().as_deref(), Some("the connection"));
        exchange.set_stage(ExchangeStage::Sent);
        assert_eq!(waiting().as_deref(), Some("response headers"));
        exchange
            .set_stage(ExchangeStage::Answering { status: 200, kind: "text/event-stream".into() });
        exchange.add_bytes_read(2048);
        assert_eq!(
            waiting().as_deref(),
            Some("the response (status 200, text/event-stream, 2.0 KiB so far)")
        );
        running.end(&json!(1), &exchange);
        assert_eq!(waiting(), None);
    }

    #[test]
    fn ids_of_different_types_are_different_and_closing_stops_all() {
        let (running, closed) = (ExchangeTable::default(), CancellationToken::new());
        let number = running.begin(&json!(1), &closed);
        let text = running.begin(&json!("1"), &closed);
        running.cancel(&json!("1"));
        assert!(text.stop.is_cancelled() && !number.stop.is_cancelled());
        closed.cancel();
        assert!(number.stop.is_cancelled());
    }
}
