//! A run in a few sentences: what a person wants to know first.

use super::baseline::{BaselineChange, BaselineReport, GATED_STATISTICS, RegressionVerdict};
use super::bench_result::BenchFindings;
use super::compare::{RatioVerdict, TargetComparison, letter};
use super::formatting;
use super::plan::{LoadModel, Sharing};
use super::report::{BenchReport, ErrorReport, TargetReport};
use super::statistic::Statistic;
use super::threshold::ThresholdResult;
use crate::util::histogram::Durations;
use crate::util::units::{show_count, show_duration};

/// Maximum number of failures of one kind, thresholds or regressions that are listed one by one.
const MAX_LINES: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineTone {
    /// A figure, without a judgement.
    Plain,
    Dim,
    /// Something holds that was asked for.
    Good,
    /// To be known before the figures are believed.
    Warning,
    Bad,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportLine {
    pub tone: LineTone,
    /// The text; names and messages of others are in it unchanged.
    pub text: String,
}

impl ReportLine {
    fn new(tone: LineTone, text: impl Into<String>) -> Self {
        Self { tone, text: text.into() }
    }
}

/// The run in about five to nine lines.
pub fn summarize(report: &BenchReport, findings: &BenchFindings) -> Vec<ReportLine> {
    let mut lines = Vec::new();
    lines.extend(findings.comparisons.iter().map(comparison));
    if matches!(report.plan.sharing, Sharing::Steps { .. }) {
        lines.extend(step_lines(report));
    } else {
        let targets = report.targets.iter().enumerate();
        lines.extend(targets.flat_map(|(at, target)| target_lines(report, at, target)));
    }
    lines.extend(thresholds(&findings.thresholds));
    lines.extend(findings.baseline.iter().flat_map(baseline));
    if let Some(ended) = formatting::ending(report) {
        lines.push(ReportLine::new(LineTone::Warning, ended));
    }
    let limits = findings.bottlenecks.first();
    lines.extend(limits.map(|text| ReportLine::new(LineTone::Plain, first_sentence(text))));
    if let Some((first, others)) = findings.warnings.split_first() {
        let more = match others.len() {
            0 => String::new(),
            count => format!(" ({count} more)"),
        };
        lines.push(ReportLine::new(LineTone::Warning, format!("{}{more}", first_sentence(first))));
    }
    lines
}

fn comparison(compared: &TargetComparison) -> ReportLine {
    let tone = match compared.headline().map(|ratio| ratio.verdict) {
        Some(RatioVerdict::Faster) => LineTone::Good,
        Some(RatioVerdict::Slower) => LineTone::Bad,
        _ => LineTone::Warning,
    };
    ReportLine::new(tone, capitalized(&compared.headline_sentence()))
}

pub fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    first + letters.as_str()
}

fn step_lines(report: &BenchReport) -> Vec<ReportLine> {
    let made: u64 = report.total(|target| target.requests);
    let failed: u64 = report.total(TargetReport::failed_calls);
    let (tone, outcome) = match failed {
        0 => (LineTone::Good, "all ok".to_owned()),
        _ => (LineTone::Bad, format!("{} failed", show_count(failed))),
    };
    let steps = match report.targets.len() {
        1 => "1 step".to_owned(),
        many => format!("{many} steps"),
    };
    let (calls, took) = (formatting::calls(made), show_duration(report.elapsed));
    let mut lines = vec![ReportLine::new(tone, format!("{calls} in {steps}, {took}, {outcome}"))];
    let errors = report.targets.iter().filter_map(|target| {
        let error = error_line(*target.commonest_errors().first()?);
        Some(format!("at {} in flight: {error}", target.step.unwrap_or_default()))
    });
    lines.extend(errors.take(MAX_LINES).map(|text| ReportLine::new(LineTone::Bad, text)));
    lines
}

