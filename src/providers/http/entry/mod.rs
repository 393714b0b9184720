//! Entries of kind `http`, checked as far as possible without sending anything.

mod checks;
mod schema;

use std::collections::{BTreeMap, BTreeSet};

use reqwest::Method;
use reqwest::header::HeaderName;
use serde_json::Value;

use super::auth;
use super::body::{BodyTemplate, BodyType};
use super::header_names::header_name;
use super::params::{self, ArgumentLocation};
use super::response::ResponseRules;
use super::retry::RetryPolicy;
use super::template::{HttpPlaceholder, TemplateReader};
use super::url_template::UrlTemplate;
use crate::config::consent::{Expander, Grant};
use crate::config::environment::Environment;
use crate::config::expanded::ExpandedValues;
use crate::config::node::{ConfigNode, NodeValue};
use crate::config::secrets::names_secret;
use crate::config::spec::ToolSpec;
use crate::model::{Diagnostic, SourceLocation, ToolDefinition};
use crate::providers::hinted_error::HintedError as _;
use crate::providers::template::{TemplatePart, TextTemplate};

/// The default of `max_response_bytes`, in bytes of the body.
pub(super) const DEFAULT_RESPONSE_BYTES: u64 = 256 << 10;

/// The most that can be kept of one, in bytes.
pub(super) const MAX_RESPONSE_BYTES: u64 = 16 << 20;

/// The keys of an entry that only this kind understands.
pub(super) const KEYS: &[&str] = &[
    "endpoint_url",
    "base_url",
    "method",
    "headers",
    "auth",
    "params",
    "query",
    "body",
    "body_type",
    "response_path",
    "max_response_bytes",
    "retry",
    "allow_link_local",
    "insecure",
];

pub(super) const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

pub(super) const IDEMPOTENT: [Method; 5] =
    [Method::GET, Method::HEAD, Method::PUT, Method::DELETE, Method::OPTIONS];

const SCHEMA_KEYS: [&str; 5] =
    ["parameters_schema", "parameters", "inputSchema", "input_schema", "param_schema_ref"];

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
    /// How the answers to its requests are read.
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
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<HttpEntry> {
    // Entries of this kind contact a server, so they need a grant.
    let Some(grant) = &spec.grant else {
        diagnostics.push(Diagnostic::error("not trusted yet").with_location(spec.location.clone()));
        return None;
    };
    let mut parser =
        EntryParser { spec, grant, environment, expanded, diagnostics, texts: Vec::new() };
    let entry = parser.read(definition);
    entry.filter(|_| !diagnostics.iter().any(Diagnostic::is_error))
}

struct TemplatedText {
    template: TextTemplate<HttpPlaceholder>,
    location: SourceLocation,
    in_path: bool,
    in_header: bool,
}

struct EntryParser<'a> {
    spec: &'a ToolSpec,
    grant: &'a Grant,
    environment: &'a dyn Environment,
    expanded: &'a ExpandedValues,
    diagnostics: &'a mut Vec<Diagnostic>,
    texts: Vec<TemplatedText>,
}

