//! The tables of the page.

use std::fmt::Write as _;
use std::time::Duration;

use super::{class, escaped};
use crate::bench::baseline::BaselineReport;
use crate::bench::compare::{Ratio, TargetComparison, letter};
use crate::bench::formatting;
use crate::bench::report::{BenchReport, TargetReport};
use crate::bench::steps::{self, StepRow};
use crate::bench::summary::LineTone;
use crate::bench::threshold::ThresholdResult;
use crate::util::histogram::Durations;
use crate::util::units::{show_count, show_duration, show_size};

const PERCENTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];

type Cell = (LineTone, String);

fn plain(text: impl Into<String>) -> Cell {
    (LineTone::Plain, text.into())
}

/// A table under a heading; nothing without a row.
fn table(page: &mut String, heading: &str, columns: &[&str], rows: &[Vec<Cell>]) {
    if rows.is_empty() {
        return;
    }
    let _infallible =
        write!(page, "<h2>{}</h2>\n<div class=\"scroll\"><table>\n<thead><tr>", escaped(heading));
    for column in columns {
        let _infallible = write!(page, "<th scope=\"col\">{}</th>", escaped(column));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        page.push_str("<tr>");
        for (tone, text) in row {
            let _infallible = write!(page, "<td class=\"{}\">{}</td>", class(*tone), escaped(text));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
}

fn name(report: &BenchReport, at: usize, target: &TargetReport) -> String {
    if report.targets.len() > 1 {
        format!("{} {}", letter(at), target.label())
    } else {
        target.label()
    }
}

pub(super) fn steps(page: &mut String, report: &BenchReport) {
    let row = |row: StepRow| {
        let [in_flight, rate, p50, p95, p99, errors] = row.cells;
        let times = [in_flight, rate, p50, p95, p99].map(plain);
        let tone = if row.has_errors { LineTone::Bad } else { LineTone::Dim };
        times.into_iter().chain([(tone, errors)]).collect()
    };
    let rows: Vec<Vec<Cell>> =
        steps::rows(&report.targets, TargetReport::failed_calls).into_iter().map(row).collect();
    table(page, "Steps", &steps::COLUMNS, &rows);
}

/// Percentiles of each tool; of an open load from the intended start and from the sending.
pub(super) fn latencies(page: &mut String, report: &BenchReport) {
    let mut rows = Vec::new();
    for (at, target) in report.targets.iter().enumerate() {
        let name = name(report, at, target);
        let open = report.is_open().then_some(("from the intended start", &target.response));
        let all = open.into_iter().chain([("from the sending", &target.service)]);
        rows.extend(all.map(|(since, times)| figures(&name, since, times)));
    }
    let mut columns = vec!["tool", "timed", "min"];
    columns.extend(PERCENTILES.iter().map(|(name, _)| *name));
    columns.extend(["max", "mean", "deviation"]);
    table(page, "Latencies", &columns, &rows);
    page.push_str("<p class=\"weak\">~ too few calls above this percentile to be reliable</p>\n");
}

fn figures(name: &str, since: &str, times: &Durations) -> Vec<Cell> {
    let show = |value: Option<Duration>| value.map_or_else(|| "–".to_owned(), show_duration);
    let mut row = vec![plain(name), plain(since), plain(show(times.min()))];
    row.extend(PERCENTILES.iter().map(|(_, share)| {
        let is_doubtful = times.count() > 0 && !times.is_reliable_at(*share);
        let tone = if is_doubtful { LineTone::Dim } else { LineTone::Plain };
        (tone, formatting::percentile(times, *share))
    }));
    row.extend([times.max(), times.mean(), times.stddev()].map(|value| plain(show(value))));
    row
}

/// The outcomes of the calls, and each kind of failure with a sample.
pub(super) fn failures(page: &mut String, report: &BenchReport) {
    let row = |(at, target): (usize, &TargetReport)| {
        let failed = |count: u64| {
            let tone = if count > 0 { LineTone::Bad } else { LineTone::Dim };
            (tone, show_count(count))
        };
        vec![
            plain(name(report, at, target)),
            plain(show_count(target.requests)),
            plain(show_count(target.ok)),
            failed(target.tool_errors),
            failed(target.errors),
            failed(target.timeouts),
            failed(target.unanswered),
            failed(target.dropped),
            plain(formatting::per_second(target.throughput)),
            plain(show_size(target.bytes_in)),
        ]
    };
    let rows: Vec<Vec<Cell>> = report.targets.iter().enumerate().map(row).collect();
    let columns = [
        "tool",
        "calls",
        "ok",
        "tool errors",
        "failed",
        "timed out",
        "unanswered",
        "not made",
        "calls/s",
        "received",
    ];
    table(page, "Calls", &columns, &rows);
    let mut kinds = Vec::new();
    for (at, target) in report.targets.iter().enumerate() {
        for (kind, cause) in &target.errors_by_kind {
            kinds.push(vec![
                plain(format!("{}: {kind}", name(report, at, target))),
                plain(show_count(cause.count)),
                plain(show_duration(cause.first_seen)),
                (LineTone::Bad, cause.sample.clone()),
            ]);
        }
    }
    table(page, "Failures", &["kind", "calls", "first after", "sample message"], &kinds);
}

fn ratio_rows(ratios: &[Ratio]) -> Vec<Vec<Cell>> {
    let row = |ratio: &Ratio| {
        let within = ratio.interval.map(|(low, high)| format!("{low:.3} to {high:.3}"));
        vec![
            plain(ratio.statistic.name()),
            plain(ratio.statistic.show(ratio.reference)),
            plain(ratio.statistic.show(ratio.other)),
            plain(format!("{:.3}×", ratio.value)),
            plain(within.unwrap_or_else(|| "–".to_owned())),
            (ratio.verdict.tone(), ratio.verdict.label().to_owned()),
        ]
    };
    ratios.iter().map(row).collect()
}

pub(super) fn comparisons(page: &mut String, all: &[TargetComparison]) {
    for compared in all {
        let heading = format!(
            "{} {} compared with A {}",
            compared.letter, compared.other, compared.reference
        );
        let letter = compared.letter.to_string();
        let columns = ["figure", "A", &letter, "ratio", "interval", "verdict"];
        table(page, &heading, &columns, &ratio_rows(&compared.ratios));
    }
}

pub(super) fn baseline(page: &mut String, baseline: Option<&BaselineReport>) {
    let Some(baseline) = baseline else { return };
    for change in &baseline.targets {
        let began = baseline.began.as_deref().map_or_else(String::new, |at| format!(" of {at}"));
        let heading = format!("{} compared with {}{began}", change.tool, baseline.file);
        let columns = ["figure", "before", "now", "ratio", "interval", "verdict"];
        table(page, &heading, &columns, &ratio_rows(&change.ratios));
        let verdicts: Vec<Vec<Cell>> = change
            .verdicts
            .iter()
            .map(|(statistic, verdict)| {
                vec![plain(statistic.name()), (verdict.tone(), verdict.label().to_owned())]
            })
            .collect();
        let limit = baseline.max_regression.unwrap_or_default() * 100.0;
        let column = format!("worse by more than {limit}%");
        table(page, "Regression", &["figure", &column], &verdicts);
    }
}

/// The conditions of `--fail-if`.
pub(super) fn thresholds(page: &mut String, judged: &[ThresholdResult]) {
    let line = |line: &crate::bench::threshold::ThresholdLine| {
        let verdict = match (line.failed, line.is_unreliable) {
            (true, _) => "fails",
            (false, true) => "passes (too few calls to be reliable)",
            (false, false) => "holds",
        };
        vec![plain(&line.text), (line.tone(), verdict.to_owned())]
    };
    let rows: Vec<Vec<Cell>> = judged.iter().flat_map(|one| &one.lines).map(line).collect();
    table(page, "Thresholds", &["condition", "result"], &rows);
}

/// The load, the machine and the servers.
pub(super) fn facts(
    page: &mut String,
    facts: impl Iterator<Item = (&'static str, LineTone, String)>,
) {
    page.push_str("<h2>Run</h2>\n<div class=\"scroll\"><table>\n<tbody>\n");
    for (key, _, value) in facts {
        let _infallible = writeln!(
            page,
            "<tr><td class=\"weak\">{}</td><td class=\"words\">{}</td></tr>",
            escaped(key),
            escaped(&value)
        );
    }
    page.push_str("</tbody></table></div>\n");
}
