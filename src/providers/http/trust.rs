//! Which entries a person has to allow: those that hand out what is the user's.
//!
//! Owns: the lines that say which variables and files go where. A request without them needs no
//! leave; whether a call may act is the business of approval.

use url::Url;

use crate::config::expand::{Piece, pieces, variable};
use crate::config::node::{Node, NodeValue};
use crate::config::spec::Site;

/// Lines about the credentials that an entry would send, and to whom.
pub(in crate::providers) fn starts(entry: &Node, site: &Site<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let written = site.written;
    for (key, node) in written.entries() {
        match key.text.as_str() {
            "endpoint_url" | "base_url" => tell(node, "in the URL", &mut lines),
            "query" => tell(node, "in the query", &mut lines),
            "body" => tell(node, "in the body", &mut lines),
            "headers" => {
                for (name, value) in node.entries() {
                    tell(value, &format!("in the header {}", name.text), &mut lines);
                }
            }
            "auth" => {
                for (name, value) in node.entries() {
                    if name.text.ends_with("_env_var") {
                        let variable = value.as_scalar_text().unwrap_or_default();
                        lines.push(format!("as credentials: the variable {variable}"));
                    } else {
                        tell(value, "as credentials", &mut lines);
                    }
                }
            }
            _ => {}
        }
    }
    if let Some(base) = shared_base(written, site) {
        tell(base, "in the URL", &mut lines);
    }
    if !lines.is_empty() {
        lines.insert(0, format!("sends to: {}", destination(entry, site)));
    }
    lines
}

/// Lines for the references in a value.
fn tell(node: &Node, place: &str, lines: &mut Vec<String>) {
    match &node.value {
        NodeValue::Text(text) => {
            for piece in pieces(text) {
                let Piece::Reference(reference) = piece else { continue };
                lines.push(match (variable(reference), reference.strip_prefix("file:")) {
                    (Some(name), _) => format!("{place}: the variable {name}"),
                    (None, Some(path)) => format!("{place}: the content of {path}"),
                    (None, None) => format!("{place}: {reference}"),
                });
            }
        }
        NodeValue::List(items) => items.iter().for_each(|item| tell(item, place, lines)),
        NodeValue::Map(entries) => entries.iter().for_each(|(_, value)| tell(value, place, lines)),
        _ => {}
    }
}

/// The `base_url` of the file's defaults, when the entry makes use of it.
fn shared_base<'a>(entry: &Node, site: &Site<'a>) -> Option<&'a Node> {
    let endpoint = entry.get("endpoint_url").and_then(|node| node.as_text().ok());
    let relative = endpoint.is_some_and(|text| !text.contains("://"));
    let base = site.defaults.and_then(|defaults| defaults.get("base_url"));
    base.filter(|_| relative && entry.get("base_url").is_none())
}

/// Scheme, host and port of the requests, or whatever the entry says instead.
fn destination(entry: &Node, site: &Site<'_>) -> String {
    let text = |node: Option<&Node>| node.and_then(|node| node.as_text().ok()).map(str::to_owned);
    let endpoint = text(entry.get("endpoint_url")).unwrap_or_default();
    let base = text(entry.get("base_url")).or_else(|| text(shared_base(entry, site)));
    let whole = match base {
        Some(base) if !endpoint.contains("://") => base,
        _ => endpoint,
    };
    match Url::parse(&whole) {
        Ok(url) if url.has_host() => url.origin().ascii_serialization(),
        _ => whole,
    }
}
