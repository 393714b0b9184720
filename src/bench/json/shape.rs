//! The types of a run's JSON. The schema follows from them, so that the two cannot differ.
//!
//! Owns: the keys, their order and their meaning. Fields may be added;
//! [`FORMAT`](crate::bench::baseline::FORMAT) changes when one changes its meaning.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// A run of `toolhost bench`, as --json prints it and --save writes it. The fields of the first
/// target stand at the top; a run on several also has `targets`. Times are in milliseconds (_ms) or
/// seconds (_s). Fields may be added; `format_version` changes when one changes its meaning.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunJson<'a> {
    /// The version of this shape: 1.
    pub format_version: u64,
    /// When the run began (RFC 3339).
    pub began: Option<String>,
    /// `complete`: done as planned; `stopped` by a person; `aborted` by a stop rule or the tool.
    pub ending: &'static str,
    /// From the first call that counts to the end of the last one.
    pub elapsed_s: f64,
    /// `closed`: the next call is made when one has ended; `open`: calls are made at intended
    /// moments, whatever the tool does.
    pub model: &'static str,
    /// Calls in flight (closed), or in flight at most (open).
    pub concurrency: usize,
    /// Calls a second of an open load; null for closed loads and for rates that change.
    pub rate: Option<f64>,
    /// The full name of the first target.
    #[serde(flatten)]
    pub first: Option<TargetJson<'a>>,
    /// The steps of a run with several numbers of calls in flight, in their order; step by step they
    /// are `targets`, too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepJson>,
    /// All targets of a run on several; the first one is A, whose fields stand at the top too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetJson<'a>>,
    /// How well the load was made; open loads only, but for the pause.
    pub generator: GeneratorJson,
    /// Every other target against the first one, when they took turns.
    pub comparison: Vec<ComparisonJson<'a>>,
    /// What changed since the run given by --baseline.
    pub baseline: Option<BaselineJson<'a>>,
    /// What became of each --fail-if.
    pub thresholds: Vec<ThresholdJson<'a>>,
    /// What limits the run, a sentence each.
    pub reading: &'a [String],
    /// What to know before believing the figures.
    pub warnings: &'a [String],
    /// Where the run was made.
    pub environment: EnvironmentJson<'a>,
    /// What the run was asked to do.
    pub plan: PlanJson,
}

/// One step of a run: what so many calls in flight gave.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StepJson {
    /// What thresholds call it: A is the first one.
    pub letter: String,
    /// The number of calls in flight.
    pub concurrency: usize,
    /// Calls that were made and count.
    pub requests: u64,
    /// Of those: without a usable answer.
    pub failed: u64,
    /// Answered calls a second.
    pub throughput: Option<f64>,
    /// The time that half of the answered calls did not exceed, in milliseconds.
    pub p50_ms: Option<f64>,
    /// The time that 95% did not exceed, in milliseconds.
    pub p95_ms: Option<f64>,
    /// The time that 99% did not exceed, in milliseconds.
    pub p99_ms: Option<f64>,
    /// Those of the percentiles with fewer than ten calls beyond them.
    pub unsure: Vec<&'static str>,
}

