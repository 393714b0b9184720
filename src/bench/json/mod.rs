//! The documented JSON of a run: what `bench --json` prints and `--save` writes.

pub mod shape;

use std::time::Duration;

use self::shape::{
    ArrivalsJson, BaselineJson, BaselineTargetJson, BenchBucketJson, BenchServerJson,
    ColdStartJson, ComparisonJson, DurationsJson, EnvironmentJson, ErrorCountJson, GeneratorJson,
    HistogramJson, LoadModelJson, PlanJson, RatioJson, RunJson, SampleBlockJson, SharingJson,
    StepJson, TargetErrorJson, TargetJson, ThresholdJson, ThresholdLineJson, TimelineSliceJson,
    WarmUpJson,
};
use super::baseline::{self, BaselineChange, BaselineReport, FORMAT};
use super::buckets;
use super::compare::{Ratio, TargetComparison, letter};
use super::environment::BenchEnvironment;
use super::findings::BenchFindings;
use super::plan::{Arrivals, BenchPlan, LoadModel, OverflowPolicy, Sharing, WarmUp};
use super::report::{BenchReport, RunStatus, SampleBlock, TargetReport, TimelineSlice};
use super::statistic::Statistic;
use super::threshold::ThresholdResult;
use crate::util::base64;
use crate::util::histogram::Durations;

/// Classes of the histogram that is written for people; the exact one is written next to it.
const CLASSES: usize = 40;

const PERCENTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)];

pub fn report<'a>(
    report: &'a BenchReport,
    environment: &'a BenchEnvironment,
    findings: &'a BenchFindings,
) -> RunJson<'a> {
    let all = || (0..report.targets.len()).map(|at| target(report, at));
    let (model, concurrency, rate) = load(&report.plan.model);
    RunJson {
        format_version: FORMAT,
        began: timestamp(report.began),
        ending: match report.status {
            RunStatus::Complete => "complete",
            RunStatus::Stopped => "stopped",
            RunStatus::Aborted => "aborted",
        },
        elapsed_s: report.elapsed.as_secs_f64(),
        model,
        concurrency,
        rate,
        first: all().next(),
        steps: report.targets.iter().enumerate().filter_map(step).collect(),
        targets: if report.targets.len() > 1 { all().collect() } else { Vec::new() },
        generator: GeneratorJson {
            lag_ms: durations(&report.generator.lag),
            late: report.generator.late,
            queued: report.generator.queued,
            paused_s: report.generator.paused.as_secs_f64(),
            cpu_s: report.generator.cpu.map(|time| time.as_secs_f64()),
        },
        comparison: findings.comparisons.iter().map(comparison).collect(),
        baseline: findings.baseline.as_ref().map(baseline),
        thresholds: findings.thresholds.iter().map(threshold).collect(),
        reading: &findings.bottlenecks,
        warnings: &findings.warnings,
        environment: self::environment(environment),
        plan: plan(&report.plan),
    }
}

/// How load is made: the word for it, the calls in flight, and the rate of an even or random load.
fn load(model: &LoadModel) -> (&'static str, usize, Option<f64>) {
    match model {
        LoadModel::Closed { concurrency } => ("closed", *concurrency, None),
        LoadModel::Open { arrivals, in_flight, .. } => {
            ("open", *in_flight, number(arrivals.rate()))
        }
    }
}

fn target(report: &BenchReport, at: usize) -> TargetJson<'_> {
    let of = &report.targets[at];
    let errors = of.errors_by_kind.iter().map(|(kind, cause)| {
        let first_seen_s = cause.first_seen.as_secs_f64();
        (kind.as_str(), ErrorCountJson { count: cause.count, first_seen_s, sample: &cause.sample })
    });
    let unsure = PERCENTILES.iter().filter(|(_, share)| !of.response.is_reliable_at(*share));
    TargetJson {
        tool: &of.tool,
        letter: letter(at).to_string(),
        program: of.program.as_deref(),
        protocol: of.protocol.as_deref(),
        requests: of.requests,
        ok: of.ok,
        tool_errors: of.tool_errors,
        errors: of.errors,
        timeouts: of.timeouts,
        unanswered: of.unanswered,
        dropped: of.dropped,
        error_rate: error_rate(of),
        throughput: number(of.throughput),
        peak_in_flight: of.peak_in_flight,
        warm_up: of.warm_up,
        restarts: of.restarts,
        cold_start: ColdStartJson {
            connect_ms: of.cold.connect.map(millis),
            first_call_ms: of.cold.first_call.map(millis),
        },
        latency_ms: durations(&of.response),
        service_ms: durations(&of.service),
        failed_ms: durations(&of.failed),
        unsure: unsure.map(|(name, _)| *name).collect(),
        histogram: histogram(&of.response),
        bytes_in: of.bytes_in,
        bytes_out: of.bytes_out,
        errors_by_kind: errors.collect(),
        timeline: of.timeline.iter().map(slice).collect(),
        blocks: baseline::blocks_of_run(report, at).iter().map(block).collect(),
        doubts: &of.protocol_warnings,
        fault: of.error.as_ref().map(|error| TargetErrorJson {
            kind: error.kind().as_str(),
            message: error.to_string(),
        }),
    }
}

