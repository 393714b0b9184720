//! The report of a run, as it is displayed, saved and compared.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::{Error, ErrorKind};
use crate::util::histogram::Durations;
use crate::util::units::float;

use super::plan::{BenchPlan, LoadModel, Sharing, seconds};

/// A run, whole.
#[derive(Debug, Clone)]
pub struct BenchReport {
    /// The plan of the run.
    pub plan: BenchPlan,
    /// When it began: since the Unix epoch.
    pub began: Duration,
    /// From the first call that counts to the end of the last one.
    pub elapsed: Duration,
    /// How it ended.
    pub status: RunStatus,
    /// The results of the calls, for each target.
    pub targets: Vec<TargetReport>,
    /// The results of each round, when the targets took turns; else empty.
    pub rounds: Vec<Round>,
    /// How well the load was made.
    pub generator: GeneratorReport,
    /// Why the run failed although its calls did not: its record was required and is lost.
    pub lost_record: Option<Error>,
    /// Caveats about the figures, gravest first.
    pub warnings: Vec<String>,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStatus {
    /// It did what was planned.
    Complete,
    /// A person stopped it.
    Stopped,
    /// A stop rule, or the tool, ended it.
    Aborted,
}

/// The outcome of the calls of one target.
#[derive(Debug, Clone, Default)]
pub struct TargetReport {
    /// The full name.
    pub tool: String,
    /// Of a run in steps: the calls in flight of this one.
    pub step: Option<usize>,
    /// The time in which its calls were made: of targets that take turns, its own turns.
    pub elapsed: Duration,
    /// The program behind the name; `None` for tools without an entry of a file.
    pub program: Option<String>,
    /// The protocol revision, for tools of servers.
    pub protocol: Option<String>,
    /// What came before the first counted call.
    pub cold: ColdStart,
    /// Calls that were made to warm up, not part of anything else here.
    pub warm_up: u64,
    /// Calls that were made and count.
    pub requests: u64,
    /// Of those: the tool answered.
    pub ok: u64,
    /// The tool answered with an error.
    pub tool_errors: u64,
    /// No usable answer came, timeouts not included.
    pub errors: u64,
    /// A limit fired.
    pub timeouts: u64,
    /// The run ended before their answers came.
    pub unanswered: u64,
    /// Not made, because too many were in flight.
    pub dropped: u64,
    /// Answered calls per second.
    pub throughput: f64,
    /// Of answered calls, from the intended start (open) or the sending (closed).
    pub response: Durations,
    /// Of answered calls, from the sending.
    pub service: Durations,
    /// Of calls that were refused by the tool or failed, from the sending.
    pub failed: Durations,
    /// The maximum in flight at once.
    pub peak_in_flight: u64,
    /// Failures by kind (`tool`, `timeout`, `protocol`, …).
    pub errors_by_kind: BTreeMap<String, ErrorReport>,
    /// Bytes sent, where they are counted.
    pub bytes_out: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// How often the connection to the tool was reopened.
    pub restarts: u64,
    /// The timeline: slices of equal length, earliest first.
    pub timeline: Vec<TimelineSlice>,
    /// Protocol violations in the tool's traffic.
    pub protocol_warnings: Vec<String>,
    /// Why its calls stopped before the plan was done, if they did.
    pub error: Option<Error>,
}

impl TargetReport {
    /// The tool, and in which step it was called.
    pub fn label(&self) -> String {
        match self.step {
            Some(in_flight) => format!("{} at {in_flight} in flight", self.tool),
            None => self.tool.clone(),
        }
    }

    /// Calls that the tool refused, that failed or timed out.
    pub(crate) fn failures(&self) -> u64 {
        self.tool_errors + self.errors + self.timeouts
    }

    /// The kinds of failure, the commonest first.
    pub(crate) fn commonest_errors(&self) -> Vec<(&str, &ErrorReport)> {
        let errors = self.errors_by_kind.iter();
        let mut errors: Vec<_> = errors.map(|(kind, error)| (kind.as_str(), error)).collect();
        errors.sort_by_key(|(_, error)| Reverse(error.count));
        errors
    }

    /// Calls without a usable answer: refused, failed, timed out or unanswered.
    pub fn failed_calls(&self) -> u64 {
        self.requests.saturating_sub(self.ok)
    }
}

/// Calls per second; 0 in no time.
pub(crate) fn throughput(calls: u64, elapsed: Duration) -> f64 {
    if elapsed.is_zero() { 0.0 } else { float(calls) / elapsed.as_secs_f64() }
}

/// What came before the first counted call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ColdStart {
    /// Starting or reaching the server and agreeing with it.
    pub connect: Option<Duration>,
    /// The very first call, warm-up or not.
    pub first_call: Option<Duration>,
}

