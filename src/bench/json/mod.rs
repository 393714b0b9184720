//! The documented JSON of a run: what `bench --json` prints and `--save` writes.
//!
//! Owns: its shape, which `schema/report.json` describes. One target stands flat at the top; several
//! are a list. Fields may be added; [`FORMAT`] changes when one changes its meaning.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::baseline::{self, BaselineChange, BaselineReport, FORMAT};
use super::buckets;
use super::compare::{Ratio, TargetComparison, letter};
use super::environment::BenchEnvironment;
use super::findings::BenchFindings;
use super::plan::{Arrivals, BenchPlan, LoadModel, OverflowPolicy, Sharing, StopRule, WarmUp};
use super::report::{BenchReport, RunStatus, SampleBlock, TargetReport, TimelineSlice};
use super::statistic::Statistic;
use super::threshold::ThresholdResult;
use crate::util::base64;
use crate::util::histogram::Durations;

const SCHEMA: &str = include_str!("../schema/report.json");

/// Classes of the histogram that is written for people; the exact one stands beside it.
const CLASSES: usize = 40;

/// The percentiles that are written.
const PERCENTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)];

/// The JSON Schema of the shape.
pub fn schema() -> Value {
    // It is part of the program, and a test reads it.
    serde_json::from_str(SCHEMA).unwrap_or_default()
}

/// A run and what was made of it.
pub fn report(
    report: &BenchReport,
    environment: &BenchEnvironment,
    findings: &BenchFindings,
) -> Value {
    let mut whole = Map::new();
    let mut put = |key: &str, value: Value| {
        whole.insert(key.to_owned(), value);
    };
    put("format_version", FORMAT.into());
    put("began", timestamp(report.began));
    put("ending", ending(report.status).into());
    put("elapsed_s", seconds(report.elapsed));
    for (key, value) in ["model", "concurrency", "rate"].into_iter().zip(report.plan.load_values())
    {
        put(key, value);
    }
    match report.targets.as_slice() {
        [_] => whole.append(&mut target(report, 0)),
        several => {
            let all = (0..several.len()).map(|at| Value::Object(target(report, at))).collect();
            whole.insert("targets".to_owned(), all);
        }
    }
    let mut put = |key: &str, value: Value| {
        whole.insert(key.to_owned(), value);
    };
    put(
        "generator",
        json!({
            "lag_ms": durations(&report.generator.lag),
            "late": report.generator.late,
            "queued": report.generator.queued,
            "paused_s": seconds(report.generator.paused),
        }),
    );
    put("comparison", findings.comparisons.iter().map(comparison).collect());
    put("baseline", findings.baseline.as_ref().map_or(Value::Null, baseline));
    put("thresholds", findings.thresholds.iter().map(judgement).collect());
    put("reading", findings.bottlenecks.as_slice().into());
    put("warnings", findings.warnings.as_slice().into());
    put("environment", self::environment(environment));
    put("plan", plan(&report.plan));
    Value::Object(whole)
}