fn target_lines(report: &BenchReport, at: usize, target: &TargetReport) -> Vec<ReportLine> {
    let several = report.targets.len() > 1;
    let name = if several { format!("{} {}: ", letter(at), target.tool) } else { String::new() };
    let failed = target.failed_calls();
    let calls = formatting::calls(target.requests);
    let took = show_duration(report.elapsed);
    let made = if several { calls } else { format!("{calls} in {took}") };
    let rate = formatting::per_second(target.throughput);
    let load = match &report.plan.model {
        LoadModel::Closed { concurrency: 1 } => "one at a time".to_owned(),
        LoadModel::Closed { concurrency } => format!("{concurrency} in flight"),
        LoadModel::Open { arrivals, .. } => format!("of {}", formatting::arrivals(*arrivals)),
    };
    let (tone, outcome) = match (target.ok, failed) {
        (0, _) => (LineTone::Bad, "none succeeded".to_owned()),
        (_, 0) => (LineTone::Good, "all ok".to_owned()),
        _ => {
            let share = formatting::percent(failed, target.requests);
            (LineTone::Bad, format!("{} failed ({share})", show_count(failed)))
        }
    };
    let mut lines = vec![ReportLine::new(tone, format!("{name}{made}, {outcome}"))];
    if target.ok > 0 {
        let times = format!("{}   {rate} calls/s, {load}", times(&target.response));
        lines.push(ReportLine::new(LineTone::Plain, times));
    }
    if target.dropped > 0 {
        let why = formatting::dropped_reason(&report.plan.model);
        let text = format!("{} calls {why}", show_count(target.dropped));
        lines.push(ReportLine::new(LineTone::Warning, text));
    }
    let errors = target.commonest_errors().into_iter().take(MAX_LINES).map(error_line);
    lines.extend(errors.map(|text| ReportLine::new(LineTone::Bad, text)));
    if let (Some(error), true) = (&target.error, target.errors_by_kind.is_empty()) {
        lines.push(ReportLine::new(LineTone::Bad, format!("ended early: {error}")));
    }
    lines
}

fn error_line((kind, error): (&str, &ErrorReport)) -> String {
    format!("{kind} {}: {}", show_count(error.count), first_sentence(&error.sample))
}

/// The percentiles that people ask for; `~` marks one that too few calls lie beyond.
fn times(response: &Durations) -> String {
    let at = |(name, share)| format!("{name} {}", formatting::percentile(response, share));
    let mut parts = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)].map(at).to_vec();
    parts.extend(response.max().map(|max| format!("max {}", show_duration(max))));
    parts.join("  ")
}

fn thresholds(judged: &[ThresholdResult]) -> Vec<ReportLine> {
    let all: Vec<_> = judged.iter().flat_map(|judgement| &judgement.lines).collect();
    let failed: Vec<_> = all.iter().filter(|line| line.failed).collect();
    if all.is_empty() {
        return Vec::new();
    }
    if failed.is_empty() {
        let unsure = if all.iter().any(|line| line.is_unreliable) {
            " (too few calls to be reliable)"
        } else {
            ""
        };
        let text = format!("thresholds: {} of {} hold{unsure}", all.len(), all.len());
        return vec![ReportLine::new(LineTone::Good, text)];
    }
    let mut lines: Vec<ReportLine> = failed
        .iter()
        .take(MAX_LINES)
        .map(|line| ReportLine::new(LineTone::Bad, format!("threshold: {}", line.text)))
        .collect();
    if failed.len() > MAX_LINES {
        let text = format!("{} more thresholds failed", failed.len() - MAX_LINES);
        lines.push(ReportLine::new(LineTone::Bad, text));
    }
    lines
}

