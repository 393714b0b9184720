//! Durations and sizes as text and back; counts and durations as floating-point numbers.

use std::time::Duration;

/// Reads `30`, `0.5` (seconds), `500ms`, `30s`, `2m`, `1h`, `7d`.
///
/// Returns `None` for anything else, negative values, and what does not fit.
pub fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 = number.parse().ok()?;
    let seconds = match unit.trim() {
        "" | "s" | "sec" => number,
        "ns" => number / 1e9,
        "us" | "µs" => number / 1e6,
        "ms" => number / 1e3,
        "m" | "min" => number * 60.0,
        "h" => number * 3600.0,
        "d" => number * 86_400.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

/// Reads `1024`, `64KiB`, `16MiB`, `1GiB`, and the decimal `kB`, `MB`, `GB`.
pub fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: u64 = number.parse().ok()?;
    let factor: u64 = match unit.trim() {
        "" | "B" => 1,
        "KiB" | "K" | "k" => 1 << 10,
        "MiB" | "M" => 1 << 20,
        "GiB" | "G" => 1 << 30,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        _ => return None,
    };
    number.checked_mul(factor)
}

/// Writes a duration with at most three significant digits: `850 µs`, `1.25 ms`, `30 s`.
pub fn show_duration(value: Duration) -> String {
    let seconds = value.as_secs_f64();
    // What would be rounded to 1000 of a unit is 1 of the next.
    let (number, unit) = if seconds < 999.5e-9 && !value.is_zero() {
        (seconds * 1e9, "ns")
    } else if seconds < 999.5e-6 {
        (seconds * 1e6, "µs")
    } else if seconds < 999.5e-3 {
        (seconds * 1e3, "ms")
    } else {
        (seconds, "s")
    };
    let decimals = if number < 10.0 { 2 } else { usize::from(number < 100.0) };
    let number = format!("{number:.decimals$}");
    let short = match number.split_once('.') {
        Some((whole, rest)) if rest.bytes().all(|digit| digit == b'0') => whole,
        _ => &number,
    };
    format!("{short} {unit}")
}

/// Writes a span as a clock on the wall tells it, in its largest unit: `2 days`, `3 h`, `29 min`, `30 s`.
pub fn show_span(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        172_800.. => format!("{} days", seconds / 86_400),
        7_200.. => format!("{} h", seconds / 3_600),
        120.. => format!("{} min", seconds / 60),
        1.. => format!("{seconds} s"),
        0 => "under 1 s".to_owned(),
    }
}

pub fn show_count<N: TryInto<u64>>(count: N) -> String {
    let digits = count.try_into().unwrap_or(u64::MAX).to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// Writes a size in binary units: `512 B`, `8.0 MiB`.
pub fn show_size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["B", "KiB", "MiB", "GiB"];
    #[expect(clippy::cast_precision_loss, reason = "for people, to one decimal")]
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let decimals = usize::from(unit > 0);
    format!("{value:.decimals$} {}", UNITS[unit])
}

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
    fn durations_are_read_in_every_unit() {
        assert_eq!(duration("30"), Some(Duration::from_secs(30)));
        assert_eq!(duration("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(duration("1.5"), Some(Duration::from_millis(1500)));
        assert_eq!(duration("2m"), Some(Duration::from_mins(2)));
        assert_eq!(duration("7d"), Some(Duration::from_hours(168)));
    }

    #[test]
    fn nonsense_is_not_a_duration() {
        for text in ["", "-1", "ten", "1e999s", "1.2.3", "5 parsecs", "99999999999999999999999d"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_are_read_and_written() {
        assert_eq!(size("16MiB"), Some(16 << 20));
        assert_eq!(size("99999999999999999999"), None);
        assert_eq!(show_size(8 << 20), "8.0 MiB");
        assert_eq!(show_size(512), "512 B");
    }

    #[test]
    fn durations_are_written_with_three_digits() {
        assert_eq!(show_duration(Duration::ZERO), "0 µs");
        assert_eq!(show_duration(Duration::from_nanos(1)), "1 ns");
        assert_eq!(show_duration(Duration::from_micros(850)), "850 µs");
        assert_eq!(show_duration(Duration::from_micros(1250)), "1.25 ms");
        assert_eq!(show_duration(Duration::from_millis(12_340)), "12.3 s");
    }

    #[test]
    fn a_duration_that_is_rounded_up_to_the_next_unit_has_that_unit() {
        assert_eq!(show_duration(Duration::from_micros(999_700)), "1 s");
        assert_eq!(show_duration(Duration::from_micros(999_499)), "999 ms");
        assert_eq!(show_duration(Duration::from_nanos(999_500)), "1 ms");
        assert_eq!(show_duration(Duration::from_nanos(999_499)), "999 µs");
        assert_eq!(show_duration(Duration::from_nanos(999)), "999 ns");
    }

    #[test]
    fn durations_are_floats_in_milliseconds() {
        let text = |duration| serde_json::to_string(&millis(duration)).unwrap();
        assert_eq!(text(Duration::from_micros(1500)), "1.5");
        assert_eq!(text(Duration::from_secs(5)), "5000.0");
    }
}
