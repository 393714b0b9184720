//! The promised JSON of every command: one type for each shape, written with `Serialize`.
//!
//! Owns: the keys, their order and their meaning. [`schema`] derives the JSON Schemas from the same
//! types, so the two cannot differ. Fields may be added and never removed. Pure: no input, no
//! output, no clock, no words for people.

pub mod audit;
pub mod auth;
pub mod call;
pub mod config;
pub mod error;
pub mod history;
pub mod list;
pub mod offerings;
pub mod pins;
pub mod schema;
pub mod server;
pub mod stats;
pub mod stats_comparison;
pub mod tool;
pub mod trust;

use std::time::Duration;

/// A duration in milliseconds, to the microsecond.
pub(in crate::cli) fn millis(duration: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "2^53 microseconds are 285 years")]
    let millis = duration.as_micros() as f64 / 1000.0;
    millis
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_floats_in_milliseconds() {
        let text = |duration| serde_json::to_string(&millis(duration)).unwrap();
        assert_eq!(text(Duration::from_micros(1500)), "1.5");
        assert_eq!(text(Duration::from_secs(5)), "5000.0");
    }
}
