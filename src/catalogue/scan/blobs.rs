//! Rules about URLs, encoded data, and text too long to be read.
//!
//! Lets pass: addresses that documentation is full of (`example.com` and its like, `localhost`,
//! the homes of JSON Schema), long words and paths, and hashes.

use super::hidden::around;
use super::{FindingCollector, FindingSeverity};

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

pub(super) fn check(text: &str, findings: &mut FindingCollector) {
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