fn step((at, of): (usize, &TargetReport)) -> Option<StepJson> {
    let concurrency = of.step?;
    let percentile = |share| of.response.quantile(share).map(millis);
    let shown = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)];
    let unsure = shown.iter().filter(|(_, share)| !of.response.is_reliable_at(*share));
    Some(StepJson {
        letter: letter(at).to_string(),
        concurrency,
        requests: of.requests,
        failed: of.failed_calls(),
        throughput: number(of.throughput),
        p50_ms: percentile(0.5),
        p95_ms: percentile(0.95),
        p99_ms: percentile(0.99),
        unsure: unsure.map(|(name, _)| *name).collect(),
    })
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn error_rate(of: &TargetReport) -> Option<f64> {
    if of.requests == 0 { None } else { number(1.0 - of.ok as f64 / of.requests as f64) }
}

fn durations(of: &Durations) -> DurationsJson {
    let at = |share| of.quantile(share).map(millis);
    DurationsJson {
        min: of.min().map(millis),
        mean: of.mean().map(millis),
        stddev: of.stddev().map(millis),
        p50: at(0.5),
        p90: at(0.9),
        p95: at(0.95),
        p99: at(0.99),
        p999: at(0.999),
        max: of.max().map(millis),
    }
}

/// Classes for people, and everything that was counted for programs that read it back.
fn histogram(of: &Durations) -> HistogramJson {
    let bucket = |bucket: &buckets::Bucket| BenchBucketJson {
        to_ms: millis(bucket.to),
        count: bucket.count,
    };
    HistogramJson {
        count: of.count(),
        buckets: buckets::of(of, CLASSES).iter().map(bucket).collect(),
        data: base64::encode(&of.encode()),
    }
}

fn slice(slice: &TimelineSlice) -> TimelineSliceJson {
    let at = |share| slice.response.quantile(share).map(millis);
    TimelineSliceJson {
        from_s: slice.from.as_secs_f64(),
        lasting_s: slice.lasting.as_secs_f64(),
        ok: slice.ok,
        failed: slice.failed,
        p50_ms: at(0.5),
        p95_ms: at(0.95),
        p99_ms: at(0.99),
        max_ms: slice.response.max().map(millis),
    }
}

fn block(turn: &SampleBlock) -> SampleBlockJson {
    SampleBlockJson {
        elapsed_s: turn.elapsed.as_secs_f64(),
        ok: turn.ok,
        failed: turn.failed,
        data: base64::encode(&turn.response.encode()),
    }
}

fn comparison(of: &TargetComparison) -> ComparisonJson<'_> {
    ComparisonJson {
        reference: &of.reference,
        other: &of.other,
        letter: of.letter.to_string(),
        rounds: of.rounds,
        headline: of.headline().map(|ratio| ratio.statistic.name()),
        verdict: of.headline().map_or("not established", |ratio| ratio.verdict.label()),
        sentence: of.headline_sentence(),
        ratios: of.ratios.iter().map(ratio).collect(),
        warnings: &of.warnings,
    }
}

fn ratio(of: &Ratio) -> RatioJson {
    let is_rate = of.statistic == Statistic::Throughput;
    let shown = |value: f64| number(if is_rate { value } else { value / 1e6 });
    RatioJson {
        statistic: of.statistic.name(),
        unit: if is_rate { "per_second" } else { "ms" },
        reference: shown(of.reference),
        other: shown(of.other),
        ratio: number(of.value),
        interval: of.interval.map(|(low, high)| [number(low), number(high)]),
        level: number(of.level),
        propagated_error: of.propagated.and_then(number),
        verdict: of.verdict.label(),
        why: of.verdict.reason(),
    }
}

