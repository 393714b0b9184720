//! The findings of a scan.

use crate::catalogue::scan::{Finding, FindingSeverity};
use crate::present::{Line, Page, Role};

/// A section about a tool or a server; empty without findings.
pub fn page(findings: &[Finding], width: Option<usize>) -> Page {
    let mut page = Page::default();
    if !findings.is_empty() {
        page.heading("Suspicious");
        lines(&mut page, findings, 2, width);
    }
    page
}

/// Two lines for each finding: severity and location, then what was found and why it matters.
pub fn lines(page: &mut Page, findings: &[Finding], indent: usize, width: Option<usize>) {
    for finding in findings {
        let label = match finding.severity {
            FindingSeverity::High => Role::Error,
            FindingSeverity::Medium => Role::Warning,
            FindingSeverity::Low => Role::Dim,
        };
        let mut head = Line::styled(label, finding.severity.as_str()).indented(indent);
        head.pad_to(indent + 8);
        head.push(Role::Plain, format!("{}: {}", finding.field, finding.reason));
        let room = width.map_or(usize::MAX, |width| width.max(20));
        for line in head.wrap(room) {
            page.push(line);
        }
        if !finding.quote.is_empty() {
            page.paragraph(Role::Dim, indent + 8, &format!("“{}”", finding.quote), width);
        }
    }
}

/// How many are more than notes.
pub fn count_above_note(findings: &[Finding]) -> usize {
    findings.iter().filter(|finding| finding.severity > FindingSeverity::Low).count()
}
