//! Markdown export of a run, for an issue or a page.

use std::fmt::Write as _;
use std::time::Duration;

use crate::bench::compare::{TargetComparison, letter};
use crate::bench::report::BenchReport;
use crate::bench::statistic::Statistic;
use crate::util::text::safe_line;
use crate::util::units::show_duration;

/// The figures of all targets as a table, and each comparison as another one. A percentile of too
/// few calls is marked.
pub fn markdown(report: &BenchReport, comparisons: &[TargetComparison]) -> String {
    let mut out = String::from(
        "| Tool | Calls | Failed | Answered/s | Mean ± σ | p50 | p90 | p95 | p99 | Max |\n\
         |:---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    let mut marked = false;
    for (at, target) in report.targets.iter().enumerate() {
        let times = &target.response;
        let show = |value: Option<Duration>| value.map_or_else(|| "–".to_owned(), show_duration);
        let mut percentile = |share: f64| match times.quantile(share) {
            Some(value) if !times.is_reliable_at(share) => {
                marked = true;
                format!("{}\\*", show_duration(value))
            }
            value => show(value),
        };
        let percentiles = [0.5, 0.9, 0.95, 0.99].map(&mut percentile);
        let name = match report.targets.len() {
            1 => cell(&target.label()),
            _ => format!("{}: {}", letter(at), cell(&target.label())),
        };
        let mean = match (times.mean(), times.stddev()) {
            (Some(mean), Some(spread)) => {
                format!("{} ± {}", show_duration(mean), show_duration(spread))
            }
            _ => "–".to_owned(),
        };
        let _infallible = writeln!(
            out,
            "| {name} | {} | {} | {:.1} | {mean} | {} | {} |",
            target.requests,
            target.failed_calls(),
            target.throughput,
            percentiles.join(" | "),
            show(times.max()),
        );
    }
    if marked {
        out.push_str("\n\\* Fewer than ten calls are above this percentile.\n");
    }
    for comparison in comparisons {
        ratios(&mut out, comparison);
    }
    out
}

fn ratios(out: &mut String, comparison: &TargetComparison) {
    let letter = comparison.letter;
    let _infallible = writeln!(
        out,
        "\n| {letter} / A | Ratio | Interval | {letter} is |\n|:---|---:|:---:|:---|"
    );
    for ratio in &comparison.ratios {
        let interval = ratio.interval.map_or_else(
            || "–".to_owned(),
            |(low, high)| format!("{low:.3} to {high:.3} ({:.1}%)", ratio.level * 100.0),
        );
        let name = match ratio.statistic {
            Statistic::Throughput => "answered/s",
            statistic => statistic.name(),
        };
        let _infallible = writeln!(
            out,
            "| {name} | {:.3} | {interval} | {} |",
            ratio.value,
            ratio.verdict.label()
        );
    }
    let _infallible = writeln!(out, "\n{}.", cell(&comparison.headline_sentence()));
}

fn cell(text: &str) -> String {
    let mut out = String::new();
    for c in safe_line(text).chars() {
        match c {
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '!' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::compare::compare;
    use crate::bench::fixtures::{report, rounds, target};

    #[test]
    fn a_run_is_a_table_and_a_comparison_another_one() {
        let times = |micros| (1..=1_000_u64).map(move |n| Duration::from_micros(n * micros));
        let mut report = report(vec![target("a", times(1)), target("b|<i>", times(2))]);
        report.rounds = rounds(&[1, 2], 10);
        let text = markdown(&report, &compare(&report));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[2].starts_with("| A: a | 1000 | 0 | 1998.0 | 500 µs ± "), "{text}");
        assert!(lines[3].starts_with("| B: b\\|&lt;i&gt; | 1000 |"), "{text}");
        assert!(text.contains("| p50 | 2.000 | "), "{text}");
        assert!(text.contains("| answered/s | 0.500 | "), "{text}");
        assert!(text.contains("B is slower than A"), "{text}");
        assert!(!text.contains("Fewer than ten"), "{text}");
    }

    #[test]
    fn percentiles_of_few_calls_are_marked() {
        let text = markdown(&report(vec![target("a", [Duration::from_millis(3)])]), &[]);
        assert!(text.contains("3 ms\\*") && text.contains("Fewer than ten"), "{text}");
        let text = markdown(&report(vec![target("a", [])]), &[]);
        assert!(text.contains("| a | 0 | 0 | 0.0 | – | – | – | – | – | – |"), "{text}");
    }
}