/// A tool that the run called.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TargetJson<'a> {
    /// The full name of the tool.
    pub tool: &'a str,
    /// What thresholds call it: A is the first one.
    pub letter: String,
    /// Which program was behind the name, as 12 hexadecimal digits; null for tools without an
    /// entry of a file.
    pub program: Option<&'a str>,
    /// The protocol revision, for tools of MCP servers.
    pub protocol: Option<&'a str>,
    /// Calls that were made and count; those to warm up are apart.
    pub requests: u64,
    /// Of those: the tool answered.
    pub ok: u64,
    /// Calls that the tool answered with an error.
    pub tool_errors: u64,
    /// No usable answer came, timeouts not included.
    pub errors: u64,
    /// Calls that a limit of time ended.
    pub timeouts: u64,
    /// The run ended before their answers came.
    pub unanswered: u64,
    /// Not made, because too many were in flight.
    pub dropped: u64,
    /// Calls that were not answered, of all that were made.
    pub error_rate: Option<f64>,
    /// Answered calls a second of the run.
    pub throughput: Option<f64>,
    /// The most that were in flight at once.
    pub peak_in_flight: u64,
    /// Calls that were made to warm up and are not part of any figure.
    pub warm_up: u64,
    /// How often the way to the tool had to be opened again.
    pub restarts: u64,
    /// What came before the first call that counts.
    pub cold_start: ColdStartJson,
    /// Of answered calls, from the intended start (open load) or the sending (closed load).
    pub latency_ms: DurationsJson,
    /// Of answered calls, from the sending.
    pub service_ms: DurationsJson,
    /// Of calls that failed or were refused by the tool, from the sending.
    pub failed_ms: DurationsJson,
    /// Percentiles of `latency_ms` with fewer than ten calls beyond them.
    pub unsure: Vec<&'static str>,
    /// Latency distribution.
    pub histogram: HistogramJson,
    /// Bytes received, as far as they are counted.
    pub bytes_in: u64,
    /// Bytes sent, as far as they are counted.
    pub bytes_out: u64,
    /// What went wrong, by kind.
    pub errors_by_kind: BTreeMap<&'a str, ErrorCountJson<'a>>,
    /// What happened when; a call belongs to the stretch in which it ended.
    pub timeline: Vec<TimelineSliceJson>,
    /// Stretches that show how much the run varied: its rounds, or parts of its timeline.
    pub blocks: Vec<SampleBlockJson>,
    /// What was odd about the tool's traffic.
    pub doubts: &'a [String],
    /// Why it was not called any more, when that was before the plan was done.
    pub fault: Option<TargetErrorJson>,
}

/// What came before the first call that counts; null what did not happen.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ColdStartJson {
    /// Connecting, in milliseconds.
    pub connect_ms: Option<f64>,
    /// The first call, in milliseconds.
    pub first_call_ms: Option<f64>,
}

/// Times in milliseconds; null without a call.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DurationsJson {
    /// The shortest call of all.
    pub min: Option<f64>,
    /// The mean of all calls.
    pub mean: Option<f64>,
    /// The standard deviation around the mean.
    pub stddev: Option<f64>,
    /// The median: half of the calls.
    pub p50: Option<f64>,
    /// The time that 90% do not exceed.
    pub p90: Option<f64>,
    /// The time that 95% do not exceed.
    pub p95: Option<f64>,
    /// The time that 99% do not exceed.
    pub p99: Option<f64>,
    /// The time that 99.9% do not exceed.
    pub p999: Option<f64>,
    /// The longest call of all.
    pub max: Option<f64>,
}

/// Latency distribution.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HistogramJson {
    /// The number of calls in all buckets.
    pub count: u64,
    /// Classes of equal ratio: calls above the class before and not above this.
    pub buckets: Vec<BenchBucketJson>,
    /// All of `latency_ms` to three digits, in a form of toolhost's own (base64), for --baseline.
    pub data: String,
}

/// A class of durations in a histogram.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BenchBucketJson {
    /// Its upper end, which belongs to it.
    pub to_ms: f64,
    /// How many calls fell into it.
    pub count: u64,
}

/// What went wrong in one way.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ErrorCountJson<'a> {
    /// How many calls failed so.
    pub count: u64,
    /// When the first came, since the first call that counts.
    pub first_seen_s: f64,
    /// What was said then, cut.
    pub sample: &'a str,
}

/// A part of the run, by time.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TimelineSliceJson {
    /// When it began, since the first call that counts.
    pub from_s: f64,
    /// How long it lasted, in seconds.
    pub lasting_s: f64,
    /// Answered calls that ended in it.
    pub ok: u64,
    /// Other calls that ended in it.
    pub failed: u64,
    /// The median of the answered calls.
    pub p50_ms: Option<f64>,
    /// The time that 95% of them do not exceed.
    pub p95_ms: Option<f64>,
    /// The time that 99% of them do not exceed.
    pub p99_ms: Option<f64>,
    /// The longest of the answered calls.
    pub max_ms: Option<f64>,
}

