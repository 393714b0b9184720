//! Reading the spool, and what was counted in a window of time.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::count::{CallCounts, CountedCall, ToolKey, UsagePeriod};
use super::spool::SpoolRow;
use super::summary::{SeriesPoint, Summary, TimeSeriesSet, TimeSlice, TimeSlicing, Usage};
use crate::model::{CallFilter, Error};
use crate::util::append::{AppendError, RecordLocation};
use crate::util::segments::{self, LineFollower, RecordLine};

/// How many identities of the newest rows are remembered. A writer that finds its line behind a torn
/// one of another process writes it once more, right behind it.
const RECENT: usize = 16;
/// Calls dated after now by no more than this are of now: two clocks may differ.
const CLOCK_SLACK: Duration = Duration::from_mins(1);

/// How much of the spool is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadBudget {
    /// For what shows statistics.
    Everything,
    /// Some ten thousand calls, for what shows statistics beside something else.
    Newest,
}

/// The calls that were counted, read when it is first asked and followed from then on.
#[derive(Debug)]
pub struct Statistics {
    spool: RecordLocation,
    budget: ReadBudget,
    lines: Option<LineFollower>,
    tools: BTreeMap<ToolKey, Vec<CountedCall>>,
    /// The identities of the newest rows, the newest last.
    recent: VecDeque<String>,
    damaged_lines: u64,
}

impl Statistics {
    /// Names the spool; nothing is opened yet.
    pub fn new(spool: RecordLocation, budget: ReadBudget) -> Self {
        Self {
            spool,
            budget,
            lines: None,
            tools: BTreeMap::new(),
            recent: VecDeque::new(),
            damaged_lines: 0,
        }
    }

    pub fn spool(&self) -> &RecordLocation {
        &self.spool
    }

    /// Reads what was spooled since the last time.
    pub fn refresh(&mut self) -> Result<(), Error> {
        self.read().map_err(Error::unreadable_records)
    }

    fn read(&mut self) -> Result<(), AppendError> {
        let segments = match self.budget {
            ReadBudget::Everything => usize::MAX,
            ReadBudget::Newest => 2,
        };
        if let Some(mut lines) = self.lines.take() {
            let read = lines.poll_each(|line| self.add(&line));
            self.lines = Some(lines);
            return read;
        }
        // What was read before a file that cannot be read would be counted again the next time.
        (self.tools, self.recent, self.damaged_lines) = Default::default();
        let spool = self.spool.clone();
        let lines = LineFollower::from_beginning(spool, segments, |line| self.add(&line))?;
        self.lines = Some(lines);
        Ok(())
    }

    fn add(&mut self, line: &RecordLine) {
        let row = match line {
            RecordLine::Text(text) => SpoolRow::parse(text),
            RecordLine::TooLong => None,
        };
        let Some(row) = row else {
            self.damaged_lines += 1;
            return;
        };
        if self.recent.contains(&row.id) {
            return;
        }
        let call = CountedCall::of(&row);
        let tool = ToolKey { name: row.tool, server: row.server, place: row.place };
        self.tools.entry(tool).or_default().push(call);
        self.recent.push_back(row.id);
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
    }

    /// The tools that were ever counted.
    pub fn tools(&self) -> Vec<ToolKey> {
        self.tools.keys().cloned().collect()
    }

    /// What was counted in a window, of the tools that `filter` names. A window without an end ends
    /// now; one without a beginning has no end either, so that nothing is left out.
    pub fn summary(&self, filter: &CallFilter, now: Duration) -> Summary {
        let mut summary = Summary {
            from: filter.since,
            now,
            is_behind: self.lines.as_ref().is_some_and(LineFollower::has_skipped),
            damaged_lines: self.damaged_lines,
            tools: Vec::new(),
        };
        for (tool, calls) in self.tools.iter().filter(|(tool, _)| tool.is_wanted(filter)) {
            let mut period: Option<UsagePeriod> = None;
            let mut counts = CallCounts::default();
            for call in calls {
                let at = UsagePeriod::at(call.ended_at_ms);
                period = Some(period.map_or(at, |period| period.merge(at)));
                if is_within(filter, call, now) {
                    counts.add(call);
                }
            }
            if let Some(period) = period.filter(|_| counts.calls() > 0) {
                let (tool, is_partial) = (tool.clone(), summary.is_behind);
                summary.tools.push(Usage { tool, counts, period, is_partial });
            }
        }
        summary
    }

