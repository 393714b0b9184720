//! The documented JSON of a run: what `bench --json` prints and `--save` writes. The first target stands
//! flat at the top; several are a list as well. Fields may be added; [`FORMAT`] changes when one changes
//! its meaning.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use super::baseline::{self, BaselineChange, BaselineReport, FORMAT, RegressionVerdict};
use super::bench_result::BenchFindings;
use super::compare::{Ratio, TargetComparison, letter};
use super::environment::BenchEnvironment;
use super::plan::BenchPlan;
use super::report::{
    BenchReport, ColdStart, ErrorReport, GeneratorReport, RunStatus, SampleBlock, TargetReport,
    TimelineSlice,
};
use super::statistic::Statistic;
use super::threshold::{ThresholdLine, ThresholdResult};
use crate::model::Error;
use crate::util::base64;
use crate::util::histogram::{Distribution, Durations, logarithmic};
use crate::util::shape::shape;
use crate::util::units::{float, nanos};

/// Classes of the histogram that is written for people; the exact one is written next to it.
const CLASSES: usize = 40;

/// The percentiles that files have, with their names and shares.
pub(super) const PERCENTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)];

shape! {
    /// A run of `toolhost bench`, as --json prints it and --save writes it. The fields of the first
    /// target are at the top level; a run on several also has `targets`. Times are in milliseconds
    /// (_ms) or seconds (_s). Fields may be added; `format_version` changes when one changes its meaning.
    pub RunJson<'a> of (report, environment, findings): (&'a BenchReport, &'a BenchEnvironment, &'a BenchFindings), with {
        let all = || (0..report.targets.len()).map(|at| TargetJson::from((report, at)));
        let (model, concurrency, rate) = report.plan.load();
    } {
        /// The version of this shape: 1.
        format_version: u64 = FORMAT,
        /// When the run started (RFC 3339).
        began: Option<String> = timestamp(report.began),
        /// `complete`: ran as planned; `stopped` by the user; `aborted` by a stop rule or the tool.
        ending: &'static str = match report.status {
            RunStatus::Complete => "complete",
            RunStatus::Stopped => "stopped",
            RunStatus::Aborted => "aborted",
        },
        /// From the first counted call to the end of the last one.
        elapsed_s: f64 = report.elapsed.as_secs_f64(),
        /// `closed`: a call starts when another ends; `open`: calls start on a schedule,
        /// however fast the tool answers.
        model: &'static str = model,
        /// Calls in flight (closed), or the maximum in flight (open).
        concurrency: usize = concurrency,
        /// Calls per second of an open load; null for closed loads and for changing rates.
        rate: Option<f64> = rate,
        /// The full name of the first target.
        #[serde(flatten)]
        first: Option<TargetJson<'a>> = all().next(),
        /// The steps of a run with several numbers of calls in flight, in order; each step is also one
        /// of the `targets`.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        steps: Vec<StepJson> = report.targets.iter().enumerate().filter_map(|(at, of)| Some((at, of, of.step?).into())).collect(),
        /// All targets of a run on several; the first is A, whose fields are also at the top level.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        targets: Vec<TargetJson<'a>> = if report.targets.len() > 1 { all().collect() } else { Vec::new() },
        /// How well the load was generated; open loads only, except for the pause.
        generator: GeneratorJson = (&report.generator).into(),
        /// Every other target compared with the first one, when their rounds were interleaved.
        comparison: Vec<ComparisonJson<'a>> = findings.comparisons.iter().map(Into::into).collect(),
        /// What changed since the run given by --baseline.
        baseline: Option<BaselineJson<'a>> = findings.baseline.as_ref().map(Into::into),
        /// The result of each --fail-if.
        thresholds: Vec<ThresholdJson<'a>> = findings.thresholds.iter().map(Into::into).collect(),
        /// What limits the run, one sentence each.
        reading: &'a [String] = &findings.bottlenecks,
        /// Reasons to doubt the figures.
        warnings: &'a [String] = &findings.warnings,
        /// Where the run was made.
        environment: &'a BenchEnvironment = environment,
        /// What the run was asked to do.
        plan: &'a BenchPlan = &report.plan,
    }
}