/// One kind of failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ErrorReport {
    /// How often.
    pub count: u64,
    /// When it was first seen, in seconds since the first call that counts.
    #[serde(rename = "first_seen_s", serialize_with = "seconds")]
    #[schemars(with = "f64")]
    pub first_seen: Duration,
    /// The message of one such failure, shortened.
    pub sample: String,
}

/// What happened in one stretch of time.
#[derive(Debug, Clone)]
pub struct TimelineSlice {
    /// When it begins, since the first call that counts.
    pub from: Duration,
    /// How long it is.
    pub lasting: Duration,
    /// Calls that were answered in it.
    pub ok: u64,
    /// Calls that ended otherwise in it.
    pub failed: u64,
    /// Response times of the answered ones.
    pub response: Durations,
}

impl TimelineSlice {
    /// The same without its times.
    #[must_use]
    pub fn counts(&self) -> Self {
        let Self { from, lasting, ok, failed, .. } = *self;
        Self { from, lasting, ok, failed, response: Durations::coarse() }
    }

    /// Slices that follow each other as one; `None` without any.
    pub fn joined(slices: &[Self]) -> Option<Self> {
        let mut response = Durations::coarse();
        for slice in slices {
            response.merge(&slice.response);
        }
        Some(Self {
            from: slices.first()?.from,
            lasting: slices.iter().map(|slice| slice.lasting).sum(),
            ok: slices.iter().map(|slice| slice.ok).sum(),
            failed: slices.iter().map(|slice| slice.failed).sum(),
            response,
        })
    }
}

/// One turn of every target, in the order of the targets (not of the turns).
#[derive(Debug, Clone)]
pub struct Round {
    /// The results of each turn.
    pub turns: Vec<SampleBlock>,
}

/// The outcome of the calls of one target in one round.
#[derive(Debug, Clone)]
pub struct SampleBlock {
    /// How long it took.
    pub elapsed: Duration,
    /// Of those: the tool answered.
    pub ok: u64,
    /// Calls that ended otherwise in it.
    pub failed: u64,
    /// Response times of the answered ones.
    pub response: Durations,
}

/// How well the load was made.
#[derive(Debug, Clone, Default)]
pub struct GeneratorReport {
    /// From the moment when a call could be sent to its sending; open loads only. That is its
    /// intended start or, when as many as allowed were in flight then, the end of one of them.
    pub lag: Durations,
    /// Calls that were sent more than a millisecond after they could be.
    pub late: u64,
    /// Calls whose moment came while as many as allowed were in flight, and that were made later.
    pub queued: u64,
    /// How long the run was paused; no other figure includes it.
    pub paused: Duration,
    /// The processor time that this program used for the run.
    pub cpu: Option<Duration>,
}

impl BenchReport {
    /// The kind of failure that decides the exit code: none when any call succeeded, else the
    /// commonest one, which of equally common ones the table of exit codes puts first.
    pub fn exit_kind(&self) -> Option<ErrorKind> {
        if self.targets.iter().any(|target| target.ok > 0) {
            return None;
        }
        let mut counts: HashMap<ErrorKind, u64> = HashMap::new();
        for target in &self.targets {
            for (kind, report) in &target.errors_by_kind {
                if let Some(kind) = ErrorKind::parse(kind) {
                    *counts.entry(kind).or_default() += report.count;
                }
            }
            if let Some(error) = &target.error {
                *counts.entry(error.kind()).or_default() += 1;
            }
        }
        let commonest = |(kind, count): &(ErrorKind, u64)| (*count, Reverse(kind.precedence()));
        counts.into_iter().max_by_key(commonest).map(|(kind, _)| kind)
    }

    pub(crate) fn total(&self, count: impl Fn(&TargetReport) -> u64) -> u64 {
        self.targets.iter().map(count).sum()
    }

    /// A sentence about one of the targets, which is named when there are several.
    pub(crate) fn about(&self, target: &TargetReport, text: String) -> String {
        if self.targets.len() > 1 { format!("{}: {text}", target.label()) } else { text }
    }

    /// The full names of the tools, each once.
    pub fn tools(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.targets.iter().map(|target| target.tool.as_str()).collect();
        if matches!(self.plan.sharing, Sharing::Steps { .. }) {
            names.dedup();
        }
        names
    }

    /// Whether timed from the intended start.
    pub fn is_open(&self) -> bool {
        matches!(self.plan.model, LoadModel::Open { .. })
    }
}
