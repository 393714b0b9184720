//! The time of day for people, in the zone of the machine.
//!
//! Never does: know what time it is.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// To the millisecond: `14:03:21.118`. `at` is the time since the Unix epoch.
pub fn exact(at: Duration) -> String {
    formatted(at, "%H:%M:%S.%3f")
}

/// To the second: `14:03:21`.
pub fn short(at: Duration) -> String {
    formatted(at, "%H:%M:%S")
}

/// With its date, fit for the name of a file: `20261122-140321`.
pub fn file_stamp(at: Duration) -> String {
    formatted(at, "%Y%m%d-%H%M%S")
}

fn formatted(at: Duration, format: &str) -> String {
    let millis = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    let time = Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX);
    time.to_zoned(TimeZone::system()).strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_to_the_millisecond_and_no_time_fails() {
        let at = Duration::from_millis(1_795_304_776_042);
        let (exact, short) = (exact(at), short(at));
        assert_eq!(exact, format!("{short}.042"));
        assert_eq!((short.len(), file_stamp(at).len()), (8, 15));
        assert!(!super::exact(Duration::MAX).is_empty());
    }
}
