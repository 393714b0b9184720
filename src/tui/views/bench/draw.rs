//! Draws the benchmark view: plan, run, results.

use crate::bench::bench_result::{self, BenchResult};
use crate::bench::compare::letter;
use crate::bench::control::RunPhase;
use crate::bench::formatting::{calls, per_second};
use crate::bench::plan::{Arrivals, BenchPlan, LoadModel};
use crate::bench::report::{RunStatus, TargetReport, throughput};
use crate::bench::snapshot::{BenchSnapshot, rates, total_limits};
use crate::bench::steps;
use crate::present::stats::QUANTILES;
use crate::tui::draw::fitting;
use crate::tui::prelude::*;
use crate::tui::views::bench::plan::{PlanField, PlanForm};
use crate::tui::views::bench::{self, BenchRun, BenchView};
use crate::tui::widgets::page::side_by_side;
use crate::util::histogram::{Durations, logarithmic};

pub fn draw(pen: &mut Pen<'_>, state: &AppState, shown: Pane, area: Rect) {
    let bench = &state.bench;
    let title = match shown {
        Pane::Plan => bench::plan::title(bench),
        Pane::Run => run_title(bench),
        _ => title(bench),
    };
    let inner = pen.open(area, &title);
    let inner = match &bench.file {
        Some(line) if pen.focused => pen.input_row(inner, "Export to (json csv md html): ", line),
        _ => inner,
    };
    match shown {
        Pane::Plan => bench::plan::draw(pen, state, inner),
        Pane::Run => {
            let lines = run_lines(pen.styler, bench, inner.width, inner.height);
            pen.page(&lines, &bench.run_position, inner);
        }
        _ => {
            let lines = lines(pen.styler, bench, inner.width);
            pen.page(&lines, &bench.verdict_position, inner);
        }
    }
}

pub fn title(bench: &BenchView) -> String {
    let end = bench.run.as_ref().and_then(|run| Some((run.number, run.end.as_ref()?)));
    match end {
        None => "Verdict".to_owned(),
        Some((number, Err(_))) => format!("Verdict {number}  failed"),
        Some((number, Ok(result))) => {
            let word = match (result.failure(), result.report.status) {
                (Some(_), _) => "FAIL",
                (None, RunStatus::Complete) => "done",
                (None, _) => "not complete",
            };
            format!("Verdict {number}  {word}")
        }
    }
}

/// The verdict of the newest run: comparisons, errors and caveats.
pub fn lines(styler: Styler, bench: &BenchView, width: u16) -> Vec<Line<'static>> {
    let run = bench.run.as_ref();
    match run.and_then(|run| Some((run.end.as_ref()?, &run.command_line))) {
        None => {
            let text = "Results appear here when the run finishes: limits, comparison, caveats.";
            vec![styler.line(Role::Dim, text)]
        }
        Some((Err(error), command_line)) => {
            let mut page = present::messages::failure(error);
            page.push(present::Line::styled(Role::Dim, command_line));
            styler.document(&page)
        }
        Some((Ok(result), command_line)) => {
            styler.document(&verdict(result, command_line, usize::from(width)))
        }
    }
}

fn verdict(result: &BenchResult, command_line: &str, width: usize) -> Page {
    let mut page = Page::default();
    if let Some(error) = result.failure() {
        page.append(present::messages::failure(&error));
    }
    if result.report.status != RunStatus::Complete {
        let text = "incomplete run: the figures cover only the calls that were made";
        page.push(present::Line::styled(Role::Warning, text));
    }
    page.append(present::bench::verdict(&result.findings, Some(width)));
    for (at, target) in result.report.targets.iter().enumerate() {
        for (kind, error) in &target.errors_by_kind {
            let (count, first) = (show_count(error.count), show_duration(error.first_seen));
            let text = format!(
                "{} {kind} {count} times, first after {first}: {}",
                letter(at),
                error.sample
            );
            page.push(present::Line::styled(Role::Error, text));
        }
    }
    page.blank_line();
    page.push(present::Line::styled(Role::Dim, command_line));
    for (name, _, value) in bench_result::machine(&result.environment) {
        page.push(present::Line::styled(Role::Dim, format!("{name}  {value}")));
    }
    page
}

