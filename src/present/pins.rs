//! Pin comparisons as pages.

use crate::catalogue::changes::DefinitionChange;
use crate::catalogue::pins::{PinReport, PinReportState, ToolReport};
use crate::catalogue::scan::FindingsByTool;
use crate::present::{Line, Page, Role, difference, findings};

/// Maximum number of lines for one part of a definition; JSON has all of them.
pub const MAX_LINES: usize = 200;
const MAX_NEW: usize = 30;

/// The tools that differ from their pins, with the differences. Unchanged tools are only counted.
pub fn page(report: &PinReport, flagged: &FindingsByTool, width: Option<usize>) -> Page {
    let mut page = Page::default();
    for server in &report.servers {
        page.push(
            Line::styled(Role::Error, "changed    ")
                .then(Role::Plain, "server ")
                .then(Role::Name, &server.name),
        );
        parts(&mut page, &server.changes, MAX_LINES);
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
            page.push(headline(tool));
            parts(&mut page, &tool.changes, MAX_LINES);
            notes(&mut page, tool, flagged, width);
        }
        if let Some(hidden @ 1..) = all.len().checked_sub(most) {
            page.push(Line::styled(Role::Dim, format!("and {hidden} more new")));
        }
    }
    for tool in report.tools.iter().filter(|tool| tool.state == PinReportState::Same) {
        if flagged.contains_key(&tool.name) {
            page.push(headline(tool));
            notes(&mut page, tool, flagged, width);
        }
    }
    page
}

fn headline(tool: &ToolReport) -> Line {
    let mut line = Line::styled(label(tool.state), tool.state.as_str());
    line.pad_to(11);
    line.then(Role::Name, &tool.name)
}

fn notes(page: &mut Page, tool: &ToolReport, flagged: &FindingsByTool, width: Option<usize>) {
    if let Some(findings) = flagged.get(&tool.name) {
        findings::lines(page, findings, 2, width);
    }
}

pub fn parts(page: &mut Page, all: &[DefinitionChange], most: usize) {
    for change in all {
        page.push(Line::styled(Role::Title, change.part).indented(2));
        let hunks = change.hunks();
        if hunks.is_empty() {
            let text = "differs past the part that is compared";
            page.push(Line::styled(Role::Dim, text).indented(4));
        }
        let mut body = Page::default();
        for (at, hunk) in hunks.iter().enumerate() {
            if at > 0 {
                body.push(Line::styled(Role::Dim, "…").indented(4));
            }
            difference::lines(&mut body, hunk, 4);
        }
        let all = body.lines().len();
        for line in body.lines().iter().take(most) {
            page.push(line.clone());
        }
        if let Some(hidden @ 1..) = all.checked_sub(most) {
            let text = format!("({hidden} more lines, --json has them)");
            page.push(Line::styled(Role::Dim, text).indented(4));
        }
    }
}

/// `2 changed, 1 gone, 3 new, 20 unchanged`.
pub fn summary(report: &PinReport) -> String {
    let counts = [
        (PinReportState::Changed, "changed"),
        (PinReportState::Missing, "gone"),
        (PinReportState::Unchecked, "not checked"),
        (PinReportState::New, "new"),
        (PinReportState::Same, "unchanged"),
    ];
    let counts: Vec<String> = counts
        .into_iter()
        .filter_map(|(state, word)| {
            let count = report.count(state);
            (count > 0).then(|| format!("{count} {word}"))
        })
        .collect();
    if counts.is_empty() { "no tools".to_owned() } else { counts.join(", ") }
}

fn label(state: PinReportState) -> Role {
    match state {
        PinReportState::Changed | PinReportState::Missing => Role::Error,
        PinReportState::New => Role::Success,
        PinReportState::Unchecked => Role::Warning,
        PinReportState::Same => Role::Dim,
    }
}
