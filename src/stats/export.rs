//! Exporting statistics as JSON and CSV.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{Summary, Usage};
use crate::util::csv::{self, Cell};
use crate::util::number::{float, millis};
use crate::util::timestamp::rfc3339;

/// The version of the shape.
const VERSION: u64 = 1;

/// Statistics in a file, with the terms of the documentation.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StatsExportJson<'a> {
    /// The version of this shape: 1.
    pub version: u64,
    /// When it was written (RFC 3339).
    pub exported_at: String,
    /// Start of the window (RFC 3339); null for everything.
    pub from: Option<String>,
    /// The tools that were called.
    pub tools: Vec<ExportedToolJson<'a>>,
}

/// Successes, failures and average durations of successful calls of a tool.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ExportedToolJson<'a> {
    /// The full name of the tool.
    pub tool_name: &'a str,
    /// The server; null for internal tools.
    pub server: Option<&'a str>,
    /// The root directory of the project; null outside of every project.
    pub project: Option<&'a str>,
    /// The program behind the name; null for tools without an entry in a file.
    pub program: Option<&'a str>,
    /// The number of all its calls.
    pub total_calls: u64,
    /// How many of them succeeded.
    pub successes: u64,
    /// How many of them failed.
    pub failures: u64,
    /// Failed calls by kind of failure.
    pub failures_by_kind: &'a BTreeMap<String, u64>,
    /// The share of successful calls, from 0 to 1; null without calls.
    pub success_rate: Option<f64>,
    /// The mean of successful calls, in milliseconds; null without any, like all durations.
    pub average_duration_ms: Option<f64>,
    /// The shortest successful call, in milliseconds.
    pub min_duration_ms: Option<f64>,
    /// The median of successful calls, in milliseconds.
    pub p50_duration_ms: Option<f64>,
    /// The 95th percentile, in milliseconds.
    pub p95_duration_ms: Option<f64>,
    /// The 99th percentile, in milliseconds.
    pub p99_duration_ms: Option<f64>,
    /// The longest successful call, in milliseconds.
    pub max_duration_ms: Option<f64>,
    /// Attempts beyond the first of a call.
    pub retries: u64,
    /// Calls that succeeded after a failed attempt.
    pub recovered: u64,
    /// Bytes of all results together.
    pub result_bytes: u64,
    /// When it was first called (RFC 3339).
    pub first_used: String,
    /// When it was last called (RFC 3339).
    pub last_used: String,
}

/// The exported JSON of a summary.
pub fn json(summary: &Summary) -> StatsExportJson<'_> {
    StatsExportJson {
        version: VERSION,
        exported_at: rfc3339(summary.now.as_secs_f64()),
        from: summary.from.map(|from| rfc3339(from.as_secs_f64())),
        tools: summary.tools.iter().map(tool).collect(),
    }
}

fn tool(usage: &Usage) -> ExportedToolJson<'_> {
    let (counts, durations) = (&usage.counts, &usage.counts.durations);
    let at = |share| durations.quantile(share).map(millis);
    ExportedToolJson {
        tool_name: &usage.tool.name,
        server: usage.tool.server.as_deref(),
        project: usage.tool.place.project.as_deref(),
        program: usage.tool.place.program.as_deref(),
        total_calls: counts.calls(),
        successes: counts.ok,
        failures: counts.failed(),
        failures_by_kind: &counts.failures,
        success_rate: counts.success_rate(),
        average_duration_ms: durations.mean().map(millis),
        min_duration_ms: durations.min().map(millis),
        p50_duration_ms: at(0.5),
        p95_duration_ms: at(0.95),
        p99_duration_ms: at(0.99),
        max_duration_ms: durations.max().map(millis),
        retries: counts.retries(),
        recovered: counts.recovered,
        result_bytes: counts.bytes,
        first_used: rfc3339(seconds(usage.period.first)),
        last_used: rfc3339(seconds(usage.period.last)),
    }
}

/// The same as a table, one row for each tool.
pub fn csv(summary: &Summary) -> String {
    const HEAD: [&str; 20] = [
        "tool_name",
        "server",
        "total_calls",
        "successes",
        "failures",
        "tool_errors",
        "timeouts",
        "average_duration_ms",
        "min_duration_ms",
        "p50_duration_ms",
        "p95_duration_ms",
        "p99_duration_ms",
        "max_duration_ms",
        "retries",
        "recovered",
        "result_bytes",
        "first_used",
        "last_used",
        "project",
        "program",
    ];
    let head = HEAD.iter().map(|title| Cell::Text((*title).to_owned())).collect();
    let row = |usage: &Usage| {
        let (counts, durations) = (&usage.counts, &usage.counts.durations);
        let time = |time: Option<Duration>| {
            time.map_or(Cell::Empty, |time| Cell::Number(Value::from(millis(time)).to_string()))
        };
        vec![
            Cell::Text(usage.tool.name.clone()),
            Cell::text(usage.tool.server.as_deref()),
            Cell::count(counts.calls()),
            Cell::count(counts.ok),
            Cell::count(counts.failed()),
            Cell::count(counts.failed_by("tool")),
            Cell::count(counts.failed_by("timeout")),
            time(durations.mean()),
            time(durations.min()),
            time(durations.quantile(0.5)),
            time(durations.quantile(0.95)),
            time(durations.quantile(0.99)),
            time(durations.max()),
            Cell::count(counts.retries()),
            Cell::count(counts.recovered),
            Cell::count(counts.bytes),
            Cell::Text(rfc3339(seconds(usage.period.first))),
            Cell::Text(rfc3339(seconds(usage.period.last))),
            Cell::text(usage.tool.place.project.as_deref()),
            Cell::text(usage.tool.place.program.as_deref()),
        ]
    };
    csv::table(std::iter::once(head).chain(summary.tools.iter().map(row)))
}

/// Converts milliseconds to seconds, fractions kept.
fn seconds(millis: u64) -> f64 {
    float(millis) / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::count::{CallCounts, ToolKey, UsagePeriod};

    fn usage(name: &str, calls: u64) -> Usage {
        let mut counts = CallCounts { ok: calls, attempts: calls, ..CallCounts::default() };
        for call in 1..=calls {
            counts.durations.record(Duration::from_millis(call));
        }
        let tool = ToolKey { name: name.into(), ..ToolKey::default() };
        Usage { tool, counts, period: UsagePeriod { first: 1, last: 1 } }
    }

    #[test]
    fn what_is_exported_has_the_words_of_the_documents() {
        let mut summary = Summary { tools: vec![usage("=cmd", 4)], ..Summary::default() };
        summary.tools[0].counts.add_failures("tool", 1);
        let exported = serde_json::to_value(json(&summary)).unwrap();
        let tool = &exported["tools"][0];
        assert_eq!((tool["successes"].as_u64(), tool["failures"].as_u64()), (Some(4), Some(1)));
        assert_eq!(tool["average_duration_ms"], 2.5);
        assert_eq!(tool["success_rate"], 0.8);
        let csv = csv(&summary);
        let lines: Vec<&str> = csv.split("\r\n").collect();
        assert!(lines[0].starts_with("tool_name,server,total_calls,successes,failures,"));
        assert!(lines[1].starts_with("\"'=cmd\",,5,4,1,1,0,2.5,"), "{csv}");
        assert_eq!(lines[0].split(',').count(), lines[1].split(',').count());
    }
}
