//! References to variables and files in values: their syntax, and where each is allowed.

use std::collections::BTreeMap;

use super::node::{ConfigNode, NodeValue};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowedReferences {
    /// Only `${VAR}` and a leading `~`.
    Variables,
    /// Also `${file:…}`: values that are secrets.
    Secrets,
}

/// What a key's children may contain, from the list that applies to every entry.
pub fn allowed_in(key: &str) -> Option<AllowedReferences> {
    match key {
        "headers" | "auth" | "oauth" | "env" => Some(AllowedReferences::Secrets),
        "command" | "args" | "cwd" | "url" | "baseUrl" | "serverUrl" | "httpUrl"
        | "endpoint_url" | "base_url" | "root_dir" | "scopes" | "path" | "paths" | "discover"
        | "server_path" | "roots" | "sandbox" | "envFile" | "tls" => {
            Some(AllowedReferences::Variables)
        }
        _ => None,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferencePiece<'t> {
    Text(&'t str),
    /// `$${`, which stands for `${`.
    Escaped,
    /// The text between `${` and `}`.
    Reference(&'t str),
    /// A `${` without its `}`; always the last piece.
    Unclosed,
}

pub fn pieces(text: &str) -> Vec<ReferencePiece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (before, escaped) = match before.strip_suffix('$') {
            Some(before) => (before, true),
            None => (before, false),
        };
        if !before.is_empty() {
            pieces.push(ReferencePiece::Text(before));
        }
        if escaped {
            pieces.push(ReferencePiece::Escaped);
            rest = after;
        } else if let Some((reference, tail)) = after.split_once('}') {
            pieces.push(ReferencePiece::Reference(reference));
            rest = tail;
        } else {
            pieces.push(ReferencePiece::Unclosed);
            return pieces;
        }
    }
    if !rest.is_empty() {
        pieces.push(ReferencePiece::Text(rest));
    }
    pieces
}

pub fn variable(reference: &str) -> Option<&str> {
    let named = reference.strip_prefix("env:").unwrap_or(reference);
    let name = named.split_once(":-").map_or(named, |(name, _)| name);
    (!name.contains(':')).then_some(name)
}

/// Whether a text contains a reference, so that it depends on where it is loaded.
pub fn has_reference(text: &str) -> bool {
    text.contains("${")
}

/// Whether expanding a text could change it: it contains a reference or starts with `~`.
pub fn needs_expansion(text: &str) -> bool {
    has_reference(text) || text.starts_with('~')
}

/// Whether nothing in the value depends on where it is loaded: no reference, no `~`.
pub fn is_literal(node: &ConfigNode) -> bool {
    let mut is_literal = true;
    node.for_each_leaf(&mut |_, leaf| {
        is_literal &= !matches!(&leaf.value, NodeValue::Text(text) if needs_expansion(text));
    });
    is_literal
}

/// Every reference at or below `node` with the paths of its keys. Names of variables
/// without `${}` (`…_env_var`, `env_keys`) are included.
pub fn of(node: &ConfigNode) -> BTreeMap<String, Vec<String>> {
    let mut references: BTreeMap<String, Vec<String>> = BTreeMap::new();
    node.for_each_leaf(&mut |path, leaf| {
        let NodeValue::Text(text) = &leaf.value else { return };
        let mut add = |reference: &str| {
            let places = references.entry(format!("${{{reference}}}")).or_default();
            if places.last().is_none_or(|last| last != path) {
                places.push(path.to_owned());
            }
        };
        for piece in pieces(text) {
            if let ReferencePiece::Reference(reference) = piece {
                add(reference);
            }
        }
        let key = path.rsplit('.').next().unwrap_or_default();
        if key.ends_with("_env_var") || key == "env_keys" {
            add(text);
        }
    });
    references
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::node::SourceText;
    use crate::config::parse::parse;

    #[test]
    fn references_are_found_wherever_they_stand() {
        let text = "roots: ['https://x/${A}']\nauth: { token_env_var: B }\nenv_keys: [C, D]\n\
                    x: { y: { z: 'a${A}b${file:f}' } }\nplain: '$${E}'\n";
        let node = parse(&SourceText::new("f", text), text).unwrap().root;
        let references: Vec<(String, String)> =
            of(&node).into_iter().map(|(name, places)| (name, places.join(" "))).collect();
        let expected = [
            ("${A}", "roots x.y.z"),
            ("${B}", "auth.token_env_var"),
            ("${C}", "env_keys"),
            ("${D}", "env_keys"),
            ("${file:f}", "x.y.z"),
        ];
        assert_eq!(references, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
        assert!(!is_literal(&node));
    }
}
