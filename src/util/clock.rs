//! The port to time.

use std::time::{Duration, Instant};

/// Wall time and monotonic time.
pub trait Clock: Send + Sync {
    /// The monotonic clock, for durations.
    fn now(&self) -> Instant;
    /// Wall time since the Unix epoch, for records.
    fn unix(&self) -> Duration;
}

/// The clocks of the system.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clocks")]
impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn unix(&self) -> Duration {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
    }
}