    /// The series of a window in at most `most` slices, all tools of the query together. A window
    /// without a beginning begins with the first call.
    pub fn time_series(&self, filter: &CallFilter, now: Duration, most: usize) -> Vec<TimeSlice> {
        let slicing = self.slicing(filter, now, most);
        let mut slices = slicing.empty();
        for (_, call) in self.calls(filter, now) {
            if let Some(slice) = slicing.at(call.ended_at_ms).and_then(|at| slices.get_mut(at)) {
                slice.counts.add(call);
            }
        }
        slices
    }

    /// The same for each tool of the query, or each server.
    pub fn time_series_by(
        &self,
        filter: &CallFilter,
        now: Duration,
        most: usize,
        by_server: bool,
    ) -> TimeSeriesSet {
        let slicing = self.slicing(filter, now, most);
        // What nothing happened in takes no room.
        let mut all: BTreeMap<ToolKey, BTreeMap<usize, CallCounts>> = BTreeMap::new();
        for (tool, calls) in self.tools.iter().filter(|(tool, _)| tool.is_wanted(filter)) {
            let key = if by_server { tool.server_key() } else { tool.clone() };
            let counted = all.entry(key).or_default();
            for call in calls.iter().filter(|call| is_within(filter, call, now)) {
                if let Some(at) = slicing.at(call.ended_at_ms) {
                    counted.entry(at).or_default().add(call);
                }
            }
        }
        all.retain(|_, counted| !counted.is_empty());
        let points = |counted: BTreeMap<usize, CallCounts>| {
            let mut points = vec![SeriesPoint::default(); slicing.count()];
            for (at, counts) in counted {
                points[at] = SeriesPoint {
                    calls: counts.calls(),
                    failed: counts.failed(),
                    p95: counts.durations.quantile(0.95),
                };
            }
            points
        };
        let series = all.into_iter().map(|(tool, counted)| (tool, points(counted))).collect();
        TimeSeriesSet { length: slicing.length(), series }
    }

    /// The size of the spool in bytes; `None` without one.
    pub fn size(&self) -> Option<u64> {
        let files = segments::files(&self.spool).ok()?;
        let sizes = files.iter().filter_map(|file| Some(std::fs::metadata(&file.path).ok()?.len()));
        Some(sizes.sum()).filter(|size| *size > 0)
    }

    /// The calls of a window.
    fn calls(
        &self,
        filter: &CallFilter,
        now: Duration,
    ) -> impl Iterator<Item = (&ToolKey, &CountedCall)> {
        let wanted = self.tools.iter().filter(|(tool, _)| tool.is_wanted(filter));
        let all = wanted.flat_map(|(tool, calls)| calls.iter().map(move |call| (tool, call)));
        all.filter(move |(_, call)| is_within(filter, call, now))
    }

    fn slicing(&self, filter: &CallFilter, now: Duration, most: usize) -> TimeSlicing {
        let first = || self.calls(filter, now).map(|(_, call)| call.ended_at_ms / 1_000).min();
        let since = filter.since.map(|since| since.as_secs()).or_else(first);
        let until = filter.until.unwrap_or(now).as_secs();
        TimeSlicing::new(since.unwrap_or(until), until, most)
    }
}

fn is_within(filter: &CallFilter, call: &CountedCall, now: Duration) -> bool {
    let at = Duration::from_millis(call.ended_at_ms);
    match (filter.since, filter.until) {
        (None, None) => true,
        (since, until) => {
            since.is_none_or(|since| at >= since)
                && until.map_or(at <= now + CLOCK_SLACK, |until| at < until)
        }
    }
}

#[cfg(test)]
mod tests;
