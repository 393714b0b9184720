//! `include`: which operations of a document become tools.
//!
//! It is an allowlist, and required: a document may contain hundreds of operations, and
//! new ones must not appear by themselves. `operations` names them, `tags` and `paths` choose all
//! that carry one of the tags or match one of the patterns.

use schemars::JsonSchema;
use serde::Deserialize;

use super::document::{OpenApiDocument, OpenApiOperation};
use crate::config::spec::ToolSpec;
use crate::config::typed::{self, Located};
use crate::model::{Diagnostic, SourceLocation};
use crate::util::pattern;
use crate::util::spelling::did_you_mean;

/// Which operations become tools.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = typed::object::<Self>)]
pub(super) struct IncludeKeys {
    /// These, by their operationId.
    operations: Vec<Located<String>>,
    /// All with one of these tags.
    tags: Vec<Located<String>>,
    /// All whose path matches one of these patterns.
    paths: Vec<Located<String>>,
}

/// The operations that an entry includes, each once and with the place that asked for it; what is
/// wrong is added to `diagnostics`.
pub(super) fn choose(
    spec: &ToolSpec,
    include: Option<&Located<IncludeKeys>>,
    document: &OpenApiDocument,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<(OpenApiOperation, SourceLocation)> {
    let all = document.operations();
    let mut chosen: Vec<(OpenApiOperation, SourceLocation)> = Vec::new();
    let lists = include.map(|include| {
        [("operations", &include.operations), ("tags", &include.tags), ("paths", &include.paths)]
    });
    if lists.iter().flatten().all(|(_, list)| list.is_empty()) {
        let place = include.map_or(&spec.location, |include| &include.location);
        let some: Vec<&str> = all.iter().take(8).map(|operation| operation.id.as_str()).collect();
        diagnostics.push(
            Diagnostic::error("'include' must say which operations become tools")
                .with_hint(format!("write include: {{ operations: [{}] }}", some.join(", ")))
                .with_location(place.clone()),
        );
    }
    for (key, list) in lists.into_iter().flatten() {
        for text in list {
            let matching: Vec<&OpenApiOperation> =
                all.iter().filter(|one| matches(one, key, text)).collect();
            if matching.is_empty() {
                diagnostics.push(unknown(&all, key, text).with_location(text.location.clone()));
            }
            for operation in matching {
                if !chosen.iter().any(|(other, _)| is_same_operation(other, operation)) {
                    chosen.push((operation.clone(), text.location.clone()));
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
