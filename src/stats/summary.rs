//! The results of statistics queries, as plain values.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use super::count::{CallCounts, SpoolBatch, ToolKey, UsagePeriod};
use super::granularity::{GrainRange, RetentionBounds, grain_ranges};
use super::store::{Grain, GrainSink};

use crate::model::CallFilter;

/// Tools and what was counted of them in a window.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// Where the window begins, as time since the Unix epoch: what was asked for, or earlier by the
    /// rest of the grain (a minute, an hour or a day) that it lies in. `None` is everything.
    pub from: Option<Duration>,
    pub now: Duration,
    pub tools: Vec<Usage>,
    /// Calls that are in no store yet, and were read from the spool.
    pub unfolded: u64,
    /// Whether the spool holds more than was read, because that would have taken too long.
    pub is_behind: bool,
    /// Lines of the spool that could not be read, ever.
    pub damaged_lines: u64,
    /// Grains of which the durations could not be read; their calls are counted all the same.
    pub damaged_grains: u64,
}

/// What was counted of a tool, or of several.
#[derive(Debug, Clone)]
pub struct Usage {
    pub tool: ToolKey,
    pub counts: CallCounts,
    /// When it was used first and last, in the window or not.
    pub period: UsagePeriod,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum UsageOrder {
    Name,
    Calls,
    /// The tool with most failures first.
    Errors,
    /// The slowest first, by this quantile (0 to 1).
    Quantile(f64),
    /// The slowest on average first.
    Mean,
    LastUsed,
}

impl Summary {
    /// Everything together; `None` without a call.
    pub fn total(&self) -> Option<Usage> {
        merge_usages(self.tools.iter(), ToolKey::default)
    }

    /// The tools of each server together, by name; internal tools are one server without a name.
    pub fn servers(&self) -> Vec<Usage> {
        let mut groups: BTreeMap<ToolKey, Vec<&Usage>> = BTreeMap::new();
        for usage in &self.tools {
            groups.entry(usage.tool.server_key()).or_default().push(usage);
        }
        let group = |(key, tools): (ToolKey, Vec<&Usage>)| merge_usages(tools.into_iter(), || key);
        groups.into_iter().filter_map(group).collect()
    }

    /// What was counted since `earlier`, the same query some time before; tools that were not called
    /// since are left out.
    #[must_use]
    pub fn since(mut self, earlier: &Self) -> Self {
        for usage in &mut self.tools {
            if let Some(before) = earlier.tools.iter().find(|before| before.tool == usage.tool) {
                usage.counts = usage.counts.since(&before.counts);
            }
        }
        self.tools.retain(|usage| usage.counts.calls() > 0);
        self.from = Some(earlier.now);
        self
    }

    /// The tools that have calls dated after now: the clock was wrong, then or now.
    pub fn future_dated(&self) -> impl Iterator<Item = &Usage> {
        let now = u64::try_from(self.now.as_millis()).unwrap_or(u64::MAX);
        self.tools.iter().filter(move |usage| usage.period.last > now.saturating_add(60_000))
    }
}

fn merge_usages<'u>(
    usages: impl Iterator<Item = &'u Usage>,
    tool: impl FnOnce() -> ToolKey,
) -> Option<Usage> {
    let mut all: Option<(CallCounts, UsagePeriod)> = None;
    for usage in usages {
        let (counts, used) = all.get_or_insert_with(|| (CallCounts::default(), usage.period));
        counts.merge(&usage.counts);
        *used = used.merge(usage.period);
    }
    all.map(|(counts, used)| Usage { tool: tool(), counts, period: used })
}

/// Puts tools in order; those that are equal in it by name.
pub fn sort(tools: &mut [Usage], order: UsageOrder) {
    tools.sort_by_cached_key(|usage| (Reverse(rank(usage, order)), usage.tool.clone()));
}

/// What a tool is ordered by, highest first; 0 for a duration that is not known.
fn rank(usage: &Usage, order: UsageOrder) -> u128 {
    let duration = |time: Option<Duration>| time.map_or(0, |time| time.as_nanos() + 1);
    match order {
        UsageOrder::Name => 0,
        UsageOrder::Calls => usage.counts.calls().into(),
        UsageOrder::Errors => usage.counts.failed().into(),
        UsageOrder::Quantile(share) => duration(usage.counts.durations.quantile(share)),
        UsageOrder::Mean => duration(usage.counts.durations.mean()),
        UsageOrder::LastUsed => usage.period.last.into(),
    }
}

#[derive(Debug, Clone)]
pub struct TimeSlice {
    pub from: Duration,
    pub length: Duration,
    pub counts: CallCounts,
}

#[derive(Debug, Default)]
pub(super) struct UsageTally {
    tools: BTreeMap<ToolKey, (CallCounts, UsagePeriod)>,
}

