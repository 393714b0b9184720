//! The types of a run's JSON. The schema follows from them, so that the two cannot differ.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// A run of `toolhost bench`, as --json prints it and --save writes it. The fields of the first
/// target are at the top level; a run on several also has `targets`. Times are in milliseconds
/// (_ms) or seconds (_s). Fields may be added; `format_version` changes when one changes its meaning.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunJson<'a> {
    /// The version of this shape: 1.
    pub format_version: u64,
    /// When the run started (RFC 3339).
    pub began: Option<String>,
    /// `complete`: ran as planned; `stopped` by the user; `aborted` by a stop rule or the tool.
    pub ending: &'static str,
    /// From the first counted call to the end of the last one.
    pub elapsed_s: f64,
    /// `closed`: a call starts when another ends; `open`: calls start on a schedule,
    /// however fast the tool answers.
    pub model: &'static str,
    /// Calls in flight (closed), or the maximum in flight (open).
    pub concurrency: usize,
    /// Calls per second of an open load; null for closed loads and for changing rates.
    pub rate: Option<f64>,
    /// The full name of the first target.
    #[serde(flatten)]
    pub first: Option<TargetJson<'a>>,
    /// The steps of a run with several numbers of calls in flight, in order; each step is also one
    /// of the `targets`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepJson>,
    /// All targets of a run on several; the first is A, whose fields are also at the top level.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetJson<'a>>,
    /// How well the load was generated; open loads only, except for the pause.
    pub generator: GeneratorJson,
    /// Every other target compared with the first one, when their rounds were interleaved.
    pub comparison: Vec<ComparisonJson<'a>>,
    /// What changed since the run given by --baseline.
    pub baseline: Option<BaselineJson<'a>>,
    /// The result of each --fail-if.
    pub thresholds: Vec<ThresholdJson<'a>>,
    /// What limits the run, one sentence each.
    pub reading: &'a [String],
    /// Reasons to doubt the figures.
    pub warnings: &'a [String],
    /// Where the run was made.
    pub environment: EnvironmentJson<'a>,
    /// What the run was asked to do.
    pub plan: PlanJson,
}

/// One step of a run, with its number of calls in flight.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StepJson {
    /// What thresholds call it: A is the first one.
    pub letter: String,
    /// The number of calls in flight.
    pub concurrency: usize,
    /// Calls that were made and counted.
    pub requests: u64,
    /// Of those, the calls without a usable answer.
    pub failed: u64,
    /// Answered calls per second.
    pub throughput: Option<f64>,
    /// The median time of the answered calls, in milliseconds.
    pub p50_ms: Option<f64>,
    /// The time that 95% did not exceed, in milliseconds.
    pub p95_ms: Option<f64>,
    /// The time that 99% did not exceed, in milliseconds.
    pub p99_ms: Option<f64>,
    /// The percentiles with fewer than ten calls above them.
    pub unsure: Vec<&'static str>,
}

