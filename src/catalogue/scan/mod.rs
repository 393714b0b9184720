//! Scanning definitions for suspicious content: it warns and never blocks.
//!
//! | rule | severity | module |
//! |---|---|---|
//! | `hidden` | high; low for what typesetting uses | [`hidden`] |
//! | `look-alike` | high for a name that imitates another one, medium for a word of mixed scripts | [`hidden`], [`names`] |
//! | `other-tools` | medium | [`names`] |
//! | `annotations` | medium | [`names`] |
//! | `address` | medium for a script, a bare IP address or a user before the host, otherwise low | [`blobs`] |
//! | `blob` | medium | [`blobs`] |
//! | `length` | medium from 50,000 characters, low from 10,000 | [`blobs`] |
//!
//! Words for people are quoted safely and briefly. A finding of low severity is a note: ordinary
//! servers have some. Those of the others do not.

mod blobs;
mod fields;
mod hidden;
mod names;

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::ToolDefinition;
use crate::util::text;

pub use names::ToolNameIndex;

/// How much of a definition is looked at, in bytes.
pub const MOST_BYTES: usize = 2 << 20;
const MOST_FINDINGS: usize = 25;
const QUOTE: usize = 80;

/// What was found in each tool, by its full name.
pub type FindingsByTool = HashMap<String, Vec<Finding>>;

/// How much a finding matters.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum FindingSeverity {
    /// Worth knowing; ordinary servers have it too.
    Low,
    /// Unusual in an honest definition and worth a look.
    Medium,
    /// Hardly ever an accident.
    High,
}

impl FindingSeverity {
    /// The word used in output.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// One suspicious thing about a tool; its fields are promised JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// How likely the text is an attack.
    pub severity: FindingSeverity,
    /// The rule: a word from the table above.
    pub rule: &'static str,
    /// The path of the text: `description`, `inputSchema.properties.path.description`, `name`.
    pub field: String,
    /// What was found there, made safe and cut.
    pub quote: String,
    /// Why the text is suspicious, in one clause.
    pub reason: String,
}

pub fn scan(tool: &ToolDefinition, neighbours: &ToolNameIndex) -> Vec<Finding> {
    let mut findings = FindingCollector::default();
    names::check(tool, neighbours, &mut findings);
    let whole = fields::for_each_text(tool, |field| {
        findings.field = field.path;
        hidden::check(field.text, &mut findings);
        if field.is_prose {
            blobs::check(field.text, &mut findings);
            names::mentions(tool, field.text, neighbours, &mut findings);
        }
    });
    if !whole {
        "definition".clone_into(&mut findings.field);
        findings.add(FindingSeverity::Low, "length", "", "it is too large to scan completely");
    }
    findings.sorted()
}

/// Text that belongs to no tool, such as the instructions of a server.
pub fn scan_text(field: &str, text: &str) -> Vec<Finding> {
    let mut findings = FindingCollector { field: field.to_owned(), ..FindingCollector::default() };
    let text = fields::head(text, MOST_BYTES);
    hidden::check(text, &mut findings);
    blobs::check(text, &mut findings);
    findings.sorted()
}

/// What has been found so far, and where the rules are looking.
#[derive(Default)]
struct FindingCollector {
    field: String,
    all: Vec<Finding>,
}

impl FindingCollector {
    fn add(
        &mut self,
        severity: FindingSeverity,
        rule: &'static str,
        quote: &str,
        reason: impl Into<String>,
    ) {
        let reason = reason.into();
        let repeated = |f: &Finding| f.field == self.field && f.rule == rule && f.reason == reason;
        // Room is kept for the worst, which may come last.
        let full = self.all.len() >= MOST_FINDINGS && severity < FindingSeverity::High;
        if full || self.all.len() >= MOST_FINDINGS * 4 || self.all.iter().any(repeated) {
            return;
        }
        let quote = text::safe_line(quote);
        let quote = text::shorten(quote.trim(), QUOTE).into_owned();
        self.all.push(Finding { severity, rule, field: self.field.clone(), quote, reason });
    }

    fn sorted(mut self) -> Vec<Finding> {
        self.all.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        self.all.truncate(MOST_FINDINGS);
        self.all
    }
}
