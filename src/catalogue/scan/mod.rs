//! Scanning definitions for suspicious content: it warns and never blocks.
//!
//! | rule | severity | module |
//! |---|---|---|
//! | `hidden` | high; low for what typesetting uses | [`hidden`] |
//! | `look-alike` | high for a name that imitates another one, medium for a word of mixed scripts | [`hidden`], [`names`] |
//! | `other-tools` | medium | [`names`] |
//! | `annotations` | medium | [`names`] |
//! | `address` | medium for a script, a bare IP address or a user before the host, otherwise low | here |
//! | `blob` | medium | here |
//! | `length` | medium from 50,000 characters, low from 10,000 | here |
//!
//! Words for people are quoted safely and briefly. A finding of low severity is a note: ordinary
//! servers have some. Those of the others do not.
//!
//! The rules about addresses, blobs and length let pass: addresses that documentation is full of (`example.com` and its like, `localhost`,
//! the homes of JSON Schema), long words and paths, and hashes.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::model::{ToolDefinition, impl_as_str};
use crate::util::text;
use hidden::around;
pub use names::ToolNameIndex;

mod hidden;
mod names;

#[cfg(test)]
mod tests;

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

impl_as_str!(FindingSeverity);

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
    let whole = for_each_text(tool, |field| {
        findings.field = field.path;
        hidden::check(field.text, &mut findings);
        if field.is_prose {
            check(field.text, &mut findings);
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
    let text = head(text, MOST_BYTES);
    hidden::check(text, &mut findings);
    check(text, &mut findings);
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

const MOST_TEXTS: usize = 20_000;
const FOR_MACHINES: [&str; 9] =
    ["$ref", "$schema", "$id", "$anchor", "$dynamicRef", "type", "format", "pattern", "required"];

struct DefinitionText<'a> {
    path: String,
    text: &'a str,
    /// Whether the text is prose for a reader, not a name or a value for programs.
    is_prose: bool,
}

/// Hands every text to `look`. Says whether that was all of them.
fn for_each_text(tool: &ToolDefinition, mut look: impl FnMut(DefinitionText<'_>)) -> bool {
    let mut budget = ScanBudget { bytes: MOST_BYTES, texts: MOST_TEXTS, is_complete: true };
    let plain = [
        ("name", Some(tool.name.tool()), false),
        ("title", tool.title.as_deref(), true),
        ("description", tool.description.as_deref(), true),
        ("annotations.title", tool.annotations.title.as_deref(), true),
    ];
    for (path, text, is_prose) in plain {
        if let Some(text) = text.and_then(|text| budget.take(text)) {
            look(DefinitionText { path: path.to_owned(), text, is_prose });
        }
    }
    for (path, schema) in
        [("inputSchema", Some(&tool.input_schema)), ("outputSchema", tool.output_schema.as_ref())]
    {
        if let Some(schema) = schema {
            walk(&schema.read(), path, true, &mut budget, &mut look);
        }
    }
    budget.is_complete
}

fn head(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or_default()
}

struct ScanBudget {
    bytes: usize,
    texts: usize,
    is_complete: bool,
}

impl ScanBudget {
    fn take<'a>(&mut self, text: &'a str) -> Option<&'a str> {
        if self.texts == 0 || self.bytes == 0 {
            self.is_complete = false;
            return None;
        }
        self.texts -= 1;
        let part = head(text, self.bytes);
        self.is_complete &= part.len() == text.len();
        self.bytes -= part.len();
        Some(part)
    }
}

/// Depth is bounded where definitions are read.
fn walk(
    value: &Value,
    path: &str,
    is_prose: bool,
    budget: &mut ScanBudget,
    look: &mut impl FnMut(DefinitionText<'_>),
) {
    match value {
        Value::String(text) => {
            if let Some(text) = budget.take(text) {
                look(DefinitionText { path: path.to_owned(), text, is_prose });
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate().take(MOST_TEXTS) {
                walk(item, &format!("{path}[{at}]"), is_prose, budget, look);
            }
            budget.is_complete &= items.len() <= MOST_TEXTS;
        }
        Value::Object(members) => {
            for (key, member) in members {
                let Some(name) = budget.take(key) else { return };
                let path = format!("{path}.{}", head(name, 100));
                // A key is a name; one that is a sentence is meant to be read.
                let text =
                    DefinitionText { path: path.clone(), text: name, is_prose: name.contains(' ') };
                look(text);
                let is_prose = is_prose && !FOR_MACHINES.contains(&key.as_str());
                walk(member, &path, is_prose, budget, look);
            }
        }
        _ => {}
    }
}

const LONG: usize = 10_000;
/// Characters from which a text counts as too long to be read.
const VERY_LONG: usize = 50_000;
/// The shortest run of base64 that counts; a SHA-512 in hexadecimal is longer, but of one case.
const BLOB: usize = 120;
/// Hosts of documentation and local tests, which lead nowhere.
const EXAMPLE_HOSTS: [&str; 9] = [
    "example.com",
    "example.org",
    "example.net",
    "example",
    "localhost",
    "127.0.0.1",
    "0.0.0.0",
    "json-schema.org",
    "w3.org",
];

fn check(text: &str, findings: &mut FindingCollector) {
    addresses(text, findings);
    blob(text, findings);
    let long = if text.len() < LONG { 0 } else { text.chars().count() };
    if long >= LONG {
        let severity =
            if long >= VERY_LONG { FindingSeverity::Medium } else { FindingSeverity::Low };
        findings.add(severity, "length", "", format!("it has {long} characters"));
    }
}

fn addresses(text: &str, findings: &mut FindingCollector) {
    for (at, _) in text.match_indices("://") {
        let head = text.get(..at).unwrap_or_default();
        let start = head.rfind(|c: char| !c.is_ascii_alphanumeric()).map_or(0, |i| {
            i + head.get(i..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
        });
        let scheme = head.get(start..).unwrap_or_default().to_ascii_lowercase();
        if !matches!(scheme.as_str(), "http" | "https" | "ftp" | "ws" | "wss") {
            continue;
        }
        let rest = text.get(at + 3..).unwrap_or_default();
        let end = rest.find(|c: char| !(c.is_alphanumeric() || "-._:@[]%".contains(c)));
        let authority = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        let host = host.split(':').next().unwrap_or_default().trim_end_matches('.');
        let host = host.to_ascii_lowercase();
        let illustrates = |domain: &&str| {
            host.strip_suffix(*domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        if host.is_empty() || EXAMPLE_HOSTS.iter().any(illustrates) {
            continue;
        }
        let quote = around(text, start);
        if authority.contains('@') {
            let why = "a URL in it hides its host behind a user name";
            findings.add(FindingSeverity::Medium, "address", &quote, why);
        } else if host.parse::<std::net::Ipv4Addr>().is_ok() {
            findings.add(
                FindingSeverity::Medium,
                "address",
                &quote,
                "it contains a bare IP address",
            );
        } else {
            findings.add(FindingSeverity::Low, "address", &quote, "it contains a URL");
        }
    }
    for (at, scheme) in text.match_indices("javascript:") {
        let next = text.get(at + scheme.len()..).and_then(|rest| rest.chars().next());
        if next.is_some_and(|c| c.is_ascii_alphabetic()) {
            let quote = around(text, at);
            findings.add(FindingSeverity::Medium, "address", &quote, "it contains a script URL");
        }
    }
}

fn blob(text: &str, findings: &mut FindingCollector) {
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '-' | '_');
    for run in text.split(|c| !inside(c)).filter(|run| run.len() >= BLOB) {
        let head = run.get(..BLOB).unwrap_or_default();
        let count = |kind: fn(&char) -> bool| head.chars().filter(kind).count();
        let mixed = count(char::is_ascii_uppercase) >= 10
            && count(char::is_ascii_lowercase) >= 10
            && count(char::is_ascii_digit) >= 4;
        // Paths and names joined by dashes have many of these.
        let joined = head.chars().filter(|c| matches!(c, '/' | '-' | '_')).count();
        if mixed && joined < BLOB / 10 {
            let why = format!("it contains {} characters of encoded data", run.len());
            findings.add(FindingSeverity::Medium, "blob", run, why);
            return;
        }
    }
}
