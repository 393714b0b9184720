//! Draws the benchmark view: plan, run, results.

use crate::bench::bench_result::BenchResult;
use crate::bench::compare::letter;
use crate::bench::report::RunStatus;
use crate::bench::run_facts;
use crate::tui::prelude::*;
use crate::tui::views::bench::{self, BenchView};

pub fn draw(pen: &mut Pen<'_>, state: &AppState, shown: Pane, area: Rect) {
    let bench = &state.bench;
    let title = match shown {
        Pane::Plan => bench::plan::title(bench),
        Pane::Run => bench::run::title(bench),
        _ => title(bench),
    };
    let inner = pen.open(area, &title);
    let inner = match &bench.file {
        Some(line) if pen.focused => pen.input_row(inner, "Export to (json csv md html): ", line),
        _ => inner,
    };
    match shown {
        Pane::Plan => bench::plan::draw(pen, bench, inner),
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
            let text = "What it means stands here afterwards: limits, comparison, caveats.";
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
    for (name, _, value) in run_facts::machine(&result.environment) {
        page.push(present::Line::styled(Role::Dim, format!("{name}  {value}")));
    }
    page
}
