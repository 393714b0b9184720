//! The account of a benchmark, for people and for programs.

use serde_json::{Value, json};

mod figures;
pub(in crate::cli) mod live;
mod run;
mod shape;
mod target;
mod words;

use figures::PERCENTILES;

use super::millis;
use crate::bench::plan::Model;
use crate::bench::report::{Report, TargetReport};
use crate::cli::output::{Label, Page};
use crate::util::histogram::Durations;

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
pub fn page(report: &Report, width: Option<usize>) -> Page {
    let mut page = Page::default();
    for target in &report.targets {
        page.heading(&target.tool);
        page.append(target::page(report, target, width));
    }
    page.heading("Run");
    for (key, label, value) in run::facts(report) {
        page.fact(key, label, &value, width);
    }
    if !report.warnings.is_empty() {
        page.heading("Before you believe the figures");
        for warning in &report.warnings {
            page.paragraph(Label::Warning, 2, warning, width);
        }
    }
    page
}