fn target(report: &BenchReport, at: usize) -> Map<String, Value> {
    let of = &report.targets[at];
    let errors: Map<String, Value> = of
        .errors_by_kind
        .iter()
        .map(|(kind, cause)| {
            let value = json!({
                "count": cause.count,
                "first_seen_s": seconds(cause.first_seen),
                "sample": cause.sample,
            });
            (kind.clone(), value)
        })
        .collect();
    let unsure: Vec<&str> = PERCENTILES
        .iter()
        .filter(|(_, share)| !of.response.is_reliable_at(*share))
        .map(|(name, _)| *name)
        .collect();
    let fields = json!({
        "tool": of.tool,
        "letter": letter(at).to_string(),
        "protocol": of.protocol,
        "requests": of.requests,
        "ok": of.ok,
        "tool_errors": of.tool_errors,
        "errors": of.errors,
        "timeouts": of.timeouts,
        "unanswered": of.unanswered,
        "dropped": of.dropped,
        "error_rate": error_rate(of),
        "throughput": number(of.throughput),
        "peak_in_flight": of.peak_in_flight,
        "warm_up": of.warm_up,
        "restarts": of.restarts,
        "cold_start": {
            "connect_ms": of.cold.connect.map_or(Value::Null, millis),
            "first_call_ms": of.cold.first_call.map_or(Value::Null, millis),
        },
        "latency_ms": durations(&of.response),
        "service_ms": durations(&of.service),
        "failed_ms": durations(&of.failed),
        "unsure": unsure,
        "histogram": histogram(&of.response),
        "bytes_in": of.bytes_in,
        "bytes_out": of.bytes_out,
        "errors_by_kind": errors,
        "timeline": of.timeline.iter().map(slice).collect::<Value>(),
        "blocks": baseline::blocks_of_run(report, at).iter().map(block).collect::<Value>(),
        "doubts": of.protocol_warnings,
        "fault": of.error.as_ref().map(|error| {
            json!({ "kind": error.kind().as_str(), "message": error.to_string() })
        }),
    });
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn error_rate(of: &TargetReport) -> Value {
    if of.requests == 0 {
        return Value::Null;
    }
    number(1.0 - of.ok as f64 / of.requests as f64)
}

fn durations(of: &Durations) -> Value {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Option<Duration>| {
        fields.insert(name.to_owned(), value.map_or(Value::Null, millis));
    };
    put("min", of.min());
    put("mean", of.mean());
    put("stddev", of.stddev());
    for (name, share) in PERCENTILES {
        put(name, of.quantile(share));
    }
    put("max", of.max());
    Value::Object(fields)
}

/// Coarse classes for people, and every bucket for programs that read the report back.
fn histogram(of: &Durations) -> Value {
    let classes: Vec<Value> = buckets::of(of, CLASSES)
        .iter()
        .map(|bucket| json!({ "to_ms": millis(bucket.to), "count": bucket.count }))
        .collect();
    json!({ "count": of.count(), "buckets": classes, "data": base64::encode(&of.encode()) })
}

fn slice(slice: &TimelineSlice) -> Value {
    let at = |share| slice.response.quantile(share).map_or(Value::Null, millis);
    json!({
        "from_s": seconds(slice.from),
        "lasting_s": seconds(slice.lasting),
        "ok": slice.ok,
        "failed": slice.failed,
        "p50_ms": at(0.5),
        "p95_ms": at(0.95),
        "p99_ms": at(0.99),
        "max_ms": slice.response.max().map_or(Value::Null, millis),
    })
}

fn block(turn: &SampleBlock) -> Value {
    json!({
        "elapsed_s": seconds(turn.elapsed),
        "ok": turn.ok,
        "failed": turn.failed,
        "data": base64::encode(&turn.response.encode()),
    })
}

fn comparison(of: &TargetComparison) -> Value {
    json!({
        "reference": of.reference,
        "other": of.other,
        "letter": of.letter.to_string(),
        "rounds": of.rounds,
        "headline": of.headline().map(|ratio| ratio.statistic.name()),
        "verdict": of.headline().map_or("not established", |ratio| ratio.verdict.label()),
        "sentence": of.headline_sentence(),
        "ratios": of.ratios.iter().map(ratio).collect::<Value>(),
        "warnings": of.warnings,
    })
}

fn ratio(of: &Ratio) -> Value {
    let shown = |value: f64| match of.statistic {
        Statistic::Throughput => number(value),
        _ => number(value / 1e6),
    };
    json!({
        "statistic": of.statistic.name(),
        "unit": if of.statistic == Statistic::Throughput { "per_second" } else { "ms" },
        "reference": shown(of.reference),
        "other": shown(of.other),
        "ratio": number(of.value),
        "interval": of.interval.map(|(low, high)| [number(low), number(high)]),
        "level": number(of.level),
        "propagated_error": of.propagated.map(number),
        "verdict": of.verdict.label(),
        "why": of.verdict.reason(),
    })
}

fn baseline(of: &BaselineReport) -> Value {
    json!({
        "file": of.file,
        "began": of.began,
        "max_regression": of.max_regression.map(number),
        "failed": of.failed(),
        "targets": of.targets.iter().map(change).collect::<Value>(),
        "warnings": of.warnings,
    })
}

fn change(of: &BaselineChange) -> Value {
    let gates: Map<String, Value> = of
        .verdicts
        .iter()
        .map(|(statistic, gate)| (statistic.name().to_owned(), gate.label().to_lowercase().into()))
        .collect();
    json!({
        "tool": of.tool,
        "verdict": of.verdict().map(|gate| gate.label().to_lowercase()),
        "judged": gates,
        "ratios": of.ratios.iter().map(ratio).collect::<Value>(),
    })
}

fn judgement(of: &ThresholdResult) -> Value {
    let lines = of.lines.iter();
    let lines: Vec<Value> = lines
        .map(|line| json!({ "text": line.text, "failed": line.failed, "unsure": line.is_unreliable }))
        .collect();
    json!({ "expression": of.expression, "failed": of.failed(), "lines": lines })
}

fn environment(of: &BenchEnvironment) -> Value {
    let servers: Vec<Value> = of
        .servers
        .iter()
        .map(|server| {
            json!({
                "tool": server.tool,
                "name": server.name,
                "version": server.version,
                "protocol": server.protocol,
            })
        })
        .collect();
    json!({
        "toolhost": of.toolhost,
        "os": of.os,
        "kernel": of.kernel,
        "architecture": of.architecture,
        "cpu": of.cpu,
        "cpus": of.cpus,
        "load_before": of.load_before.map(|load| load.map(number)),
        "load_after": of.load_after.map(|load| load.map(number)),
        "servers": servers,
    })
}

fn plan(of: &BenchPlan) -> Value {
    let model = match &of.model {
        LoadModel::Closed { concurrency } => {
            json!({ "kind": "closed", "concurrency": concurrency })
        }
        LoadModel::Open { arrivals, in_flight, overflow: over } => {
            let arrivals = match arrivals {
                Arrivals::Constant { rate } => json!({ "kind": "constant", "rate": number(*rate) }),
                Arrivals::Poisson { rate } => json!({ "kind": "poisson", "rate": number(*rate) }),
                Arrivals::Steps(steps) => {
                    let steps: Vec<Value> = steps
                        .iter()
                        .map(|step| {
                            json!({ "rate": number(step.rate), "lasting_s": seconds(step.lasting) })
                        })
                        .collect();
                    json!({ "kind": "steps", "steps": steps })
                }
            };
            let over = match over {
                OverflowPolicy::Queue => "queue",
                OverflowPolicy::Drop => "drop",
            };
            json!({ "kind": "open", "arrivals": arrivals, "in_flight": in_flight, "over": over })
        }
    };
    let sharing = match of.sharing {
        Sharing::Mixed => json!({ "kind": "mixed" }),
        Sharing::Interleaved { rounds } => json!({ "kind": "turns", "rounds": rounds }),
    };
    let warm_up = match of.warm_up {
        WarmUp::Calls(calls) => json!({ "calls": calls }),
        WarmUp::Time(time) => json!({ "time_s": seconds(time) }),
    };
    let stop_rules: Vec<Value> = of
        .stop_rules
        .iter()
        .map(|rule| match rule {
            StopRule::ConsecutiveFailures(limit) => json!({ "failures_in_a_row": limit }),
            StopRule::Failures(limit) => json!({ "failures": limit }),
        })
        .collect();
    json!({
        "model": model,
        "requests": of.limits.requests,
        "duration_s": of.limits.duration.map(seconds),
        "sharing": sharing,
        "warm_up": warm_up,
        "patience_s": seconds(of.drain_timeout),
        "stop_rules": stop_rules,
        "grace": { "calls": of.minimum_sample.calls, "time_s": seconds(of.minimum_sample.time) },
        "seed": of.seed,
    })
}

fn ending(ending: RunStatus) -> &'static str {
    match ending {
        RunStatus::Complete => "complete",
        RunStatus::Stopped => "stopped",
        RunStatus::Aborted => "aborted",
    }
}

fn timestamp(unix: Duration) -> Value {
    let millis = i64::try_from(unix.as_millis()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(millis).map_or(Value::Null, |time| time.to_string().into())
}

#[expect(clippy::cast_precision_loss, reason = "durations are below 2^52 nanoseconds")]
fn millis(duration: Duration) -> Value {
    number(duration.as_nanos() as f64 / 1e6)
}

fn seconds(duration: Duration) -> Value {
    number(duration.as_secs_f64())
}

/// `null` for what is no number.
fn number(value: f64) -> Value {
    Value::from(value)
}

#[cfg(test)]
mod tests;
