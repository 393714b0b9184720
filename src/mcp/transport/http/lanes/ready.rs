//! The queue of lanes that are ready to make progress.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

use futures_util::task::AtomicWaker;

/// The lanes that were woken, in order.
pub(super) struct ReadyLanes {
    queue: Arc<ReadyQueue>,
    wakers: Vec<Waker>,
    lane_wakers: Vec<Arc<LaneWaker>>,
}

#[derive(Default)]
struct ReadyQueue {
    lanes: Mutex<VecDeque<usize>>,
    consumer: AtomicWaker,
}

struct LaneWaker {
    lane: usize,
    is_queued: AtomicBool,
    queue: Arc<ReadyQueue>,
}

impl ReadyLanes {
    /// A queue of `lanes` lanes, all of them ready.
    pub(super) fn new(lanes: usize) -> Self {
        let woken = Arc::new(ReadyQueue::default());
        let bell = |lane| {
            Arc::new(LaneWaker {
                lane,
                is_queued: AtomicBool::new(false),
                queue: Arc::clone(&woken),
            })
        };
        let bells: Vec<_> = (0..lanes).map(bell).collect();
        let wakers = bells.iter().map(|bell| Waker::from(Arc::clone(bell))).collect();
        bells.iter().for_each(Wake::wake_by_ref);
        Self { queue: woken, wakers, lane_wakers: bells }
    }

    pub(super) fn waker(&self, lane: usize) -> Option<&Waker> {
        self.wakers.get(lane)
    }

    pub(super) fn enqueue(&self, lane: usize) {
        if let Some(bell) = self.lane_wakers.get(lane) {
            bell.wake_by_ref();
        }
    }

    /// The next lane that was woken; without one, `waker` is woken when there is.
    pub(super) fn next(&self, waker: &Waker) -> Option<usize> {
        let lane = self.queue.take().or_else(|| {
            self.queue.consumer.register(waker);
            // One may have come before the waker was registered.
            self.queue.take()
        })?;
        if let Some(bell) = self.lane_wakers.get(lane) {
            bell.is_queued.store(false, Ordering::Release);
        }
        Some(lane)
    }
}

impl ReadyQueue {
    fn lanes(&self) -> MutexGuard<'_, VecDeque<usize>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<usize> {
        self.lanes().pop_front()
    }
}

impl Wake for LaneWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_queued.swap(true, Ordering::AcqRel) {
            self.queue.lanes().push_back(self.lane);
            self.queue.consumer.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_stands_in_the_row_once_and_again_after_its_turn() {
        let ready = ReadyLanes::new(2);
        let waker = Waker::noop();
        assert_eq!((ready.next(waker), ready.next(waker)), (Some(0), Some(1)));
        assert_eq!(ready.next(waker), None);
        ready.waker(1).unwrap().wake_by_ref();
        ready.enqueue(1);
        assert_eq!((ready.next(waker), ready.next(waker)), (Some(1), None));
        ready.enqueue(0);
        assert_eq!(ready.next(waker), Some(0));
    }

    #[test]
    fn a_registered_waker_is_woken() {
        struct Flag(AtomicBool);
        impl Wake for Flag {
            fn wake(self: Arc<Self>) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let (ready, flag) = (ReadyLanes::new(1), Arc::new(Flag(AtomicBool::new(false))));
        let waker = Waker::from(Arc::clone(&flag));
        assert_eq!(ready.next(&waker), Some(0));
        assert_eq!(ready.next(&waker), None);
        assert!(!flag.0.load(Ordering::Relaxed));
        ready.enqueue(0);
        assert!(flag.0.load(Ordering::Relaxed));
    }
}
