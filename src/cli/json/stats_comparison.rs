//! The JSON of `stats --compare`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::stats::comparison::{FigureChange, PeriodComparison, UsageChange};
use crate::util::timestamp::rfc3339;

/// The period of equal length before the window, and what changed since.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PeriodComparisonJson<'a> {
    /// Start of the earlier period (RFC 3339).
    from: String,
    /// End of the earlier period and start of the window (RFC 3339).
    until: String,
    /// Whether all of the earlier period is still kept.
    complete: bool,
    /// The tools, or with `--by server` the servers, that were called in either period.
    changes: Vec<UsageChangeJson<'a>>,
    /// The totals of all tools.
    total: UsageChangeJson<'a>,
}

impl<'a> From<&'a PeriodComparison> for PeriodComparisonJson<'a> {
    fn from(comparison: &'a PeriodComparison) -> Self {
        Self {
            from: rfc3339(comparison.from.as_secs_f64()),
            until: rfc3339(comparison.until.as_secs_f64()),
            complete: comparison.is_complete,
            changes: comparison.changes.iter().map(UsageChangeJson::from).collect(),
            total: (&comparison.total).into(),
        }
    }
}

/// What changed for a tool or a server.
#[derive(Debug, Serialize, JsonSchema)]
struct UsageChangeJson<'a> {
    /// The full name of the tool; empty for a server and for the total.
    name: &'a str,
    /// The server; null for internal tools and for the total.
    server: Option<&'a str>,
    /// All calls; the change is relative (0.2 means 20 % more).
    calls: FigureChangeJson,
    /// The share of calls that failed, from 0 to 1; the change is the difference.
    error_share: FigureChangeJson,
    /// The median duration of successful calls; the change is relative.
    p50_ms: FigureChangeJson,
    /// The 95th percentile; the change is relative.
    p95_ms: FigureChangeJson,
}

impl<'a> From<&'a UsageChange> for UsageChangeJson<'a> {
    fn from(change: &'a UsageChange) -> Self {
        let relative = |figure: FigureChange, unit: f64| FigureChangeJson {
            now: figure.now.map(|value| value * unit),
            before: figure.before.map(|value| value * unit),
            change: figure.relative(),
        };
        let errors = change.error_share();
        Self {
            name: &change.tool.name,
            server: change.tool.server.as_deref(),
            calls: relative(change.calls(), 1.0),
            error_share: FigureChangeJson {
                now: errors.now,
                before: errors.before,
                change: errors.difference(),
            },
            p50_ms: relative(change.quantile(0.5), 1e3),
            p95_ms: relative(change.quantile(0.95), 1e3),
        }
    }
}

/// A figure in two periods.
#[derive(Debug, Serialize, JsonSchema)]
struct FigureChangeJson {
    /// In the window; null without data.
    now: Option<f64>,
    /// In the earlier period.
    before: Option<f64>,
    /// The change; null when one of them is missing or the earlier one is zero.
    change: Option<f64>,
}
