//! Exports of a run in the formats of other programs.
//!
//! Owns: text. Each export is a pure function of the report; who asked for it writes the file.

pub mod csv;
pub mod hgrm;
pub mod hyperfine;
pub mod locust;
pub mod markdown;
pub mod svg;

use std::time::Duration;

/// The percentiles that tables have, with their names and shares.
const PERCENTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)];

#[expect(clippy::cast_precision_loss, reason = "durations are below 2^52 nanoseconds")]
fn millis(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e6
}
