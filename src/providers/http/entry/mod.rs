//! Entries of kind `http`, checked as far as possible without sending anything.
//!
//! The input schema of an entry: declared, or derived from its placeholders.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::Method;
use reqwest::header::HeaderName;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::auth::{self, HttpAuthKeys};
use super::body::{BodyTemplate, BodyType};
use super::request::{self, ArgumentLocation, ArgumentPlace, header_name};
use super::response::ResponseRules;
use super::send::{RetryKeys, RetryPolicy};
use super::template::{HttpPlaceholder, TemplateReader};
use super::url_template::UrlTemplate;
use crate::config::consent::{Expander, Grant};
use crate::config::environment::Environment;
use crate::config::expanded::ExpandedValues;
use crate::config::node::{ConfigNode, NodeValue};
use crate::config::secrets::names_secret;
use crate::config::spec::{INPUT_SCHEMA_KEYS, ToolSpec};
use crate::config::typed::{self, ByteSize, Either, Located, Scalar, Texts};
use crate::model::{Diagnostic, Diagnostics, SourceLocation, ToolDefinition};
use crate::providers::arguments::{SchemaProperties, object_schema};
use crate::providers::template::TextTemplate;

mod checks;

/// The default of `max_response_bytes`, in bytes of the body.
pub(in crate::providers) const DEFAULT_RESPONSE_BYTES: u64 = 256 << 10;

/// The most that can be kept of one, in bytes.
pub(in crate::providers) const MAX_RESPONSE_BYTES: u64 = 16 << 20;

/// The keys of an entry, besides those of every source of requests.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = typed::object::<Self>)]
pub(in crate::providers) struct HttpKeys {
    /// The address of requests, with {name} for arguments; a relative one is appended to base_url.
    pub(super) endpoint_url: Option<Located<String>>,
    /// The method: GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS; default: GET, or POST with a body.
    method: Option<Located<String>>,
    /// Where each argument goes; default: where {name} stands, else the query or the body.
    params: Option<BTreeMap<String, Located<ArgumentPlace>>>,
    /// The body, with {name} for arguments.
    body: Option<ConfigNode>,
    /// How the body is encoded: json (the default), form, multipart for a form with files, ndjson for
    /// a list, text, or bytes for one file; a file is text, or { base64, filename, type }.
    body_type: Option<Located<BodyType>>,
    /// The part of the answer that is the result, as a JSON Pointer such as /items/0.
    response_path: Option<Located<String>>,
}

/// The keys of an entry that sends requests.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = typed::object::<Self>)]
pub(in crate::providers) struct RequestKeys {
    /// The start of every address, in place of the one in 'defaults'.
    pub(in crate::providers) base_url: Option<Located<String>>,
    /// Headers of every request.
    #[expect(dead_code, reason = "read as written")]
    #[schemars(with = "Option<BTreeMap<String, Scalar>>")]
    headers: Option<ConfigNode>,
    /// How to authenticate.
    auth: Option<Located<Either<String, HttpAuthKeys>>>,
    /// More of the query of every request.
    #[expect(dead_code, reason = "read as written")]
    #[schemars(with = "Option<BTreeMap<String, Texts>>")]
    query: Option<ConfigNode>,
    /// Which failures are repeated, and how often.
    retry: Option<Located<RetryKeys>>,
    /// How much of a response is kept; default: 256KiB.
    max_response_bytes: Option<ByteSize<MAX_RESPONSE_BYTES>>,
    /// Allow addresses at which clouds hand out credentials.
    allow_link_local: Option<bool>,
    /// Allow credentials over plain http; only in your own configuration directory.
    insecure: Option<Located<bool>>,
}

pub(in crate::providers) const METHODS: [&str; 7] =
    ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

pub(super) const IDEMPOTENT: [Method; 5] =
    [Method::GET, Method::HEAD, Method::PUT, Method::DELETE, Method::OPTIONS];

