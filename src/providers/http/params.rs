//! `params`: whether each argument goes into the path, query, headers or body.
//!
//! | the entry says | the argument goes |
//! |---|---|
//! | `x: path` | into the path, where `{x}` stands |
//! | `x: query`, `x: header`, `x: body` | there, under its own name |
//! | `x: { in: header, name: X-Y }` | there, under that name |
//! | none, but `{x}` is used in a text | only there |
//! | none | GET, HEAD, DELETE, OPTIONS: the query; others: the body |

use std::collections::BTreeMap;

use reqwest::header::HeaderName;

use super::header_names::header_name;
use crate::config::node::{ConfigNode, NodeValue};
use crate::model::Diagnostic;
use crate::providers::properties::SchemaProperties;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ArgumentLocation {
    Path,
    Query(String),
    Header(HeaderName),
    Body(String),
}

const LOCATION_NAMES: [&str; 4] = ["path", "query", "header", "body"];

/// The places that `params` names; problems are added to `diagnostics`.
pub(super) fn read(
    node: Option<&ConfigNode>,
    properties: &SchemaProperties,
    in_path: &[&str],
    diagnostics: &mut Vec<Diagnostic>,
) -> BTreeMap<String, ArgumentLocation> {
    let mut places = BTreeMap::new();
    let Some(node) = node.filter(|node| !node.is_null()) else { return places };
    let entries = node.as_map().unwrap_or_else(|diagnostic| {
        diagnostics.push(diagnostic);
        &[]
    });
    for (key, value) in entries {
        let name = key.text.as_str();
        if !properties.has(name) {
            diagnostics.push(
                Diagnostic::error(format!("'{name}' is not a property of the schema"))
                    .with_hint(properties.unknown_name_hint(name))
                    .with_location(node.location_of(key)),
            );
            continue;
        }
        match place(name, value) {
            Ok(ArgumentLocation::Path) if !in_path.contains(&name) => diagnostics.push(
                Diagnostic::error(format!("'{{{name}}}' is not in the path of endpoint_url"))
                    .with_location(value.location()),
            ),
            Ok(place) => {
                places.insert(name.to_owned(), place);
            }
            Err(diagnostic) => diagnostics.push(diagnostic),
        }
    }
    places
}

fn place(argument: &str, node: &ConfigNode) -> Result<ArgumentLocation, Diagnostic> {
    let (word, at, named) = match &node.value {
        NodeValue::Text(word) => (word.as_str(), node, None),
        NodeValue::Map(entries) => {
            if let Some((key, _)) =
                entries.iter().find(|(key, _)| !["in", "name"].contains(&key.text.as_str()))
            {
                return Err(Diagnostic::error(format!("unknown key '{}'", key.text))
                    .with_hint("write { in: header, name: X-Y }")
                    .with_location(node.location_of(key)));
            }
            let Some(word) = node.get("in") else {
                return Err(node.expected("a mapping with 'in'"));
            };
            (word.as_text()?, word, node.get("name"))
        }
        _ => return Err(node.expected("path, query, header, body or { in: …, name: … }")),
    };
    let (name, name_at) = match named {
        Some(node) => (node.as_scalar_text()?, node),
        None => (argument.to_owned(), node),
    };
    match word {
        "path" if named.is_some() => {
            Err(Diagnostic::error("an argument in the path cannot be renamed")
                .with_hint("the placeholder in endpoint_url names the argument")
                .with_location(name_at.location()))
        }
        "path" => Ok(ArgumentLocation::Path),
        "query" => Ok(ArgumentLocation::Query(name)),
        "header" => Ok(ArgumentLocation::Header(header_name(&name, &name_at.location())?)),
        "body" => Ok(ArgumentLocation::Body(name)),
        other => {
            let diagnostic = Diagnostic::error(format!(
                "'{other}' is not a place for an argument; it is one of {}",
                LOCATION_NAMES.join(", ")
            ));
            let diagnostic = diagnostic.with_suggestion(other, LOCATION_NAMES);
            Err(diagnostic.with_location(at.location()))
        }
    }
}
