//! OpenAPI documents as sources of API tools: each operation that an entry includes becomes a tool
//! of kind `http`.
//!
//! Owns: reading a local document of version 3.0 or 3.1 (`document`), choosing operations
//! (`include`), and turning one into an entry (`operation`, `schema`). Never does: fetch anything,
//! or send a request; what is built here are entries, and `http` does the rest.

mod document;
mod include;
mod operation;
mod schema;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use self::document::OpenApiDocument;
use self::schema::ReferenceGraph;
use super::http;
use crate::config::consent::{EntryEffect, EntrySite};
use crate::config::node::{ConfigNode, NodeValue};
use crate::config::references::has_reference;
use crate::config::spec::{KindClaim, KindDescriptor, ToolSpec};
use crate::config::typed::{self, Keys, Located};
use crate::model::{Diagnostic, Diagnostics};
use crate::provider::{BuiltProviders, ProviderDeps, ProviderKind, read_each};

/// The most schemas one tool may refer to.
const MAX_DEFS: usize = 500;

/// The keys of an entry, besides those of every source of requests.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = typed::object::<Self>)]
struct OpenApiKeys {
    /// The OpenAPI document, a local file.
    openapi: Option<Located<String>>,
    /// Which operations become tools.
    include: Option<Located<include::IncludeKeys>>,
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
    let chosen = include::choose(spec, keys.include.as_ref(), &document, diagnostics);
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