fn baseline(baseline: &BaselineReport) -> Vec<ReportLine> {
    let file = &baseline.file;
    let several = baseline.targets.len() > 1;
    let judged = GATED_STATISTICS.map(Statistic::name).join(", ");
    let of = |change: &BaselineChange| {
        let name = if several { format!(" {}", change.tool) } else { String::new() };
        let verdict = change.verdict();
        let tone = verdict.map_or(LineTone::Plain, RegressionVerdict::tone);
        let verdict = verdict.map_or_else(String::new, |verdict| {
            format!("; --max-regression of {judged}: {}", verdict.label())
        });
        let all = change.lines();
        // What failed says more than the first figure does.
        let line = all.iter().find(|line| line.ends_with("FAIL")).or_else(|| all.first());
        let line = line.map_or("nothing to compare", String::as_str);
        let line = line.split(": FAIL").next().unwrap_or(line);
        ReportLine::new(tone, format!("since {file}{name}: {line}{verdict}"))
    };
    if baseline.targets.is_empty() {
        let text = format!("{file} has none of this run's tools");
        return vec![ReportLine::new(LineTone::Bad, text)];
    }
    baseline.targets.iter().map(of).collect()
}

fn first_sentence(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    let end = [". ", "; "].iter().filter_map(|end| line.find(end)).min();
    end.and_then(|end| line.get(..end)).unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::bench::compare::compare;
    use crate::bench::fixtures::{report, rounds, target};
    use crate::bench::report::RunStatus;

    fn lines(report: &BenchReport, findings: &BenchFindings) -> String {
        let lines = summarize(report, findings);
        assert!(lines.len() < 10, "{lines:#?}");
        let line = |line: &ReportLine| format!("{:?}: {}", line.tone, line.text);
        lines.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    fn even(tool: &str, micros: u64) -> TargetReport {
        target(tool, (1..=1_000).map(move |n| Duration::from_micros(n * micros)))
    }

    #[test]
    fn a_run_is_told_in_few_lines_the_verdict_first() {
        let findings = BenchFindings {
            bottlenecks: vec!["Limited by the tool: it waits. More of that".to_owned()],
            warnings: vec!["short; very".to_owned(), "second".to_owned()],
            ..BenchFindings::default()
        };
        insta::assert_snapshot!(lines(&report(vec![even("a", 1)]), &findings), @r"
        Good: 1,000 calls in 600 ms, all ok
        Plain: p50 500 µs  p95 950 µs  p99 990 µs  max 1 ms   1,998 calls/s, one at a time
        Plain: Limited by the tool: it waits
        Warning: short (1 more)
        ");
        let mut both = report(vec![even("a", 1), even("b", 2)]);
        both.rounds = rounds(&[1, 2], 10);
        let findings = BenchFindings { comparisons: compare(&both), ..BenchFindings::default() };
        let text = lines(&both, &findings);
        assert!(text.starts_with("Bad: B is slower than A: p50 2.000 times as long"), "{text}");
        assert!(text.contains("Good: B b: 1,000 calls, all ok"), "{text}");
    }

    #[test]
    fn what_went_wrong_stands_with_its_commonest_kinds() {
        let mut bad = even("a", 1);
        bad.requests += 30;
        bad.errors = 30;
        for (kind, count) in [("protocol", 4), ("timeout", 25), ("tool", 1)] {
            let sample = format!("{kind} said no. And more");
            let cause = ErrorReport { count, first_seen: Duration::ZERO, sample };
            bad.errors_by_kind.insert(kind.to_owned(), cause);
        }
        let mut run = report(vec![bad]);
        run.status = RunStatus::Stopped;
        let text = lines(&run, &BenchFindings::default());
        for expected in [
            "Bad: 1,030 calls in 600 ms, 30 failed (2.91%)",
            "Bad: timeout 25: timeout said no\nBad: protocol 4: ",
            "Warning: stopped early",
        ] {
            assert!(text.contains(expected), "{expected}\n{text}");
        }
        assert!(!text.contains("tool 1"), "{text}");
        let none = lines(&report(vec![target("a", [])]), &BenchFindings::default());
        assert!(none.starts_with("Bad: 0 calls in 0 µs, none succeeded"), "{none}");
    }
}