shape! {
    /// One step of a run, with its number of calls in flight.
    pub StepJson of (at, of, concurrency): (usize, &TargetReport, usize), with {
        let percentile = |share| of.response.quantile(share).map(millis);
    } {
        /// What thresholds call it: A is the first one.
        letter: String = letter(at).to_string(),
        /// The number of calls in flight.
        concurrency: usize = concurrency,
        /// Calls that were made and counted.
        requests: u64 = of.requests,
        /// Of those, the calls without a usable answer.
        failed: u64 = of.failed_calls(),
        /// Answered calls per second.
        throughput: Option<f64> = number(of.throughput),
        /// The median time of the answered calls, in milliseconds.
        p50_ms: Option<f64> = percentile(0.5),
        /// The time that 95% did not exceed, in milliseconds.
        p95_ms: Option<f64> = percentile(0.95),
        /// The time that 99% did not exceed, in milliseconds.
        p99_ms: Option<f64> = percentile(0.99),
        /// The percentiles with fewer than ten calls above them.
        unsure: Vec<&'static str> = unsure(&of.response, &[("p50", 0.5), ("p95", 0.95), ("p99", 0.99)]),
    }
}

shape! {
    /// A tool that the run called.
    pub TargetJson<'a> of (report, at): (&'a BenchReport, usize), with {
        let of = &report.targets[at];
    } {
        /// The full name of the tool.
        tool: &'a str = &of.tool,
        /// What thresholds call it: A is the first one.
        letter: String = letter(at).to_string(),
        /// The program behind the name, as 12 hexadecimal digits; null for tools without an entry in
        /// a file.
        program: Option<&'a str> = of.program.as_deref(),
        /// The protocol revision, for tools of MCP servers.
        protocol: Option<&'a str> = of.protocol.as_deref(),
        /// Calls that were made and counted; warm-up calls are separate.
        requests: u64 = of.requests,
        /// Of those, the calls that the tool answered.
        ok: u64 = of.ok,
        /// Calls that the tool answered with an error.
        tool_errors: u64 = of.tool_errors,
        /// Calls without a usable answer, timeouts not included.
        errors: u64 = of.errors,
        /// Calls that ended by a timeout.
        timeouts: u64 = of.timeouts,
        /// Calls still unanswered when the run ended.
        unanswered: u64 = of.unanswered,
        /// Calls not made, because too many were in flight.
        dropped: u64 = of.dropped,
        /// The share of the calls made that were not answered.
        error_rate: Option<f64> = (of.requests > 0).then(|| 1.0 - float(of.ok) / float(of.requests)).and_then(number),
        /// Answered calls per second of the run.
        throughput: Option<f64> = number(of.throughput),
        /// The maximum in flight at once.
        peak_in_flight: u64 = of.peak_in_flight,
        /// Warm-up calls, which no other figure includes.
        warm_up: u64 = of.warm_up,
        /// How often the connection to the tool was reopened.
        restarts: u64 = of.restarts,
        /// What came before the first counted call.
        cold_start: ColdStartJson = ColdStartJson::from(&of.cold),
        /// Of answered calls, from the intended start (open load) or the sending (closed load).
        latency_ms: DurationsJson = (&of.response).into(),
        /// Of answered calls, from sending.
        service_ms: DurationsJson = (&of.service).into(),
        /// Of calls that failed or were refused by the tool, from sending.
        failed_ms: DurationsJson = (&of.failed).into(),
        /// Percentiles of `latency_ms` with fewer than ten calls above them.
        unsure: Vec<&'static str> = unsure(&of.response, &PERCENTILES),
        /// Latency distribution.
        histogram: HistogramJson = (&of.response).into(),
        /// Bytes received, where they are counted.
        bytes_in: u64 = of.bytes_in,
        /// Bytes sent, where they are counted.
        bytes_out: u64 = of.bytes_out,
        /// Failed calls by kind of failure.
        errors_by_kind: &'a BTreeMap<String, ErrorReport> = &of.errors_by_kind,
        /// The run over time; a call belongs to the slice in which it ended.
        timeline: Vec<TimelineSliceJson> = of.timeline.iter().map(Into::into).collect(),
        /// Parts of the run that show how much it varied: its rounds, or parts of its timeline.
        blocks: Vec<SampleBlockJson> = baseline::blocks_of_run(report, at).iter().map(Into::into).collect(),
        /// Oddities in the tool's traffic.
        doubts: &'a [String] = &of.protocol_warnings,
        /// Why its calls stopped before the plan was done, if they did.
        fault: Option<TargetErrorJson> = of.error.as_ref().map(Into::into),
    }
}

shape! {
    /// What came before the first counted call; null if it did not happen.
    pub ColdStartJson of cold: &ColdStart {
        /// Connecting, in milliseconds.
        connect_ms: Option<f64> = cold.connect.map(millis),
        /// The first call, in milliseconds.
        first_call_ms: Option<f64> = cold.first_call.map(millis),
    }
}

