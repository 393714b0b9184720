//! The results of statistics queries, as plain values.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use super::count::{CallCounts, ToolKey, UsagePeriod};

/// Tools and what was counted of them in a window.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// Where the window begins, as time since the Unix epoch. `None` is everything.
    pub from: Option<Duration>,
    pub now: Duration,
    pub tools: Vec<Usage>,
    /// Whether the spool holds more than was read, because that would have taken too long.
    pub is_behind: bool,
    /// Lines of the spool that could not be read.
    pub damaged_lines: u64,
}

/// What was counted of a tool, or of several.
#[derive(Debug, Clone)]
pub struct Usage {
    pub tool: ToolKey,
    pub counts: CallCounts,
    /// When it was used first and last, in the window or not.
    pub period: UsagePeriod,
    /// Whether only its newest calls were counted.
    pub is_partial: bool,
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
    let mut all: Option<(CallCounts, UsagePeriod, bool)> = None;
    for usage in usages {
        let (counts, period, is_partial) =
            all.get_or_insert_with(|| (CallCounts::default(), usage.period, false));
        counts.merge(&usage.counts);
        *period = period.merge(usage.period);
        *is_partial |= usage.is_partial;
    }
    all.map(|(counts, period, is_partial)| Usage { tool: tool(), counts, period, is_partial })
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

/// How a window is cut into slices of one length, which are a whole number of minutes, of hours or
/// of days.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeSlicing {
    /// In seconds, as the length.
    from: u64,
    length: u64,
    count: usize,
}

impl TimeSlicing {
    /// At most `most` slices from `since` to `until`.
    pub(super) fn new(since: u64, until: u64, most: usize) -> Self {
        let unit = match until.saturating_sub(since) / 86_400 {
            0..2 => 60,
            2..35 => 3_600,
            _ => 86_400,
        };
        let from = since / unit * unit;
        let span = until.saturating_sub(from);
        let length = (span / unit + 1).div_ceil(most.max(1) as u64) * unit;
        Self { from, length, count: usize::try_from(span / length).unwrap_or(0) + 1 }
    }

    /// Which slice a moment is in, in milliseconds since the Unix epoch.
    pub(super) fn at(&self, ms: u64) -> Option<usize> {
        let at = usize::try_from((ms / 1_000).checked_sub(self.from)? / self.length).ok()?;
        (at < self.count).then_some(at)
    }

    pub(super) fn length(&self) -> Duration {
        Duration::from_secs(self.length)
    }

    /// Nothing in each of the slices.
    pub(super) fn empty(&self) -> Vec<TimeSlice> {
        let slice = |at: u64| TimeSlice {
            from: Duration::from_secs(self.from + at * self.length),
            length: self.length(),
            counts: CallCounts::default(),
        };
        (0..self.count as u64).map(slice).collect()
    }

    pub(super) fn count(&self) -> usize {
        self.count
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
            is_partial: false,
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
    fn slices_are_whole_units_and_reach_now() {
        let now = 20_000 * 86_400 + 4_000;
        for (ago, most, length) in [(3_600, 60, 120), (3_600, 10, 420), (7 * 86_400, 60, 10_800)] {
            let slicing = TimeSlicing::new(now - ago, now, most);
            let slices = slicing.empty();
            let last = slices.last().unwrap();
            assert!(slices.len() <= most);
            assert_eq!(last.length, Duration::from_secs(length), "{ago} {most}");
            let end = (last.from + last.length).as_secs();
            assert!(last.from.as_secs() <= now && end > now);
            assert_eq!(slicing.at(now * 1_000), Some(slices.len() - 1));
        }
        // A window that begins in the future is one slice.
        assert_eq!(TimeSlicing::new(now + 500, now, 10).empty().len(), 1);
    }
}
