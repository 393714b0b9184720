//! The JSON of `stats`.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::present::stats::{QUANTILES, seconds};
use crate::stats::count::CallCounts;
use crate::stats::summary::TimeSlice;
use crate::stats::{Summary, Usage};
use crate::util::histogram::{Distribution, logarithmic};
use crate::util::shape::shape;
use crate::util::timestamp::rfc3339;
use crate::util::units::millis;

/// Maximum number of buckets in a tool's histogram.
const MAX_BUCKETS: usize = 24;

shape! {
    /// The statistics of a time window. With slices it is about one tool, which gets its histogram
    /// and these time slices too.
    pub StatsJson<'a> of (summary, slices): (&'a Summary, Option<&[TimeSlice]>) {
        /// The tools that were called.
        tools: Vec<ToolStatsJson<'a>> =
            summary.tools.iter().map(|usage| (usage, slices).into()).collect(),
        /// The same by server; internal tools are grouped under a null server.
        servers: Vec<ServerStatsJson> = summary.servers().iter().map(Into::into).collect(),
        /// The totals; null when nothing was called.
        total: Option<CountsJson> = summary.total().as_ref().map(|usage| (&usage.counts).into()),
        /// Start of the window (RFC 3339); null for all time.
        from: Option<String> = summary.from.map(|from| rfc3339(from.as_secs_f64())),
        /// When the statistics were read (RFC 3339).
        until: String = rfc3339(summary.now.as_secs_f64()),
        /// Always 0: every call is counted from the spool. An earlier version folded them.
        not_folded: u64 = 0,
        /// Whether the whole spool was read.
        complete: bool = !summary.is_behind,
        /// Number of spool lines that could not be read.
        damaged_lines: u64 = summary.damaged_lines,
    }
}

shape! {
    /// The calls of a tool.
    pub ToolStatsJson<'a> of (called, slices): (&'a Usage, Option<&[TimeSlice]>) {
        #[serde(flatten)]
        usage: UsageJson<'a> = called.into(),
        #[serde(flatten)]
        detail: Option<UsageDetailJson> = slices.map(|slices| (called, slices).into()),
    }
}

shape! {
    /// The statistics of a tool.
    pub UsageJson<'a> of usage: &'a Usage {
        /// The full name of the tool.
        name: &'a str = &usage.tool.name,
        /// The server, for MCP tools.
        server: Option<&'a str> = usage.tool.server.as_deref(),
        /// The root directory of the project the calls were made for; null outside any project.
        project: Option<&'a str> = usage.tool.place.project.as_deref(),
        /// The program behind the name, as 12 hexadecimal digits; null for tools without an
        /// entry in a file.
        program: Option<&'a str> = usage.tool.place.program.as_deref(),
        #[serde(flatten)]
        counts: CountsJson = (&usage.counts).into(),
        /// The first call that was counted (RFC 3339).
        first_used: String = rfc3339(seconds(usage.period.first)),
        /// The last call (RFC 3339).
        last_used: String = rfc3339(seconds(usage.period.last)),
    }
}

shape! {
    /// The calls of a server's tools.
    pub ServerStatsJson of usage: &Usage {
        /// The server; null for internal tools.
        server: Option<String> = usage.tool.server.clone(),
        #[serde(flatten)]
        counts: CountsJson = (&usage.counts).into(),
        /// The first call that was counted (RFC 3339).
        first_used: String = rfc3339(seconds(usage.period.first)),
        /// The last call (RFC 3339).
        last_used: String = rfc3339(seconds(usage.period.last)),
    }
}