impl GrainSink for UsageTally {
    fn counts_for(&mut self, grain: Grain<'_>) -> Option<&mut CallCounts> {
        if !self.tools.contains_key(grain.tool) {
            self.tools.insert(grain.tool.clone(), (CallCounts::default(), grain.period));
        }
        let (counts, used) = self.tools.get_mut(grain.tool)?;
        *used = used.merge(grain.period);
        Some(counts)
    }
}

impl UsageTally {
    pub(super) fn finish(self) -> Vec<Usage> {
        let usage = |(tool, (counts, used))| Usage { tool, counts, period: used };
        self.tools.into_iter().map(usage).collect()
    }
}

/// The series of time: slices of one length, all tools together.
#[derive(Debug, Clone)]
pub(super) struct TimeSeries {
    from: i64,
    length: i64,
    slices: Vec<CallCounts>,
}

impl TimeSeries {
    /// At most `most` slices from `since` to `now`, each a whole number of grains of the finest
    /// level that is kept of all of that time; and the range they are made of.
    pub(super) fn new(
        since: i64,
        now: i64,
        bounds: RetentionBounds,
        most: usize,
    ) -> (Self, GrainRange) {
        let most = i64::try_from(most.max(1)).unwrap_or(i64::MAX);
        let level = bounds.finest_complete_at(since);
        let from = level.floor(since);
        let grains = (now - from).max(0) / level.seconds() + 1;
        let length = (grains + most - 1) / most * level.seconds();
        let count = usize::try_from((now - from).max(0) / length + 1).unwrap_or(1);
        let slices = vec![CallCounts::default(); count];
        (
            Self { from, length, slices },
            GrainRange { granularity: level, from, to: now.saturating_add(1) },
        )
    }

    fn slice_of(&self, start: i64) -> Option<usize> {
        let at = usize::try_from((start - self.from).checked_div(self.length)?).ok()?;
        (at < self.slices.len()).then_some(at)
    }

    pub(super) fn finish(self) -> Vec<TimeSlice> {
        let span = |seconds: i64| Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let mut from = self.from;
        let mut slices = Vec::new();
        for counts in self.slices {
            slices.push(TimeSlice { from: span(from), length: span(self.length), counts });
            from += self.length;
        }
        slices
    }
}

impl GrainSink for TimeSeries {
    fn counts_for(&mut self, grain: Grain<'_>) -> Option<&mut CallCounts> {
        let at = self.slice_of(grain.start)?;
        self.slices.get_mut(at)
    }
}

/// What happened in a part of a window, in a few figures.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SeriesPoint {
    pub calls: u64,
    pub failed: u64,
    /// The 95th percentile of successful calls' durations.
    pub p95: Option<Duration>,
}

/// The series of a window in slices of one length, for each of several.
#[derive(Debug, Clone, Default)]
pub struct TimeSeriesSet {
    /// How long a slice is.
    pub length: Duration,
    /// Each tool or server (then without a name), and what happened in each slice.
    pub series: Vec<(ToolKey, Vec<SeriesPoint>)>,
}

/// Adds grains up by slice and tool; what nothing happened in takes no room.
#[derive(Debug)]
pub(super) struct TimeSeriesTally {
    series: TimeSeries,
    by_server: bool,
    found: BTreeMap<ToolKey, BTreeMap<usize, CallCounts>>,
}

impl TimeSeriesTally {
    pub(super) fn new(series: TimeSeries, by_server: bool) -> Self {
        Self { series, by_server, found: BTreeMap::new() }
    }

    pub(super) fn finish(self) -> TimeSeriesSet {
        let slices = self.series.slices.len();
        let of = |(tool, counted): (ToolKey, BTreeMap<usize, CallCounts>)| {
            let mut points = vec![SeriesPoint::default(); slices];
            for (at, counts) in counted {
                points[at] = SeriesPoint {
                    calls: counts.calls(),
                    failed: counts.failed(),
                    p95: counts.durations.quantile(0.95),
                };
            }
            (tool, points)
        };
        let length = Duration::from_secs(u64::try_from(self.series.length).unwrap_or(0));
        TimeSeriesSet { length, series: self.found.into_iter().map(of).collect() }
    }
}

impl GrainSink for TimeSeriesTally {
    fn counts_for(&mut self, grain: Grain<'_>) -> Option<&mut CallCounts> {
        let at = self.series.slice_of(grain.start)?;
        let key = if self.by_server { grain.tool.server_key() } else { grain.tool.clone() };
        Some(self.found.entry(key).or_default().entry(at).or_default())
    }
}

pub(super) fn add_unfolded(
    batch: &SpoolBatch,
    ranges: &[GrainRange],
    filter: &CallFilter,
    sink: &mut impl GrainSink,
) {
    for (tool, used) in batch.tools() {
        if !tool.is_wanted(filter) {
            continue;
        }
        for range in ranges {
            for (start, counts) in batch.grains(tool, range.granularity) {
                if (range.from..range.to).contains(&start)
                    && let Some(sum) = sink.counts_for(Grain { tool, period: used, start })
                {
                    sum.merge(&counts);
                }
            }
        }
    }
}

