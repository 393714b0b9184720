//! What a scan found, as lines and as JSON.

use serde_json::Value;

use crate::catalogue::scan::{Finding, Severity};
use crate::cli::output::{Label, Line, Page};

/// A section about a tool or a server; nothing when nothing was found.
pub fn page(found: &[Finding], width: Option<usize>) -> Page {
    let mut page = Page::default();
    if !found.is_empty() {
        page.heading("Suspicious");
        lines(&mut page, found, 2, width);
    }
    page
}

/// Two lines for each finding: how much it matters and where, then what and why.
pub fn lines(page: &mut Page, found: &[Finding], indent: usize, width: Option<usize>) {
    for finding in found {
        let label = match finding.severity {
            Severity::High => Label::Error,
            Severity::Medium => Label::Warning,
            Severity::Low => Label::Dim,
        };
        let mut head = Line::of(label, finding.severity.as_str()).indented(indent);
        head.pad_to(indent + 8);
        head.push(Label::Plain, format!("{}: {}", finding.field, finding.reason));
        let room = width.map_or(usize::MAX, |width| width.max(20));
        for line in head.broken(room) {
            page.push(line);
        }
        if !finding.quote.is_empty() {
            page.paragraph(Label::Dim, indent + 8, &format!("“{}”", finding.quote), width);
        }
    }
}

/// How many are more than notes.
pub fn serious(found: &[Finding]) -> usize {
    found.iter().filter(|finding| finding.severity > Severity::Low).count()
}

/// The documented JSON.
pub fn json(found: &[Finding]) -> Value {
    Value::Array(found.iter().map(Finding::json).collect())
}
