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
use schemars::JsonSchema;
use serde::Deserialize;

use super::header_names::header_name;
use crate::config::typed::{self, Either, Located};
use crate::model::{Diagnostic, Diagnostics};
use crate::providers::properties::SchemaProperties;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ArgumentLocation {
    Path,
    Query(String),
    Header(HeaderName),
    Body(String),
}

pub(super) type ArgumentPlace = Either<Place, PlaceKeys>;

/// Where an argument goes, and under which name.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = typed::object::<Self>)]
pub(super) struct PlaceKeys {
    /// Where it goes.
    r#in: Place,
    /// Its name there; default: that of the argument.
    name: Option<Located<String>>,
}

/// A part of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Place {
    Path,
    Query,
    Header,
    Body,
}

/// The places that `params` names; problems are added to `diagnostics`.
pub(super) fn read(
    params: Option<&BTreeMap<String, Located<ArgumentPlace>>>,
    properties: &SchemaProperties,
    in_path: &[&str],
    diagnostics: &Diagnostics,
) -> BTreeMap<String, ArgumentLocation> {
    let mut places = BTreeMap::new();
    for (name, written) in params.into_iter().flatten() {
        if !properties.has(name) {
            diagnostics.push(
                written
                    .error(format!("'{name}' is not a property of the schema"))
                    .with_hint(properties.unknown_name_hint(name)),
            );
            continue;
        }
        match place(name, written) {
            Ok(ArgumentLocation::Path) if !in_path.contains(&name.as_str()) => diagnostics
                .push(written.error(format!("'{{{name}}}' is not in the path of endpoint_url"))),
            Ok(place) => {
                places.insert(name.clone(), place);
            }
            Err(diagnostic) => diagnostics.push(diagnostic),
        }
    }
    places
}

fn place(argument: &str, written: &Located<ArgumentPlace>) -> Result<ArgumentLocation, Diagnostic> {
    let (place, named) = match &written.value {
        Either::Short(place) => (*place, None),
        Either::Nested(keys) => (keys.r#in, keys.name.as_ref()),
    };
    let name = named.map_or(argument, |name| name).to_owned();
    match place {
        Place::Path if named.is_some() => Err(written
            .error("an argument in the path cannot be renamed")
            .with_hint("the placeholder in endpoint_url names the argument")),
        Place::Path => Ok(ArgumentLocation::Path),
        Place::Query => Ok(ArgumentLocation::Query(name)),
        Place::Header => {
            let at = named.map_or(&written.location, |name| &name.location);
            let name = header_name(&name).map_err(|why| why.with_location(at.clone()))?;
            Ok(ArgumentLocation::Header(name))
        }
        Place::Body => Ok(ArgumentLocation::Body(name)),
    }
}