shape! {
    /// Times in milliseconds; null without calls.
    pub DurationsJson of of: &Durations, with {
        let at = |share| of.quantile(share).map(millis);
    } {
        /// The shortest call of all.
        min: Option<f64> = of.min().map(millis),
        /// The mean of all calls.
        mean: Option<f64> = of.mean().map(millis),
        /// The standard deviation around the mean.
        stddev: Option<f64> = of.stddev().map(millis),
        /// The median of all calls.
        p50: Option<f64> = at(0.5),
        /// The time that 90% do not exceed.
        p90: Option<f64> = at(0.9),
        /// The time that 95% do not exceed.
        p95: Option<f64> = at(0.95),
        /// The time that 99% do not exceed.
        p99: Option<f64> = at(0.99),
        /// The time that 99.9% do not exceed.
        p999: Option<f64> = at(0.999),
        /// The longest call of all.
        max: Option<f64> = of.max().map(millis),
    }
}

shape! {
    /// Latency distribution.
    pub HistogramJson of of: &Durations {
        /// The number of calls in all buckets.
        count: u64 = of.count(),
        /// Classes of equal ratio: calls above the class before and not above this. The longest thousandth
        /// is one of its own.
        buckets: Vec<BenchBucketJson> = logarithmic(of, CLASSES).iter().flat_map(Distribution::all).map(Into::into).collect(),
        /// All of `latency_ms` to three digits, in toolhost's own format (base64), for --baseline.
        data: String = base64::encode(&of.encode()),
    }
}

shape! {
    /// A class of durations in a histogram.
    pub BenchBucketJson of (to, count): (Duration, u64) {
        /// Its upper end, which belongs to it.
        to_ms: f64 = millis(to),
        /// How many calls fell into it.
        count: u64 = count,
    }
}

shape! {
    /// A time slice of the run.
    pub TimelineSliceJson of slice: &TimelineSlice, with {
        let at = |share| slice.response.quantile(share).map(millis);
    } {
        /// When it started, in seconds since the first counted call.
        from_s: f64 = slice.from.as_secs_f64(),
        /// How long it lasted, in seconds.
        lasting_s: f64 = slice.lasting.as_secs_f64(),
        /// Answered calls that ended in it.
        ok: u64 = slice.ok,
        /// Other calls that ended in it.
        failed: u64 = slice.failed,
        /// The median of the answered calls.
        p50_ms: Option<f64> = at(0.5),
        /// The time that 95% of them do not exceed.
        p95_ms: Option<f64> = at(0.95),
        /// The time that 99% of them do not exceed.
        p99_ms: Option<f64> = at(0.99),
        /// The longest of the answered calls.
        max_ms: Option<f64> = slice.response.max().map(millis),
    }
}

shape! {
    /// A part of the run, compared with other parts.
    pub SampleBlockJson of turn: &SampleBlock {
        /// How long it lasted, in seconds.
        elapsed_s: f64 = turn.elapsed.as_secs_f64(),
        /// Calls that the tool answered in it.
        ok: u64 = turn.ok,
        /// Calls in it that were not answered.
        failed: u64 = turn.failed,
        /// Like `histogram.data`, but for this part.
        data: String = base64::encode(&turn.response.encode()),
    }
}

shape! {
    /// Why the calls of a tool stopped.
    pub TargetErrorJson of error: &Error {
        /// The error kind, as in the exit code table.
        kind: &'static str = error.kind().as_str(),
        /// The message of the error.
        message: String = error.to_string(),
    }
}

shape! {
    /// How well the load was generated.
    pub GeneratorJson of of: &GeneratorReport {
        /// From the moment when a call could be sent to its sending.
        lag_ms: DurationsJson = (&of.lag).into(),
        /// Calls that were sent more than a millisecond after they could be.
        late: u64 = of.late,
        /// Calls that came due while the maximum was in flight.
        queued: u64 = of.queued,
        /// How long the run was paused; no other figure includes it.
        paused_s: f64 = of.paused.as_secs_f64(),
        /// The processor time that toolhost used for the run.
        cpu_s: Option<f64> = of.cpu.map(|time| time.as_secs_f64()),
    }
}