const WIDE: usize = 66;
const KINDS: usize = 3;
const RATE: usize = 60;
/// From this width on the two charts of a tool stand beside each other.
const CHARTS_BESIDE: usize = 80;
const HIGHEST: usize = 14;
const CLASSES: usize = 24;

fn run_title(bench: &BenchView) -> String {
    let Some(run) = &bench.run else { return "Run".to_owned() };
    let phase = match (&run.end, run.snapshot.as_ref().map(|seen| seen.phase)) {
        (Some(Err(_)), _) => "failed",
        (Some(Ok(_)), _) => "done",
        (None, _) if run.is_stopping => "stopping",
        (None, _) if run.control.is_paused() => "PAUSED",
        (None, None) => "resolving tools",
        (None, Some(RunPhase::Connecting)) => "connecting",
        (None, Some(RunPhase::WarmUp)) => "warming up",
        (None, Some(RunPhase::Measuring)) => "measuring",
        (None, Some(RunPhase::Draining)) => "waiting for responses",
        (None, Some(RunPhase::Done)) => "analysing",
    };
    format!("Run {}  {phase}  {}", run.number, PlanForm::load(&run.spec.plan))
}

/// The run in lines, as many as there are; those of a histogram fill what is left of the height.
fn run_lines(styler: Styler, bench: &BenchView, width: u16, height: u16) -> Vec<Line<'static>> {
    let (width, height) = (usize::from(width), usize::from(height));
    let Some(run) = &bench.run else {
        let has_tool = !bench.form.text(PlanField::ToolA).is_empty();
        let missing = if has_tool { "Nothing measured yet." } else { "No tool chosen yet." };
        let starts = starts(&bench.form);
        let keys = [
            ("a", "chooses the tool to measure"),
            ("b", "chooses one to compare it with"),
            ("Enter", starts.as_str()),
        ];
        return styler.empty(missing, &keys, cells(height));
    };
    let mut lines: Vec<Line<'static>> =
        run.warnings.iter().map(|text| styler.line(Role::Warning, format!("! {text}"))).collect();
    if let Some(Err(error)) = &run.end {
        lines.extend(styler.document(&present::messages::failure(error)));
    }
    let Some(seen) = run.snapshot.as_ref().filter(|seen| !seen.targets.is_empty()) else {
        return lines;
    };
    lines.push(progress(styler, run, seen, width));
    lines.push(totals_line(styler, &run.spec.plan, seen));
    lines.extend(rate(styler, run, seen));
    let steps = steps::rows(&seen.targets, TargetReport::failures);
    let newest = seen.targets.last().filter(|_| !steps.is_empty());
    if newest.is_some() {
        lines.extend(styler.document(&present::bench::steps(steps, Some(width))));
    }
    // What is above may take more lines than it is.
    let taken: usize = lines.iter().map(|line| wrap(line, width).len()).sum();
    let left = height.saturating_sub(taken);
    if let Some(target) = newest {
        lines.extend(of_target(styler, &target.tool, target, false, width, left));
        return lines;
    }
    let is_open = matches!(run.spec.plan.model, LoadModel::Open { .. });
    let several = seen.targets.len() > 1;
    let block = |at: usize, target: &TargetReport, width, height| {
        let name =
            if several { format!("{}  {}", letter(at), target.tool) } else { target.tool.clone() };
        of_target(styler, &name, target, is_open, width, height)
    };
    let targets = seen.targets.iter().enumerate();
    if seen.targets.len() == 2 && width >= WIDE {
        let half = (width - 2) / 2;
        let mut blocks = targets.map(|(at, target)| block(at, target, half, left));
        let (first, second) =
            (blocks.next().unwrap_or_default(), blocks.next().unwrap_or_default());
        lines.extend(side_by_side(styler, first, second, half + 2));
    } else {
        let each = left / seen.targets.len().max(1);
        lines.extend(targets.flat_map(|(at, target)| block(at, target, width, each)));
    }
    lines
}

