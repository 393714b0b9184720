//! Formatting and parsing points in time.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};
use thiserror::Error;

use super::units;

/// Reads a point in time: `7d` ago, a date, a date with a time (local unless it says otherwise).
pub fn parse_since(text: &str) -> Result<Since, ParseSinceError> {
    if let Some(ago) = units::duration(text) {
        return Ok(Since::Ago(ago));
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(Since::At(time));
    }
    // A date alone is midnight.
    let local = text.parse::<civil::DateTime>().ok();
    match local.and_then(|time| time.to_zoned(TimeZone::system()).ok()) {
        Some(zoned) => Ok(Since::At(zoned.timestamp())),
        None => Err(ParseSinceError),
    }
}

/// A text that is not a point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("expected a time such as 30m, 7d, 2026-11-01 or 2026-11-01T12:00")]
pub struct ParseSinceError;

/// A point in time as a person says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    Ago(Duration),
    /// At this exact point in time.
    At(Timestamp),
}

impl Since {
    /// The time since the Unix epoch, which nothing is before; `now` is that of this moment.
    pub fn time(self, now: Duration) -> Duration {
        match self {
            Self::Ago(ago) => now.saturating_sub(ago),
            Self::At(time) => Duration::try_from(time.as_duration()).unwrap_or_default(),
        }
    }
}

/// The calendar day of a time since the Unix epoch, local: `2026-07-28`.
pub fn local_date(unix: Duration) -> String {
    local(unix.as_secs_f64(), "%Y-%m-%d")
}

/// A time for people: local, to the second, without the offset, which is the same in every row.
pub fn local_time(unix: f64) -> String {
    local(unix, "%Y-%m-%d %H:%M:%S")
}

/// A time for programs: RFC 3339 with the local offset, to the microsecond.
pub fn rfc3339(unix: f64) -> String {
    local(unix, "%Y-%m-%dT%H:%M:%S%.6f%:z")
}

fn local(unix: f64, format: &str) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "what does not fit is refused below")]
    let time = Timestamp::from_microsecond((unix * 1e6) as i64).ok();
    let local = time.map(|time| time.to_zoned(TimeZone::system()));
    local.map_or_else(String::new, |local| local.strftime(format).to_string())
}

/// The time of day for people: local, to the second; `at` is the time since the Unix epoch.
pub fn time_of_day(at: Duration) -> String {
    of_day(at, "%H:%M:%S")
}

pub fn minute_of_day(at: Duration) -> String {
    of_day(at, "%H:%M")
}

/// The same to the millisecond: `14:03:21.118`.
pub fn time_of_day_millis(at: Duration) -> String {
    of_day(at, "%H:%M:%S.%3f")
}

fn of_day(at: Duration, format: &str) -> String {
    let millis = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    let time = Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX);
    time.to_zoned(TimeZone::system()).strftime(format).to_string()
}

/// A time for names of files: UTC, to the second.
pub fn file_name_timestamp(unix: Duration) -> String {
    let second = i64::try_from(unix.as_secs()).unwrap_or(i64::MAX);
    let time = Timestamp::from_second(second).unwrap_or(Timestamp::MAX);
    time.strftime("%Y%m%dT%H%M%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_in_time_is_read_in_several_forms() {
        let now = Duration::from_secs(1_000_000);
        let unix = |text: &str| parse_since(text).unwrap().time(now).as_secs_f64();
        assert!((unix("1h") - 996_400.0).abs() < 1e-6);
        assert!((unix("1970-01-02T00:00:00Z") - 86_400.0).abs() < 1e-6);
        assert!((unix("1970-01-02T01:00:00+01:00") - 86_400.0).abs() < 1e-6);
        let local = TimeZone::system();
        let then = civil::date(2026, 11, 1).at(12, 30, 0, 0).to_zoned(local.clone()).unwrap();
        assert_eq!(parse_since("2026-11-01T12:30"), Ok(Since::At(then.timestamp())));
        let then = civil::date(2026, 11, 1).at(0, 0, 0, 0).to_zoned(local).unwrap();
        assert_eq!(parse_since("2026-11-01"), Ok(Since::At(then.timestamp())));
        for nonsense in ["yesterday", "", "2026-13-01", "-1h"] {
            assert!(parse_since(nonsense).is_err(), "{nonsense}");
        }
    }

    #[test]
    fn impossible_times_are_no_reason_to_fail() {
        assert_eq!(local_time(1e300), "");
        assert_eq!(rfc3339(f64::NAN).get(..4), Some("1970"));
    }

    #[test]
    fn a_time_of_day_is_written_to_the_millisecond_and_no_time_fails() {
        let at = Duration::from_millis(1_795_304_776_042);
        let (exact, short) = (time_of_day_millis(at), time_of_day(at));
        assert_eq!(exact, format!("{short}.042"));
        assert_eq!(short.len(), 8);
        assert!(!time_of_day_millis(Duration::MAX).is_empty());
    }

    #[test]
    fn a_stamp_is_fit_for_a_file() {
        assert_eq!(file_name_timestamp(Duration::from_secs(1_795_304_776)), "20261121T234616Z");
        assert!(file_name_timestamp(Duration::MAX).ends_with('Z'));
    }
}
