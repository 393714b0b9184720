//! Counts and durations as floating-point numbers, for shares, rates and pictures.

use std::time::Duration;

/// A count as a float; exact up to 2^53.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
pub fn float(count: u64) -> f64 {
    count as f64
}

/// A length as a float; exact up to 2^53.
#[expect(clippy::cast_precision_loss, reason = "lengths are far below 2^53")]
pub fn float_len(length: usize) -> f64 {
    length as f64
}

/// A duration in milliseconds, to the microsecond; what is smaller is cut off.
#[expect(clippy::cast_precision_loss, reason = "2^53 microseconds are 285 years")]
pub fn millis(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1e3
}

/// A duration in nanoseconds; exact up to 104 days.
#[expect(clippy::cast_precision_loss, reason = "2^53 nanoseconds are 104 days")]
pub fn nanos(duration: Duration) -> f64 {
    duration.as_nanos() as f64
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
