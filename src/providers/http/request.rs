//! Building one request from an entry and the arguments of a call.

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value, json};
use url::Url;

use super::entry::HttpEntry;
use super::header_names::is_authorization;
use super::params::ArgumentLocation;
use super::template::TemplateValues;
use crate::model::{Error, JsonObject, ToolContext};
use crate::providers::properties::with_defaults;
use crate::providers::template::value_text;

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