/// What Enter does, and when such a run ends.
fn starts(plan: &PlanForm) -> String {
    let calls = |text: &str| match text.parse::<u64>() {
        Ok(count) => plural(count, "call", "calls"),
        Err(_) => format!("{text} calls"),
    };
    match (plan.text(PlanField::Calls), plan.text(PlanField::Duration)) {
        ("", "") => "starts: 1,000 calls or 10 s".to_owned(),
        (text, "") => format!("starts: {}", calls(text)),
        ("", duration) => format!("starts: {duration}"),
        (text, duration) => format!("starts: {} or {duration}", calls(text)),
    }
}

fn progress(styler: Styler, run: &BenchRun, seen: &BenchSnapshot, width: usize) -> Line<'static> {
    let plan = &run.spec.plan;
    let until = total_limits(plan, seen.targets.len());
    let made = seen.total(|target| target.requests + target.dropped);
    let of = match until.requests {
        Some(all) => format!("{} of {}", show_count(made), show_count(all)),
        None => calls(made),
    };
    let mut time = show_duration(seen.elapsed);
    if let Some(all) = until.duration {
        time = format!("{time} of {}", show_duration(all));
    }
    let is_over = run.end.is_some();
    // A run that reached one of its limits is done, regardless of the other.
    let share = if is_over && !run.is_stopping { 1.0 } else { seen.progress.unwrap_or(0.0) };
    let tail = format!(" {:>3.0} %  {of}  {time}", share * 100.0);
    let room = width.saturating_sub(tail.len()).min(60);
    let room = if room < 8 { 0 } else { room };
    let [done, ahead] = chart::progress(share, room);
    Line::from(vec![
        styler.span(Role::Success, done),
        styler.span(Role::Frame, ahead),
        styler.span(Role::Plain, tail),
    ])
}

fn totals_line(styler: Styler, plan: &BenchPlan, seen: &BenchSnapshot) -> Line<'static> {
    let warm_up = seen.total(|target| target.warm_up);
    let dropped = seen.total(|target| target.dropped);
    let failed = seen.failed();
    let role = if failed > 0 { Role::Error } else { Role::Dim };
    let mut spans = vec![
        styler.plain(format!("answered {}", show_count(seen.answered()))),
        styler.span(role, format!("  failed {}", show_count(failed))),
        styler.plain(format!("  in flight {}", seen.in_flight)),
    ];
    if dropped > 0 {
        let text = format!("  not made {}", show_count(dropped));
        spans.push(styler.span(Role::Warning, text));
    }
    if let Some((round, rounds)) = seen.round {
        let part = format!("  {} {round} of {rounds}", plan.sharing.part());
        spans.push(styler.plain(part));
    }
    spans.push(styler.dim(format!("  warm-up {}", show_count(warm_up))));
    Line::from(spans)
}

/// Of an open load: the rate that is made, and the one that was wanted.
fn rate(styler: Styler, run: &BenchRun, seen: &BenchSnapshot) -> Option<Line<'static>> {
    let LoadModel::Open { arrivals, .. } = &run.spec.plan.model else { return None };
    let takes_turns = seen.round.is_some();
    let rates = seen.targets.iter().map(|target| throughput(target.requests, target.elapsed));
    let made: f64 = if takes_turns { rates.fold(0.0, f64::max) } else { rates.sum() };
    let is_behind = match arrivals {
        Arrivals::Constant { rate } => made < rate * 0.95 && seen.phase == RunPhase::Measuring,
        Arrivals::Poisson { .. } => false,
    };
    let target = crate::bench::formatting::arrivals(*arrivals);
    let meaning = if is_behind { Role::Warning } else { Role::Plain };
    let word = if is_behind { "  behind" } else { "" };
    Some(styler.line(meaning, format!("sent {}/s of {target}{word}", per_second(made))))
}