fn baseline(of: &BaselineReport) -> BaselineJson<'_> {
    BaselineJson {
        file: &of.file,
        began: of.began.as_deref(),
        max_regression: of.max_regression.and_then(number),
        failed: of.failed(),
        targets: of.targets.iter().map(change).collect(),
        warnings: &of.warnings,
    }
}

fn change(of: &BaselineChange) -> BaselineTargetJson<'_> {
    let verdicts = of.verdicts.iter();
    BaselineTargetJson {
        tool: &of.tool,
        verdict: of.verdict().map(|verdict| verdict.label().to_lowercase()),
        judged: verdicts
            .map(|(statistic, verdict)| (statistic.name(), verdict.label().to_lowercase()))
            .collect(),
        ratios: of.ratios.iter().map(ratio).collect(),
    }
}

fn threshold(of: &ThresholdResult) -> ThresholdJson<'_> {
    let lines = of.lines.iter().map(|line| ThresholdLineJson {
        text: &line.text,
        failed: line.failed,
        unsure: line.is_unreliable,
    });
    ThresholdJson { expression: &of.expression, failed: of.failed(), lines: lines.collect() }
}

fn environment(of: &BenchEnvironment) -> EnvironmentJson<'_> {
    let servers = of.servers.iter().map(|server| BenchServerJson {
        tool: &server.tool,
        name: server.name.as_deref(),
        version: server.version.as_deref(),
        protocol: server.protocol.as_deref(),
        cpu_s: server.cpu.map(|time| time.as_secs_f64()),
    });
    EnvironmentJson {
        toolhost: &of.toolhost,
        os: &of.os,
        kernel: of.kernel.as_deref(),
        architecture: &of.architecture,
        cpu: of.cpu.as_deref(),
        cpus: of.cpus,
        load_before: of.load_before.map(|load| load.map(number)),
        load_after: of.load_after.map(|load| load.map(number)),
        servers: servers.collect(),
    }
}

fn plan(of: &BenchPlan) -> PlanJson {
    let model = match &of.model {
        LoadModel::Closed { concurrency } => LoadModelJson::Closed { concurrency: *concurrency },
        LoadModel::Open { arrivals, in_flight, overflow } => LoadModelJson::Open {
            arrivals: self::arrivals(*arrivals),
            in_flight: *in_flight,
            over: match overflow {
                OverflowPolicy::Queue => "queue",
                OverflowPolicy::Drop => "drop",
            },
        },
    };
    PlanJson {
        model,
        requests: of.limits.requests,
        duration_s: of.limits.duration.map(|time| time.as_secs_f64()),
        sharing: match &of.sharing {
            Sharing::Single => SharingJson::Single,
            Sharing::Interleaved { rounds } => SharingJson::Turns { rounds: *rounds },
            Sharing::Steps { in_flight, error_limit } => SharingJson::Steps {
                in_flight: in_flight.clone(),
                error_limit: error_limit.and_then(number),
            },
        },
        warm_up: match of.warm_up {
            WarmUp::Calls(calls) => WarmUpJson::Calls { calls },
            WarmUp::Time(time) => WarmUpJson::Time { time_s: time.as_secs_f64() },
        },
        patience_s: of.drain_timeout.as_secs_f64(),
        stop_after_failures: of.stop_after_failures,
        seed: of.seed,
    }
}

fn arrivals(of: Arrivals) -> ArrivalsJson {
    match of {
        Arrivals::Constant { rate } => ArrivalsJson::Constant { rate: number(rate) },
        Arrivals::Poisson { rate } => ArrivalsJson::Poisson { rate: number(rate) },
    }
}

pub(super) fn timestamp(unix: Duration) -> Option<String> {
    let millis = i64::try_from(unix.as_millis()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(millis).ok().map(|time| time.to_string())
}

#[expect(clippy::cast_precision_loss, reason = "durations are below 2^52 nanoseconds")]
fn millis(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e6
}

/// `None` for what is no number.
fn number(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests;
