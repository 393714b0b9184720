//! Limiting how often a server's list is fetched.

use std::time::Duration;

use tokio::time::Instant;

/// After two lists in a row, at most one in this time.
const INTERVAL: Duration = Duration::from_secs(1);

/// Lets two through at once and then one a second: a change that is announced is looked at without
/// delay, and a storm of announcements costs one list a second.
#[derive(Debug, Default)]
pub struct ListThrottle {
    last: Option<Instant>,
    /// When the last but one was let through.
    before: Option<Instant>,
}

impl ListThrottle {
    /// Waits until it may be asked. If dropped while waiting, it does not count.
    pub async fn wait(&mut self) {
        if let Some(before) = self.before {
            tokio::time::sleep_until(before + INTERVAL).await;
        }
        self.before = self.last.replace(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn two_come_at_once_and_a_storm_is_slowed_down() {
        let mut throttle = ListThrottle::default();
        let start = Instant::now();
        throttle.wait().await;
        throttle.wait().await;
        assert_eq!(start.elapsed(), Duration::ZERO);
        for _ in 0..10 {
            throttle.wait().await;
        }
        assert!(start.elapsed() >= 5 * INTERVAL, "{:?}", start.elapsed());
    }
}
