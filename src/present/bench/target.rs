//! The results of one target as text.

use std::time::Duration;

use crate::bench::report::{BenchReport, TargetReport, TimelineSlice};
use crate::bench::snapshot::rates;
use crate::bench::{compare, formatting};
use crate::present::{Line, Page, Role, bench::latency_table, chart};
use crate::util::units::{show_count, show_duration, show_size};

/// Connecting in less time than this means that no connection was opened.
const NOTICEABLE: Duration = Duration::from_micros(100);
const LINE: usize = 40;

/// The name of one tool, with its letter when there are several.
pub(super) fn title(report: &BenchReport, index: usize) -> String {
    let tool = report.targets.get(index).map_or_else(String::new, TargetReport::label);
    if report.targets.len() > 1 {
        return format!("{}  {tool}", compare::letter(index));
    }
    tool
}

/// The figures of one tool: headline, latencies, failures, and the run over time.
pub(super) fn page(report: &BenchReport, target: &TargetReport, width: Option<usize>) -> Page {
    let mut page = Page::default();
    let (label, text) = headline(target);
    page.paragraph(label, 2, &text, width);
    page.append(failures(report, target, width));
    if target.ok > 0 {
        page.blank_line();
        page.append(times(report, target, width));
        page.blank_line();
        page.append(chart::histogram(&target.response, width));
    }
    page.blank_line();
    for (key, label, value) in facts(target) {
        page.field(key, label, &value, width);
    }
    page.append(over_time(target, width));
    page
}

/// The headline: number of calls, duration and rate.
fn headline(target: &TargetReport) -> (Role, String) {
    let made = formatting::calls(target.requests);
    let rate = formatting::per_second(target.throughput);
    let text = format!("{made} in {}, {rate} calls/s", show_duration(target.elapsed));
    (if target.ok == 0 { Role::Error } else { Role::Plain }, text)
}

fn times(report: &BenchReport, target: &TargetReport, width: Option<usize>) -> Page {
    let mut page = if report.is_open() {
        latency_table::table(&[("response", &target.response), ("service", &target.service)], width)
    } else {
        latency_table::table(&[("service", &target.service)], width)
    };
    if latency_table::has_doubtful(&target.response) {
        page.paragraph(Role::Dim, 2, "~ too few calls to be reliable", width);
    }
    page
}

/// The calls without a successful response, by kind, with the first message of each.
fn failures(report: &BenchReport, target: &TargetReport, width: Option<usize>) -> Page {
    let mut page = Page::default();
    let all = [
        (target.ok, "ok", Role::Success),
        (target.tool_errors, "tool errors", Role::Error),
        (target.errors, "failed", Role::Error),
        (target.timeouts, "timed out", Role::Error),
        (target.unanswered, "unanswered at the end", Role::Warning),
        (target.dropped, formatting::dropped_reason(&report.plan.model), Role::Warning),
    ];
    let mut counts = Line::default();
    for (count, what, label) in all.into_iter().filter(|(count, ..)| *count > 0) {
        let comma = if counts.is_empty() { "" } else { ", " };
        counts.push(Role::Plain, comma);
        counts.push(label, format!("{} {what}", show_count(count)));
    }
    for line in counts.wrap(width.unwrap_or(usize::MAX).saturating_sub(2)) {
        page.push(line.indented(2));
    }
    if let Some(error) = &target.error {
        page.field("ended", Role::Error, &format!("early: {error}"), width);
    }
    for (kind, cause) in &target.errors_by_kind {
        let text = format!(
            "{} times, first after {}: {}",
            show_count(cause.count),
            show_duration(cause.first_seen),
            cause.sample
        );
        page.field(kind, Role::Error, &text, width);
    }
    page
}

/// Facts of lesser importance: cold start, restarts, traffic.
fn facts(target: &TargetReport) -> Vec<(&'static str, Role, String)> {
    let mut facts = Vec::new();
    let mut cold = Vec::new();
    // A server that another tool was found at is there already.
    if let Some(connect) = target.cold.connect.filter(|connect| *connect >= NOTICEABLE) {
        cold.push(format!("connecting took {}", show_duration(connect)));
    }
    if let Some(first) = target.cold.first_call {
        cold.push(format!("the first call {}", show_duration(first)));
    }
    if !cold.is_empty() {
        let counted = if target.warm_up > 0 { " (not counted)" } else { "" };
        facts.push(("cold start", Role::Plain, cold.join(", ") + counted));
    }
    if target.restarts > 0 {
        let text = format!("reconnected {} times", target.restarts);
        facts.push(("restarts", Role::Warning, text));
    }
    if target.bytes_in + target.bytes_out > 0 {
        let mut bytes = format!("{} received", show_size(target.bytes_in));
        if target.bytes_out > 0 {
            bytes = format!("{} sent, {bytes}", show_size(target.bytes_out));
        }
        facts.push(("bytes", Role::Plain, bytes));
    }
    for doubt in &target.protocol_warnings {
        facts.push(("warning", Role::Warning, doubt.clone()));
    }
    facts
}

fn over_time(target: &TargetReport, width: Option<usize>) -> Page {
    let mut page = Page::default();
    let slices = &target.timeline;
    // Two points show no trend.
    let [_, _, _, ..] = slices.as_slice() else { return page };
    let cells = width.unwrap_or(80).saturating_sub(15).clamp(8, LINE);
    for (name, numbers) in [("calls/s", rates(target)), ("p95", highs(slices))] {
        page.fact(15, name, Line::styled(Role::Success, chart::sparkline(&numbers, cells)));
    }
    page
}

fn highs(slices: &[TimelineSlice]) -> Vec<f64> {
    let high =
        |slice: &TimelineSlice| slice.response.quantile(0.95).map_or(0.0, |p95| p95.as_secs_f64());
    slices.iter().map(high).collect()
}
