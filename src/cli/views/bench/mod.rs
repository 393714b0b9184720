//! The benchmark report as a page. Its JSON is in `bench::json`.

mod comparison;
mod latency_table;
pub(in crate::cli) mod live;
mod shape;
mod target;

use crate::bench::environment::BenchEnvironment;
use crate::bench::findings::BenchFindings;
use crate::bench::report::BenchReport;
use crate::bench::steps::{self, StepRow};
use crate::bench::summary::{LineTone, summarize};
use crate::bench::{machine_facts, run_facts};
use crate::cli::output::table::{Table, TableColumn};
use crate::cli::output::{SpanStyle, StyledLine, StyledPage};

/// The report: the results of each tool, how they compare, what limits them, and what
/// to know before believing it.
pub fn page(
    report: &BenchReport,
    environment: &BenchEnvironment,
    findings: &BenchFindings,
    width: Option<usize>,
) -> StyledPage {
    let mut page = steps_table(report, width);
    for (index, target) in report.targets.iter().enumerate() {
        page.heading(&target::title(report, index));
        page.append(target::page(report, target, width));
    }
    for compared in &findings.comparisons {
        page.blank_line();
        page.append(comparison::comparison(compared, width));
    }
    for section in [
        comparison::judgements(&findings.thresholds, width),
        findings
            .baseline
            .as_ref()
            .map_or_else(StyledPage::default, |one| comparison::baseline(one, width)),
        sentences("Bottlenecks", SpanStyle::Plain, &findings.bottlenecks, width),
        sentences("Caveats", SpanStyle::Warning, &findings.warnings, width),
    ] {
        page.blank_line();
        page.append(section);
    }
    page.heading("Run");
    let facts = run_facts::facts(report).into_iter().chain(machine_facts::facts(environment));
    for (key, tone, value) in facts {
        page.field(key, style(tone), &value, width);
    }
    page
}

/// The report in about ten lines, the verdict first.
pub fn brief(report: &BenchReport, findings: &BenchFindings, width: Option<usize>) -> StyledPage {
    let mut page = StyledPage::default();
    if let [tool] = report.tools().as_slice() {
        page.heading(tool);
    }
    page.append(steps_table(report, width));
    for line in summarize(report, findings) {
        page.paragraph(style(line.tone), 2, &line.text, width);
    }
    page
}

/// The steps of a run side by side; nothing for a run without steps.
fn steps_table(report: &BenchReport, width: Option<usize>) -> StyledPage {
    let rows = steps::rows(report);
    if rows.is_empty() {
        return StyledPage::default();
    }
    let mut table = Table::new(steps::COLUMNS.map(|title| TableColumn::new(title).right()));
    for StepRow { cells, has_errors } in rows {
        let errors = if has_errors { SpanStyle::Error } else { SpanStyle::Dim };
        let last = cells.len() - 1;
        let style = |at| if at == last { errors } else { SpanStyle::Plain };
        table.row(cells.iter().enumerate().map(|(at, cell)| StyledLine::styled(style(at), cell)));
    }
    let mut page = StyledPage::default();
    for line in table.layout(width.map(|width| width.saturating_sub(2))).lines() {
        page.push(line.clone().indented(2));
    }
    page
}

fn style(tone: LineTone) -> SpanStyle {
    match tone {
        LineTone::Plain => SpanStyle::Plain,
        LineTone::Dim => SpanStyle::Dim,
        LineTone::Good => SpanStyle::Success,
        LineTone::Warning => SpanStyle::Warning,
        LineTone::Bad => SpanStyle::Error,
    }
}

fn sentences(title: &str, label: SpanStyle, all: &[String], width: Option<usize>) -> StyledPage {
    let mut page = StyledPage::default();
    if all.is_empty() {
        return page;
    }
    page.heading(title);
    for sentence in all {
        page.paragraph(label, 2, sentence, width);
    }
    page
}
