//! `include`: which operations of a document become tools.
//!
//! It is an allowlist, and required: a document may contain hundreds of operations, and
//! new ones must not appear by themselves. `operations`, `tags` and `paths` are patterns.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Deserialize;

use super::document::{OpenApiDocument, OpenApiOperation};
use crate::config::spec::ToolSpec;
use crate::config::typed::{self, Located};
use crate::model::{Diagnostic, Diagnostics, SourceLocation};
use crate::util::pattern;
use crate::util::spelling::did_you_mean;

/// Which operations become tools.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = typed::object::<Self>)]
pub(super) struct IncludeKeys {
    /// These, by their operationId; patterns with *.
    operations: Vec<Located<String>>,
    /// All with one of these tags; patterns with *.
    tags: Vec<Located<String>>,
    /// All whose path matches one of these patterns.
    paths: Vec<Located<String>>,
}

/// The operations that an entry includes, each once and with the place that asked for it; what is
/// wrong is added to `diagnostics`.
pub(super) fn choose<'d>(
    spec: &ToolSpec,
    include: Option<&Located<IncludeKeys>>,
    document: &'d OpenApiDocument,
    diagnostics: &Diagnostics,
) -> Vec<(OpenApiOperation<'d>, SourceLocation)> {
    let all = document.operations();
    let lists = include.map(|include| {
        [("operations", &include.operations), ("tags", &include.tags), ("paths", &include.paths)]
    });
    if lists.iter().flatten().all(|(_, list)| list.is_empty()) {
        let place = include.map_or(&spec.location, |include| &include.location);
        let some: Vec<_> = all.iter().take(8).map(OpenApiOperation::id).collect();
        diagnostics.push(
            Diagnostic::error("'include' must say which operations become tools")
                .with_hint(format!("write include: {{ operations: [{}] }}", some.join(", ")))
                .with_location(place.clone()),
        );
    }
    let mut chosen: Vec<(OpenApiOperation<'d>, SourceLocation)> = Vec::new();
    let mut is_chosen = vec![false; all.len()];
    for (key, list) in lists.into_iter().flatten() {
        for text in list {
            let mut is_known = false;
            for (operation, is_chosen) in all.iter().zip(&mut is_chosen) {
                if !texts(operation, key).iter().any(|one| pattern::matches(text, one)) {
                    continue;
                }
                is_known = true;
                if !std::mem::replace(is_chosen, true) {
                    chosen.push((*operation, text.location.clone()));
                }
            }
            if !is_known {
                diagnostics.push(unknown(&all, key, text).with_location(text.location.clone()));
            }
        }
    }
    chosen
}

/// What a list of this key says of an operation.
fn texts<'o>(operation: &'o OpenApiOperation<'_>, key: &str) -> Vec<Cow<'o, str>> {
    match key {
        "operations" => vec![operation.id()],
        "tags" => operation.tags().map(Cow::from).collect(),
        _ => vec![operation.path.into()],
    }
}

fn unknown(all: &[OpenApiOperation<'_>], key: &str, text: &str) -> Diagnostic {
    let names: Vec<_> = all.iter().flat_map(|operation| texts(operation, key)).collect();
    let what = match key {
        "operations" => "operation",
        "tags" => "operation with the tag",
        _ => "path like",
    };
    let diagnostic = Diagnostic::error(format!("the document has no {what} '{text}'"));
    if let Some(hint) = did_you_mean(text, names.iter().map(Cow::as_ref)) {
        return diagnostic.with_hint(hint);
    }
    let mut some: Vec<_> = names.into_iter().take(12).collect();
    some.dedup();
    diagnostic.with_hint(format!("choose from {}", some.join(", ")))
}
