//! How soon the console may draw again.

use std::time::{Duration, Instant};

/// The time between two frames while events never end.
const INTERVAL: Duration = Duration::from_millis(33);
/// How far frames may run ahead of that rate: two more than one at once.
const BURST: Duration = INTERVAL.saturating_mul(2);

#[derive(Debug, Clone, Copy)]
pub struct FramePacer {
    /// When the frames drawn until now would all have had their interval.
    paid_until: Instant,
}

impl FramePacer {
    /// Nothing was drawn before `now`.
    pub fn new(now: Instant) -> Self {
        Self { paid_until: now }
    }

    /// How long the next frame has to wait; zero when it may be drawn at once.
    pub fn wait(&self, now: Instant) -> Duration {
        self.paid_until.saturating_duration_since(now).saturating_sub(BURST)
    }

    /// A frame was drawn. Frames that did not wait because the user pressed a key delay later ones by
    /// one interval at most.
    pub fn drawn(&mut self, now: Instant) {
        self.paid_until = (self.paid_until.max(now) + INTERVAL).min(now + BURST + INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::util::clock::{Clock as _, SystemClock};

    /// When frames are drawn while there is always something new, in milliseconds after `start`.
    fn flooded(pacer: &mut FramePacer, start: Instant, until: u64) -> Vec<u64> {
        let at = |ms| start + Duration::from_millis(ms);
        let mut drawn = Vec::new();
        for ms in 0..until {
            while pacer.wait(at(ms)).is_zero() {
                pacer.drawn(at(ms));
                drawn.push(ms);
            }
        }
        drawn
    }

    #[test]
    fn after_a_rest_three_frames_follow_at_once_and_a_flood_gets_thirty_a_second() {
        let start = SystemClock.now();
        let mut pacer = FramePacer::new(start);
        assert_eq!(flooded(&mut pacer, start, 140), [0, 0, 0, 33, 66, 99, 132]);
        let later = start + Duration::from_secs(2);
        assert_eq!(
            flooded(&mut pacer, later, 40),
            [0, 0, 0, 33],
            "rest saves up no more than that"
        );
    }

    #[test]
    fn frames_for_keys_hold_up_the_next_one_by_an_interval_at_most() {
        let now = SystemClock.now();
        let mut pacer = FramePacer::new(now);
        for _key in 0..1_000 {
            pacer.drawn(now);
        }
        assert_eq!(pacer.wait(now), INTERVAL);
    }
}