/// A tool that the run called.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TargetJson<'a> {
    /// The full name of the tool.
    pub tool: &'a str,
    /// What thresholds call it: A is the first one.
    pub letter: String,
    /// The program behind the name, as 12 hexadecimal digits; null for tools without an entry in
    /// a file.
    pub program: Option<&'a str>,
    /// The protocol revision, for tools of MCP servers.
    pub protocol: Option<&'a str>,
    /// Calls that were made and counted; warm-up calls are separate.
    pub requests: u64,
    /// Of those, the calls that the tool answered.
    pub ok: u64,
    /// Calls that the tool answered with an error.
    pub tool_errors: u64,
    /// Calls without a usable answer, timeouts not included.
    pub errors: u64,
    /// Calls that ended by a timeout.
    pub timeouts: u64,
    /// Calls still unanswered when the run ended.
    pub unanswered: u64,
    /// Calls not made, because too many were in flight.
    pub dropped: u64,
    /// The share of the calls made that were not answered.
    pub error_rate: Option<f64>,
    /// Answered calls per second of the run.
    pub throughput: Option<f64>,
    /// The maximum in flight at once.
    pub peak_in_flight: u64,
    /// Warm-up calls, which no other figure includes.
    pub warm_up: u64,
    /// How often the connection to the tool was reopened.
    pub restarts: u64,
    /// What came before the first counted call.
    pub cold_start: ColdStartJson,
    /// Of answered calls, from the intended start (open load) or the sending (closed load).
    pub latency_ms: DurationsJson,
    /// Of answered calls, from sending.
    pub service_ms: DurationsJson,
    /// Of calls that failed or were refused by the tool, from sending.
    pub failed_ms: DurationsJson,
    /// Percentiles of `latency_ms` with fewer than ten calls above them.
    pub unsure: Vec<&'static str>,
    /// Latency distribution.
    pub histogram: HistogramJson,
    /// Bytes received, where they are counted.
    pub bytes_in: u64,
    /// Bytes sent, where they are counted.
    pub bytes_out: u64,
    /// Failed calls by kind of failure.
    pub errors_by_kind: BTreeMap<&'a str, ErrorCountJson<'a>>,
    /// The run over time; a call belongs to the slice in which it ended.
    pub timeline: Vec<TimelineSliceJson>,
    /// Parts of the run that show how much it varied: its rounds, or parts of its timeline.
    pub blocks: Vec<SampleBlockJson>,
    /// Oddities in the tool's traffic.
    pub doubts: &'a [String],
    /// Why its calls stopped before the plan was done, if they did.
    pub fault: Option<TargetErrorJson>,
}

/// What came before the first counted call; null if it did not happen.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ColdStartJson {
    /// Connecting, in milliseconds.
    pub connect_ms: Option<f64>,
    /// The first call, in milliseconds.
    pub first_call_ms: Option<f64>,
}

/// Times in milliseconds; null without calls.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DurationsJson {
    /// The shortest call of all.
    pub min: Option<f64>,
    /// The mean of all calls.
    pub mean: Option<f64>,
    /// The standard deviation around the mean.
    pub stddev: Option<f64>,
    /// The median of all calls.
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
    /// All of `latency_ms` to three digits, in toolhost's own format (base64), for --baseline.
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

/// The failures of one kind.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ErrorCountJson<'a> {
    /// How many calls failed this way.
    pub count: u64,
    /// When the first one occurred, in seconds since the first counted call.
    pub first_seen_s: f64,
    /// The message of the first one, truncated.
    pub sample: &'a str,
}

/// A time slice of the run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TimelineSliceJson {
    /// When it started, in seconds since the first counted call.
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

/// A part of the run, compared with other parts.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SampleBlockJson {
    /// How long it lasted, in seconds.
    pub elapsed_s: f64,
    /// Calls that the tool answered in it.
    pub ok: u64,
    /// Calls in it that were not answered.
    pub failed: u64,
    /// Like `histogram.data`, but for this part.
    pub data: String,
}

/// Why the calls of a tool stopped.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TargetErrorJson {
    /// The error kind, as in the exit code table.
    pub kind: &'static str,
    /// The message of the error.
    pub message: String,
}

/// How well the load was generated.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GeneratorJson {
    /// From the moment when a call could be sent to its sending.
    pub lag_ms: DurationsJson,
    /// Calls that were sent more than a millisecond after they could be.
    pub late: u64,
    /// Calls that came due while the maximum was in flight.
    pub queued: u64,
    /// How long the run was paused; no other figure includes it.
    pub paused_s: f64,
    /// The processor time that toolhost used for the run.
    pub cpu_s: Option<f64>,
}

