//! The way round a run of calls.
//!
//! Owns: who reads a wire, the session or a run; and what a run read that is for the SDK, until the
//! session hands it over. Never does: read.
//!
//! A session reads its wire by itself. While a run does, the session lets go of the wire and takes
//! what comes from here.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, watch};

use super::request::FIRST_ID;

/// How many messages may wait for the session before a run reads no further.
const WAITING: usize = 1_000;

/// What a session and a run share.
#[derive(Debug)]
pub struct Detour<M> {
    taken: AtomicBool,
    running: watch::Sender<bool>,
    messages: Mutex<VecDeque<M>>,
    came: Notify,
    left: Notify,
    next_id: AtomicI64,
}

impl<M> Default for Detour<M> {
    fn default() -> Self {
        Self {
            taken: AtomicBool::new(false),
            running: watch::Sender::new(false),
            messages: Mutex::default(),
            came: Notify::new(),
            left: Notify::new(),
            next_id: AtomicI64::new(FIRST_ID),
        }
    }
}

impl<M> Detour<M> {
    /// The right to run, which only one can have at a time.
    pub fn seat(self: &Arc<Self>) -> Option<Seat<M>> {
        let free = !self.taken.swap(true, Ordering::AcqRel);
        free.then(|| Seat { detour: Arc::clone(self) })
    }

    /// Says whether a run reads the wire, and wakes when that changes.
    pub fn running(&self) -> watch::Receiver<bool> {
        self.running.subscribe()
    }

    /// Whether a request of some run had this id.
    pub fn knows(&self, id: i64) -> bool {
        (FIRST_ID..self.next_id.load(Ordering::Relaxed)).contains(&id)
    }

    /// Puts down a message for the session.
    pub fn put(&self, message: M) {
        self.lock().push_back(message);
        self.came.notify_one();
    }

    /// Takes the next message.
    pub fn take(&self) -> Option<M> {
        let message = self.lock().pop_front();
        if message.is_some() {
            self.left.notify_one();
        }
        message
    }

    /// Waits until there may be a message.
    pub async fn came(&self) {
        self.came.notified().await;
    }

    /// Waits until the session has taken enough for more to be read.
    pub async fn room(&self) {
        while self.lock().len() >= WAITING {
            self.left.notified().await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<M>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to run.
#[derive(Debug)]
pub struct Seat<M> {
    detour: Arc<Detour<M>>,
}

impl<M> Seat<M> {
    /// From now on until this is dropped, a run reads the wire.
    pub fn begin(&mut self) -> Running<'_, M> {
        self.detour.running.send_replace(true);
        Running { next_id: self.detour.next_id.load(Ordering::Relaxed), detour: &self.detour }
    }
}

impl<M> Drop for Seat<M> {
    fn drop(&mut self) {
        self.detour.taken.store(false, Ordering::Release);
    }
}

/// A run that reads the wire.
#[derive(Debug)]
pub struct Running<'a, M> {
    detour: &'a Detour<M>,
    /// The next id that no request had.
    pub next_id: i64,
}

impl<M> Drop for Running<'_, M> {
    fn drop(&mut self) {
        self.detour.next_id.fetch_max(self.next_id, Ordering::Relaxed);
        self.detour.running.send_replace(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_run_at_a_time_and_the_ids_go_on() {
        let detour = Arc::new(Detour::<u32>::default());
        let mut watch = detour.running();
        let mut seat = detour.seat().unwrap();
        assert!(detour.seat().is_none());
        let mut running = seat.begin();
        assert!(*watch.borrow_and_update());
        running.next_id += 5;
        drop(running);
        assert!(!*watch.borrow_and_update());
        assert!(detour.knows(FIRST_ID + 4) && !detour.knows(FIRST_ID + 5) && !detour.knows(4));
        assert_eq!(seat.begin().next_id, FIRST_ID + 5);
        drop(seat);
        assert!(detour.seat().is_some());
    }

    #[tokio::test]
    async fn a_run_waits_for_a_session_that_falls_behind() {
        let detour = Detour::default();
        for number in 0..WAITING {
            detour.put(number);
        }
        let mut room = std::pin::pin!(detour.room());
        assert!(futures_util::poll!(room.as_mut()).is_pending());
        detour.came().await;
        assert_eq!(detour.take(), Some(0));
        room.await;
    }
}
