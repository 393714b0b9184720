//! The benchmark report as a page. Programs get `bench::json`.

mod comparison;
mod latency_table;
pub(in crate::cli) mod live;
mod shape;
mod target;

use crate::bench::environment::BenchEnvironment;
use crate::bench::findings::BenchFindings;
use crate::bench::report::BenchReport;
use crate::bench::summary::{LineTone, summarize};
use crate::bench::{machine_facts, run_facts};
use crate::cli::output::{SpanStyle, StyledPage};

/// The report: what became of the calls of each tool, how they compare, what limits them, and what
/// to know before believing it.
pub fn page(
    report: &BenchReport,
    environment: &BenchEnvironment,
    findings: &BenchFindings,
    width: Option<usize>,
) -> StyledPage {
    let mut page = StyledPage::default();
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
    if let [target] = report.targets.as_slice() {
        page.heading(&target.tool);
    }
    for line in summarize(report, findings) {
        page.paragraph(style(line.tone), 2, &line.text, width);
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
