//! The steps of a run: what each number of calls in flight gave, side by side.

use std::time::Duration;

use super::formatting;
use super::report::{BenchReport, TargetReport};
use crate::util::units::{show_count, show_duration};

/// The titles of the table.
pub const COLUMNS: [&str; 6] = ["in flight", "calls/s", "p50", "p95", "p99", "errors"];

/// A step that answers this share of what the best one does is as good.
const NEAR_THE_BEST: f64 = 0.9;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepRow {
    /// The cell for each of [`COLUMNS`]; `~` marks a percentile with too few calls above it.
    pub cells: [String; 6],
    pub has_errors: bool,
}

/// The steps of a run, of each of which so many calls `failed`; none of a run without steps.
pub fn rows(targets: &[TargetReport], failed: fn(&TargetReport) -> u64) -> Vec<StepRow> {
    let row = |target: &TargetReport| {
        let [p50, p95, p99] =
            [0.5, 0.95, 0.99].map(|share| formatting::percentile(&target.response, share));
        let failed = failed(target);
        let errors = if failed == 0 {
            "0".to_owned()
        } else {
            let share = formatting::percent(failed, target.requests);
            format!("{} ({share})", show_count(failed))
        };
        let rate = formatting::per_second(target.throughput);
        let cells = [target.step?.to_string(), rate, p50, p95, p99, errors];
        Some(StepRow { cells, has_errors: failed > 0 })
    };
    targets.iter().filter_map(row).collect()
}

/// Where more calls in flight stop bringing more answers; `None` with fewer than two steps to
/// compare.
pub fn reading(report: &BenchReport) -> Option<String> {
    let step = |target: &TargetReport| {
        Some((target.step?, target.throughput, target.response.quantile(0.95)?))
    };
    let steps: Vec<_> = report.targets.iter().filter_map(step).collect();
    let (last, others) = steps.split_last()?;
    let best = steps.iter().max_by(|one, other| one.1.total_cmp(&other.1))?;
    let enough = steps.iter().find(|step| step.1 >= best.1 * NEAR_THE_BEST)?;
    if others.is_empty() {
        return None;
    }
    let rate = |step: &(usize, f64, Duration)| formatting::per_second(step.1);
    if enough.0 == last.0 {
        return Some(format!(
            "Throughput still rises at {} in flight ({} calls/s): more may help.",
            last.0,
            rate(last)
        ));
    }
    if enough.0 == best.0 {
        return Some(format!(
            "More than {} in flight brings nothing: {} calls/s is the best, and p95 goes from \
             {} to {} at {}.",
            enough.0,
            rate(enough),
            show_duration(enough.2),
            show_duration(last.2),
            last.0
        ));
    }
    Some(format!(
        "More than {} in flight brings little: {} calls/s at {}, {} at best (at {}), while p95 goes \
         from {} to {} at {}.",
        enough.0,
        rate(enough),
        enough.0,
        rate(best),
        best.0,
        show_duration(enough.2),
        show_duration(last.2),
        last.0
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fixtures::{report, target};
    use crate::bench::plan::Sharing;

    fn run(steps: &[(usize, f64, u64)]) -> BenchReport {
        let step = |&(calls, rate, micros): &(usize, f64, u64)| {
            let times = (1..=1_000).map(|n| Duration::from_micros(n * micros));
            TargetReport { step: Some(calls), throughput: rate, ..target("a", times) }
        };
        let mut report = report(steps.iter().map(step).collect());
        let in_flight = steps.iter().map(|step| step.0).collect();
        report.plan.sharing = Sharing::Steps { in_flight, error_limit: None };
        report
    }

    #[test]
    fn steps_stand_side_by_side_and_failures_are_counted() {
        let mut report = run(&[(1, 100.0, 10), (4, 390.0, 12)]);
        report.targets[1].requests += 20;
        let rows = |report: &BenchReport| super::rows(&report.targets, TargetReport::failed_calls);
        let all = rows(&report);
        assert_eq!(all[0].cells, ["1", "100", "5 ms", "9.50 ms", "9.90 ms", "0"]);
        assert_eq!((all[1].cells[5].as_str(), all[1].has_errors), ("20 (1.96%)", true));
        report.targets.iter_mut().for_each(|target| target.step = None);
        assert!(rows(&report).is_empty(), "a run without steps has no such table");
    }

    #[test]
    fn the_step_from_which_on_nothing_is_gained_is_named() {
        let text = |steps: &[(usize, f64, u64)]| reading(&run(steps)).unwrap_or_default();
        let flat = text(&[(1, 100.0, 10), (4, 390.0, 10), (16, 410.0, 40)]);
        assert!(
            flat.starts_with("More than 4 in flight brings little: 390 calls/s at 4, 410 at best")
        );
        assert!(flat.contains("from 9.50 ms to 38 ms at 16"), "{flat}");
        let less = text(&[(1, 100.0, 10), (4, 390.0, 10), (16, 300.0, 40)]);
        assert!(less.starts_with("More than 4 in flight brings nothing: 390 calls/s"), "{less}");
        assert!(text(&[(1, 100.0, 10), (4, 390.0, 10)]).starts_with("Throughput still rises at 4"));
        assert_eq!(text(&[(1, 100.0, 10)]), "");
    }
}
