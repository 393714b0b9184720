//! OpenAPI documents as sources of API tools: each operation that an entry includes becomes a tool
//! of kind `http`.
//!
//! Owns: reading a local document of version 3.0 or 3.1 (`document`), choosing operations
//! (`include`), and turning one into an entry (`operation`, `schema`). Never does: fetch anything,
//! or send a request; what is built here are entries, and `http` does the rest.

mod document;
mod error;
mod include;
mod operation;
mod schema;

#[cfg(test)]
mod tests;

use self::document::OpenApiDocument;
use super::http;
use crate::config::consent::{EntryEffect, EntrySite};
use crate::config::node::ConfigNode;
use crate::config::spec::{KindClaim, KindDescriptor, ToolSpec};
use crate::model::Diagnostic;
use crate::provider::{BuiltProviders, ProviderDeps, ProviderKind};

/// The most schemas one tool may refer to.
const MAX_DEFS: usize = 500;

/// How deep one schema may be.
const MAX_DEPTH: usize = 64;

/// The keys of an entry that only this kind understands.
const KEYS: &[&str] = &[
    "openapi",
    "include",
    "prefix",
    "base_url",
    "headers",
    "auth",
    "query",
    "retry",
    "max_response_bytes",
    "allow_link_local",
    "insecure",
];

/// Those of them that hold for each operation as they do for an entry of kind `http`.
const HTTP_KEYS: [&str; 7] =
    ["headers", "auth", "query", "retry", "max_response_bytes", "allow_link_local", "insecure"];

pub fn kind() -> ProviderKind {
    ProviderKind {
        words: KindDescriptor {
            key: "openapi",
            aliases: &["swagger"],
            keys: KEYS,
            expand: &["openapi", "query"],
            claims: |node, _| KindClaim::certain_if(node.get("openapi").is_some()),
            effects,
            code: None,
        },
        build,
    }
}

/// The effects of an entry: it reads its document and contacts the server that it, or else the
/// document, names.
fn effects(entry: &ConfigNode, site: &EntrySite<'_>) -> Vec<EntryEffect> {
    let document = entry.get("openapi").and_then(|node| node.as_text().ok()).unwrap_or("?");
    let mut effects = vec![EntryEffect::Document(document.to_owned())];
    effects.push(match http::contacted(entry, site) {
        Some(address) => EntryEffect::Contacts(address),
        None => EntryEffect::Contacts(format!("the servers that {document} names")),
    });
    effects
}

fn build(specs: &[&ToolSpec], context: &ProviderDeps) -> BuiltProviders {
    let mut diagnostics = Vec::new();
    let mut made = Vec::new();
    for spec in specs {
        let name = spec.definition.name.full();
        let mut own_diagnostics = Vec::new();
        match operations(spec, &mut own_diagnostics) {
            Ok(more) => made.extend(more),
            Err(diagnostic) => own_diagnostics.push(diagnostic),
        }
        diagnostics.extend(
            own_diagnostics.into_iter().map(|diagnostic| diagnostic.with_entry(name.clone())),
        );
    }
    let mut built = http::build(&made.iter().collect::<Vec<_>>(), context);
    diagnostics.append(&mut built.diagnostics);
    BuiltProviders { diagnostics, ..built }
}

/// The entries for the operations that `spec` includes. An operation that cannot become one gets
/// its own diagnostic.
fn operations(
    spec: &ToolSpec,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<Vec<ToolSpec>, Diagnostic> {
    let Some(node) = spec.entry.get("openapi") else {
        return Err(Diagnostic::error("'openapi' is missing").with_location(spec.location.clone()));
    };
    let document =
        OpenApiDocument::read(node.as_text()?, &spec.base_dir).map_err(|diagnostic| {
            if diagnostic.location.is_some() {
                diagnostic
            } else {
                diagnostic.with_location(node.location())
            }
        })?;
    let has_credential_keys =
        HTTP_KEYS.iter().any(|key| spec.unexpanded.get(key).is_some_and(has_credentials));
    let base = match (spec.entry.get("base_url"), has_credential_keys) {
        (Some(node), _) => node.as_text()?.to_owned(),
        (None, true) => {
            return Err(Diagnostic::error("an entry with credentials needs a 'base_url'")
                .with_hint("without it, the document decides where they are sent")
                .with_location(node.location()));
        }
        (None, false) => {
            document.server(spec).map_err(|diagnostic| diagnostic.with_location(node.location()))?
        }
    };
    let naming = operation::ToolNaming::of(spec)?;
    let chosen = include::choose(spec, &document, diagnostics);
    let mut made = Vec::new();
    for (operation, place) in chosen {
        match operation::entry(spec, &document, &operation, &naming, &base) {
            Ok(entry) => made.push(entry),
            Err(error) => diagnostics.push(
                Diagnostic::error(format!(
                    "the operation '{}' cannot be a tool: {error}",
                    operation.id
                ))
                .with_location(place),
            ),
        }
    }
    Ok(made)
}

/// Whether a value exposes something of the user's.
fn has_credentials(node: &ConfigNode) -> bool {
    use crate::config::node::NodeValue;
    use crate::config::references::has_reference;
    match &node.value {
        NodeValue::Text(text) => has_reference(text),
        NodeValue::List(items) => items.iter().any(has_credentials),
        NodeValue::Map(entries) => entries
            .iter()
            .any(|(key, value)| key.text.ends_with("_env_var") || has_credentials(value)),
        _ => false,
    }
}
