//! Backoff between attempts to renew a subscription.

use std::time::Duration;

use tokio::time::Instant;

/// The wait before the first new attempt; doubled for each further one.
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);
const TRIES: u32 = 10;
/// A subscription that held for so long has proved that the server is well.
const STEADY: Duration = Duration::from_mins(1);

/// Waits that double, and end.
#[derive(Debug, Default)]
pub struct ResubscribeBackoff {
    tries: u32,
    acknowledged_at: Option<Instant>,
}

impl ResubscribeBackoff {
    pub fn mark_acknowledged(&mut self, at: Instant) {
        self.acknowledged_at = Some(at);
    }

    pub fn was_acknowledged(&self) -> bool {
        self.acknowledged_at.is_some()
    }

    /// It ended: how long to wait before the next try; `None` after the last retry. When a server
    /// ends a subscription gracefully for the first time, it is retried at once.
    pub fn next_delay(&mut self, gracefully: bool) -> Option<Duration> {
        if self.acknowledged_at.is_some_and(|since| since.elapsed() >= STEADY) {
            self.tries = 0;
        }
        if self.tries >= TRIES {
            return None;
        }
        let wait = match (self.tries, gracefully) {
            (0, true) => Duration::ZERO,
            (tries, _) => (FIRST * 2_u32.pow(tries.min(10))).min(LONGEST),
        };
        self.tries += 1;
        Some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_double_to_a_limit_and_end() {
        let mut backoff = ResubscribeBackoff::default();
        let waits: Vec<f64> = std::iter::from_fn(|| backoff.next_delay(false))
            .map(|wait| wait.as_secs_f64())
            .collect();
        assert_eq!(waits, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 30.0]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_held_for_long_is_begun_again_without_end() {
        let mut backoff = ResubscribeBackoff::default();
        for _ in 0..100 {
            assert_eq!(backoff.next_delay(true), Some(Duration::ZERO));
            backoff.mark_acknowledged(Instant::now());
            tokio::time::advance(STEADY).await;
        }
    }
}
