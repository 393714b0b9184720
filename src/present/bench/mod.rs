//! The benchmark report as a page, and in the forms it is saved in. Its JSON is in `bench::json`.

mod comparison;
mod html;
mod latency_table;
pub(crate) mod live;
mod target;

use crate::bench::bench_result::{self, BenchFindings};
use crate::bench::environment::BenchEnvironment;
use crate::bench::json::RunJson;
use crate::bench::report::{BenchReport, TargetReport};
use crate::bench::steps::{self, StepRow};
use crate::bench::summary::{LineTone, summarize};
use crate::bench::{BenchResult, ExportFormat, export};
use crate::present::{Line, Page, Role, Table, TableColumn};
use crate::util::json::pretty;

impl BenchResult {
    /// The run in this form.
    pub fn render(&self, form: ExportFormat) -> String {
        let Self { report, environment, findings } = self;
        match form {
            ExportFormat::Json => pretty(&RunJson::from((report, environment, findings))) + "\n",
            ExportFormat::Csv => export::csv::csv(report),
            ExportFormat::Markdown => export::markdown::markdown(report, &findings.comparisons),
            ExportFormat::Html => html::html(report, environment, findings),
        }
    }
}

/// The report: the results of each tool, how they compare, what limits them, and what
/// to know before believing it.
pub fn page(
    report: &BenchReport,
    environment: &BenchEnvironment,
    findings: &BenchFindings,
    width: Option<usize>,
) -> Page {
    let mut page = steps_table(report, width);
    for (index, target) in report.targets.iter().enumerate() {
        page.heading(&target::title(report, index));
        page.append(target::page(report, target, width));
    }
    page.append(verdict(findings, width));
    page.heading("Run");
    let facts = bench_result::facts(report).into_iter().chain(bench_result::machine(environment));
    for (key, tone, value) in facts {
        page.field(key, style(tone), &value, width);
    }
    page
}

/// What the figures mean: how tools compare, whether limits were kept, what limits the rate, and what to
/// know before believing it.
pub fn verdict(findings: &BenchFindings, width: Option<usize>) -> Page {
    let mut page = Page::default();
    for compared in &findings.comparisons {
        page.blank_line();
        page.append(comparison::comparison(compared, width));
    }
    for section in [
        comparison::judgements(&findings.thresholds, width),
        findings
            .baseline
            .as_ref()
            .map_or_else(Page::default, |one| comparison::baseline(one, width)),
        sentences("Bottlenecks", Role::Plain, &findings.bottlenecks, width),
        sentences("Caveats", Role::Warning, &findings.warnings, width),
    ] {
        page.blank_line();
        page.append(section);
    }
    page
}

/// The report in about ten lines, the verdict first.
pub fn brief(report: &BenchReport, findings: &BenchFindings, width: Option<usize>) -> Page {
    let mut page = Page::default();
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
fn steps_table(report: &BenchReport, width: Option<usize>) -> Page {
    let rows = steps::rows(&report.targets, TargetReport::failed_calls);
    steps(rows, width.map(|width| width.saturating_sub(2))).indented(2)
}

/// Steps, the newest one last. Where the width is short p50 and then p99 are left out.
pub fn steps(rows: Vec<StepRow>, width: Option<usize>) -> Page {
    if rows.is_empty() {
        return Page::default();
    }
    let mut table = Table::new(steps::COLUMNS.map(|title| {
        let column = TableColumn::new(title).right();
        match title {
            "p50" => column.droppable(2),
            "p99" => column.droppable(1),
            _ => column,
        }
    }));
    for StepRow { cells, has_errors } in rows {
        let errors = if has_errors { Role::Error } else { Role::Dim };
        let last = cells.len() - 1;
        let style = |at| if at == last { errors } else { Role::Plain };
        table.row(cells.iter().enumerate().map(|(at, cell)| Line::styled(style(at), cell)));
    }
    table.layout(width)
}

fn style(tone: LineTone) -> Role {
    match tone {
        LineTone::Plain => Role::Plain,
        LineTone::Dim => Role::Dim,
        LineTone::Good => Role::Success,
        LineTone::Warning => Role::Warning,
        LineTone::Bad => Role::Error,
    }
}

fn sentences(title: &str, label: Role, all: &[String], width: Option<usize>) -> Page {
    let mut page = Page::default();
    if all.is_empty() {
        return page;
    }
    page.heading(title);
    for sentence in all {
        page.paragraph(label, 2, sentence, width);
    }
    page
}