fn of_target(
    styler: Styler,
    name: &str,
    target: &TargetReport,
    is_open: bool,
    width: usize,
    height: usize,
) -> Vec<Line<'static>> {
    let count = format!("  {} calls", show_count(target.requests));
    let name = text::cut(name, width.saturating_sub(count.len()));
    let mut lines = vec![Line::from(vec![styler.span(Role::Name, name), styler.dim(count)])];
    let response = &target.response;
    let Some(spread) = logarithmic(response, CLASSES) else {
        let text =
            if target.failures() > 0 { "no successful calls yet" } else { "no response yet" };
        lines.push(styler.line(Role::Dim, text));
        lines.extend(kinds(styler, target));
        return lines;
    };
    lines.push(headline(styler, target, width));
    let rest = if is_open { "response" } else { "" };
    lines.push(rest_of(styler, rest, response, width));
    if is_open {
        lines.push(rest_of(styler, "service", &target.service, width));
    }
    lines.extend(kinds(styler, target));
    let mut marks: Vec<_> = QUANTILES
        .iter()
        .filter(|(name, _)| *name != "p90")
        .filter_map(|(name, share)| Some((*name, response.quantile(*share)?)))
        .collect();
    // The last one is the most important.
    marks.swap(0, 1);
    let room = height.saturating_sub(lines.len());
    let histogram = |width, height| chart::lines(styler, &spread, &marks, width, height);
    let rates = rates(target);
    let curve =
        |label, width, height| chart::curve(styler, label, &rates, &chart::compact, width, height);
    let titled = |title, chart: Vec<Line<'static>>| {
        std::iter::once(styler.line(Role::Dim, title)).chain(chart).collect::<Vec<_>>()
    };
    if width >= CHARTS_BESIDE && room >= 6 {
        let half = (width - 2) / 2;
        let latency = titled("latency", histogram(half, (room - 1).min(HIGHEST)));
        let rate = titled("calls a second", curve("", half, latency.len() - 2));
        lines.extend(side_by_side(styler, latency, rate, half + 2));
    } else {
        lines.extend(curve("calls/s ", width.min(RATE), if room >= 12 { 3 } else { 1 }));
        let room = height.saturating_sub(lines.len());
        lines.extend(histogram(width, room));
    }
    lines
}

/// What a person wants to know first, as much as fits.
fn headline(styler: Styler, target: &TargetReport, width: usize) -> Line<'static> {
    let failed = target.failures();
    let errors = if failed > 0 { Role::Error } else { Role::Success };
    let figure = |before, role, figure: String, behind: &str| {
        let dim = |text: &str| styler.span(Role::Dim, text);
        vec![dim(before), styler.bold(role, figure), dim(behind)]
    };
    let percentile = |before, share| {
        let time = target.response.quantile(share).unwrap_or_default();
        figure(before, Role::Name, show_duration(time), unsure(&target.response, share))
    };
    let plural = if failed == 1 { " error" } else { " errors" };
    let parts = [
        percentile("p50 ", 0.5),
        percentile("p99 ", 0.99),
        figure("", errors, show_count(failed), plural),
        figure("", Role::Name, per_second(target.throughput), " calls/s"),
    ];
    fitting(parts, "   ", width)
}

fn unsure(times: &Durations, share: f64) -> &'static str {
    if times.is_reliable_at(share) { "" } else { "?" }
}

/// The other figures about some times, as many as fit.
fn rest_of(styler: Styler, name: &str, times: &Durations, width: usize) -> Line<'static> {
    let part = |text: String| vec![styler.span(Role::Dim, text)];
    let mut parts = Vec::new();
    if !name.is_empty() {
        parts.push(part(name.to_owned()));
    }
    let is_shown = |percentile: &str| name == "service" || !matches!(percentile, "p50" | "p99");
    for (percentile, share) in QUANTILES.into_iter().filter(|(name, _)| is_shown(name)) {
        let time = show_duration(times.quantile(share).unwrap_or_default());
        parts.push(part(format!("{percentile} {time}{}", unsure(times, share))));
    }
    let [max, mean, deviation] = [times.max(), times.mean(), times.stddev()]
        .map(|time| show_duration(time.unwrap_or_default()));
    parts.push(part(format!("max {max}")));
    parts.push(part(format!("mean {mean} ± {deviation}")));
    fitting(parts, "   ", width)
}

fn kinds(styler: Styler, target: &TargetReport) -> Option<Line<'static>> {
    let shown = target.commonest_errors().into_iter().take(KINDS);
    let parts: Vec<String> = shown.map(|(kind, error)| format!("{kind} {}", error.count)).collect();
    (!parts.is_empty()).then(|| styler.line(Role::Error, format!("failed  {}", parts.join("  "))))
}
