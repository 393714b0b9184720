//! What the commands over kept records share: points in time, short forms, what is said about
//! damage.
//!
//! Never does: read a record.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};

use super::context::plural;
use super::output::{Door, json};
use crate::model::{Fault, JsonObject};
use crate::util::append::AppendError;
pub use crate::util::when::{local_time, rfc3339};
use crate::util::{text, units};

/// The most characters of arguments on one line.
const SHORT: usize = 200;

/// Reads a point in time: `7d` ago, a date, a date with a time (local unless it says otherwise).
///
/// # Errors
/// What is understood, in words.
pub fn parse_since(text: &str) -> Result<Since, String> {
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
        None => Err("expected a time such as 30m, 7d, 2026-11-01 or 2026-11-01T12:00".to_owned()),
    }
}

/// A point in time as a person says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// So long ago.
    Ago(Duration),
    /// Then.
    At(Timestamp),
}

impl Since {
    /// Seconds since the Unix epoch; `now` is the time since then.
    pub fn unix(self, now: Duration) -> f64 {
        match self {
            Self::Ago(ago) => now.saturating_sub(ago).as_secs_f64(),
            Self::At(time) => time.as_duration().as_secs_f64(),
        }
    }
}

/// Arguments on one line: `key=value key=value`.
pub fn short_arguments(arguments: &JsonObject) -> String {
    let mut line = String::new();
    for (key, value) in arguments {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(key);
        line.push('=');
        match value.as_str() {
            Some(text) if !text.is_empty() && !text.contains(char::is_whitespace) => {
                line.push_str(text);
            }
            _ => line.push_str(&json::compact(value)),
        }
        if line.len() > SHORT {
            break;
        }
    }
    text::shorten(&line, SHORT).into_owned()
}

/// Says how many lines could not be read.
pub fn tell_damage(door: &Door, lines: usize, path: &std::path::Path) {
    if lines > 0 {
        let count = plural(lines, "line", "lines");
        door.warn(&format!("{count} of {} cannot be read and left out", path.display()));
    }
}

/// Why a record cannot be read.
pub fn unreadable(error: AppendError) -> Fault {
    match error {
        AppendError::Unsafe(why) => {
            Fault::denied(format!("not read: {why}")).hint("look who made it, and remove it")
        }
        AppendError::Failed(why) => Fault::internal(why),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_point_in_time_is_read_in_several_forms() {
        let now = Duration::from_secs(1_000_000);
        let unix = |text: &str| parse_since(text).unwrap().unix(now);
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
    fn arguments_are_short() {
        let arguments = json!({ "a": 1, "b": "x", "c": "two words", "d": [true], "e": "" });
        let arguments = arguments.as_object().unwrap();
        assert_eq!(short_arguments(arguments), r#"a=1 b=x c="two words" d=[true] e="""#);
        let long = json!({ "a": "x".repeat(5_000), "b": 1 });
        assert!(short_arguments(long.as_object().unwrap()).chars().count() < 250);
    }
}