pub(super) fn window(
    filter: &CallFilter,
    now: Duration,
    bounds: RetentionBounds,
) -> (Vec<GrainRange>, Option<Duration>) {
    let second = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    let CallFilter { since, until, .. } = *filter;
    let ranges = grain_ranges(since.map(second), until.map(second), second(now), bounds);
    let start = |second: i64| Duration::from_secs(u64::try_from(second).unwrap_or(0));
    let from = since.map(|since| match ranges.first() {
        Some(first) => start(first.from),
        None => since.max(start(bounds.days)),
    });
    (ranges, from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(millis: &[u64]) -> CallCounts {
        let mut counts = CallCounts::default();
        for millis in millis {
            counts.ok += 1;
            counts.durations.record(Duration::from_millis(*millis));
        }
        counts
    }

    fn usage(name: &str, server: Option<&str>, millis: &[u64], last: u64) -> Usage {
        Usage {
            tool: ToolKey {
                name: name.into(),
                server: server.map(str::to_owned),
                ..ToolKey::default()
            },
            counts: counts(millis),
            period: UsagePeriod { first: 1, last },
        }
    }

    #[test]
    fn tools_are_put_in_order_and_together() {
        let mut summary = Summary {
            now: Duration::from_secs(1_000),
            tools: vec![
                usage("b", None, &[10], 7),
                usage("a", Some("s"), &[1, 2], 9),
                usage("c", Some("s"), &[30, 3, 3], 2_000_000),
            ],
            ..Summary::default()
        };
        summary.tools[0].counts.add_failures("timeout", 2);
        let mut order = |order| {
            sort(&mut summary.tools, order);
            summary.tools.iter().map(|usage| usage.tool.name.clone()).collect::<String>()
        };
        assert_eq!(order(UsageOrder::Name), "abc");
        assert_eq!(order(UsageOrder::Calls), "bca");
        assert_eq!(order(UsageOrder::Errors), "bac");
        assert_eq!(order(UsageOrder::Quantile(0.5)), "bca");
        assert_eq!(order(UsageOrder::Mean), "cba");
        assert_eq!(order(UsageOrder::LastUsed), "cab");
        let servers = summary.servers();
        assert_eq!(servers.len(), 2);
        assert_eq!((servers[1].counts.ok, servers[1].period.last), (5, 2_000_000));
        assert_eq!(summary.total().unwrap().counts.calls(), 8);
        assert_eq!(summary.future_dated().count(), 1);
        assert!(Summary::default().total().is_none());
    }

    #[test]
    fn what_came_since_is_what_is_left() {
        let before = Summary {
            now: Duration::from_mins(1),
            tools: vec![usage("a", None, &[1, 2], 1), usage("b", None, &[5], 1)],
            ..Summary::default()
        };
        let mut now = Summary {
            now: Duration::from_secs(90),
            tools: vec![usage("a", None, &[1, 2, 30, 40], 2), usage("b", None, &[5], 1)],
            ..Summary::default()
        };
        now.tools[0].counts.add_failures("timeout", 1);
        now.tools.push(usage("c", None, &[7], 2));
        let since = now.since(&before);
        let names: Vec<&str> = since.tools.iter().map(|usage| usage.tool.name.as_str()).collect();
        assert_eq!(names, ["a", "c"]);
        let counts = &since.tools[0].counts;
        assert_eq!((counts.ok, counts.failed(), counts.durations.count()), (2, 1, 2));
        let about = |duration: Option<Duration>| duration.unwrap().as_millis();
        assert_eq!(about(counts.durations.mean()), 35);
        assert!((29..=30).contains(&about(counts.durations.min())));
        assert!((39..=40).contains(&about(counts.durations.max())));
        assert_eq!(since.from, Some(Duration::from_mins(1)));
    }

    #[test]
    fn slices_are_whole_grains_and_reach_now() {
        let now = 20_000 * 86_400 + 4_000;
        let bounds = RetentionBounds::default().advanced(now, 90 * 86_400);
        for (ago, most, length) in [(3_600, 60, 120), (3_600, 10, 420), (7 * 86_400, 60, 10_800)] {
            let (series, range) = TimeSeries::new(now - ago, now, bounds, most);
            assert_eq!(range.from, series.from);
            let slices = series.finish();
            let last = slices.last().unwrap();
            assert!(slices.len() <= most);
            assert_eq!(last.length, Duration::from_secs(length), "{ago} {most}");
            let end = (last.from + last.length).as_secs();
            assert!(last.from.as_secs() <= now.unsigned_abs() && end > now.unsigned_abs());
        }
        // A window that begins in the future is one slice.
        assert_eq!(TimeSeries::new(now + 500, now, bounds, 10).0.finish().len(), 1);
    }
}
