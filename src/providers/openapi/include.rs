//! `include`: which operations of a document become tools.
//!
//! It is an allowlist, and required: a document may contain hundreds of operations, and
//! new ones must not appear by themselves. `operations` names them, `tags` and `paths` choose all
//! that carry one of the tags or match one of the patterns.

use super::document::{OpenApiDocument, OpenApiOperation};
use crate::config::node::ConfigNode;
use crate::config::spec::ToolSpec;
use crate::model::{Diagnostic, SourceLocation};
use crate::util::pattern;
use crate::util::spelling::did_you_mean;

const KEYS: [&str; 3] = ["operations", "tags", "paths"];

/// The operations that an entry includes, each once and with the place that asked for it; what is
/// wrong is added to `diagnostics`.
pub(super) fn choose(
    spec: &ToolSpec,
    document: &OpenApiDocument,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<(OpenApiOperation, SourceLocation)> {
    let all = document.operations();
    let mut chosen: Vec<(OpenApiOperation, SourceLocation)> = Vec::new();
    let Some(include) = spec.entry.get("include").filter(|node| !node.entries().is_empty()) else {
        let place =
            spec.entry.get("include").map_or_else(|| spec.location.clone(), ConfigNode::location);
        let some: Vec<&str> = all.iter().take(8).map(|operation| operation.id.as_str()).collect();
        diagnostics.push(
            Diagnostic::error("'include' must say which operations become tools")
                .with_hint(format!("write include: {{ operations: [{}] }}", some.join(", ")))
                .with_location(place),
        );
        return chosen;
    };
    for (key, list) in include.entries() {
        let word = key.text.as_str();
        if !KEYS.contains(&word) {
            let diagnostic = Diagnostic::error(format!("unknown key '{word}'"));
            let hint = did_you_mean(word, KEYS)
                .unwrap_or_else(|| format!("the keys are {}", KEYS.join(", ")));
            diagnostics.push(diagnostic.with_hint(hint).with_location(include.location_of(key)));
            continue;
        }
        let items = match list.as_list() {
            Ok(items) => items,
            Err(diagnostic) => {
                diagnostics.push(diagnostic);
                continue;
            }
        };
        for item in items {
            let text = match item.as_text() {
                Ok(text) => text,
                Err(diagnostic) => {
                    diagnostics.push(diagnostic);
                    continue;
                }
            };
            let matching: Vec<&OpenApiOperation> =
                all.iter().filter(|one| matches(one, word, text)).collect();
            if matching.is_empty() {
                diagnostics.push(unknown(&all, word, text).with_location(item.location()));
            }
            for operation in matching {
                if !chosen.iter().any(|(other, _)| is_same_operation(other, operation)) {
                    chosen.push((operation.clone(), item.location()));
                }
            }
        }
    }
    chosen
}

fn is_same_operation(a: &OpenApiOperation, b: &OpenApiOperation) -> bool {
    a.method == b.method && a.path == b.path
}

fn matches(operation: &OpenApiOperation, key: &str, text: &str) -> bool {
    match key {
        "operations" => operation.id == text,
        "tags" => operation.tags.iter().any(|tag| tag == text),
        _ => pattern::matches(text, &operation.path),
    }
}

fn unknown(all: &[OpenApiOperation], key: &str, text: &str) -> Diagnostic {
    let names: Vec<&str> = match key {
        "operations" => all.iter().map(|operation| operation.id.as_str()).collect(),
        "tags" => all.iter().flat_map(|operation| &operation.tags).map(String::as_str).collect(),
        _ => all.iter().map(|operation| operation.path.as_str()).collect(),
    };
    let what = match key {
        "operations" => "operation",
        "tags" => "operation with the tag",
        _ => "path like",
    };
    let diagnostic = Diagnostic::error(format!("the document has no {what} '{text}'"));
    if let Some(hint) = did_you_mean(text, names.iter().copied()) {
        return diagnostic.with_hint(hint);
    }
    let mut some: Vec<&str> = names.into_iter().take(12).collect();
    some.dedup();
    diagnostic.with_hint(format!("choose from {}", some.join(", ")))
}
