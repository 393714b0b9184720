//! Whether the outcome of a call is what is expected of it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::report::Failure;
use crate::bench::plan::PlanOptions;
use crate::bench::statistic::Statistic;
use crate::bench::syntax::ConcurrencySpec;
use crate::bench::targets::{self, ArgumentInput, TargetOptions, TargetSpec};
use crate::bench::{Benchmark, interval};
use crate::config::suite::{self, Expectations, LatencyLimits, Snapshots, TestCase};
use crate::host::ToolHost;
use crate::host::request::CallArguments;
use crate::host::validate::SchemaChecker;
use crate::model::{Error, JsonObject};
use crate::util::units::show_duration;
use crate::util::{jq, json};

/// Lines of a difference that are shown around what differs.
const AROUND: usize = 2;
/// Characters of a result that is quoted in one line.
const QUOTED: usize = 200;

pub(super) async fn failures(
    expect: &Expectations,
    result: &Value,
    error: Option<&Error>,
) -> Vec<Failure> {
    let mut failures: Vec<Failure> = Vec::new();
    let kind = error.map_or("success", |error| error.kind().as_str());
    let exit = error.map_or(0, |error| error.kind().exit_code());
    let expected_kind = expect.error.as_ref().map(|kind| kind.as_str());
    let is_right = match (expected_kind, expect.exit) {
        (None, None) => error.is_none(),
        (right_kind, right_exit) => {
            right_kind.is_none_or(|right| right == kind)
                && right_exit.is_none_or(|right| right == exit)
        }
    };
    if !is_right {
        let expected = match (expected_kind, expect.exit) {
            (Some(kind), _) => format!("a failure of kind '{kind}'"),
            (None, Some(code)) => format!("exit code {code}"),
            (None, None) => "success".to_owned(),
        };
        let outcome = error.map_or_else(
            || format!("the call succeeded with {}", quoted(result)),
            |error| {
                let problems = std::iter::once(error.message());
                let problems = problems.chain(error.details().iter().map(String::as_str));
                let problems = problems.collect::<Vec<_>>().join("\n  ");
                format!("{problems} ({kind}, exit code {exit})")
            },
        );
        failures.push(format!("expected {expected}: {outcome}").into());
        return failures;
    }
    let text = match result {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => json::compact(other),
    };
    for part in expect.contains.iter().flat_map(|parts| &parts.0) {
        let is_in_error = error.is_some_and(|error| error.message().contains(part));
        if !text.contains(part) && !is_in_error {
            let whole = error.map_or_else(|| quoted(result), |error| error.message().to_owned());
            failures.push(format!("contains: '{part}' is not in {whole}").into());
        }
    }
    if let Some(expected) = &expect.equals {
        failures.extend(difference("equals", &expected.to_json(), result));
    }
    for expression in expect.jq.iter().flat_map(|texts| &texts.0) {
        let is_true = |value: &Value| !matches!(value, Value::Null | Value::Bool(false));
        match jq::query(expression, result) {
            Ok(values) if !values.is_empty() && values.iter().all(is_true) => {}
            Ok(values) => {
                let values: Vec<_> = values.iter().map(quoted).collect();
                let values =
                    if values.is_empty() { "nothing".to_owned() } else { values.join(", ") };
                let message = format!("jq: '{expression}' gives {values} for {}", quoted(result));
                failures.push(message.into());
            }
            Err(why) => failures.push(format!("jq: '{expression}': {why}").into()),
        }
    }
    if let Some(schema) = &expect.schema {
        let checker = SchemaChecker::with_formats(&Arc::new(schema.to_json())).await;
        match checker.check(result).await {
            Ok(violations) => failures
                .extend(violations.iter().map(|violation| format!("schema: {violation}").into())),
            Err(why) => failures.push(format!("schema: it cannot be checked: {why}").into()),
        }
    }
    failures
}