/// A target compared with the first one.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ComparisonJson<'a> {
    /// The full name of the first target.
    pub reference: &'a str,
    /// The full name of the other one.
    pub other: &'a str,
    /// The letter of the other one.
    pub letter: String,
    /// How many rounds each had.
    pub rounds: usize,
    /// The statistic that decides.
    pub headline: Option<&'static str>,
    /// `slower`, `faster` or `not established`.
    pub verdict: &'static str,
    /// The same in a sentence.
    pub sentence: String,
    /// The statistics that both have.
    pub ratios: Vec<RatioJson>,
    /// What makes the comparison doubtful.
    pub warnings: &'a [String],
}

/// The ratio of a statistic between two targets or runs.
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
    /// The confidence interval of the ratio, at `level`; null with too little data.
    pub interval: Option<[Option<f64>; 2]>,
    /// The confidence level of the interval. Figures that do not decide share the same
    /// risk, so their intervals are wider.
    pub level: Option<f64>,
    /// For the mean: the error propagated from the spread of single calls, as hyperfine reports it.
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
    /// When it started, as written in the file.
    pub began: Option<&'a str>,
    /// The share by which a figure may be worse; null if nothing is judged.
    pub max_regression: Option<f64>,
    /// Whether a regression is established, or there was nothing to compare.
    pub failed: bool,
    /// The targets that both runs have.
    pub targets: Vec<BaselineTargetJson<'a>>,
    /// What makes the two runs hard to compare.
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

/// The result of a --fail-if.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ThresholdJson<'a> {
    /// The expression as it was given.
    pub expression: &'a str,
    /// Whether it is true, which makes the run fail.
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

/// Where the run was made; null for what the system does not report.
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
    /// The name the server reports.
    pub name: Option<&'a str>,
    /// The version the server reports.
    pub version: Option<&'a str>,
    /// The protocol revision that was negotiated.
    pub protocol: Option<&'a str>,
    /// The processor time that its process used during the run.
    pub cpu_s: Option<f64>,
}

/// What the run was asked to do.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlanJson {
    /// When the calls of a run are made.
    pub model: LoadModelJson,
    /// The maximum number of counted calls.
    pub requests: Option<u64>,
    /// The maximum time during which calls are made, in seconds.
    pub duration_s: Option<f64>,
    /// How several targets share the run.
    pub sharing: SharingJson,
    /// What comes before the counted calls.
    pub warm_up: WarmUpJson,
    /// How long to wait for answers at the end, in seconds.
    pub patience_s: f64,
    /// How many failed calls end the run early.
    pub stop_after_failures: Option<u64>,
    /// The seed of all random choices.
    pub seed: u64,
}

/// When the calls of a run are made.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LoadModelJson {
    /// A call starts as soon as another ends.
    Closed {
        /// The number of calls in flight.
        concurrency: usize,
    },
    /// On a schedule, however fast the tool answers.
    Open {
        /// The moments at which calls are made.
        arrivals: ArrivalsJson,
        /// The maximum number of calls in flight.
        in_flight: usize,
        /// What happens to calls beyond that: `queue` or `drop`.
        over: &'static str,
    },
}

/// The moments of an open load.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ArrivalsJson {
    /// Evenly spaced, at one rate.
    Constant {
        /// The rate in calls per second.
        rate: Option<f64>,
    },
    /// At random times, like independent callers.
    Poisson {
        /// Calls per second, on average.
        rate: Option<f64>,
    },
}

/// How several targets share the run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SharingJson {
    /// One target has the whole run.
    Single,
    /// Interleaved, in rounds of all targets.
    Turns {
        /// How many rounds each of them has.
        rounds: u32,
    },
    /// One target, with a different number of calls in flight in each step.
    Steps {
        /// Calls in flight of each step.
        in_flight: Vec<usize>,
        /// The run ends after a step in which a larger share of the calls failed.
        error_limit: Option<f64>,
    },
}

/// What comes before the counted calls.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum WarmUpJson {
    /// A number of calls that are not counted.
    Calls {
        /// The number of calls for each target.
        calls: u64,
    },
    /// Calls that are not counted, for a time.
    Time {
        /// How long it lasts, in seconds.
        time_s: f64,
    },
}
