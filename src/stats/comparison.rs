//! The figures of a period beside those of the period before it.
//!
//! Owns: which period that is, and how figures of the two are compared. Never does: read a store.

use std::collections::BTreeMap;
use std::time::Duration;

use super::count::{CallCounts, ToolKey};
use super::{Summary, Usage};
use crate::model::CallFilter;

/// What was counted in a period and in the one of equal length before it.
#[derive(Debug, Clone)]
pub struct PeriodComparison {
    /// Where the earlier period begins, as time since the Unix epoch.
    pub from: Duration,
    /// Where the earlier period ends and the later one begins.
    pub until: Duration,
    /// Whether all of the earlier period is still kept.
    pub is_complete: bool,
    /// The tools, or servers, that were called in either period.
    pub changes: Vec<UsageChange>,
    /// Everything together.
    pub total: UsageChange,
}

/// What was counted of a tool in two periods.
#[derive(Debug, Clone)]
pub struct UsageChange {
    /// The tool by name and server.
    pub tool: ToolKey,
    /// The counts of the later period.
    pub now: CallCounts,
    /// The counts of the earlier period.
    pub before: CallCounts,
}

/// A figure in two periods.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FigureChange {
    /// The figure of the later period; `None` when there was nothing to take it from.
    pub now: Option<f64>,
    /// The figure of the earlier period.
    pub before: Option<f64>,
}

impl FigureChange {
    /// By how much the figure grew: 0.2 is a fifth more. `None` when one of them is missing, or
    /// the earlier one was nothing.
    pub fn relative(&self) -> Option<f64> {
        let (now, before) = (self.now?, self.before?);
        (before > 0.0).then(|| now / before - 1.0)
    }

    /// The difference of two shares, from -1 to 1.
    pub fn difference(&self) -> Option<f64> {
        Some(self.now? - self.before?)
    }

    /// The relative change for people: `+20%`, `-4%`, `new` for what was nothing before.
    pub fn relative_text(&self) -> String {
        match (self.relative(), self.now) {
            (Some(change), _) => format!("{:+.0}%", positive_zero((change * 100.0).round())),
            (None, Some(now)) if now > 0.0 && self.before.is_some() => "new".to_owned(),
            (None, _) => String::new(),
        }
    }

    /// The difference of two shares for people, in percentage points: `+1.5 pp`.
    pub fn points_text(&self) -> String {
        let points = |difference: f64| {
            format!("{:+.1} pp", positive_zero((difference * 1_000.0).round() / 10.0))
        };
        self.difference().map(points).unwrap_or_default()
    }
}

/// No change has no sign.
fn positive_zero(value: f64) -> f64 {
    if value.abs() < 0.05 { 0.0 } else { value }
}

impl UsageChange {
    /// How many calls there were.
    pub fn calls(&self) -> FigureChange {
        #[expect(clippy::cast_precision_loss, reason = "for a share")]
        let calls = |counts: &CallCounts| Some(counts.calls() as f64);
        self.figure(calls)
    }

    /// The share of calls that failed, from 0 to 1.
    pub fn error_share(&self) -> FigureChange {
        self.figure(|counts| counts.success_rate().map(|share| 1.0 - share))
    }

    /// A quantile of the durations of successful calls, in seconds.
    pub fn quantile(&self, share: f64) -> FigureChange {
        self.figure(|counts| counts.durations.quantile(share).map(|time| time.as_secs_f64()))
    }

    fn figure(&self, of: impl Fn(&CallCounts) -> Option<f64>) -> FigureChange {
        FigureChange { now: of(&self.now), before: of(&self.before) }
    }
}

impl PeriodComparison {
    /// The filter of the period of equal length before the one that `summary` is of; `None` for a
    /// summary of everything.
    pub fn earlier(filter: &CallFilter, summary: &Summary) -> Option<CallFilter> {
        let from = summary.from?;
        let since = Some(beginning_before(from, summary.now));
        Some(CallFilter { since, until: Some(from), ..filter.clone() })
    }

