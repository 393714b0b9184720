//! `builtin.time`: the current time, in any time zone.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{BuiltinFunction, FunctionBody, input};
use crate::model::{Error, ToolResult};
use crate::providers::arguments::text;

const FORMATS: [(&str, &str); 6] = [
    ("rfc3339", ""),
    ("unix", ""),
    ("unix_ms", ""),
    ("date", "%Y-%m-%d"),
    ("time", "%H:%M:%S"),
    ("http", "%a, %d %b %Y %H:%M:%S GMT"),
];

pub(super) const NOW: BuiltinFunction = BuiltinFunction {
    module: "builtin.time",
    name: "now",
    aliases: &[("src.tools.core.datetime_tool", "get_datetime")],
    title: "Current time",
    description: "Returns the current time in a time zone, as RFC 3339, Unix seconds, a date, a \
                  time, an HTTP date, or in a pattern such as %Y-%m-%d %H:%M.",
    input: || {
        let mut zone = text("An IANA name such as Europe/Berlin");
        zone["default"] = "UTC".into();
        let mut format =
            text("rfc3339, unix, unix_ms, date, time, http, or a strftime pattern with %");
        (format["default"], format["maxLength"]) = ("rfc3339".into(), 200.into());
        input(&[("timezone", zone), ("format", format)], &[])
    },
    output: None,
    // A repeated call changes nothing, but its result differs.
    idempotent: false,
    run: FunctionBody::Sync(|clock, arguments| {
        let since = clock.unix();
        let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
        let nanoseconds = i32::try_from(since.subsec_nanos()).unwrap_or_default();
        let now = Timestamp::new(seconds, nanoseconds)
            .map_err(|e| Error::internal(format!("the clock cannot be shown: {e}")))?;
        show(now, arguments.optional_text("timezone")?, arguments.optional_text("format")?)
            .map(ToolResult::text)
    }),
};

fn show(now: Timestamp, zone: Option<&str>, format: Option<&str>) -> Result<String, Error> {
    let zone = match zone {
        None | Some("UTC" | "utc" | "Z" | "") => TimeZone::UTC,
        Some(name) => TimeZone::get(name).map_err(|_| {
            Error::usage(format!("unknown time zone '{name}'"))
                .with_hint("use an IANA name such as Europe/Berlin, or UTC")
        })?,
    };
    let there = now.to_zoned(if format == Some("http") { TimeZone::UTC } else { zone });
    let pattern = match format.unwrap_or("rfc3339") {
        "unix" => return Ok(now.as_second().to_string()),
        "unix_ms" => return Ok(now.as_millisecond().to_string()),
        "rfc3339" if there.offset() == jiff::tz::Offset::UTC => "%Y-%m-%dT%H:%M:%SZ",
        "rfc3339" => "%Y-%m-%dT%H:%M:%S%:z",
        pattern if pattern.contains('%') && pattern.len() <= 200 => pattern,
        name => {
            let named = FORMATS.iter().find(|(key, _)| *key == name);
            named.map(|(_, pattern)| *pattern).ok_or_else(|| {
                let names: Vec<&str> = FORMATS.iter().map(|(name, _)| *name).collect();
                Error::usage(format!("unknown format '{name}'"))
                    .with_hint(format!("use {}, or a pattern with %", names.join(", ")))
            })?
        }
    };
    jiff::fmt::strtime::format(pattern, &there)
        .map_err(|e| Error::usage(format!("the pattern '{pattern}' cannot be used: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(zone: Option<&str>, format: Option<&str>) -> String {
        let now = Timestamp::new(1_700_000_000, 123_000_000).unwrap();
        show(now, zone, format).unwrap_or_else(|error| format!("{error}"))
    }

    #[test]
    fn every_format_in_utc_and_elsewhere() {
        assert_eq!(at(None, None), "2023-11-14T22:13:20Z");
        assert_eq!(at(Some("Asia/Kolkata"), None), "2023-11-15T03:43:20+05:30");
        assert_eq!(at(Some("Asia/Kolkata"), Some("unix")), "1700000000");
        assert_eq!(at(None, Some("unix_ms")), "1700000000123");
        assert_eq!(at(Some("Asia/Tokyo"), Some("date")), "2023-11-15");
        assert_eq!(at(None, Some("time")), "22:13:20");
        assert_eq!(at(Some("Asia/Tokyo"), Some("http")), "Tue, 14 Nov 2023 22:13:20 GMT");
        assert_eq!(at(None, Some("%d/%m/%y")), "14/11/23");
    }

    #[test]
    fn what_does_not_exist_is_named() {
        assert_eq!(at(Some("Mars/Base"), None), "unknown time zone 'Mars/Base'");
        assert_eq!(at(None, Some("soon")), "unknown format 'soon'");
        assert!(at(None, Some("%J?")).starts_with("the pattern '%J?' cannot be used"));
    }
}
