//! Comparisons and thresholds as text.

use super::style;
use crate::bench::baseline::BaselineReport;
use crate::bench::compare::{Ratio, TargetComparison};
use crate::bench::summary::{LineTone, capitalized};
use crate::bench::threshold::ThresholdResult;
use crate::present::{Line, Page, Role, Table, TableColumn};

const ROOM_FOR_INTERVALS: usize = 60;

/// Compares two tools: the conclusion, and the figures behind it.
pub(super) fn comparison(compared: &TargetComparison, width: Option<usize>) -> Page {
    let mut page = Page::default();
    page.heading(&format!("{} compared with A", compared.letter));
    page.field("A", Role::Name, &compared.reference, width);
    page.field(&compared.letter.to_string(), Role::Name, &compared.other, width);
    let tone = compared.headline().map_or(LineTone::Warning, |ratio| ratio.verdict.tone());
    page.paragraph(style(tone), 2, &capitalized(&compared.headline_sentence()), width);
    page.blank_line();
    let letter = compared.letter.to_string();
    page.append(ratios(&compared.ratios, ["A", &letter, &format!("{letter}/A")], width));
    page
}

fn ratios(ratios: &[Ratio], titles: [&str; 3], width: Option<usize>) -> Page {
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
            Line::styled(Role::Dim, ratio.statistic.name()),
            Line::plain(ratio.statistic.show(ratio.reference)),
            Line::plain(ratio.statistic.show(ratio.other)),
            Line::plain(format!("{:.3}x", ratio.value)),
        ];
        if with_interval {
            let interval = ratio.interval.map(|(low, high)| format!("{low:.3} and {high:.3}"));
            row.push(Line::styled(Role::Dim, interval.unwrap_or_default()));
        }
        row.push(Line::styled(style(ratio.verdict.tone()), ratio.verdict.label()));
        table.row(row);
    }
    table.layout(width.map(|width| width.saturating_sub(2))).indented(2)
}

/// Compares a run with the saved baseline, and says whether it is too much worse.
pub(super) fn baseline(baseline: &BaselineReport, width: Option<usize>) -> Page {
    let mut page = Page::default();
    let began = baseline.began.as_deref().map_or_else(String::new, |began| format!(" of {began}"));
    page.heading(&format!("Compared with {}{began}", baseline.file));
    for change in &baseline.targets {
        if baseline.targets.len() > 1 {
            page.push(Line::styled(Role::Name, &change.tool).indented(2));
        }
        if change.ratios.is_empty() {
            page.paragraph(
                Role::Warning,
                2,
                "Nothing to compare: one of the runs has no successful calls",
                width,
            );
            continue;
        }
        page.append(ratios(&change.ratios, ["then", "now", "now/then"], width));
        let Some(limit) = baseline.max_regression else { continue };
        for (statistic, gate) in &change.verdicts {
            let line = format!("{} worse by more than {:.4}%: ", statistic.name(), limit * 100.0);
            let line = line.replace(".0000%", "%");
            page.push(Line::plain(line).then(style(gate.tone()), gate.label()).indented(2));
        }
    }
    if baseline.targets.is_empty() {
        page.paragraph(Role::Error, 2, "It has none of the tools in this run", width);
    }
    page
}

/// The thresholds of `--fail-if` and their results.
pub(super) fn judgements(judged: &[ThresholdResult], width: Option<usize>) -> Page {
    let mut page = Page::default();
    if judged.is_empty() {
        return page;
    }
    page.heading("Thresholds (fail if true)");
    for line in judged.iter().flat_map(|judgement| &judgement.lines) {
        let unsure = if line.is_unreliable { " (too few calls to rely on)" } else { "" };
        page.paragraph(style(line.tone()), 2, &format!("{}{unsure}", line.text), width);
    }
    page
}
