//! The account of a benchmark, for people and for programs.

use serde_json::{Value, json};

use super::millis;
use crate::bench::plan::Model;
use crate::bench::report::{Report, TargetReport};
use crate::cli::output::{Label, Line, Page};
use crate::util::histogram::Durations;
use crate::util::units::show_duration;

/// The percentiles that are reported, with their names.
const PERCENTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)];

/// The documented JSON of a run on one tool.
pub fn json(report: &Report) -> Value {
    report.targets.first().map_or(Value::Null, |target| target_json(report, target))
}

fn target_json(report: &Report, target: &TargetReport) -> Value {
    let (concurrency, rate) = match &report.plan.model {
        Model::Closed { concurrency } => (*concurrency, None),
        Model::Open { in_flight, arrivals, .. } => (*in_flight, Some(format!("{arrivals:?}"))),
    };
    let errors: serde_json::Map<String, Value> = target
        .errors_by_kind
        .iter()
        .map(|(kind, error)| {
            let value = json!({
                "count": error.count,
                "first_seen_s": error.first_seen.as_secs_f64(),
                "sample": error.sample,
            });
            (kind.clone(), value)
        })
        .collect();
    json!({
        "tool": target.tool,
        "requests": target.requests,
        "ok": target.ok,
        "tool_errors": target.tool_errors,
        "errors": target.errors,
        "timeouts": target.timeouts,
        "unanswered": target.unanswered,
        "dropped": target.dropped,
        "elapsed_s": report.elapsed.as_secs_f64(),
        "throughput": target.throughput,
        "concurrency": concurrency,
        "rate": rate,
        "latency_ms": durations_json(&target.response),
        "service_ms": durations_json(&target.service),
        "bytes_in": target.bytes_in,
        "bytes_out": target.bytes_out,
        "errors_by_kind": errors,
    })
}

fn durations_json(durations: &Durations) -> Value {
    let mut fields = serde_json::Map::new();
    let mut put = |name: &str, value: Option<std::time::Duration>| {
        fields.insert(name.to_owned(), value.map_or(Value::Null, millis));
    };
    put("min", durations.min());
    put("mean", durations.mean());
    put("stddev", durations.stddev());
    for (name, share) in PERCENTILES {
        put(name, durations.quantile(share));
    }
    put("max", durations.max());
    Value::Object(fields)
}

/// The report for people.
pub fn page(report: &Report) -> Page {
    let mut page = Page::default();
    for target in &report.targets {
        page.push(Line::of(Label::Heading, &target.tool));
        let said = format!(
            "{} calls in {}, {:.0} answered a second",
            target.requests,
            show_duration(report.elapsed),
            target.throughput
        );
        page.push(Line::plain(said).indented(2));
        for (name, share) in PERCENTILES {
            let Some(value) = target.response.quantile(share) else { continue };
            let label = if target.response.is_sure_of(share) { Label::Plain } else { Label::Dim };
            page.push(Line::of(label, format!("{name:<5} {}", show_duration(value))).indented(2));
        }
        for (kind, error) in &target.errors_by_kind {
            let said = format!("{kind}: {} times, first: {}", error.count, error.sample);
            page.push(Line::of(Label::Error, said).indented(2));
        }
    }
    for warning in &report.warnings {
        page.push(Line::of(Label::Warning, warning));
    }
    page
}
