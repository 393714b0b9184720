//! The observed activity of one server: pings and log lines.
//!
//! Owns: how much of it is kept.

use std::collections::VecDeque;
use std::time::Duration;

use crate::util::text;

/// The most pings that are kept.
const PINGS: usize = 120;
/// The most log lines that are kept.
const LINES: usize = 500;
/// The longest of them, in characters.
const MAX_LINE_CHARS: usize = 1_000;

/// What was seen of one server.
#[derive(Debug, Default)]
pub struct ServerActivity {
    /// How long its pings took, the newest last.
    pub pings: VecDeque<Duration>,
    /// What it logged: how grave it was, and what it said; the newest last.
    pub log: VecDeque<(String, String)>,
    /// The log level that was chosen for it.
    pub level: Option<&'static str>,
}

impl ServerActivity {
    /// This is how long the newest ping took; one that was told before counts once.
    pub(super) fn ping(&mut self, took: Option<Duration>) {
        let Some(took) = took.filter(|took| self.pings.back() != Some(took)) else { return };
        if self.pings.len() >= PINGS {
            self.pings.pop_front();
        }
        self.pings.push_back(took);
    }

    /// Takes in a log line; the oldest makes room for it.
    pub(super) fn logged(&mut self, level: &str, said: &str) {
        if self.log.len() >= LINES {
            self.log.pop_front();
        }
        self.log.push_back((level.to_owned(), text::shorten(said, MAX_LINE_CHARS).into_owned()));
    }

    /// The duration that `percent` of the pings did not exceed.
    pub fn ping_within(&self, percent: usize) -> Option<Duration> {
        let mut sorted: Vec<Duration> = self.pings.iter().copied().collect();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100);
        sorted.get(rank.saturating_sub(1)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pings_are_counted_once_and_ranked() {
        let mut past = ServerActivity::default();
        assert_eq!(past.ping_within(50), None);
        for ms in [5, 5, 1, 9, 3] {
            past.ping(Some(Duration::from_millis(ms)));
        }
        past.ping(None);
        assert_eq!(past.pings.len(), 4);
        assert_eq!(past.ping_within(50), Some(Duration::from_millis(3)));
        assert_eq!(past.ping_within(95), Some(Duration::from_millis(9)));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut past = ServerActivity::default();
        for at in 0..2_000_u64 {
            past.ping(Some(Duration::from_micros(at)));
            past.logged("info", &"x".repeat(10_000));
        }
        assert_eq!((past.pings.len(), past.log.len()), (PINGS, LINES));
        assert!(past.log.iter().all(|(_, said)| said.len() < 1_100));
    }
}