shape! {
    /// Calls and their durations; durations are of successful calls.
    pub CountsJson of counts: &CallCounts, with {
        let (rejected, late) = (counts.failed_by("tool"), counts.failed_by("timeout"));
        let durations = &counts.durations;
        let quantile = |share| durations.quantile(share).map(millis);
        let unsure = QUANTILES.iter().filter(|(_, share)| !durations.is_reliable_at(*share));
    } {
        /// All calls.
        calls: u64 = counts.calls(),
        /// Successful calls.
        ok: u64 = counts.ok,
        /// Calls that the tool itself rejected or failed.
        tool_errors: u64 = rejected,
        /// Failures that are neither tool errors nor timeouts.
        errors: u64 = counts.failed().saturating_sub(rejected).saturating_sub(late),
        /// Calls that timed out.
        timeouts: u64 = late,
        /// Calls cancelled while running; these are not failures.
        cancelled: u64 = counts.cancelled,
        /// All failures by kind of error.
        errors_by_kind: BTreeMap<String, u64> = counts.failures.clone(),
        mean_ms: Option<f64> = durations.mean().map(millis),
        /// The standard deviation.
        stddev_ms: Option<f64> = durations.stddev().map(millis),
        min_ms: Option<f64> = durations.min().map(millis),
        max_ms: Option<f64> = durations.max().map(millis),
        /// Accurate to 1 %, like all percentiles.
        p50_ms: Option<f64> = quantile(0.5),
        p90_ms: Option<f64> = quantile(0.9),
        p95_ms: Option<f64> = quantile(0.95),
        p99_ms: Option<f64> = quantile(0.99),
        /// Percentiles with fewer than ten calls beyond them: each is merely one of the
        /// slowest calls.
        too_few_for: Vec<&'static str> = unsure.map(|(name, _)| *name).collect(),
        /// Attempts after the first of each call.
        retries: u64 = counts.retries(),
        /// Calls that succeeded after a retry.
        recovered: u64 = counts.recovered,
        /// Bytes of results as JSON.
        bytes: u64 = counts.bytes,
    }
}

shape! {
    /// Additional data when a single tool is selected.
    pub UsageDetailJson of (usage, course): (&Usage, &[TimeSlice]) {
        /// The durations of successful calls in buckets.
        histogram: Vec<DurationBucketJson> =
            logarithmic(&usage.counts.durations, MAX_BUCKETS).iter().flat_map(Distribution::all).map(Into::into).collect(),
        /// The window in time slices, earliest first.
        #[serde(rename = "course")]
        slices: Vec<TimeSliceJson> = course.iter().map(Into::into).collect(),
    }
}

shape! {
    /// Calls of similar duration, as a bucket.
    pub DurationBucketJson of (longest, calls): (Duration, u64) {
        /// The longest duration in the bucket.
        up_to_ms: f64 = millis(longest),
        calls: u64 = calls,
    }
}

shape! {
    /// A time slice of the window.
    pub TimeSliceJson of slice: &TimeSlice {
        /// Start of the slice (RFC 3339).
        from: String = rfc3339(slice.from.as_secs_f64()),
        /// How long it is.
        seconds: u64 = slice.length.as_secs(),
        calls: u64 = slice.counts.calls(),
        failed: u64 = slice.counts.failed(),
        p95_ms: Option<f64> = slice.counts.durations.quantile(0.95).map(millis),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::present::stats::tests::summary;

    #[test]
    fn json_has_the_documented_fields() {
        let value = serde_json::to_value(StatsJson::from((&summary(), None))).unwrap();
        let tool = &value["tools"][2];
        for (key, expected) in [
            ("calls", json!(38)),
            ("ok", json!(31)),
            ("tool_errors", json!(2)),
            ("errors", json!(1)),
            ("timeouts", json!(4)),
            ("mean_ms", json!(16.0)),
            ("server", json!("web")),
            ("retries", json!(12)),
            ("too_few_for", json!(["p90", "p95", "p99"])),
        ] {
            assert_eq!(tool[key], expected, "{key}");
        }
        let p95 = tool["p95_ms"].as_f64().unwrap();
        assert!((29.5..=30.5).contains(&p95), "{p95}");
        assert_eq!(value["tools"][1]["mean_ms"], Value::Null);
        assert_eq!(value["total"]["calls"], 2_039);
        assert_eq!(value["servers"][1]["calls"], 39);
        assert!(tool["last_used"].as_str().unwrap().starts_with("2026-11-2"));
    }
}