/// An entry of kind `http` with every key checked and every reference expanded.
#[derive(Debug, Clone)]
pub(super) struct HttpEntry {
    /// The method of every request; POST or GET when the entry names none.
    pub(super) method: Method,
    /// Where requests go: the origin is fixed, path and query may have placeholders.
    pub(super) url: UrlTemplate,
    /// Headers of every request, that of `auth` included.
    pub(super) headers: Vec<(HeaderName, TextTemplate<HttpPlaceholder>)>,
    pub(super) query: Vec<(String, Vec<TextTemplate<HttpPlaceholder>>)>,
    /// The template of the body; `None` if it consists of arguments only, if any.
    pub(super) body: Option<BodyTemplate>,
    /// How the body is encoded, from `body_type`.
    pub(super) body_type: BodyType,
    pub(super) sends_body: bool,
    pub(super) locations: BTreeMap<String, ArgumentLocation>,
    /// Arguments that are used in a text.
    pub(super) templated: BTreeSet<String>,
    pub(super) defaults: Vec<(String, Value)>,
    /// The part of the answer that is the result.
    pub(super) response_path: Option<String>,
    /// How much of an answer is kept, in bytes.
    pub(super) max_response: usize,
    /// Which failures may be repeated, from `retry`.
    pub(super) retry: RetryPolicy,
    pub(super) is_repeatable: bool,
    pub(super) link_local: bool,
    /// Whether requests carry credentials, so that they need TLS or this machine.
    pub(super) has_credentials: bool,
    /// References whose values are handed out, and where: `(WEATHER_TOKEN, the header x)`.
    pub(super) exposed_secrets: BTreeSet<(String, String)>,
}

impl HttpEntry {
    pub(super) fn response_rules(&self) -> ResponseRules<'_> {
        ResponseRules {
            method: &self.method,
            response_path: self.response_path.as_deref(),
            max_response: self.max_response,
            limit_name: "max_response_bytes",
            auth_hint: if self.has_credentials {
                "the credentials may be wrong or expired"
            } else {
                "add to the entry: auth: { type: bearer, token_env_var: NAME }"
            },
        }
    }

    pub(super) fn location_of(&self, name: &str) -> Option<ArgumentLocation> {
        if let Some(place) = self.locations.get(name) {
            return Some(place.clone());
        }
        if self.templated.contains(name) {
            return None;
        }
        Some(default_location(&self.method, name))
    }
}

fn default_location(method: &Method, name: &str) -> ArgumentLocation {
    let bare = [Method::GET, Method::HEAD, Method::DELETE, Method::OPTIONS];
    if bare.contains(method) {
        ArgumentLocation::Query(name.to_owned())
    } else {
        ArgumentLocation::Body(name.to_owned())
    }
}

/// Reads an entry. Missing parts of the definition are filled in; every problem is added to
/// `diagnostics`, and any error gives `None`.
pub(super) fn read(
    spec: &ToolSpec,
    definition: &mut ToolDefinition,
    (environment, expanded): (&dyn Environment, &ExpandedValues),
    diagnostics: &Diagnostics,
) -> Option<HttpEntry> {
    // Entries of this kind contact a server, so they need a grant.
    let Some(grant) = &spec.grant else {
        diagnostics.push(Diagnostic::error("not trusted yet").with_location(spec.location.clone()));
        return None;
    };
    // Templates are read as written: they show which values are secrets.
    let keys: HttpKeys = typed::read_part(&spec.unexpanded, diagnostics)?;
    let request: RequestKeys = typed::read_part(&spec.entry, diagnostics)?;
    let texts = Vec::new();
    let mut parser =
        EntryParser { spec, grant, environment, expanded, diagnostics, keys, request, texts };
    let entry = parser.read(definition);
    entry.filter(|_| diagnostics.errors() == 0)
}

/// The part of a request that a text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextPart {
    Path,
    Header,
    Other,
}

struct TemplatedText {
    template: TextTemplate<HttpPlaceholder>,
    location: SourceLocation,
    part: TextPart,
}

impl TemplatedText {
    /// Whether a request cannot be made without its arguments.
    fn needs_arguments(&self) -> bool {
        self.part == TextPart::Path || !self.template.is_call_value()
    }
}

struct EntryParser<'a> {
    spec: &'a ToolSpec,
    grant: &'a Grant,
    environment: &'a dyn Environment,
    expanded: &'a ExpandedValues,
    diagnostics: &'a Diagnostics,
    keys: HttpKeys,
    request: RequestKeys,
    texts: Vec<TemplatedText>,
}

