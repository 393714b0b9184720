//! A bound on the events that a child process may cause.

use crate::model::{EventSink, HostEvent};

/// Maximum number of events of one call that viewers see; the rest are counted and dropped.
pub(super) const MAX_EVENTS: u32 = 10_000;

/// Hands the events of one call to its viewers, up to [`MAX_EVENTS`].
#[derive(Debug)]
pub(super) struct LimitedEvents {
    sink: EventSink,
    seen: u32,
}

impl LimitedEvents {
    /// A sink for the events of one call, which go to `sink`.
    pub(super) fn new(sink: EventSink) -> Self {
        Self { sink, seen: 0 }
    }

    /// Emits an event, unless there were too many before it.
    pub(super) fn emit(&mut self, event: HostEvent) {
        self.seen = self.seen.saturating_add(1);
        if self.seen <= MAX_EVENTS {
            self.sink.emit(event);
        }
    }

    /// Where the events go, for those that do not count.
    pub(super) fn sink(&self) -> &EventSink {
        &self.sink
    }

    pub(super) fn dropped(&self) -> u32 {
        self.seen.saturating_sub(MAX_EVENTS)
    }
}
