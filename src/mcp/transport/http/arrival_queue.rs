//! The queue from all readers of an HTTP connection to its one receiver.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::mcp::wire::{Arrival, MESSAGE_LIMIT};

const MAX_QUEUED: usize = 256;
/// Bytes of messages that may wait to be received, in KiB: two of the largest.
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
    u32::try_from((incoming.bytes.len() / 1024).min(MAX_QUEUED_KIB)).unwrap_or(u32::MAX)
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

    use super::*;
    use crate::mcp::message::Incoming;

    fn message(size: usize) -> Arrival {
        let incoming = Incoming::read(Bytes::from(vec![b'x'; size]));
        Arrival::Message { incoming, stream_of: None }
    }

    #[tokio::test]
    async fn a_third_large_message_waits_until_one_was_received() {
        let (outbox, mut inbox) = queue();
        outbox.push(message(MESSAGE_LIMIT)).await;
        outbox.push(message(MESSAGE_LIMIT)).await;
        let mut third = Box::pin(outbox.push(message(MESSAGE_LIMIT)));
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
