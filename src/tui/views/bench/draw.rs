//! Draws the benchmark view: plan, run, results.

use crate::bench::bench_result::BenchResult;
use crate::bench::compare::{Ratio, RatioVerdict, TargetComparison, letter};
use crate::bench::report::RunStatus;
use crate::model::Error;
use crate::tui::prelude::*;
use crate::tui::views::bench::{self, BenchView};
use crate::tui::widgets::chart::grouped;
use crate::tui::widgets::table;
use crate::util::units::show_duration;

pub fn draw(pen: &mut Pen<'_>, state: &AppState, shown: Pane, area: Rect) {
    let focused = state.context.focus == shown;
    let bench = &state.bench;
    let title = match shown {
        Pane::Plan => bench::plan::title(bench),
        Pane::Run => bench::run::title(bench),
        _ => title(bench),
    };
    let inner = pen.open(area, &title, focused);
    let inner = match &bench.file {
        Some(line) if focused => pen.input_row(inner, "Export to (json csv md html): ", line),
        _ => inner,
    };
    match shown {
        Pane::Plan => bench::plan::draw(pen, bench, focused, inner),
        Pane::Run => {
            let lines = bench::run::lines(pen.styler, bench, inner.width, inner.height);
            pen.page(&lines, &bench.run_position, inner);
        }
        _ => {
            let lines = lines(pen.styler, bench, inner.width);
            pen.page(&lines, &bench.verdict_position, inner);
        }
    }
}

const INTERVAL_MIN_WIDTH: u16 = 72;
const BOTH_FIGURES_MIN_WIDTH: u16 = 56;

pub fn title(bench: &BenchView) -> String {
    let end = bench.run.as_ref().and_then(|run| Some((run.number, run.end.as_ref()?)));
    match end {
        None => "Verdict".to_owned(),
        Some((number, Err(_))) => format!("Verdict {number}  failed"),
        Some((number, Ok(account))) => {
            let word = match (account.failure(), account.report.status) {
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
    let Some(run) = &bench.run else {
        let text = "What it means stands here afterwards: limits, comparison, caveats.";
        return vec![styler.line(Role::Dim, text)];
    };
    match &run.end {
        None => vec![styler.line(Role::Dim, "What it means stands here afterwards.")],
        Some(Err(error)) => {
            let command_line = styler.line(Role::Dim, run.command_line.as_str());
            failed(styler, error).into_iter().chain([command_line]).collect()
        }
        Some(Ok(account)) => account_lines(styler, account, &run.command_line, width),
    }
}

pub fn failed(styler: Styler, error: &Error) -> Vec<Line<'static>> {
    let mut lines = vec![styler.line(Role::Error, error.message())];
    lines.extend(error.details().iter().map(|text| styler.line(Role::Plain, text)));
    if let Some(hint) = error.hint() {
        lines.push(styler.line(Role::Dim, format!("hint: {hint}")));
    }
    lines
}

fn account_lines(
    styler: Styler,
    account: &BenchResult,
    command_line: &str,
    width: u16,
) -> Vec<Line<'static>> {
    let (report, findings) = (&account.report, &account.findings);
    let failure = account.failure();
    let mut lines: Vec<Line<'static>> =
        failure.iter().map(|error| styler.line(Role::Error, error.message())).collect();
    if report.status != RunStatus::Complete {
        let text = "incomplete run: the figures cover only the calls that were made";
        lines.push(styler.line(Role::Warning, text));
    }
    for compared in &findings.comparisons {
        lines.extend(comparison(styler, compared, width));
    }
    for (at, target) in report.targets.iter().enumerate() {
        for (kind, error) in &target.errors_by_kind {
            let first = show_duration(error.first_seen);
            let text = format!(
                "{} {kind} {} times, first after {first}: {}",
                letter(at),
                grouped(error.count),
                error.sample
            );
            lines.push(styler.line(Role::Error, text));
        }
    }
    lines.extend(findings.bottlenecks.iter().map(|text| styler.line(Role::Plain, text)));
    let warnings = findings.warnings.iter();
    lines.extend(warnings.map(|text| styler.line(Role::Warning, format!("! {text}"))));
    lines.push(styler.line(Role::Dim, command_line));
    lines.extend(machine(styler, account));
    lines
}

fn machine(styler: Styler, account: &BenchResult) -> Option<Line<'static>> {
    let environment = &account.environment;
    let cpus = environment.cpus.map(|cpus| format!("{cpus} processors"));
    let load = environment.load_before.map(|[load, ..]| format!("load average before: {load:.2}"));
    let all = [Some(environment.os.clone()), environment.kernel.clone(), cpus, load];
    let parts: Vec<String> = all.into_iter().flatten().filter(|text| !text.is_empty()).collect();
    (!parts.is_empty()).then(|| styler.line(Role::Dim, parts.join(", ")))
}

fn comparison(styler: Styler, compared: &TargetComparison, width: u16) -> Vec<Line<'static>> {
    let meaning = compared.headline().map_or(Role::Warning, |ratio| verdict_style(ratio.verdict));
    let mut lines = vec![styler.line(meaning, compared.headline_sentence())];
    let letter = compared.letter;
    let both = if width >= BOTH_FIGURES_MIN_WIDTH {
        format!("{:>9} {letter:>9}", "A")
    } else {
        String::new()
    };
    let between = if width >= INTERVAL_MIN_WIDTH { "  between" } else { "" };
    let ratio = format!("{letter}/A");
    let head = format!("{:<11}{both}{ratio:>9}{between}", "");
    lines.push(styler.line(Role::Dim, head));
    lines.extend(compared.ratios.iter().map(|ratio| row(styler, ratio, width)));
    lines
}

fn row(styler: Styler, ratio: &Ratio, width: u16) -> Line<'static> {
    let statistic = ratio.statistic;
    let mut text = table::align_left(statistic.name(), 11);
    if width >= BOTH_FIGURES_MIN_WIDTH {
        text.push_str(&table::right(&statistic.show(ratio.reference), 9));
        text.push_str(&table::right(&statistic.show(ratio.other), 10));
    }
    text.push_str(&table::right(&format!("{:.2}x", ratio.value), 9));
    let interval = ratio.interval.filter(|_| width >= INTERVAL_MIN_WIDTH);
    let interval = interval.map(|(low, high)| format!("{low:.2} to {high:.2}"));
    if width >= INTERVAL_MIN_WIDTH {
        text.push_str(&table::align_left(&format!("  {}", interval.unwrap_or_default()), 17));
    }
    Line::from(vec![
        styler.plain(text),
        styler.span(verdict_style(ratio.verdict), format!(" {}", ratio.verdict.label())),
    ])
}

fn verdict_style(verdict: RatioVerdict) -> Role {
    match verdict {
        RatioVerdict::Slower => Role::Warning,
        RatioVerdict::Faster => Role::Success,
        RatioVerdict::NotEstablished(_) => Role::Dim,
    }
}
