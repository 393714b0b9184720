//! The account of a benchmark, for people. Programs get `bench::json`.

mod figures;
pub(in crate::cli) mod live;
mod machine;
mod run;
mod shape;
mod target;
mod verdicts;

use crate::bench::environment::BenchEnvironment;
use crate::bench::findings::Findings;
use crate::bench::report::Report;
use crate::cli::output::{Label, Page};

/// The report: what became of the calls of each tool, how they compare, what limits them, and what
/// to know before believing it.
pub fn page(
    report: &Report,
    environment: &BenchEnvironment,
    findings: &Findings,
    width: Option<usize>,
) -> Page {
    let mut page = Page::default();
    for (index, target) in report.targets.iter().enumerate() {
        page.heading(&target::title(report, index));
        page.append(target::page(report, target, width));
    }
    for compared in &findings.comparisons {
        page.gap();
        page.append(verdicts::comparison(compared, width));
    }
    for section in [
        verdicts::judgements(&findings.thresholds, width),
        findings.baseline.as_ref().map_or_else(Page::default, |one| verdicts::baseline(one, width)),
        sentences("What limits it", Label::Plain, &findings.reading, width),
        sentences("Before you believe it", Label::Warning, &findings.warnings, width),
    ] {
        page.gap();
        page.append(section);
    }
    page.heading("Run");
    for (key, label, value) in run::facts(report).into_iter().chain(machine::facts(environment)) {
        page.fact(key, label, &value, width);
    }
    page
}

fn sentences(title: &str, label: Label, all: &[String], width: Option<usize>) -> Page {
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