impl<'a> EntryParser<'a> {
    fn get(&self, key: &str) -> Option<&'a ConfigNode> {
        self.spec.entry.get(key).filter(|node| !node.is_null())
    }

    fn written(&self, key: &str) -> Option<&'a ConfigNode> {
        self.spec.unexpanded.get(key).filter(|node| !node.is_null())
    }

    fn ok_or_report<T>(&mut self, result: Result<T, Diagnostic>) -> Option<T> {
        result.map_err(|diagnostic| self.diagnostics.push(diagnostic)).ok()
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
        let text = self.ok_or_report(node.as_scalar_text())?;
        let read = self.reader(all_secret).read(&text);
        let template = self.ok_or_report(read.map_err(|error| error.diagnostic(node)))?;
        self.texts.push(TemplatedText {
            template: template.clone(),
            location: node.location(),
            in_path: false,
            in_header: all_secret,
        });
        Some(template)
    }

    fn read(&mut self, definition: &mut ToolDefinition) -> Option<HttpEntry> {
        let target = self.target();
        let headers = self.headers();
        let query = self.query();
        let body = self.body();
        let auth = self.auth(&headers);
        let properties = self.properties(definition);
        let in_path: Vec<&str> = target.iter().flat_map(UrlTemplate::path_arguments).collect();
        let locations = params::read(self.get("params"), &properties, &in_path, self.diagnostics);
        let method = self.method(body.is_some() || in_body(&locations));
        let body_type = self.body_type(body.as_ref());
        let retry = RetryPolicy::read(self.get("retry"), self.diagnostics);
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
        let mut exposed_secrets: BTreeSet<(String, String)> = BTreeSet::new();
        for (name, template) in headers.iter().chain(&auth) {
            let place = format!("the header {name}");
            exposed_secrets
                .extend(template.secrets().map(|secret| (secret.to_owned(), place.clone())));
        }
        for text in &self.texts {
            for secret in text.template.secrets().filter(|_| !text.in_header) {
                exposed_secrets.insert((secret.to_owned(), "the URL or the body".to_owned()));
            }
        }
        for secret in target.path_secrets() {
            exposed_secrets.insert((secret.to_owned(), "the URL or the body".to_owned()));
        }
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
        let Some(node) = self.written("endpoint_url") else {
            let mut diagnostic = Diagnostic::error("'endpoint_url' is missing");
            if self.spec.entry.get("url").is_some() {
                diagnostic = diagnostic.with_hint("an API tool takes 'endpoint_url', not 'url'");
            }
            self.diagnostics.push(diagnostic.with_location(self.spec.location.clone()));
            return None;
        };
        let text = self.ok_or_report(node.as_text())?;
        let read = self.reader(false).read(text);
        let template = self.ok_or_report(read.map_err(|error| error.diagnostic(node)))?;
        let defaults = self.spec.defaults.as_ref().and_then(|defaults| defaults.get("base_url"));
        let base = match self.get("base_url").or(defaults) {
            Some(node) => Some(self.ok_or_report(node.as_text())?),
            None => None,
        };
        let read = UrlTemplate::read(template, base);
        let target = self.ok_or_report(read.map_err(|error| error.diagnostic(node)))?;
        if target.path_has_context() {
            self.diagnostics.push(
                Diagnostic::error("the path takes arguments only, no context values")
                    .with_hint("headers, query and body may contain {context.…}")
                    .with_location(node.location()),
            );
        }
        for name in target.path_arguments() {
            let argument = HttpPlaceholder::Argument(name.to_owned());
            let template = TextTemplate { parts: vec![TemplatePart::Placeholder(argument)] };
            self.texts.push(TemplatedText {
                template,
                location: node.location(),
                in_path: true,
                in_header: false,
            });
        }
        self.add_texts(target.query_templates(), node);
        Some(target)
    }

    fn headers(&mut self) -> Vec<(HeaderName, TextTemplate<HttpPlaceholder>)> {
        let mut headers: Vec<(HeaderName, TextTemplate<HttpPlaceholder>)> = Vec::new();
        let Some(node) = self.written("headers") else { return headers };
        for (key, value) in self.ok_or_report(node.as_map()).unwrap_or_default() {
            let place = node.location_of(key);
            let Some(name) = self.ok_or_report(header_name(&key.text, &place)) else { continue };
            let Some(template) = self.template(value, true) else { continue };
            if headers.iter().any(|(other, _)| *other == name) {
                let message = format!("the header '{name}' is given twice");
                self.diagnostics.push(Diagnostic::error(message).with_location(place));
                continue;
            }
            let control = template.parts.iter().any(|part| match part {
                TemplatePart::Literal(text) => text.chars().any(|c| c.is_control() && c != '\t'),
                TemplatePart::Placeholder(HttpPlaceholder::Secret(value, _)) => {
                    use secrecy::ExposeSecret as _;
                    value.expose_secret().chars().any(|c| c.is_control() && c != '\t')
                }
                TemplatePart::Placeholder(_) => false,
            });
            if control {
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
        let node = self.get("auth")?;
        let mut warnings = Vec::new();
        let read = auth::read(
            node,
            self.written("auth"),
            (self.environment, self.expanded),
            &mut warnings,
        );
        self.diagnostics.append(&mut warnings);
        let (name, template) = self.ok_or_report(read)??;
        if headers.iter().any(|(other, _)| *other == name) {
            let message = format!("the header '{name}' is given twice, in headers and in auth");
            self.diagnostics.push(Diagnostic::error(message).with_location(node.location()));
        }
        Some((name, template))
    }

    fn query(&mut self) -> Vec<(String, Vec<TextTemplate<HttpPlaceholder>>)> {
        let mut query = Vec::new();
        let Some(node) = self.written("query") else { return query };
        for (key, value) in self.ok_or_report(node.as_map()).unwrap_or_default() {
            let values = match &value.value {
                NodeValue::List(items) => items.iter().collect(),
                _ => vec![value],
            };
            let templates = values.into_iter().filter_map(|node| self.template(node, false));
            query.push((key.text.clone(), templates.collect()));
        }
        query
    }

    fn body(&mut self) -> Option<BodyTemplate> {
        let node = self.written("body")?;
        let read = BodyTemplate::read(node, &self.reader(false));
        let shape = self.ok_or_report(read)?;
        self.add_texts(shape.templates(), node);
        Some(shape)
    }

    /// Takes note of texts at `node` that stand neither in the path nor in a header.
    fn add_texts<'t>(
        &mut self,
        templates: impl IntoIterator<Item = &'t TextTemplate<HttpPlaceholder>>,
        node: &ConfigNode,
    ) {
        self.texts.extend(templates.into_iter().cloned().map(|template| TemplatedText {
            template,
            location: node.location(),
            in_path: false,
            in_header: false,
        }));
    }
}

fn in_body(locations: &BTreeMap<String, ArgumentLocation>) -> bool {
    locations.values().any(|location| matches!(location, ArgumentLocation::Body(_)))
}
