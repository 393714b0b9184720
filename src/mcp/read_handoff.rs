//! Handing the reading side of a connection to a benchmark run and back.
//!
//! A session reads its wire by itself. While a run does, the session lets go of the wire and takes
//! what comes from here.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, watch};

use super::call_template::FIRST_ID;

/// How many messages may wait for the session before a run reads no further.
const QUEUE_LIMIT: usize = 1_000;

/// What a session and a run share.
#[derive(Debug)]
pub struct ReadHandoff<M> {
    is_taken: AtomicBool,
    running: watch::Sender<bool>,
    messages: Mutex<VecDeque<M>>,
    message_added: Notify,
    message_removed: Notify,
    next_id: AtomicI64,
}

impl<M> Default for ReadHandoff<M> {
    fn default() -> Self {
        Self {
            is_taken: AtomicBool::new(false),
            running: watch::Sender::new(false),
            messages: Mutex::default(),
            message_added: Notify::new(),
            message_removed: Notify::new(),
            next_id: AtomicI64::new(FIRST_ID),
        }
    }
}

impl<M> ReadHandoff<M> {
    /// The right to run, which only one can have at a time.
    pub fn try_acquire(self: &Arc<Self>) -> Option<SessionPermit<M>> {
        let free = !self.is_taken.swap(true, Ordering::AcqRel);
        free.then(|| SessionPermit { handoff: Arc::clone(self) })
    }

    /// Says whether a run reads the wire, and wakes when that changes.
    pub fn running(&self) -> watch::Receiver<bool> {
        self.running.subscribe()
    }

    pub fn has_issued(&self, id: i64) -> bool {
        (FIRST_ID..self.next_id.load(Ordering::Relaxed)).contains(&id)
    }

    pub fn push(&self, message: M) {
        self.lock().push_back(message);
        self.message_added.notify_one();
    }

    /// Takes the oldest message that waits for the session.
    pub fn pop(&self) -> Option<M> {
        let message = self.lock().pop_front();
        if message.is_some() {
            self.message_removed.notify_one();
        }
        message
    }

    /// Waits until there may be a message.
    pub async fn wait_for_message(&self) {
        self.message_added.notified().await;
    }

    /// Waits until the session has taken enough for more to be read.
    pub async fn wait_for_room(&self) {
        while self.lock().len() >= QUEUE_LIMIT {
            self.message_removed.notified().await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<M>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to run calls over a connection; one holder at a time.
#[derive(Debug)]
pub struct SessionPermit<M> {
    handoff: Arc<ReadHandoff<M>>,
}

impl<M> SessionPermit<M> {
    /// From now on until this is dropped, a run reads the wire.
    pub fn begin(&mut self) -> RunningGuard<'_, M> {
        self.handoff.running.send_replace(true);
        RunningGuard {
            next_id: self.handoff.next_id.load(Ordering::Relaxed),
            handoff: &self.handoff,
        }
    }
}

impl<M> Drop for SessionPermit<M> {
    fn drop(&mut self) {
        self.handoff.is_taken.store(false, Ordering::Release);
    }
}

/// A run that reads the wire.
#[derive(Debug)]
pub struct RunningGuard<'a, M> {
    handoff: &'a ReadHandoff<M>,
    pub next_id: i64,
}

impl<M> Drop for RunningGuard<'_, M> {
    fn drop(&mut self) {
        self.handoff.next_id.fetch_max(self.next_id, Ordering::Relaxed);
        self.handoff.running.send_replace(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_run_at_a_time_and_the_ids_go_on() {
        let handoff = Arc::new(ReadHandoff::<u32>::default());
        let mut watch = handoff.running();
        let mut permit = handoff.try_acquire().unwrap();
        assert!(handoff.try_acquire().is_none());
        let mut running = permit.begin();
        assert!(*watch.borrow_and_update());
        running.next_id += 5;
        drop(running);
        assert!(!*watch.borrow_and_update());
        assert!(
            handoff.has_issued(FIRST_ID + 4)
                && !handoff.has_issued(FIRST_ID + 5)
                && !handoff.has_issued(4)
        );
        assert_eq!(permit.begin().next_id, FIRST_ID + 5);
        drop(permit);
        assert!(handoff.try_acquire().is_some());
    }

    #[tokio::test]
    async fn a_run_waits_for_a_session_that_falls_behind() {
        let handoff = ReadHandoff::default();
        for number in 0..QUEUE_LIMIT {
            handoff.push(number);
        }
        let mut room = std::pin::pin!(handoff.wait_for_room());
        assert!(futures_util::poll!(room.as_mut()).is_pending());
        handoff.wait_for_message().await;
        assert_eq!(handoff.pop(), Some(0));
        room.await;
    }
}
