//! Comparisons and thresholds, for people.

use super::figures;
use crate::bench::baseline::{BaselineReport, Gate};
use crate::bench::compare::{Comparison, Ratio, Verdict};
use crate::bench::threshold::Judgement;
use crate::cli::output::table::{Column, Table};
use crate::cli::output::{Label, Line, Page};

/// Below this width the interval of a ratio is left out.
const ROOM_FOR_INTERVALS: usize = 60;

/// One tool against another: what follows, and the figures it follows from.
pub(super) fn comparison(compared: &Comparison, width: Option<usize>) -> Page {
    let mut page = Page::default();
    page.heading(&format!("{} compared with A", compared.letter));
    page.fact("A", Label::Name, &compared.reference, width);
    page.fact(&compared.letter.to_string(), Label::Name, &compared.other, width);
    page.paragraph(headline_label(compared), 2, &sentence(&compared.sentence()), width);
    page.gap();
    let letter = compared.letter.to_string();
    page.append(ratios(&compared.ratios, ["A", &letter, &format!("{letter}/A")], width));
    page
}

fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    first + characters.as_str()
}

fn headline_label(compared: &Comparison) -> Label {
    compared.headline().map_or(Label::Warning, |ratio| label(ratio.verdict))
}

fn label(verdict: Verdict) -> Label {
    match verdict {
        Verdict::Slower => Label::Error,
        Verdict::Faster => Label::Good,
        Verdict::NotEstablished(_) => Label::Dim,
    }
}

/// Two sides and their ratios, under these titles.
fn ratios(ratios: &[Ratio], titles: [&str; 3], width: Option<usize>) -> Page {
    let [reference, other, ratio] = titles;
    let mut columns = vec![
        Column::new(""),
        Column::new(reference).right().droppable(1),
        Column::new(other).right().droppable(2),
        Column::new(ratio).right(),
    ];
    let with_interval = width.is_none_or(|width| width >= ROOM_FOR_INTERVALS);
    if with_interval {
        columns.push(Column::new("between").right());
    }
    columns.push(Column::new("").shrinks_to(8));
    let mut table = Table::new(columns);
    for ratio in ratios {
        let mut row = vec![
            Line::of(Label::Dim, ratio.statistic.name()),
            Line::plain(ratio.statistic.show(ratio.reference)),
            Line::plain(ratio.statistic.show(ratio.other)),
            Line::plain(format!("{:.3}x", ratio.value)),
        ];
        if with_interval {
            let interval = ratio.interval.map(|(low, high)| format!("{low:.3} and {high:.3}"));
            row.push(Line::of(Label::Dim, interval.unwrap_or_default()));
        }
        row.push(Line::of(label(ratio.verdict), ratio.verdict.word()));
        table.row(row);
    }
    figures::indented(&table.layout(width.map(|width| width.saturating_sub(2))))
}

/// A run against the one that was saved before, and whether it is too much worse.
pub(super) fn baseline(baseline: &BaselineReport, width: Option<usize>) -> Page {
    let mut page = Page::default();
    let began = baseline.began.as_deref().map_or_else(String::new, |began| format!(" of {began}"));
    page.heading(&format!("Compared with {}{began}", baseline.file));
    for change in &baseline.targets {
        if baseline.targets.len() > 1 {
            page.push(Line::of(Label::Name, &change.tool).indented(2));
        }
        if change.ratios.is_empty() {
            page.paragraph(
                Label::Warning,
                2,
                "nothing to compare: one of the two has no answered call",
                width,
            );
            continue;
        }
        page.append(ratios(&change.ratios, ["then", "now", "now/then"], width));
        let Some(limit) = baseline.max_regression else { continue };
        for (statistic, gate) in &change.gates {
            let label = match gate {
                Gate::Pass => Label::Good,
                Gate::Fail => Label::Error,
                Gate::NotEstablished => Label::Warning,
            };
            let said = format!("{} worse by more than {:.4}%: ", statistic.name(), limit * 100.0);
            let said = said.replace(".0000%", "%");
            page.push(Line::plain(said).then(label, gate.word()).indented(2));
        }
    }
    if baseline.targets.is_empty() {
        page.paragraph(Label::Error, 2, "no tool of this run is in it", width);
    }
    page
}

/// What was asked of the run with `--fail-if`, and what came of it.
pub(super) fn judgements(judged: &[Judgement], width: Option<usize>) -> Page {
    let mut page = Page::default();
    if judged.is_empty() {
        return page;
    }
    page.heading("Thresholds (true fails)");
    for line in judged.iter().flat_map(|judgement| &judgement.lines) {
        let label = match (line.failed, line.unsure) {
            (true, _) => Label::Error,
            (false, true) => Label::Warning,
            (false, false) => Label::Good,
        };
        let unsure = if line.unsure { " (too few calls to rely on)" } else { "" };
        page.paragraph(label, 2, &format!("{}{unsure}", line.text), width);
    }
    page
}
