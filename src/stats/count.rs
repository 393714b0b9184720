//! Counters of calls: outcomes, and the durations of successful calls.

use std::collections::BTreeMap;
use std::time::Duration;

use super::granularity::Granularity;
use super::spool::SpoolRow;
use crate::model::{CallFilter, CallPlace, ErrorKind, RecordedOutcome, ToolDefinition};
use crate::util::histogram::Durations;
use crate::util::number::float;

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
            kind: kind.into(),
            duration: outcome.duration,
            attempts: outcome.attempts.max(1),
            bytes: outcome.result_bytes,
        });
    }

    /// What went wrong in how many calls, and how many were cancelled, by the words of the spool.
    pub(super) fn unsuccessful(&self) -> BTreeMap<String, u64> {
        let cancelled = (self.cancelled > 0).then(|| (CANCELLED.to_owned(), self.cancelled));
        self.failures.clone().into_iter().chain(cancelled).collect()
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
        self.add_numbers(other);
        self.durations.merge(&other.durations);
    }

    /// What was counted since `earlier`, which these began as.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let newer = |(kind, count): (&String, &u64)| {
            let newer = count.saturating_sub(earlier.failed_by(kind));
            (newer > 0).then(|| (kind.clone(), newer))
        };
        Self {
            ok: self.ok.saturating_sub(earlier.ok),
            failures: self.failures.iter().filter_map(newer).collect(),
            cancelled: self.cancelled.saturating_sub(earlier.cancelled),
            attempts: self.attempts.saturating_sub(earlier.attempts),
            recovered: self.recovered.saturating_sub(earlier.recovered),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            durations: self.durations.since(&earlier.durations),
        }
    }

    /// The same without the durations.
    pub(super) fn add_numbers(&mut self, other: &Self) {
        self.ok = self.ok.saturating_add(other.ok);
        for (kind, count) in &other.failures {
            self.add_failures(kind, *count);
        }
        self.cancelled = self.cancelled.saturating_add(other.cancelled);
        self.attempts = self.attempts.saturating_add(other.attempts);
        self.recovered = self.recovered.saturating_add(other.recovered);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    fn add(&mut self, call: &CountedCall) {
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
    fn at(time: u64) -> Self {
        Self { first: time, last: time }
    }

    /// The shortest period that contains both.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        Self { first: self.first.min(other.first), last: self.last.max(other.last) }
    }
}

/// Calls that were read from the spool and are in no store yet.
#[derive(Debug, Clone, Default)]
pub struct SpoolBatch {
    tools: BTreeMap<ToolKey, ToolCalls>,
    pub calls: u64,
    /// Lines that were no row.
    pub damaged: u64,
}

#[derive(Debug, Clone)]
struct ToolCalls {
    period: UsagePeriod,
    /// By their minute. Single calls need far less room than a histogram for each minute.
    minutes: BTreeMap<i64, Vec<CountedCall>>,
}

#[derive(Debug, Clone)]
struct CountedCall {
    kind: Box<str>,
    duration: Duration,
    attempts: u32,
    bytes: u64,
}

impl SpoolBatch {
    pub fn add(&mut self, row: SpoolRow) {
        let time = row.ended_at_ms.min(LAST_SECOND * 1_000);
        let minute = Granularity::Minute.floor(i64::try_from(time / 1_000).unwrap_or(i64::MAX));
        let call = CountedCall {
            duration: row.duration(),
            kind: if row.outcome == "ok" { Box::default() } else { row.outcome.into_boxed_str() },
            attempts: row.attempts,
            bytes: row.bytes,
        };
        let tool = ToolKey { name: row.tool, server: row.server, place: row.place };
        let calls = self.tools.entry(tool).or_insert_with(|| ToolCalls {
            period: UsagePeriod::at(time),
            minutes: BTreeMap::new(),
        });
        calls.period = calls.period.merge(UsagePeriod::at(time));
        calls.minutes.entry(minute).or_default().push(call);
        self.calls += 1;
    }

    /// Whether there is nothing in it, not even a damaged line.
    pub fn is_empty(&self) -> bool {
        self.calls == 0 && self.damaged == 0
    }