    /// Compares tools, or servers, of two periods.
    pub fn new(later: &Summary, earlier: &Summary, by_server: bool) -> Self {
        let rows = |summary: &Summary| -> Vec<Usage> {
            if by_server { summary.servers() } else { summary.tools.clone() }
        };
        let mut before: BTreeMap<ToolKey, CallCounts> =
            rows(earlier).into_iter().map(|usage| (usage.tool, usage.counts)).collect();
        // In the order of the later period; what was only called in the earlier one stands behind.
        let mut changes: Vec<UsageChange> = rows(later)
            .into_iter()
            .map(|usage| UsageChange {
                before: before.remove(&usage.tool).unwrap_or_default(),
                tool: usage.tool,
                now: usage.counts,
            })
            .collect();
        let gone = |(tool, before)| UsageChange { tool, now: CallCounts::default(), before };
        changes.extend(before.into_iter().map(gone));
        let total = |summary: &Summary| summary.total().map(|usage| usage.counts);
        let (from, until) = (earlier.from.unwrap_or_default(), later.from.unwrap_or_default());
        Self {
            from,
            until,
            is_complete: from <= beginning_before(until, later.now),
            changes,
            total: UsageChange {
                tool: ToolKey::default(),
                now: total(later).unwrap_or_default(),
                before: total(earlier).unwrap_or_default(),
            },
        }
    }

    /// What changed for one tool, or one server.
    pub fn of(&self, tool: &ToolKey) -> Option<&UsageChange> {
        self.changes.iter().find(|change| change.tool == *tool)
    }
}

/// Where the period begins that is as long as the one from `from` to `now`, and ends at `from`.
fn beginning_before(from: Duration, now: Duration) -> Duration {
    from.saturating_sub(now.saturating_sub(from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::count::UsagePeriod;

    fn summary(from: u64, now: u64, tools: &[(&str, u64, u64, u64)]) -> Summary {
        let usage = |(name, ok, failed, millis): &(&str, u64, u64, u64)| {
            let mut counts = CallCounts { ok: *ok, ..CallCounts::default() };
            counts.add_failures("tool", *failed);
            counts.durations.record_many(Duration::from_millis(*millis), *ok);
            let tool = ToolKey { name: (*name).to_owned(), ..ToolKey::default() };
            Usage { tool, counts, period: UsagePeriod { first: 1, last: 2 } }
        };
        Summary {
            from: Some(Duration::from_secs(from)),
            now: Duration::from_secs(now),
            tools: tools.iter().map(usage).collect(),
            ..Summary::default()
        }
    }

    #[test]
    fn the_earlier_period_is_as_long_and_ends_where_the_later_begins() {
        let later = summary(1_000, 1_600, &[]);
        let earlier = PeriodComparison::earlier(&CallFilter::default(), &later).unwrap();
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs());
        assert_eq!((seconds(earlier.since), seconds(earlier.until)), (Some(400), Some(1_000)));
        let all = Summary { from: None, ..later };
        assert_eq!(PeriodComparison::earlier(&CallFilter::default(), &all), None);
    }

    #[test]
    fn figures_are_compared_and_what_is_missing_is_told() {
        let later = summary(1_000, 1_600, &[("a", 90, 30, 20), ("new", 1, 0, 5)]);
        let earlier = summary(400, 1_000, &[("a", 100, 0, 10), ("gone", 3, 0, 5)]);
        let comparison = PeriodComparison::new(&later, &earlier, false);
        let names: Vec<&str> = comparison.changes.iter().map(|c| c.tool.name.as_str()).collect();
        assert_eq!(names, ["a", "new", "gone"]);
        let [a, new, gone] = comparison.changes.as_slice() else { panic!() };
        assert_eq!(a.calls().relative_text(), "+20%");
        assert_eq!(a.error_share().points_text(), "+25.0 pp");
        assert_eq!(a.quantile(0.5).relative_text(), "+100%");
        assert_eq!(
            (new.calls().relative_text(), gone.calls().relative_text()),
            ("new".into(), "-100%".into())
        );
        assert_eq!(gone.quantile(0.5).relative_text(), "");
        let total = &comparison.total;
        assert_eq!((total.now.calls(), total.before.calls()), (121, 103));
        let same = FigureChange { now: Some(0.999_9), before: Some(1.0) };
        assert_eq!((same.relative_text(), same.points_text()), ("+0%".into(), "+0.0 pp".into()));
    }
}
