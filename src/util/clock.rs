//! The clock trait.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Wall time and monotonic time.
pub trait Clock: Send + Sync {
    fn now(&self) -> Instant;
    fn unix(&self) -> Duration;
}

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

/// A clock whose wall time never runs backwards, for records that are ordered by it: when the system's
/// is set back, it goes on from where it was, until the system's has caught up.
#[derive(Debug, Default)]
pub struct SteadyClock<C> {
    clock: C,
    /// The latest wall time that was returned, and when.
    last: Mutex<Option<(Instant, Duration)>>,
}

impl<C: Clock> Clock for SteadyClock<C> {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn unix(&self) -> Duration {
        let (now, mut unix) = (self.clock.now(), self.clock.unix());
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, before)) = *last
            && unix < before
        {
            unix = before + now.saturating_duration_since(at);
        }
        *last = Some((now, unix));
        unix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clocks that tell what a test says, in seconds.
    struct SetClock {
        start: Instant,
        times: Mutex<(u64, u64)>,
    }

    impl Clock for SetClock {
        fn now(&self) -> Instant {
            self.start + Duration::from_secs(self.times.lock().unwrap().0)
        }

        fn unix(&self) -> Duration {
            Duration::from_secs(self.times.lock().unwrap().1)
        }
    }

    #[test]
    fn wall_time_that_is_set_back_goes_on_and_is_believed_again_when_it_has_caught_up() {
        let times = Mutex::new((0, 0));
        let clock = SetClock { start: SystemClock.now(), times };
        let clock = SteadyClock { clock, last: Mutex::default() };
        // The monotonic clock, the system's wall time, and what is told.
        for (now, unix, steady) in [
            (0, 1000, 1000),
            (10, 1010, 1010),
            (20, 520, 1020),
            (30, 530, 1030),
            (40, 1029, 1040),
            (50, 1049, 1049),
            (60, 9999, 9999),
        ] {
            *clock.clock.times.lock().unwrap() = (now, unix);
            assert_eq!(clock.unix(), Duration::from_secs(steady), "at {now}");
        }
    }
}
