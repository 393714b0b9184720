//! OpenAPI documents as sources of API tools: each operation that an entry includes becomes a tool
//! of the kind `http`.
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

use self::document::Document;
use super::http;
use crate::config::consent::{Effect, Site};
use crate::config::node::Node;
use crate::config::spec::{Claim, KindWords, ToolSpec};
use crate::model::Problem;
use crate::provider::{Built, Kind, KindContext};

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

/// Those of them that hold for each operation as they do for an entry of the kind `http`.
const SHARED: [&str; 7] =
    ["headers", "auth", "query", "retry", "max_response_bytes", "allow_link_local", "insecure"];

/// The row of the registry of kinds.
pub fn kind() -> Kind {
    Kind {
        words: KindWords {
            key: "openapi",
            aliases: &["swagger"],
            keys: KEYS,
            expand: &["openapi", "query"],
            claims: |node, _| Claim::certain_if(node.get("openapi").is_some()),
            effects,
            code: None,
        },
        build,
    }
}

/// What an entry would do: read its document and contact what it, or else the document, names.
fn effects(entry: &Node, site: &Site<'_>) -> Vec<Effect> {
    let document = entry.get("openapi").and_then(|node| node.as_text().ok()).unwrap_or("?");
    let mut effects = vec![Effect::Document(document.to_owned())];
    effects.push(match http::contacted(entry, site) {
        Some(address) => Effect::Contacts(address),
        None => Effect::Contacts(format!("the servers that {document} names")),
    });
    effects
}

fn build(specs: &[&ToolSpec], context: &KindContext) -> Built {
    let mut problems = Vec::new();
    let mut made = Vec::new();
    for spec in specs {
        let name = spec.definition.name.full();
        let mut found = Vec::new();
        match operations(spec, &mut found) {
            Ok(more) => made.extend(more),
            Err(problem) => found.push(problem),
        }
        problems.extend(found.into_iter().map(|problem| problem.entry(name.clone())));
    }
    let mut built = http::build(&made.iter().collect::<Vec<_>>(), context);
    problems.append(&mut built.problems);
    Built { problems, ..built }
}

/// The entries for the operations that `spec` includes. An operation that cannot become one is a
/// problem of its own.
fn operations(spec: &ToolSpec, problems: &mut Vec<Problem>) -> Result<Vec<ToolSpec>, Problem> {
    let Some(node) = spec.entry.get("openapi") else {
        return Err(Problem::error("'openapi' is missing").at(spec.place.clone()));
    };
    let document = Document::read(node.as_text()?, &spec.base_dir).map_err(|problem| {
        if problem.place.is_some() { problem } else { problem.at(node.place()) }
    })?;
    let hands_out = SHARED.iter().any(|key| spec.written.get(key).is_some_and(refers));
    let base = match (spec.entry.get("base_url"), hands_out) {
        (Some(node), _) => node.as_text()?.to_owned(),
        (None, true) => {
            return Err(Problem::error("an entry with credentials needs a 'base_url'")
                .hint("without one the document says where they are sent")
                .at(node.place()));
        }
        (None, false) => document.server(spec).map_err(|problem| problem.at(node.place()))?,
    };
    let naming = operation::Naming::of(spec)?;
    let chosen = include::choose(spec, &document, problems);
    let mut made = Vec::new();
    for (operation, place) in chosen {
        match operation::entry(spec, &document, &operation, &naming, &base) {
            Ok(entry) => made.push(entry),
            Err(why) => problems.push(
                Problem::error(format!("the operation '{}' cannot be a tool: {why}", operation.id))
                    .at(place),
            ),
        }
    }
    Ok(made)
}

/// Whether a value hands out something of the user's.
fn refers(node: &Node) -> bool {
    use crate::config::expand::has_reference;
    use crate::config::node::NodeValue;
    match &node.value {
        NodeValue::Text(text) => has_reference(text),
        NodeValue::List(items) => items.iter().any(refers),
        NodeValue::Map(entries) => {
            entries.iter().any(|(key, value)| key.text.ends_with("_env_var") || refers(value))
        }
        _ => false,
    }
}
