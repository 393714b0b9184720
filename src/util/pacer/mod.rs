//! Waiting until a moment, to within microseconds.
//!
//! Owns: [`Pacer`], for loops that must act at planned moments. Timers of the runtime have a
//! resolution of milliseconds, longer than many calls take. Never does: plan the moments.

#[cfg(target_os = "linux")]
mod timer;

use std::time::{Duration, Instant};

use super::clock::{Clock as _, SystemClock};

/// How far from the moment the runtime's own timers may be trusted.
const COARSE: Duration = Duration::from_millis(2);

/// Waits for moments, one at a time. It needs a runtime with input and output switched on, and
/// keeps one descriptor for itself from the first wait on.
#[derive(Debug, Default)]
pub struct Pacer {
    #[cfg(target_os = "linux")]
    timer: Option<timer::Timer>,
    /// Whether the system was asked for a timer; it is not asked again.
    #[cfg(target_os = "linux")]
    is_asked: bool,
}

impl Pacer {
    /// One that has not waited yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns at this moment or right after it, never before; at once when it has passed. May be
    /// dropped at any time and asked again, for the same moment or for another one.
    ///
    /// On Linux nothing runs meanwhile. Elsewhere, and when the system has no timer left, the last
    /// two milliseconds are spent asking for the time, with other tasks in between.
    pub async fn until(&mut self, moment: Instant) {
        loop {
            let left = moment.saturating_duration_since(SystemClock.now());
            if left.is_zero() {
                return;
            }
            #[cfg(target_os = "linux")]
            if !std::mem::replace(&mut self.is_asked, true) {
                self.timer = timer::Timer::new().ok();
            }
            #[cfg(target_os = "linux")]
            if let Some(timer) = &mut self.timer
                && timer.wait(moment, left).await.is_ok()
            {
                continue;
            }
            sleep_coarse(left).await;
        }
    }
}

/// Waits for most of the time, or lets others work for a moment.
async fn sleep_coarse(left: Duration) {
    match left.checked_sub(COARSE) {
        Some(most) if !most.is_zero() => tokio::time::sleep(most).await,
        _ => tokio::task::yield_now().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_moment_is_left_early() {
        let mut pacer = Pacer::new();
        for micros in [0, 1, 30, 700, 2_500] {
            let moment = SystemClock.now() + Duration::from_micros(micros);
            pacer.until(moment).await;
            assert!(SystemClock.now() >= moment, "{micros} µs");
        }
    }

    #[tokio::test]
    async fn a_wait_that_was_dropped_is_forgotten() {
        let mut pacer = Pacer::new();
        let now = SystemClock.now();
        let far = now + Duration::from_hours(1);
        let near = now + Duration::from_millis(3);
        for _ in 0..2 {
            tokio::select! {
                biased;
                () = pacer.until(far) => panic!("an hour did not pass"),
                () = tokio::task::yield_now() => {}
            }
        }
        pacer.until(near).await;
        assert!(SystemClock.now() >= near);
    }

    #[tokio::test]
    async fn without_a_timer_of_the_system_the_moment_is_met_too() {
        let moment = SystemClock.now() + Duration::from_millis(4);
        while SystemClock.now() < moment {
            sleep_coarse(moment.saturating_duration_since(SystemClock.now())).await;
        }
        assert!(SystemClock.now() >= moment);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn the_system_is_asked_for_a_timer_at_the_first_wait() {
        let mut pacer = Pacer::new();
        let far = SystemClock.now() + Duration::from_hours(1);
        tokio::select! {
            biased;
            () = pacer.until(far) => panic!("an hour did not pass"),
            () = tokio::task::yield_now() => {}
        }
        assert!(pacer.timer.is_some() && pacer.is_asked);
    }
}
