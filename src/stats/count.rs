//! Counters of calls: outcomes, and the durations of successful calls.

use std::collections::BTreeMap;
use std::time::Duration;

use super::spool::SpoolRow;
use crate::model::{CallFilter, CallPlace, ErrorKind, RecordedOutcome, ToolDefinition};
use crate::util::histogram::Durations;
use crate::util::units::float;

/// Maximum number of kinds of failure told apart; more count as `other`.
const MOST_KINDS: usize = 32;

const CANCELLED: &str = "interrupted";

/// The latest second that is believed: the end of the year 9999.
const LAST_SECOND: u64 = 253_402_300_799;

/// A tool as it is counted: the same name at another server, in another project or of another
/// program is another tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolKey {
    /// The tool by its full name.
    pub name: String,
    /// The server, for MCP tools.
    pub server: Option<String>,
    /// The project and the program behind the name.
    pub place: CallPlace,
}

impl ToolKey {
    /// The key of the server that the tool belongs to: without the tool's name, and for internal
    /// tools, each of which is a program of its own, without the program.
    #[doc(hidden)] // for the program's own commands
    #[must_use]
    pub fn server_key(&self) -> Self {
        let mut key = Self { name: String::new(), ..self.clone() };
        key.place.program = key.place.program.filter(|_| self.server.is_some());
        key
    }

    /// Whether what was counted is about this tool, and not about another program of its name.
    #[doc(hidden)] // for the program's own commands
    pub fn is_of(&self, tool: &ToolDefinition) -> bool {
        self.name == tool.name.full() && self.place.program == tool.program()
    }

    #[doc(hidden)] // for the program's own commands
    pub fn is_wanted(&self, filter: &CallFilter) -> bool {
        filter.matches_tool(&self.name) && filter.matches_project(self.place.project.as_deref())
    }
}

/// What was counted of some calls.
#[derive(Debug, Clone)]
pub struct CallCounts {
    /// Calls that succeeded.
    pub ok: u64,
    /// Calls that did not, by the word of the failure's kind (`tool`, `timeout`, …).
    pub failures: BTreeMap<String, u64>,
    /// Calls that were cancelled while they ran. They say nothing about the tool, so they are no
    /// failures.
    pub cancelled: u64,
    /// Attempts of all calls together; more than calls when some were repeated.
    pub attempts: u64,
    /// Calls that succeeded after more than one attempt.
    pub recovered: u64,
    /// Bytes of results as JSON.
    pub bytes: u64,
    /// Durations of the calls that succeeded, to within one percent.
    pub durations: Durations,
}

impl Default for CallCounts {
    fn default() -> Self {
        Self {
            ok: 0,
            failures: BTreeMap::new(),
            cancelled: 0,
            attempts: 0,
            recovered: 0,
            bytes: 0,
            durations: Durations::coarse(),
        }
    }
}

impl CallCounts {
    /// Successful, failed and cancelled calls together.
    pub fn calls(&self) -> u64 {
        self.ended().saturating_add(self.cancelled)
    }

    /// Calls that ran to their end, good or bad.
    fn ended(&self) -> u64 {
        self.ok.saturating_add(self.failed())
    }

    /// Calls that did not go well.
    pub fn failed(&self) -> u64 {
        self.failures.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Calls that failed with this kind of error, by its word.
    pub fn failed_by(&self, kind: &str) -> u64 {
        self.failures.get(kind).copied().unwrap_or(0)
    }

    /// The kinds of failures by name, most common first.
    pub fn failures_by_count(&self) -> Vec<(&str, u64)> {
        let mut kinds: Vec<(&str, u64)> =
            self.failures.iter().map(|(kind, count)| (kind.as_str(), *count)).collect();
        kinds.sort_by_key(|(kind, count)| (std::cmp::Reverse(*count), *kind));
        kinds
    }

    /// The same on one line: `timeout 4, tool 2`; empty without a failure.
    pub fn failures_text(&self) -> String {
        let kinds = self.failures_by_count();
        let shown: Vec<String> =
            kinds.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        shown.join(", ")
    }

    /// Attempts beyond the first of each call.
    pub fn retries(&self) -> u64 {
        self.attempts.saturating_sub(self.calls())
    }

    /// The share of calls that succeeded, from 0 to 1, of those that were not cancelled; `None`
    /// without one.
    pub fn success_rate(&self) -> Option<f64> {
        let share = float(self.ok) / float(self.ended());
        (self.ended() > 0).then_some(share)
    }

    #[doc(hidden)] // for the program's own commands
    pub fn add_call(&mut self, outcome: &RecordedOutcome) {
        let kind = outcome.failure.map(ErrorKind::as_str).unwrap_or_default();
        self.add(&CountedCall {
            ended_at_ms: 0,
            kind: kind.into(),
            duration: outcome.duration,
            attempts: outcome.attempts.max(1),
            bytes: outcome.result_bytes,
        });
    }

    /// Adds calls that did not succeed, by the word of the spool: failures of a kind, or cancelled
    /// ones.
    #[doc(hidden)] // for the program's own commands
    pub fn add_failures(&mut self, kind: &str, count: u64) {
        if kind == CANCELLED {
            self.cancelled = self.cancelled.saturating_add(count);
            return;
        }
        let has_room = self.failures.contains_key(kind) || self.failures.len() < MOST_KINDS;
        let sum =
            self.failures.entry(if has_room { kind } else { "other" }.to_owned()).or_default();
        *sum = sum.saturating_add(count);
    }

    /// Adds what was counted of other calls.
    pub fn merge(&mut self, other: &Self) {
        self.ok = self.ok.saturating_add(other.ok);
        for (kind, count) in &other.failures {
            self.add_failures(kind, *count);
        }
        self.cancelled = self.cancelled.saturating_add(other.cancelled);
        self.attempts = self.attempts.saturating_add(other.attempts);
        self.recovered = self.recovered.saturating_add(other.recovered);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.durations.merge(&other.durations);
    }

    pub(super) fn add(&mut self, call: &CountedCall) {
        if call.kind.is_empty() {
            self.ok = self.ok.saturating_add(1);
            self.recovered = self.recovered.saturating_add(u64::from(call.attempts > 1));
            self.durations.record(call.duration);
        } else {
            self.add_failures(&call.kind, 1);
        }
        self.attempts = self.attempts.saturating_add(u64::from(call.attempts));
        self.bytes = self.bytes.saturating_add(call.bytes);
    }
}

/// When a tool was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsagePeriod {
    /// The earliest end of a call: milliseconds since the Unix epoch.
    pub first: u64,
    /// The latest end of a call: milliseconds since the Unix epoch.
    pub last: u64,
}

