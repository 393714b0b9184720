//! `params`: where each argument goes.
//!
//! | the entry says | the argument goes |
//! |---|---|
//! | `x: path` | into the path, where `{x}` stands |
//! | `x: query`, `x: header`, `x: body` | there, under its own name |
//! | `x: { in: header, name: X-Y }` | there, under that name |
//! | nothing, but `{x}` stands in a text | only there |
//! | nothing | GET, HEAD, DELETE, OPTIONS: the query; others: the body |

use std::collections::BTreeMap;

use reqwest::header::HeaderName;

use super::entry::header_name;
use crate::config::keys::suggestion;
use crate::config::node::{Node, NodeValue};
use crate::model::Problem;
use crate::providers::properties::Properties;

/// Where an argument goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// Where its placeholder stands in the path.
    Path,
    /// Into the query, under this name.
    Query(String),
    /// Into this header.
    Header(HeaderName),
    /// Into the body's object, under this name.
    Body(String),
}

const WORDS: [&str; 4] = ["path", "query", "header", "body"];

/// The places that `params` names; what is wrong is added to `problems`.
pub(super) fn read(
    node: Option<&Node>,
    properties: &Properties,
    in_path: &[&str],
    problems: &mut Vec<Problem>,
) -> BTreeMap<String, Place> {
    let mut places = BTreeMap::new();
    let Some(node) = node.filter(|node| !node.is_null()) else { return places };
    let entries = node.as_map().unwrap_or_else(|problem| {
        problems.push(problem);
        &[]
    });
    for (key, value) in entries {
        let name = key.text.as_str();
        if !properties.has(name) {
            problems.push(
                Problem::error(format!("'{name}' is no property of the schema"))
                    .hint(properties.advice(name))
                    .at(node.place_of(key)),
            );
            continue;
        }
        match place(name, value) {
            Ok(Place::Path) if !in_path.contains(&name) => problems.push(
                Problem::error(format!("'{{{name}}}' does not stand in the path of endpoint_url"))
                    .at(value.place()),
            ),
            Ok(place) => {
                places.insert(name.to_owned(), place);
            }
            Err(problem) => problems.push(problem),
        }
    }
    places
}

fn place(argument: &str, node: &Node) -> Result<Place, Problem> {
    let (word, at, named) = match &node.value {
        NodeValue::Text(word) => (word.as_str(), node, None),
        NodeValue::Map(entries) => {
            if let Some((key, _)) =
                entries.iter().find(|(key, _)| !["in", "name"].contains(&key.text.as_str()))
            {
                return Err(Problem::error(format!("unknown key '{}'", key.text))
                    .hint("write { in: header, name: X-Y }")
                    .at(node.place_of(key)));
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
            Err(Problem::error("an argument in the path has no other name")
                .hint("the placeholder in endpoint_url names the argument")
                .at(name_at.place()))
        }
        "path" => Ok(Place::Path),
        "query" => Ok(Place::Query(name)),
        "header" => Ok(Place::Header(header_name(&name, &name_at.place())?)),
        "body" => Ok(Place::Body(name)),
        other => {
            let problem = Problem::error(format!(
                "'{other}' is no place for an argument; it is one of {}",
                WORDS.join(", ")
            ));
            Err(match suggestion(other, WORDS.into_iter()) {
                Some(meant) => problem.hint(format!("did you mean '{meant}'?")),
                None => problem,
            }
            .at(at.place()))
        }
    }
}