/// A stretch whose figures are compared with those of others.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SampleBlockJson {
    /// How long it lasted, in seconds.
    pub elapsed_s: f64,
    /// Calls that the tool answered in it.
    pub ok: u64,
    /// Calls in it that were not answered.
    pub failed: u64,
    /// As `histogram.data`, of this stretch.
    pub data: String,
}

/// Why a tool was not called any more.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TargetErrorJson {
    /// The word of the exit code table.
    pub kind: &'static str,
    /// What happened, in words for people.
    pub message: String,
}

/// How well the load was made.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GeneratorJson {
    /// From the moment when a call could be sent to its sending.
    pub lag_ms: DurationsJson,
    /// Calls that were sent more than a millisecond after they could be.
    pub late: u64,
    /// Calls whose moment came while as many as allowed were in flight.
    pub queued: u64,
    /// How long the run was paused; no part of any other figure.
    pub paused_s: f64,
}

/// A target against the first one.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ComparisonJson<'a> {
    /// The full name of the first target.
    pub reference: &'a str,
    /// The full name of the other one.
    pub other: &'a str,
    /// The letter of the other one.
    pub letter: String,
    /// How many turns each had.
    pub rounds: usize,
    /// The statistic that decides.
    pub headline: Option<&'static str>,
    /// `slower`, `faster` or `not established`.
    pub verdict: &'static str,
    /// The same in a sentence.
    pub sentence: String,
    /// The statistics that both of them have.
    pub ratios: Vec<RatioJson>,
    /// What makes the comparison doubtful.
    pub warnings: &'a [String],
}

/// A statistic of two targets or runs, divided.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RatioJson {
    /// `p50`, `mean`, `p90`, `p95`, `p99` or `throughput`.
    pub statistic: &'static str,
    /// `ms` or `per_second`.
    pub unit: &'static str,
    /// The figure of the reference, or of the saved run.
    pub reference: Option<f64>,
    /// The figure of the other one, or of this run.
    pub other: Option<f64>,
    /// The other figure divided by the reference.
    pub ratio: Option<f64>,
    /// Where the true ratio lies, at this level; null when there is too little to tell.
    pub interval: Option<[Option<f64>; 2]>,
    /// How sure the interval is. Figures that inform share the risk of the one that decides, so
    /// theirs are wider.
    pub level: Option<f64>,
    /// For the mean: what follows from the spread of single calls, as hyperfine tells it.
    pub propagated_error: Option<f64>,
    /// `slower`, `faster` or `not established`.
    pub verdict: &'static str,
    /// Why nothing is established.
    pub why: Option<&'static str>,
}

/// What changed since a saved run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BaselineJson<'a> {
    /// The file of the saved run.
    pub file: &'a str,
    /// When it began, as written there.
    pub began: Option<&'a str>,
    /// The share by which a figure may be worse; null: nothing is judged.
    pub max_regression: Option<f64>,
    /// Whether a regression is established, or there was nothing to compare.
    pub failed: bool,
    /// The targets that both runs have.
    pub targets: Vec<BaselineTargetJson<'a>>,
    /// What makes the two hard to compare.
    pub warnings: &'a [String],
}

/// What changed about one target.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BaselineTargetJson<'a> {
    /// The full name, in this run.
    pub tool: &'a str,
    /// For --max-regression: `pass`, `fail` or `not established`; null without it.
    pub verdict: Option<String>,
    /// The same for each statistic that is judged.
    pub judged: BTreeMap<&'static str, String>,
    /// This run divided by the saved one.
    pub ratios: Vec<RatioJson>,
}

/// What became of a --fail-if.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ThresholdJson<'a> {
    /// The expression as it was given.
    pub expression: &'a str,
    /// Whether it is true, which fails the run.
    pub failed: bool,
    /// What it was compared with.
    pub lines: Vec<ThresholdLineJson<'a>>,
}

/// One comparison of a threshold.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ThresholdLineJson<'a> {
    /// The figure and its bound.
    pub text: &'a str,
    /// Whether it is true.
    pub failed: bool,
    /// Whether it rests on a percentile of too few calls.
    pub unsure: bool,
}

