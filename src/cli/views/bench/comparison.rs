//! Comparisons and thresholds as text.

use super::latency_table;
use crate::bench::baseline::{BaselineReport, RegressionVerdict};
use crate::bench::compare::{Ratio, RatioVerdict, TargetComparison};
use crate::bench::threshold::ThresholdResult;
use crate::cli::output::table::{Table, TableColumn};
use crate::cli::output::{SpanStyle, StyledLine, StyledPage};

/// Below this width the interval of a ratio is omitted.
const ROOM_FOR_INTERVALS: usize = 60;

/// Compares two tools: the conclusion, and the figures behind it.
pub(super) fn comparison(compared: &TargetComparison, width: Option<usize>) -> StyledPage {
    let mut page = StyledPage::default();
    page.heading(&format!("{} compared with A", compared.letter));
    page.field("A", SpanStyle::Name, &compared.reference, width);
    page.field(&compared.letter.to_string(), SpanStyle::Name, &compared.other, width);
    page.paragraph(headline_label(compared), 2, &sentence(&compared.headline_sentence()), width);
    page.blank_line();
    let letter = compared.letter.to_string();
    page.append(ratios(&compared.ratios, ["A", &letter, &format!("{letter}/A")], width));
    page
}

fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    first + characters.as_str()
}

fn headline_label(compared: &TargetComparison) -> SpanStyle {
    compared.headline().map_or(SpanStyle::Warning, |ratio| label(ratio.verdict))
}

fn label(verdict: RatioVerdict) -> SpanStyle {
    match verdict {
        RatioVerdict::Slower => SpanStyle::Error,
        RatioVerdict::Faster => SpanStyle::Success,
        RatioVerdict::NotEstablished(_) => SpanStyle::Dim,
    }
}

fn ratios(ratios: &[Ratio], titles: [&str; 3], width: Option<usize>) -> StyledPage {
    let [reference, other, ratio] = titles;
    let mut columns = vec![
        TableColumn::new(""),
        TableColumn::new(reference).right().droppable(1),
        TableColumn::new(other).right().droppable(2),
        TableColumn::new(ratio).right(),
    ];
    let with_interval = width.is_none_or(|width| width >= ROOM_FOR_INTERVALS);
    if with_interval {
        columns.push(TableColumn::new("between").right());
    }
    columns.push(TableColumn::new("").shrinks_to(8));
    let mut table = Table::new(columns);
    for ratio in ratios {
        let mut row = vec![
            StyledLine::styled(SpanStyle::Dim, ratio.statistic.name()),
            StyledLine::plain(ratio.statistic.show(ratio.reference)),
            StyledLine::plain(ratio.statistic.show(ratio.other)),
            StyledLine::plain(format!("{:.3}x", ratio.value)),
        ];
        if with_interval {
            let interval = ratio.interval.map(|(low, high)| format!("{low:.3} and {high:.3}"));
            row.push(StyledLine::styled(SpanStyle::Dim, interval.unwrap_or_default()));
        }
        row.push(StyledLine::styled(label(ratio.verdict), ratio.verdict.label()));
        table.row(row);
    }
    latency_table::indented(&table.layout(width.map(|width| width.saturating_sub(2))))
}

/// Compares a run with the saved baseline, and says whether it is too much worse.
pub(super) fn baseline(baseline: &BaselineReport, width: Option<usize>) -> StyledPage {
    let mut page = StyledPage::default();
    let began = baseline.began.as_deref().map_or_else(String::new, |began| format!(" of {began}"));
    page.heading(&format!("Compared with {}{began}", baseline.file));
    for change in &baseline.targets {
        if baseline.targets.len() > 1 {
            page.push(StyledLine::styled(SpanStyle::Name, &change.tool).indented(2));
        }
        if change.ratios.is_empty() {
            page.paragraph(
                SpanStyle::Warning,
                2,
                "Nothing to compare: one of the runs has no successful calls",
                width,
            );
            continue;
        }
        page.append(ratios(&change.ratios, ["then", "now", "now/then"], width));
        let Some(limit) = baseline.max_regression else { continue };
        for (statistic, gate) in &change.verdicts {
            let label = match gate {
                RegressionVerdict::Pass => SpanStyle::Success,
                RegressionVerdict::Fail => SpanStyle::Error,
                RegressionVerdict::NotEstablished => SpanStyle::Warning,
            };
            let said = format!("{} worse by more than {:.4}%: ", statistic.name(), limit * 100.0);
            let said = said.replace(".0000%", "%");
            page.push(StyledLine::plain(said).then(label, gate.label()).indented(2));
        }
    }
    if baseline.targets.is_empty() {
        page.paragraph(SpanStyle::Error, 2, "It has none of the tools in this run", width);
    }
    page
}

/// The thresholds of `--fail-if` and their results.
pub(super) fn judgements(judged: &[ThresholdResult], width: Option<usize>) -> StyledPage {
    let mut page = StyledPage::default();
    if judged.is_empty() {
        return page;
    }
    page.heading("Thresholds (fail if true)");
    for line in judged.iter().flat_map(|judgement| &judgement.lines) {
        let label = match (line.failed, line.is_unreliable) {
            (true, _) => SpanStyle::Error,
            (false, true) => SpanStyle::Warning,
            (false, false) => SpanStyle::Success,
        };
        let unsure = if line.is_unreliable { " (too few calls to rely on)" } else { "" };
        page.paragraph(label, 2, &format!("{}{unsure}", line.text), width);
    }
    page
}
