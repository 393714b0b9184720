//! Exports of a run in the formats of other programs.

pub mod csv;
pub mod html;
pub mod locust;
pub mod markdown;

use std::time::Duration;

use crate::util::number::nanos;

/// The percentiles that tables have, with their names and shares.
const PERCENTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)];

/// A duration in milliseconds, to the nanosecond.
fn millis(duration: Duration) -> f64 {
    nanos(duration) / 1e6
}