impl UsagePeriod {
    pub(super) fn at(time: u64) -> Self {
        Self { first: time, last: time }
    }

    /// The shortest period that contains both.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        Self { first: self.first.min(other.first), last: self.last.max(other.last) }
    }
}

/// One call, as far as it counts.
#[derive(Debug, Clone)]
pub(super) struct CountedCall {
    /// When it ended: milliseconds since the Unix epoch.
    pub(super) ended_at_ms: u64,
    /// The word of the failure's kind; empty for success.
    kind: Box<str>,
    duration: Duration,
    attempts: u32,
    bytes: u64,
}

impl CountedCall {
    pub(super) fn of(row: &SpoolRow) -> Self {
        Self {
            ended_at_ms: row.ended_at_ms.min(LAST_SECOND * 1_000),
            kind: if row.outcome == "ok" { "" } else { &row.outcome }.into(),
            duration: row.duration(),
            attempts: row.attempts,
            bytes: row.bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(t: u64, kind: &str, ms: u64, attempts: u32) -> SpoolRow {
        SpoolRow {
            ended_at_ms: t,
            id: format!("id-{t}"),
            tool: "t".into(),
            server: None,
            place: CallPlace::default(),
            outcome: kind.into(),
            duration_us: ms * 1_000,
            attempts,
            bytes: 10,
        }
    }

    fn counts(rows: &[SpoolRow]) -> CallCounts {
        let mut counts = CallCounts::default();
        for row in rows {
            counts.add(&CountedCall::of(row));
        }
        counts
    }

    #[test]
    fn calls_are_counted_by_how_they_ended() {
        let all = counts(&[
            row(1, "ok", 5, 1),
            row(2, "timeout", 900, 3),
            row(3, "ok", 7, 2),
            row(4, "tool", 1, 1),
        ]);
        assert_eq!((all.ok, all.failed(), all.retries(), all.recovered), (2, 2, 3, 1));
        assert_eq!((all.failed_by("timeout"), all.failed_by("tool"), all.bytes), (1, 1, 40));
        assert_eq!(all.durations.mean(), Some(Duration::from_millis(6)));
    }

    #[test]
    fn a_cancelled_call_is_no_failure_and_lowers_no_share() {
        let counts = counts(&[row(1_000, "ok", 5, 1), row(2_000, "interrupted", 900, 1)]);
        assert_eq!((counts.calls(), counts.failed(), counts.cancelled), (2, 0, 1));
        assert_eq!((counts.success_rate(), counts.failures_text()), (Some(1.0), String::new()));
    }

    #[test]
    fn kinds_without_end_are_counted_together() {
        let mut counts = CallCounts::default();
        for kind in 0..100 {
            counts.add_failures(&format!("kind-{kind}"), 1);
        }
        assert_eq!((counts.failed(), counts.failed_by("other")), (100, 68));
        assert!(counts.failures.len() <= MOST_KINDS + 1);
    }

    #[test]
    fn a_time_beyond_all_measure_is_the_last_one() {
        let call = CountedCall::of(&row(u64::MAX, "ok", 1, 1));
        assert_eq!(call.ended_at_ms, LAST_SECOND * 1_000);
    }
}