impl<'a> EntryParser<'a> {
    /// The value of a key before references were replaced.
    fn written(&self, key: &str) -> Option<&'a ConfigNode> {
        self.spec.unexpanded.get(key).filter(|node| !node.is_null())
    }

    fn reader(&self, all_secret: bool) -> TemplateReader<'a> {
        let expander =
            Expander::new(self.grant, self.environment, &self.spec.base_dir, self.expanded);
        TemplateReader { expander, all_secret }
    }

    fn template(
        &mut self,
        node: &ConfigNode,
        all_secret: bool,
    ) -> Option<TextTemplate<HttpPlaceholder>> {
        let text = self.diagnostics.ok(node.as_scalar_text())?;
        let read = self.reader(all_secret).read(&text);
        let template =
            self.diagnostics.ok(read.map_err(|error| error.with_location(node.location())))?;
        let part = if all_secret { TextPart::Header } else { TextPart::Other };
        self.add_texts([&template], &node.location(), part);
        Some(template)
    }

    fn read(&mut self, definition: &mut ToolDefinition) -> Option<HttpEntry> {
        let target = self.target();
        let headers = self.headers();
        let query = self.query();
        let body = self.body();
        let auth = self.auth(&headers);
        let properties = self.properties(definition);
        let segments = target.iter().flat_map(UrlTemplate::segments);
        let in_path: Vec<&str> = segments.flat_map(TextTemplate::arguments).collect();
        let locations =
            request::read(self.keys.params.as_ref(), &properties, &in_path, self.diagnostics);
        let method = self.method(body.is_some() || in_body(&locations));
        let body_type = self.body_type(body.as_ref());
        let retry = RetryPolicy::read(self.request.retry.as_deref(), self.diagnostics);
        let response_path = self.response_path();
        let max_response = self.max_response();
        let link_local = self.link_local(target.as_ref());
        let (target, method) = (target?, method?);
        let templated: BTreeSet<String> = self
            .texts
            .iter()
            .flat_map(|text| text.template.arguments())
            .map(str::to_owned)
            .collect();
        let goes_into_body = |name: &String| match locations.get(name) {
            Some(place) => matches!(place, ArgumentLocation::Body(_)),
            None => {
                !templated.contains(name)
                    && matches!(default_location(&method, name), ArgumentLocation::Body(_))
            }
        };
        let any_into_body = properties.names.iter().any(goes_into_body);
        self.check_body(&method, body.as_ref(), any_into_body, body_type);
        definition.is_repeatable |= IDEMPOTENT.contains(&method);
        let repeatable = definition.may_repeat();
        self.check_retry(&retry, repeatable, definition);
        let authorized = auth.is_some()
            || headers.iter().any(|(name, template)| {
                names_secret(name.as_str()) || template.secrets().next().is_some()
            });
        let in_headers =
            headers.iter().chain(&auth).map(|(name, text)| (text, format!("the header {name}")));
        let others = self.texts.iter().filter(|text| text.part != TextPart::Header);
        let others = others.map(|text| (&text.template, "the URL or the body".to_owned()));
        let exposed_secrets: BTreeSet<(String, String)> = in_headers
            .chain(others)
            .flat_map(|(text, place)| text.secrets().map(move |s| (s.to_owned(), place.clone())))
            .collect();
        let secret = |(name, _): &(String, String)| names_secret(name);
        self.check_transport(&target, authorized || exposed_secrets.iter().any(secret));
        Some(HttpEntry {
            exposed_secrets,
            method,
            url: target,
            headers: headers.into_iter().chain(auth).collect(),
            query,
            sends_body: body.is_some() || any_into_body,
            body,
            body_type,
            locations,
            templated,
            defaults: properties.defaults,
            response_path,
            max_response,
            retry,
            is_repeatable: repeatable,
            link_local,
            has_credentials: authorized,
        })
    }

    fn target(&mut self) -> Option<UrlTemplate> {
        let Some(written) = self.keys.endpoint_url.clone() else {
            let mut diagnostic = Diagnostic::error("'endpoint_url' is missing");
            if self.spec.entry.get("url").is_some() {
                diagnostic = diagnostic.with_hint("an API tool takes 'endpoint_url', not 'url'");
            }
            self.diagnostics.push(diagnostic.with_location(self.spec.location.clone()));
            return None;
        };
        let place = &written.location;
        let read = self.reader(false).read(&written);
        let template =
            self.diagnostics.ok(read.map_err(|error| error.with_location(place.clone())))?;
        let defaults = self.spec.defaults();
        let base = self.request.base_url.as_ref().map(|base| &base.value);
        let base = base.or(defaults.base_url.as_ref()).map(String::as_str);
        let read = UrlTemplate::read(template, base);
        let target =
            self.diagnostics.ok(read.map_err(|error| error.with_location(place.clone())))?;
        if target.path_has_context() {
            self.diagnostics.push(
                Diagnostic::error("the path takes arguments only, no context values")
                    .with_hint("headers, query and body may contain {context.…}")
                    .with_location(place.clone()),
            );
        }
        self.add_texts(target.segments(), place, TextPart::Path);
        self.add_texts(target.query_templates(), place, TextPart::Other);
        Some(target)
    }

    fn headers(&mut self) -> Vec<(HeaderName, TextTemplate<HttpPlaceholder>)> {
        let mut headers: Vec<(HeaderName, TextTemplate<HttpPlaceholder>)> = Vec::new();
        let Some(node) = self.written("headers") else { return headers };
        for (key, value) in self.diagnostics.ok(node.as_map()).unwrap_or_default() {
            let place = node.location_of(key);
            let name = header_name(&key.text).map_err(|why| why.with_location(place.clone()));
            let Some(name) = self.diagnostics.ok(name) else { continue };
            let Some(template) = self.template(value, true) else { continue };
            if headers.iter().any(|(other, _)| *other == name) {
                let message = format!("the header '{name}' is given twice");
                self.diagnostics.push(Diagnostic::error(message).with_location(place));
                continue;
            }
            let is_control = |c: char| c.is_control() && c != '\t';
            if template.fixed_texts().any(|text| text.contains(is_control)) {
                self.diagnostics.push(
                    Diagnostic::error(format!(
                        "the value of the header '{name}' contains a control character"
                    ))
                    .with_hint("a line break at the end of a token is the usual cause")
                    .with_location(value.location()),
                );
                continue;
            }
            headers.push((name, template));
        }
        headers
    }

    fn auth(
        &mut self,
        headers: &[(HeaderName, TextTemplate<HttpPlaceholder>)],
    ) -> Option<auth::AuthHeader> {
        let auth = self.request.auth.take()?;
        let (name, template) = self.diagnostics.ok(auth::read(
            self.spec,
            &auth,
            self.environment,
            self.expanded,
        ))??;
        if headers.iter().any(|(other, _)| *other == name) {
            let message = format!("the header '{name}' is given twice, in headers and in auth");
            self.diagnostics.push(auth.error(message));
        }
        Some((name, template))
    }

    fn query(&mut self) -> Vec<(String, Vec<TextTemplate<HttpPlaceholder>>)> {
        let mut query = Vec::new();
        let Some(node) = self.written("query") else { return query };
        for (key, value) in self.diagnostics.ok(node.as_map()).unwrap_or_default() {
            let values = match &value.value {
                NodeValue::List(items) => items.iter().collect(),
                _ => vec![value],
            };
            let templates = values.into_iter().filter_map(|node| self.template(node, false));
            query.push((key.text.to_string(), templates.collect()));
        }
        query
    }

    fn body(&mut self) -> Option<BodyTemplate> {
        let node = self.keys.body.clone()?;
        let shape = BodyTemplate::read(&node, &self.reader(false), self.diagnostics);
        self.add_texts(shape.texts(), &node.location(), TextPart::Other);
        Some(shape)
    }

    /// Takes note of texts at `place`.
    fn add_texts<'t>(
        &mut self,
        templates: impl IntoIterator<Item = &'t TextTemplate<HttpPlaceholder>>,
        place: &SourceLocation,
        part: TextPart,
    ) {
        let texts = templates.into_iter().cloned();
        self.texts.extend(texts.map(|template| TemplatedText {
            template,
            location: place.clone(),
            part,
        }));
    }
}