    pub fn merge(&mut self, other: Self) {
        for (tool, calls) in other.tools {
            match self.tools.entry(tool) {
                std::collections::btree_map::Entry::Vacant(entry) => drop(entry.insert(calls)),
                std::collections::btree_map::Entry::Occupied(mut entry) => {
                    let total = entry.get_mut();
                    total.period = total.period.merge(calls.period);
                    for (minute, mut more) in calls.minutes {
                        total.minutes.entry(minute).or_default().append(&mut more);
                    }
                }
            }
        }
        self.calls += other.calls;
        self.damaged += other.damaged;
    }

    pub fn tools(&self) -> impl Iterator<Item = (&ToolKey, UsagePeriod)> {
        self.tools.iter().map(|(tool, calls)| (tool, calls.period))
    }

    /// What was counted of a tool in each grain of a level, the earliest first.
    pub fn grains(
        &self,
        tool: &ToolKey,
        level: Granularity,
    ) -> impl Iterator<Item = (i64, CallCounts)> {
        let mut minutes =
            self.tools.get(tool).into_iter().flat_map(|calls| &calls.minutes).peekable();
        std::iter::from_fn(move || {
            let (minute, first) = minutes.next()?;
            let start = level.floor(*minute);
            let mut counts = CallCounts::default();
            for call in first {
                counts.add(call);
            }
            while let Some((_, more)) = minutes.next_if(|(next, _)| level.floor(**next) == start) {
                for call in more {
                    counts.add(call);
                }
            }
            Some((start, counts))
        })
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

    #[test]
    fn a_batch_counts_in_every_grain() {
        let mut batch = SpoolBatch::default();
        let hour = 3_600_000 * 400_000;
        for row in [
            row(hour, "ok", 5, 1),
            row(hour + 59_999, "timeout", 900, 3),
            row(hour + 60_000, "ok", 7, 2),
            row(hour + 3_600_000, "tool", 1, 1),
        ] {
            batch.add(row);
        }
        let tool = ToolKey { name: "t".into(), ..ToolKey::default() };
        let calls = |level| -> Vec<(i64, u64)> {
            let start = i64::try_from(hour / 1_000).unwrap();
            batch.grains(&tool, level).map(|(at, counts)| (at - start, counts.calls())).collect()
        };
        assert_eq!(calls(Granularity::Minute), [(0, 2), (60, 1), (3_600, 1)]);
        assert_eq!(calls(Granularity::Hour), [(0, 3), (3_600, 1)]);
        let (_, all) = batch.grains(&tool, Granularity::Day).next().unwrap();
        assert_eq!((all.ok, all.failed(), all.retries(), all.recovered), (2, 2, 3, 1));
        assert_eq!((all.failed_by("timeout"), all.failed_by("tool"), all.bytes), (1, 1, 40));
        assert_eq!(all.durations.mean(), Some(Duration::from_millis(6)));
        let used = batch.tools().next().unwrap().1;
        assert_eq!((used.first, used.last), (hour, hour + 3_600_000));
    }

    #[test]
    fn a_cancelled_call_is_no_failure_and_lowers_no_share() {
        let mut batch = SpoolBatch::default();
        for row in [row(1_000, "ok", 5, 1), row(2_000, "interrupted", 900, 1)] {
            batch.add(row);
        }
        let tool = ToolKey { name: "t".into(), ..ToolKey::default() };
        let (_, counts) = batch.grains(&tool, Granularity::Day).next().unwrap();
        assert_eq!((counts.calls(), counts.failed(), counts.cancelled), (2, 0, 1));
        assert_eq!((counts.success_rate(), counts.failures_text()), (Some(1.0), String::new()));
        let again = CallCounts { cancelled: 3, ..CallCounts::default() }.since(&counts);
        assert_eq!((again.cancelled, again.success_rate()), (2, None));
        assert_eq!(counts.unsuccessful().get("interrupted"), Some(&1));
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
        let mut batch = SpoolBatch::default();
        batch.add(row(u64::MAX, "ok", 1, 1));
        assert_eq!(batch.tools().next().unwrap().1.last, LAST_SECOND * 1_000);
    }
}
