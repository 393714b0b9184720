//! The figures of a period beside those of the period before it.
//!
//! Whether a tool is slower than it declares to be.

use std::time::Duration;

use super::count::CallCounts;
use super::{Summary, Usage};
use crate::model::{CallFilter, Speed, ToolDefinition};

/// What was counted of a tool in two periods.
#[derive(Debug)]
pub struct UsageChange<'c> {
    pub now: &'c CallCounts,
    pub before: &'c CallCounts,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FigureChange {
    /// The figure of the later period; `None` when there was nothing to take it from.
    pub now: Option<f64>,
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

fn positive_zero(value: f64) -> f64 {
    if value.abs() < 0.05 { 0.0 } else { value }
}

impl UsageChange<'_> {
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
        FigureChange { now: of(self.now), before: of(self.before) }
    }
}

/// The filter of the period of equal length before the one that `summary` is of; `None` for a
/// summary of everything.
pub fn earlier_period(filter: &CallFilter, summary: &Summary) -> Option<CallFilter> {
    let from = summary.from?;
    let since = Some(from.saturating_sub(summary.now.saturating_sub(from)));
    Some(CallFilter { since, until: Some(from), ..filter.clone() })
}

/// The fewest successful calls that say how fast a tool is.
pub const MIN_CALLS: u64 = 5;

const QUANTILE: f64 = 0.95;

/// A tool that is slower than it declares to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExceededSpeed {
    pub speed: Speed,
    /// The time within which 95 of 100 successful calls end.
    pub p95: Duration,
}

impl ExceededSpeed {
    /// Compares what a tool declares with what was measured; `None` when it is as fast as that,
    /// declares nothing, or had fewer than [`MIN_CALLS`] successful calls.
    pub fn of(tool: &ToolDefinition, usage: &Usage) -> Option<Self> {
        let speed = tool.declared_speed()?;
        let durations = &usage.counts.durations;
        if durations.count() < MIN_CALLS {
            return None;
        }
        let p95 = durations.quantile(QUANTILE)?;
        (p95 > speed.default_timeout()).then_some(Self { speed, p95 })
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    fn counts(ok: u64, failed: u64, millis: u64) -> CallCounts {
        let mut counts = CallCounts { ok, ..CallCounts::default() };
        counts.add_failures("tool", failed);
        counts.durations.record_many(Duration::from_millis(millis), ok);
        counts
    }

    #[test]
    fn the_earlier_period_is_as_long_and_ends_where_the_later_begins() {
        let at = |seconds| Duration::from_secs(seconds);
        let later = Summary { from: Some(at(1_000)), now: at(1_600), ..Summary::default() };
        let earlier = earlier_period(&CallFilter::default(), &later).unwrap();
        assert_eq!((earlier.since, earlier.until), (Some(at(400)), Some(at(1_000))));
        let all = Summary { from: None, ..later };
        assert_eq!(earlier_period(&CallFilter::default(), &all), None);
    }

    #[test]
    fn figures_are_compared_and_what_is_missing_is_told() {
        let none = CallCounts::default();
        let change = UsageChange { now: &counts(90, 30, 20), before: &counts(100, 0, 10) };
        assert_eq!(change.calls().relative_text(), "+20%");
        assert_eq!(change.error_share().points_text(), "+25.0 pp");
        assert_eq!(change.quantile(0.5).relative_text(), "+100%");
        let new = UsageChange { now: &counts(1, 0, 5), before: &none };
        assert_eq!(new.calls().relative_text(), "new");
        let unused = UsageChange { now: &none, before: &counts(3, 0, 5) };
        assert_eq!(unused.calls().relative_text(), "-100%");
        assert_eq!(unused.quantile(0.5).relative_text(), "");
        let same = FigureChange { now: Some(0.999_9), before: Some(1.0) };
        assert_eq!((same.relative_text(), same.points_text()), ("+0%".into(), "+0.0 pp".into()));
    }
}
