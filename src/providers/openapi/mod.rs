//! OpenAPI documents as sources of API tools: each operation that an entry includes becomes a tool
//! of kind `http`.
//!
//! Owns: reading a local document of version 3.0 or 3.1 (`document`), choosing
//! operations, and turning one into an entry (`operation`). Never does: fetch anything,
//! or send a request; what is built here are entries, and `http` does the rest.
//!
//! `include` is an allowlist, and required: a document may contain hundreds of operations, and
//! new ones must not appear by themselves. `operations`, `tags` and `paths` are patterns.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::http;
use crate::config::consent::{EntryEffect, EntrySite};
use crate::config::node::{ConfigNode, NodeValue};
use crate::config::references::has_reference;
use crate::config::spec::{KindClaim, KindDescriptor, ToolSpec};
use crate::config::typed::{self, Keys, Located};
use crate::model::{Diagnostic, Diagnostics, SourceLocation};
use crate::provider::{BuiltProviders, ProviderDeps, ProviderKind, read_each};
use crate::util::pattern;
use crate::util::spelling::did_you_mean;
use document::{OpenApiDocument, OpenApiOperation, ReferenceGraph};

mod document;
mod operation;

#[cfg(test)]
mod tests;

/// The most schemas one tool may refer to.
const MAX_DEFS: usize = 500;

/// The keys of an entry, besides those of every source of requests.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = typed::object::<Self>)]
struct OpenApiKeys {
    /// The OpenAPI document, a local file.
    openapi: Option<Located<String>>,
    /// Which operations become tools.
    include: Option<Located<IncludeKeys>>,
    /// What the names of the tools begin with; default: the name of the entry and '-'.
    prefix: Option<Located<String>>,
}

pub fn kind() -> ProviderKind {
    ProviderKind {
        words: KindDescriptor {
            key: "openapi",
            aliases: &["swagger"],
            keys: const { &[Keys::of::<OpenApiKeys>(), Keys::of::<http::RequestKeys>()] },
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
    let keys = typed::peek::<OpenApiKeys>(entry);
    let document = keys.and_then(|keys| keys.openapi);
    let document = document.as_ref().map_or("?", |document| document);
    let mut effects = vec![EntryEffect::Document(document.to_owned())];
    effects.push(match http::contacted(entry, site) {
        Some(address) => EntryEffect::Contacts(address),
        None => EntryEffect::Contacts(format!("the servers that {document} names")),
    });
    effects
}

fn build(specs: &[&ToolSpec], context: &ProviderDeps) -> BuiltProviders {
    let (made, mut diagnostics) =
        read_each(specs, |spec, diagnostics| diagnostics.ok(operations(spec, diagnostics)));
    let mut built = http::build(&made.iter().flatten().collect::<Vec<_>>(), context);
    diagnostics.append(&mut built.diagnostics);
    BuiltProviders { diagnostics, ..built }
}

/// The entries for the operations that `spec` includes. An operation that cannot become one gets
/// its own diagnostic.
fn operations(spec: &ToolSpec, diagnostics: &Diagnostics) -> Result<Vec<ToolSpec>, Diagnostic> {
    let missing = || Diagnostic::error("'openapi' is missing").with_location(spec.location.clone());
    let keys: OpenApiKeys = typed::read_part(&spec.entry, diagnostics).ok_or_else(missing)?;
    // What is wrong with the others is reported for each operation.
    let request: http::RequestKeys = typed::peek(&spec.entry).ok_or_else(missing)?;
    let path = keys.openapi.as_ref().ok_or_else(missing)?;
    let at_document = |diagnostic: Diagnostic| match diagnostic.location {
        Some(_) => diagnostic,
        None => diagnostic.with_location(path.location.clone()),
    };
    let document = Arc::new(OpenApiDocument::read(path, &spec.base_dir).map_err(at_document)?);
    let shared = spec.unexpanded.entries().iter();
    let has_credential_keys = shared
        .filter(|(key, _)| typed::names::<http::RequestKeys>().contains(&&*key.text))
        .any(|(_, value)| has_credentials(value));
    let base = match request.base_url {
        Some(base) => base.value,
        None if has_credential_keys => {
            return Err(path
                .error("an entry with credentials needs a 'base_url'")
                .with_hint("without it, the document decides where they are sent"));
        }
        None => document.server(spec).map_err(at_document)?,
    };
    let naming = operation::ToolNaming::of(spec, keys.prefix.as_ref())?;
    let chosen = choose(spec, keys.include.as_ref(), &document, diagnostics);
    let (mut made, mut graph) = (Vec::new(), ReferenceGraph::default());
    for (operation, place) in chosen {
        match operation::entry(spec, &document, &mut graph, &operation, &naming, &base) {
            Ok(entry) => made.push(entry),
            Err(error) => diagnostics.push(
                Diagnostic::error(format!(
                    "the operation '{}' cannot be a tool: {error}",
                    operation.id()
                ))
                .with_location(place),
            ),
        }
    }
    Ok(made)
}

/// Whether a value exposes something of the user's.
fn has_credentials(node: &ConfigNode) -> bool {
    let mut has_credentials = false;
    node.for_each_leaf(&mut |path, leaf| {
        has_credentials |= path.split('.').any(|key| key.ends_with("_env_var"))
            || matches!(&leaf.value, NodeValue::Text(text) if has_reference(text));
    });
    has_credentials
}

/// Which operations become tools.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = typed::object::<Self>)]
struct IncludeKeys {
    /// These, by their operationId; patterns with *.
    operations: Vec<Located<String>>,
    /// All with one of these tags; patterns with *.
    tags: Vec<Located<String>>,
    /// All whose path matches one of these patterns.
    paths: Vec<Located<String>>,
}

/// The operations that an entry includes, each once and with the place that asked for it; what is
/// wrong is added to `diagnostics`.
fn choose<'d>(
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