fn in_body(locations: &BTreeMap<String, ArgumentLocation>) -> bool {
    locations.values().any(|location| matches!(location, ArgumentLocation::Body(_)))
}

impl EntryParser<'_> {
    /// What the schema declares about arguments. Without a schema, one is made of the placeholders
    /// and of `params`.
    fn properties(&mut self, definition: &mut ToolDefinition) -> SchemaProperties {
        if self.spec.entry.get_any(INPUT_SCHEMA_KEYS).is_none() {
            definition.input_schema = self.schema().into();
            return SchemaProperties::of(&definition.input_schema.read());
        }
        let properties = SchemaProperties::of(&definition.input_schema.top());
        let mut warned = BTreeSet::new();
        for text in &self.texts {
            for name in text.template.arguments() {
                let remedy = text.needs_arguments().then_some("or give it a default");
                let diagnostic = properties.check(name, name, remedy, &text.location);
                let is_new = |one: &Diagnostic| one.is_error() || warned.insert(name.to_owned());
                self.diagnostics.extend(diagnostic.filter(is_new));
            }
        }
        properties
    }

    fn schema(&self) -> Value {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for text in &self.texts {
            for name in text.template.arguments() {
                let is_in_path = text.part == TextPart::Path;
                let shape = if is_in_path { json!({ "type": "string" }) } else { json!({}) };
                properties.entry(name.to_owned()).or_insert(shape);
                if text.needs_arguments() && !required.contains(&name) {
                    required.push(name);
                }
            }
        }
        for name in self.keys.params.iter().flat_map(BTreeMap::keys) {
            properties.entry(name.clone()).or_insert(json!({}));
        }
        object_schema(Value::Object(properties), &required)
    }
}
