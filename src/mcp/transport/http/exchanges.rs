//! The HTTP requests in flight, and the queue from all their readers to the one receiver.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use crate::mcp::wire::{Arrival, MESSAGE_LIMIT};
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

const MAX_QUEUED: usize = 256;
/// Bytes of messages and their parts that may wait to be received, in KiB: the largest message.
const MAX_QUEUED_KIB: usize = 2 * MESSAGE_LIMIT / 1024;
/// Messages above [`LARGE_MESSAGE`] that may be gathered at the same time.
const MAX_LARGE_MESSAGES: usize = 2;
const LARGE_MESSAGE: usize = 1024 * 1024;

struct QueuedArrival {
    arrival: Arrival,
    _space: Option<OwnedSemaphorePermit>,
}

/// The sending end; pushing waits until there is room.
#[derive(Clone)]
pub(super) struct ArrivalSender {
    sender: mpsc::Sender<QueuedArrival>,
    space: Arc<Semaphore>,
    gathering: Arc<Semaphore>,
}

pub(super) struct ArrivalReceiver(mpsc::Receiver<QueuedArrival>);

pub(super) fn queue() -> (ArrivalSender, ArrivalReceiver) {
    let (sender, receiver) = mpsc::channel(MAX_QUEUED);
    let outbox = ArrivalSender {
        sender,
        space: Arc::new(Semaphore::new(MAX_QUEUED_KIB)),
        gathering: Arc::new(Semaphore::new(MAX_LARGE_MESSAGES)),
    };
    (outbox, ArrivalReceiver(receiver))
}

fn permits(arrival: &Arrival) -> u32 {
    let Arrival::Message { incoming, .. } = arrival else { return 0 };
    // Its text is held twice: as it came, and in its parts.
    u32::try_from((incoming.bytes.len() / 512).min(MAX_QUEUED_KIB)).unwrap_or(u32::MAX)
}

impl ArrivalSender {
    /// Hands one arrival over; waits while the queue is full. A receiver that is gone is not
    /// an error: the wire is being dropped.
    pub(super) async fn push(&self, arrival: Arrival) {
        let space = match permits(&arrival) {
            0 => None,
            some => Arc::clone(&self.space).acquire_many_owned(some).await.ok(),
        };
        self.sender.send(QueuedArrival { arrival, _space: space }).await.ok();
    }

    pub(super) fn try_warn(&self, warning: String) {
        let waiting = QueuedArrival { arrival: Arrival::Warning(warning), _space: None };
        self.sender.try_send(waiting).ok();
    }

    pub(super) fn large_message_permit(&self) -> LargeMessagePermit {
        LargeMessagePermit { gathering: Arc::clone(&self.gathering), held: None }
    }
}

/// One reader's share: asked before its buffer grows, given back when the buffer was handed over.
pub(super) struct LargeMessagePermit {
    gathering: Arc<Semaphore>,
    held: Option<OwnedSemaphorePermit>,
}

impl LargeMessagePermit {
    /// To be called before the buffer grows to `bytes`; waits for a permit when that is large.
    pub(super) async fn reserve(&mut self, bytes: usize) {
        if bytes <= LARGE_MESSAGE {
            self.held = None;
        } else if self.held.is_none() {
            self.held = Arc::clone(&self.gathering).acquire_owned().await.ok();
        }
    }
}

impl ArrivalReceiver {
    /// The oldest arrival; `None` when every sender is gone.
    pub(super) async fn next(&mut self) -> Option<Arrival> {
        Some(self.0.recv().await?.arrival)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures_util::FutureExt as _;
    use serde_json::json;

    use super::*;
    use crate::mcp::message::Incoming;

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

    fn message(size: usize) -> Arrival {
        let incoming = Incoming::read(Bytes::from(vec![b'x'; size]));
        Arrival::Message { incoming, stream_of: None }
    }

    #[tokio::test]
    async fn a_third_large_message_waits_until_one_was_received() {
        let (outbox, mut inbox) = queue();
        outbox.push(message(MESSAGE_LIMIT / 2)).await;
        outbox.push(message(MESSAGE_LIMIT / 2)).await;
        let mut third = Box::pin(outbox.push(message(MESSAGE_LIMIT / 2)));
        assert!(third.as_mut().now_or_never().is_none(), "there was room for a third");
        assert!(matches!(inbox.next().await, Some(Arrival::Message { .. })));
        assert!(third.as_mut().now_or_never().is_some(), "the room was not given back");
    }

    #[tokio::test]
    async fn small_arrivals_are_bounded_in_number() {
        let (outbox, _inbox) = queue();
        // Unconstrained: the runtime's own fairness must not look like a full queue.
        let push = || tokio::task::unconstrained(outbox.push(message(1))).now_or_never();
        for n in 0..MAX_QUEUED {
            assert!(push().is_some(), "arrival {n}");
        }
        assert!(push().is_none(), "there was room for one more");
    }

    #[tokio::test]
    async fn few_readers_gather_much_at_once() {
        let (outbox, _inbox) = queue();
        let mut shares: Vec<_> =
            (0..=MAX_LARGE_MESSAGES).map(|_| outbox.large_message_permit()).collect();
        let mut last = shares.pop().unwrap();
        for share in &mut shares {
            assert!(share.reserve(LARGE_MESSAGE + 1).now_or_never().is_some());
        }
        assert!(last.reserve(LARGE_MESSAGE).now_or_never().is_some());
        assert!(last.reserve(LARGE_MESSAGE + 1).now_or_never().is_none());
        shares[0].reserve(0).await;
        assert!(last.reserve(LARGE_MESSAGE + 1).now_or_never().is_some());
    }
}