/// Where the run was made; null what the system does not tell.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EnvironmentJson<'a> {
    /// The version of toolhost that measured.
    pub toolhost: &'a str,
    /// The operating system it ran on.
    pub os: &'a str,
    /// The version of the system's kernel.
    pub kernel: Option<&'a str>,
    /// The architecture of the processor.
    pub architecture: &'a str,
    /// The name of the processor model.
    pub cpu: Option<&'a str>,
    /// How many processors the system has.
    pub cpus: Option<usize>,
    /// Runnable processes on average over 1, 5 and 15 minutes, before the run.
    pub load_before: Option<[Option<f64>; 3]>,
    /// The same averages after the run.
    pub load_after: Option<[Option<f64>; 3]>,
    /// The servers of the targets, as they introduced themselves.
    pub servers: Vec<BenchServerJson<'a>>,
}

/// The MCP server of a target.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BenchServerJson<'a> {
    /// The full name of the tool.
    pub tool: &'a str,
    /// The name of the server, as it says.
    pub name: Option<&'a str>,
    /// The version that the server gives itself.
    pub version: Option<&'a str>,
    /// The protocol revision that was agreed on.
    pub protocol: Option<&'a str>,
}

/// What the run was asked to do.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlanJson {
    /// When the calls of a run are made.
    pub model: LoadModelJson,
    /// How many calls count, at most.
    pub requests: Option<u64>,
    /// How long calls are made, at most.
    pub duration_s: Option<f64>,
    /// How several targets share the run.
    pub sharing: SharingJson,
    /// What comes before the calls that count.
    pub warm_up: WarmUpJson,
    /// How long answers are waited for at the end.
    pub patience_s: f64,
    /// What ends the run early.
    pub stop_rules: Vec<StopRuleJson>,
    /// What has to be measured before a stop rule holds.
    pub grace: GraceJson,
    /// The seed of everything random.
    pub seed: u64,
}

/// When the calls of a run are made.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LoadModelJson {
    /// As soon as one has ended.
    Closed {
        /// The number of calls in flight.
        concurrency: usize,
    },
    /// At intended moments, whatever the tool does.
    Open {
        /// The moments at which calls are made.
        arrivals: ArrivalsJson,
        /// The most calls in flight.
        in_flight: usize,
        /// What becomes of a call beyond that: `queue` or `drop`.
        over: &'static str,
    },
}

/// The moments of an open load.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ArrivalsJson {
    /// One call after the other at equal distances.
    Constant {
        /// The rate in calls a second.
        rate: Option<f64>,
    },
    /// At random, as independent callers would.
    Poisson {
        /// Calls a second, on average.
        rate: Option<f64>,
    },
    /// One rate after the other.
    Steps {
        /// The rates in their order.
        steps: Vec<RateStepJson>,
    },
}

/// A rate for some time.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RateStepJson {
    /// The rate in calls a second.
    pub rate: Option<f64>,
    /// How long it lasts, in seconds.
    pub lasting_s: f64,
}

/// How several targets share the run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SharingJson {
    /// All at once, by their shares.
    Mixed,
    /// They take turns, one after the other.
    Turns {
        /// How many turns each of them has.
        rounds: u32,
    },
    /// One target, with another number of calls in flight in each step.
    Steps {
        /// Calls in flight of each step.
        in_flight: Vec<usize>,
        /// No step follows one of whose calls a larger share failed.
        error_limit: Option<f64>,
    },
}

/// What comes before the calls that count.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum WarmUpJson {
    /// A number of calls that do not count.
    Calls {
        /// The number of calls for each target.
        calls: u64,
    },
    /// Calls during a time that do not count.
    Time {
        /// How long it lasts, in seconds.
        time_s: f64,
    },
}

/// What ends the run early.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum StopRuleJson {
    /// So many failures, one after the other.
    InARow {
        /// The number that ends the run.
        failures_in_a_row: u64,
    },
    /// A number of failures in all.
    Failures {
        /// The number that ends the run.
        failures: u64,
    },
}

/// What has to be measured before a stop rule holds.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GraceJson {
    /// Calls that have to end.
    pub calls: u64,
    /// The time that has to pass.
    pub time_s: f64,
}
