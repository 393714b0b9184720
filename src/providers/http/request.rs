//! Building one request from an entry and the arguments of a call.
//!
//! The key `params` says whether each argument goes into the path, query, headers or body:
//!
//! | the entry says | the argument goes |
//! |---|---|
//! | `x: path` | into the path, where `{x}` stands |
//! | `x: query`, `x: header`, `x: body` | there, under its own name |
//! | `x: { in: header, name: X-Y }` | there, under that name |
//! | none, but `{x}` is used in a text | only there |
//! | none | GET, HEAD, DELETE, OPTIONS: the query; others: the body |

use std::collections::BTreeMap;

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use url::Url;

use super::entry::HttpEntry;
use super::template::TemplateValues;
use crate::config::secrets::names_secret;
use crate::config::typed::{self, Either, Located};
use crate::model::{Diagnostic, Diagnostics, Error, JsonObject, ToolContext};
use crate::providers::arguments::{SchemaProperties, with_defaults};
use crate::providers::template::value_text;
use crate::util::text::is_one_of;

/// The header `Accept` of entries that set none.
pub(super) const DEFAULT_ACCEPT: HeaderValue =
    HeaderValue::from_static("application/json, text/*;q=0.9, */*;q=0.5");

#[derive(Debug)]
pub(super) struct HttpRequest {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Bytes>,
}

/// Fills an entry. Without a context its placeholders are kept unchanged, and secrets are
/// left out.
pub(super) fn prepare(
    entry: &HttpEntry,
    call_arguments: &JsonObject,
    context: Option<&ToolContext>,
) -> Result<HttpRequest, Error> {
    let arguments = with_defaults(call_arguments, &entry.defaults);
    let values = TemplateValues { arguments: &arguments, context, masked: context.is_none() };
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, DEFAULT_ACCEPT);
    for (name, template) in &entry.headers {
        if let Some(text) = values.text(template)? {
            let has_reference = template.secrets().next().is_some();
            let is_sensitive = is_authorization(name) || has_reference;
            // A literal in the file has no reference that could stand for it.
            let is_hidden = values.masked && is_sensitive && !has_reference;
            let mut value = header_value(name, if is_hidden { "***" } else { &text })?;
            value.set_sensitive(is_sensitive);
            headers.insert(name.clone(), value);
        }
    }
    let mut query = Vec::new();
    for (name, templates) in &entry.query {
        for template in templates {
            query.extend(values.text(template)?.map(|text| (name.clone(), text)));
        }
    }
    let mut members = Map::new();
    for (name, value) in arguments.iter().filter(|(_, value)| !value.is_null()) {
        match entry.location_of(name) {
            None | Some(ArgumentLocation::Path) => {}
            Some(ArgumentLocation::Query(name)) => {
                let items = match value {
                    Value::Array(items) => items.as_slice(),
                    other => std::slice::from_ref(other),
                };
                query.extend(items.iter().filter_map(value_text).map(|text| (name.clone(), text)));
            }
            Some(ArgumentLocation::Header(header)) => {
                let text = value_text(value).unwrap_or_default();
                let value = header_value(&header, &text)?;
                headers.insert(header, value);
            }
            Some(ArgumentLocation::Body(member)) => {
                members.insert(member, value.clone());
            }
        }
    }
    let body = body(entry, &values, members)?;
    let body = body.map(|body| entry.body_type.encode(&body)).transpose()?;
    if let Some((media_type, _)) = &body
        && !headers.contains_key(CONTENT_TYPE)
    {
        headers.insert(CONTENT_TYPE, header_value(&CONTENT_TYPE, media_type)?);
    }
    Ok(HttpRequest {
        method: entry.method.clone(),
        url: entry.url.fill(&values, &query)?,
        headers,
        body: body.map(|(_, bytes)| Bytes::from(bytes)),
    })
}

fn body(
    entry: &HttpEntry,
    values: &TemplateValues<'_>,
    members: JsonObject,
) -> Result<Option<Value>, Error> {
    let template = match &entry.body {
        Some(shape) => shape.fill(values)?,
        None => None,
    };
    Ok(match template {
        Some(Value::Object(mut object)) => {
            object.extend(members);
            Some(Value::Object(object))
        }
        Some(_) if !members.is_empty() => {
            let names: Vec<&str> = members.keys().map(String::as_str).collect();
            return Err(Error::usage(format!(
                "'{}' has no place in the request: its body is not an object",
                names.join("', '")
            )));
        }
        Some(other) => Some(other),
        None if members.is_empty() && (!entry.sends_body || entry.body.is_some()) => None,
        None => Some(Value::Object(members)),
    })
}

pub(super) fn header_value(name: &HeaderName, text: &str) -> Result<HeaderValue, Error> {
    HeaderValue::from_str(text).map_err(|_| {
        Error::usage(format!("the value for the header '{name}' contains a control character"))
            .with_hint("a header is one line of text")
    })
}

impl HttpRequest {
    /// What would be sent, for display; made from a request without secrets.
    pub(super) fn shown(&self) -> Value {
        let mut headers = Map::new();
        for (name, value) in &self.headers {
            let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
            headers.insert(name.as_str().to_owned(), Value::String(text));
        }
        let body = self.body.as_ref().map(|bytes| {
            serde_json::from_slice(bytes)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(bytes).into_owned()))
        });
        json!({
            "method": self.method.as_str(),
            "url": self.url.as_str(),
            "headers": headers,
            "body": body,
        })
    }
}

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

/// Headers that belong to HTTP itself: they frame the message, or choose who gets it.
const RESERVED_HEADERS: &str = "host connection content-length transfer-encoding \
    accept-encoding upgrade te trailer keep-alive";

pub(super) fn header_name(text: &str) -> Result<HeaderName, Diagnostic> {
    let name = HeaderName::try_from(text)
        .map_err(|_| Diagnostic::error(format!("'{text}' is not a header name")))?;
    if is_one_of(name.as_str(), RESERVED_HEADERS) {
        return Err(Diagnostic::error(format!("the header '{name}' is set by HTTP itself"))
            .with_hint("leave it out; it is set automatically"));
    }
    Ok(name)
}

pub(super) fn is_authorization(name: &HeaderName) -> bool {
    *name == AUTHORIZATION || names_secret(name.as_str())
}