shape! {
    /// A target compared with the first one.
    pub ComparisonJson<'a> of of: &'a TargetComparison {
        /// The full name of the first target.
        reference: &'a str = &of.reference,
        /// The full name of the other one.
        other: &'a str = &of.other,
        /// The letter of the other one.
        letter: String = of.letter.to_string(),
        /// How many rounds each had.
        rounds: usize = of.rounds,
        /// The statistic that decides.
        headline: Option<&'static str> = of.headline().map(|ratio| ratio.statistic.name()),
        /// `slower`, `faster` or `not established`.
        verdict: &'static str = of.headline().map_or("not established", |ratio| ratio.verdict.label()),
        /// The same in a sentence.
        sentence: String = of.headline_sentence(),
        /// The statistics that both have.
        ratios: Vec<RatioJson> = of.ratios.iter().map(Into::into).collect(),
        /// What makes the comparison doubtful.
        warnings: &'a [String] = &of.warnings,
    }
}

shape! {
    /// The ratio of a statistic between two targets or runs.
    pub RatioJson of of: &Ratio, with {
        let is_rate = of.statistic == Statistic::Throughput;
        let shown = |value: f64| number(if is_rate { value } else { value / 1e6 });
    } {
        /// `p50`, `mean`, `p90`, `p95`, `p99` or `throughput`.
        statistic: &'static str = of.statistic.name(),
        /// `ms` or `per_second`.
        unit: &'static str = if is_rate { "per_second" } else { "ms" },
        /// The figure of the reference, or of the saved run.
        reference: Option<f64> = shown(of.reference),
        /// The figure of the other one, or of this run.
        other: Option<f64> = shown(of.other),
        /// The other figure divided by the reference.
        ratio: Option<f64> = number(of.value),
        /// The confidence interval of the ratio, at `level`; null with too little data.
        interval: Option<[Option<f64>; 2]> = of.interval.map(|(low, high)| [number(low), number(high)]),
        /// The confidence level of the interval. Figures that do not decide share the same
        /// risk, so their intervals are wider.
        level: Option<f64> = number(of.level),
        /// For the mean: the error propagated from the spread of single calls, as hyperfine reports it.
        propagated_error: Option<f64> = of.propagated.and_then(number),
        /// `slower`, `faster` or `not established`.
        verdict: &'static str = of.verdict.label(),
        /// Why nothing is established.
        why: Option<&'static str> = of.verdict.reason(),
    }
}

shape! {
    /// What changed since a saved run.
    pub BaselineJson<'a> of of: &'a BaselineReport {
        /// The file of the saved run.
        file: &'a str = &of.file,
        /// When it started, as written in the file.
        began: Option<&'a str> = of.began.as_deref(),
        /// The share by which a figure may be worse; null if nothing is judged.
        max_regression: Option<f64> = of.max_regression.and_then(number),
        /// Whether a regression is established, or there was nothing to compare.
        failed: bool = of.failed(),
        /// The targets that both runs have.
        targets: Vec<BaselineTargetJson<'a>> = of.targets.iter().map(Into::into).collect(),
        /// What makes the two runs hard to compare.
        warnings: &'a [String] = &of.warnings,
    }
}

shape! {
    /// What changed about one target.
    pub BaselineTargetJson<'a> of of: &'a BaselineChange, with {
        let word = |verdict: RegressionVerdict| verdict.label().to_lowercase();
    } {
        /// The full name, in this run.
        tool: &'a str = &of.tool,
        /// For --max-regression: `pass`, `fail` or `not established`; null without it.
        verdict: Option<String> = of.verdict().map(word),
        /// The same for each statistic that is judged.
        judged: BTreeMap<&'static str, String> = of.verdicts.iter().map(|(statistic, verdict)| (statistic.name(), word(*verdict))).collect(),
        /// This run divided by the saved one.
        ratios: Vec<RatioJson> = of.ratios.iter().map(Into::into).collect(),
    }
}

shape! {
    /// The result of a --fail-if.
    pub ThresholdJson<'a> of of: &'a ThresholdResult {
        /// The expression as it was given.
        expression: &'a str = &of.expression,
        /// Whether it is true, which makes the run fail.
        failed: bool = of.failed(),
        /// What it was compared with.
        lines: &'a [ThresholdLine] = &of.lines,
    }
}

/// Which of the percentiles rest on too few calls.
fn unsure(of: &Durations, percentiles: &[(&'static str, f64)]) -> Vec<&'static str> {
    let unsure = percentiles.iter().filter(|(_, share)| !of.is_reliable_at(*share));
    unsure.map(|(name, _)| *name).collect()
}

pub fn timestamp(unix: Duration) -> Option<String> {
    let millis = i64::try_from(unix.as_millis()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(millis).ok().map(|time| time.to_string())
}

/// A duration in milliseconds, to the nanosecond.
pub(super) fn millis(duration: Duration) -> f64 {
    nanos(duration) / 1e6
}

/// `None` for what is no number.
fn number(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