/// Compares a result with its snapshot, or makes it the snapshot.
pub(super) fn snapshot(
    expect: &Expectations,
    name: &str,
    result: &Value,
    snapshots: &mut Snapshots,
    update: bool,
) -> Option<Failure> {
    let paths = expect.mask.iter().flat_map(|paths| &paths.0);
    let result = match suite::masked(result.clone(), paths.clone()) {
        Ok(result) => result,
        Err(why) => return Some(format!("mask: {why}").into()),
    };
    if update {
        snapshots.set(name, result);
        return None;
    }
    let Some(saved) = snapshots.get(name) else {
        let message = "snapshot: none was saved yet; --update saves this result";
        return Some(message.to_owned().into());
    };
    // What was saved before a mask was added has no mask.
    let saved = suite::masked(saved.clone(), paths).unwrap_or_default();
    difference("snapshot", &saved, &result)
}

fn difference(what: &str, expected: &Value, result: &Value) -> Option<Failure> {
    if expected == result {
        return None;
    }
    let is_nested = |value: &Value| {
        value.is_array() || value.is_object() || value.as_str().is_some_and(|t| t.contains('\n'))
    };
    if !is_nested(expected) && !is_nested(result) {
        return Some(
            format!("{what}: expected {}, got {}", quoted(expected), quoted(result)).into(),
        );
    }
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => json::pretty(other),
    };
    Some(Failure {
        message: format!("{what}: the result differs"),
        difference: crate::util::diff::hunks(&text(expected), &text(result), AROUND)
            .iter()
            .flat_map(|hunk| &hunk.lines)
            .map(|line| format!("{}{}", line.mark.sign(), line.text))
            .collect(),
    })
}

fn quoted(value: &Value) -> String {
    crate::util::text::truncate(&json::compact(value), QUOTED)
}

/// Makes the call many times; what took longer than it may. Where the run is long enough for the
/// interval of a figure, all of it has to lie above the limit.
pub(super) async fn latency(
    limits: &LatencyLimits,
    case: &TestCase,
    arguments: JsonObject,
    allow_writes: bool,
    host: &ToolHost,
    cancel: &CancellationToken,
) -> Result<Vec<Failure>, Error> {
    let in_flight = limits.in_flight.unwrap_or(1).to_string().parse();
    let in_flight: ConcurrencySpec =
        in_flight.map_err(|why| Error::usage(format!("in_flight: {why}")))?;
    let plan = PlanOptions {
        requests: Some(limits.calls.unwrap_or(100)),
        concurrency: Some(in_flight),
        ..PlanOptions::default()
    };
    let spec = TargetSpec {
        name: case.tool.clone(),
        arguments: ArgumentInput::Single(CallArguments::Object(arguments)),
    };
    let options = TargetOptions {
        servers: case.servers.clone(),
        timeout: case.timeout,
        allow_writes,
        cancel: cancel.clone(),
        ..TargetOptions::default()
    };
    let prepared = targets::prepare(vec![spec], &options, host, |_| {}).await?;
    let result = Benchmark::new(plan.plan()?).run(host, prepared).await?;
    let Some(target) = result.report.targets.first() else { return Ok(Vec::new()) };
    let mut failures = Vec::new();
    if target.ok < target.requests {
        let failed = target.requests - target.ok;
        failures.push(format!("latency: {failed} of {} calls failed", target.requests).into());
    }
    let figures = [
        (Statistic::P50, limits.p50),
        (Statistic::P90, limits.p90),
        (Statistic::P95, limits.p95),
        (Statistic::P99, limits.p99),
        (Statistic::Mean, limits.mean),
    ];
    for (statistic, limit) in figures {
        let Some(limit) = limit.map(|limit| limit.0) else { continue };
        let value = match statistic.share() {
            Some(share) => target.response.quantile(share),
            None => target.response.mean(),
        };
        let Some(value) = value else { continue };
        let range = interval::range(target, statistic);
        let duration = |nanos: f64| Duration::try_from_secs_f64(nanos / 1e9).unwrap_or_default();
        let lowest = range.map_or(value, |(low, _)| duration(low));
        if lowest > limit {
            let between = range.map_or_else(String::new, |(low, high)| {
                let (low, high) = (show_duration(duration(low)), show_duration(duration(high)));
                format!(" ({low} to {high})")
            });
            let (name, value) = (statistic.name(), show_duration(value));
            let message =
                format!("latency: {name} is {value}{between}, more than {}", show_duration(limit));
            failures.push(message.into());
        }
    }
    Ok(failures)
}
