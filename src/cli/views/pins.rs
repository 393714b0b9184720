//! Pin comparisons as pages.

use super::{difference, findings};
use crate::catalogue::changes::DefinitionChange;
use crate::catalogue::pins::{PinReport, PinReportState, ToolReport};
use crate::cli::json::pins::FindingsByTool;
use crate::cli::output::{SpanStyle, StyledLine, StyledPage};

/// Maximum number of lines for one part of a definition; JSON has all of them.
const MAX_LINES: usize = 200;
/// Maximum number of new tools that are listed by name.
const MAX_NEW: usize = 30;

/// The tools that differ from their pins, with the differences. Unchanged tools are only counted.
pub fn page(report: &PinReport, flagged: &FindingsByTool, width: Option<usize>) -> StyledPage {
    let mut page = StyledPage::default();
    for server in &report.servers {
        page.push(
            StyledLine::styled(SpanStyle::Error, "changed    ")
                .then(SpanStyle::Plain, "server ")
                .then(SpanStyle::Name, &server.name),
        );
        parts(&mut page, &server.changes);
    }
    for state in [
        PinReportState::Changed,
        PinReportState::Missing,
        PinReportState::Unchecked,
        PinReportState::New,
    ] {
        let all: Vec<&ToolReport> =
            report.tools.iter().filter(|tool| tool.state == state).collect();
        let most = if state == PinReportState::New { MAX_NEW } else { usize::MAX };
        for tool in all.iter().take(most) {
            let mut line = StyledLine::styled(label(state), state.as_str());
            line.pad_to(11);
            page.push(line.then(SpanStyle::Name, &tool.name));
            parts(&mut page, &tool.changes);
            notes(&mut page, tool, flagged, width);
        }
        if let Some(hidden @ 1..) = all.len().checked_sub(most) {
            page.push(StyledLine::styled(SpanStyle::Dim, format!("and {hidden} more new")));
        }
    }
    for tool in report.tools.iter().filter(|tool| tool.state == PinReportState::Same) {
        if flagged.contains_key(&tool.name) {
            let mut line =
                StyledLine::styled(label(PinReportState::Same), PinReportState::Same.as_str());
            line.pad_to(11);
            page.push(line.then(SpanStyle::Name, &tool.name));
            notes(&mut page, tool, flagged, width);
        }
    }
    page
}

fn notes(page: &mut StyledPage, tool: &ToolReport, flagged: &FindingsByTool, width: Option<usize>) {
    if let Some(found) = flagged.get(&tool.name) {
        findings::lines(page, found, 2, width);
    }
}

pub fn parts(page: &mut StyledPage, all: &[DefinitionChange]) {
    for change in all {
        page.push(StyledLine::styled(SpanStyle::Heading, change.part).indented(2));
        let hunks = change.hunks();
        if hunks.is_empty() {
            let text = "differs past the part that is compared";
            page.push(StyledLine::styled(SpanStyle::Dim, text).indented(4));
        }
        let mut body = StyledPage::default();
        for (at, hunk) in hunks.iter().enumerate() {
            if at > 0 {
                body.push(StyledLine::styled(SpanStyle::Dim, "…").indented(4));
            }
            difference::lines(&mut body, hunk, 4);
        }
        let all = body.lines().len();
        for line in body.lines().iter().take(MAX_LINES) {
            page.push(line.clone());
        }
        if let Some(hidden @ 1..) = all.checked_sub(MAX_LINES) {
            let text = format!("({hidden} more lines, --json has them)");
            page.push(StyledLine::styled(SpanStyle::Dim, text).indented(4));
        }
    }
}

/// `2 changed, 1 gone, 3 new, 20 unchanged`.
pub fn summary(report: &PinReport) -> String {
    let words = [
        (PinReportState::Changed, "changed"),
        (PinReportState::Missing, "gone"),
        (PinReportState::Unchecked, "not checked"),
        (PinReportState::New, "new"),
        (PinReportState::Same, "unchanged"),
    ];
    let counts: Vec<String> = words
        .into_iter()
        .filter_map(|(state, word)| {
            let count = report.count(state);
            (count > 0).then(|| format!("{count} {word}"))
        })
        .collect();
    if counts.is_empty() { "no tools".to_owned() } else { counts.join(", ") }
}

fn label(state: PinReportState) -> SpanStyle {
    match state {
        PinReportState::Changed | PinReportState::Missing => SpanStyle::Error,
        PinReportState::New => SpanStyle::Success,
        PinReportState::Unchecked => SpanStyle::Warning,
        PinReportState::Same => SpanStyle::Dim,
    }
}
