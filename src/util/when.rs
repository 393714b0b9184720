//! Points in time, written for people and for programs.
//!
//! Never does: read a clock.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A time for people, in seconds since the Unix epoch: local, to the second, without the offset, which is the same in every row.
pub fn local_time(unix: f64) -> String {
    local(unix).map_or_else(String::new, |zoned| zoned.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// A time for programs: RFC 3339 with the local offset, to the microsecond.
pub fn rfc3339(unix: f64) -> String {
    let exact = "%Y-%m-%dT%H:%M:%S%.6f%:z";
    local(unix).map_or_else(String::new, |zoned| zoned.strftime(exact).to_string())
}

fn local(unix: f64) -> Option<jiff::Zoned> {
    #[expect(clippy::cast_possible_truncation, reason = "what does not fit is refused below")]
    let micros = (unix * 1e6) as i64;
    Some(Timestamp::from_microsecond(micros).ok()?.to_zoned(TimeZone::system()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_times_are_no_reason_to_fail() {
        assert_eq!(local_time(1e300), "");
        assert_eq!(rfc3339(f64::NAN).get(..4), Some("1970"));
    }
}
