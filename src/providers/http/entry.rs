//! What an entry of kind `http` says, checked as far as it can be without sending anything.
//!
//! Owns: the keys, and what of them follows from what. All problems of an entry are told at once.
//! Never does: send, or look up a name.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::Method;
use reqwest::header::{AUTHORIZATION, HeaderName};
use serde_json::{Map, Value, json};

use super::again::Retry;
use super::body::{BodyType, Shape};
use super::places::{self, Place};
use super::target::Target;
use super::template::{Reader, Template, Wrong};
use super::{auth, pointer};
use crate::config::consent::Grant;
use crate::config::environment::Environment;
use crate::config::expanded::ExpandedValues;
use crate::config::keys::suggestion;
use crate::config::node::{Node, NodeValue};
use crate::config::secrets::names_secret;
use crate::config::spec::ToolSpec;
use crate::config::transport;
use crate::model::{Place as Spot, Problem, ToolDefinition};
use crate::net::address::{is_link_local, literal};
use crate::providers::properties::Properties;
use crate::util::units;

/// How much of a response is kept when nothing else is said, in bytes.
pub(super) const RESPONSE: u64 = 256 << 10;

/// The most that can be kept of one, in bytes.
pub(super) const MOST_RESPONSE: u64 = 16 << 20;

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

const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// The spellings of an input schema.
const SCHEMAS: [&str; 5] =
    ["parameters_schema", "parameters", "inputSchema", "input_schema", "param_schema_ref"];

/// Headers that belong to HTTP itself: they frame the message, or choose who gets it.
const RESERVED: [&str; 9] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "accept-encoding",
    "upgrade",
    "te",
    "trailer",
    "keep-alive",
];

/// A checked entry.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// The method.
    pub(super) method: Method,
    /// The URL.
    pub(super) target: Target,
    /// Headers of every request.
    pub(super) headers: Vec<(HeaderName, Template)>,
    /// Query parameters of every request, beside those in the URL.
    pub(super) query: Vec<(String, Vec<Template>)>,
    /// The body's template.
    pub(super) body: Option<Shape>,
    /// How the body travels.
    pub(super) body_type: BodyType,
    /// Whether a request has a body even when no argument is given.
    pub(super) sends_body: bool,
    /// Where arguments go that the entry places.
    pub(super) places: BTreeMap<String, Place>,
    /// Arguments that stand in a text.
    pub(super) templated: BTreeSet<String>,
    /// Values that stand in for absent arguments.
    pub(super) defaults: Vec<(String, Value)>,
    /// The part of the answer that is the result.
    pub(super) response_path: Option<String>,
    /// How much of an answer is kept, in bytes.
    pub(super) max_response: usize,
    /// What may be repeated.
    pub(super) retry: Retry,
    /// Repeating a request does no harm.
    pub(super) harmless: bool,
    /// Link-local addresses may be asked.
    pub(super) link_local: bool,
    /// Requests carry credentials.
    pub(super) authorized: bool,
    /// References whose values are handed out, and where: `(WEATHER_TOKEN, the header x)`.
    pub(super) hands_out: BTreeSet<(String, String)>,
}

impl Entry {
    /// Where an argument goes that neither the entry nor a text places.
    pub(super) fn place_of(&self, name: &str) -> Option<Place> {
        if let Some(place) = self.places.get(name) {
            return Some(place.clone());
        }
        if self.templated.contains(name) {
            return None;
        }
        Some(default_place(&self.method, name))
    }
}

fn default_place(method: &Method, name: &str) -> Place {
    let bare = [Method::GET, Method::HEAD, Method::DELETE, Method::OPTIONS];
    if bare.contains(method) { Place::Query(name.to_owned()) } else { Place::Body(name.to_owned()) }
}

/// The name of a header an entry may set.
///
/// # Errors
/// When it is no name, or belongs to HTTP itself.
pub(super) fn header_name(text: &str, place: &Spot) -> Result<HeaderName, Problem> {
    let name = HeaderName::try_from(text)
        .map_err(|_| Problem::error(format!("'{text}' is no header name")).at(place.clone()))?;
    if RESERVED.contains(&name.as_str()) {
        return Err(Problem::error(format!("the header '{name}' belongs to HTTP itself"))
            .hint("leave it out; it is set as it has to be")
            .at(place.clone()));
    }
    Ok(name)
}

/// Reads an entry. What it leaves out of the definition is filled in; everything that is wrong is
/// added to `problems`, and `None` comes of an error.
pub(super) fn read(
    spec: &ToolSpec,
    definition: &mut ToolDefinition,
    (environment, expanded): (&dyn Environment, &ExpandedValues),
    problems: &mut Vec<Problem>,
) -> Option<Entry> {
    // Entries of this kind contact somebody, so there is none without a grant.
    let Some(grant) = &spec.grant else {
        problems.push(Problem::error("not trusted yet").at(spec.place.clone()));
        return None;
    };
    let mut draft = Draft { spec, grant, environment, expanded, problems, texts: Vec::new() };
    let entry = draft.read(definition);
    entry.filter(|_| !problems.iter().any(Problem::is_error))
}

/// A text of the entry with placeholders, and where it stands.
struct Text {
    template: Template,
    spot: Spot,
    in_path: bool,
    in_header: bool,
}

struct Draft<'a> {
    spec: &'a ToolSpec,
    grant: &'a Grant,
    environment: &'a dyn Environment,
    expanded: &'a ExpandedValues,
    problems: &'a mut Vec<Problem>,
    texts: Vec<Text>,
}

impl<'a> Draft<'a> {
    fn get(&self, key: &str) -> Option<&'a Node> {
        self.spec.entry.get(key).filter(|node| !node.is_null())
    }

    fn written(&self, key: &str) -> Option<&'a Node> {
        self.spec.written.get(key).filter(|node| !node.is_null())
    }

    fn take<T>(&mut self, result: Result<T, Problem>) -> Option<T> {
        result.map_err(|problem| self.problems.push(problem)).ok()
    }

    fn reader(&self, all_secret: bool) -> Reader<'a> {
        let expander = self.grant.expander(self.environment, &self.spec.base_dir, self.expanded);
        Reader { expander, all_secret }
    }

    fn template(&mut self, node: &Node, all_secret: bool) -> Option<Template> {
        let text = self.take(node.as_scalar_text())?;
        let read = self.reader(all_secret).read(&text);
        let template = self.take(read.map_err(|wrong| at(wrong, node)))?;
        self.texts.push(Text {
            template: template.clone(),
            spot: node.place(),
            in_path: false,
            in_header: all_secret,
        });
        Some(template)
    }

    fn read(&mut self, definition: &mut ToolDefinition) -> Option<Entry> {
        let target = self.target();
        let headers = self.headers();
        let query = self.query();
        let body = self.body();
        let auth = self.auth(&headers);
        let properties = self.properties(definition);
        let in_path: Vec<&str> = target.iter().flat_map(Target::path_arguments).collect();
        let places = places::read(self.get("params"), &properties, &in_path, self.problems);
        let method = self.method(body.is_some() || in_body(&places));
        let body_type = self.body_type(body.as_ref());
        let retry = Retry::read(self.get("retry"), self.problems);
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
        let goes_into_body = |name: &String| match places.get(name) {
            Some(place) => matches!(place, Place::Body(_)),
            None => {
                !templated.contains(name) && matches!(default_place(&method, name), Place::Body(_))
            }
        };
        let any_into_body = properties.names.iter().any(goes_into_body);
        self.check_body(&method, body.as_ref(), any_into_body, body_type);
        let idempotent = [Method::GET, Method::HEAD, Method::PUT, Method::DELETE, Method::OPTIONS];
        let harmless = idempotent.contains(&method) || definition.repeatable;
        self.check_retry(&retry, harmless, definition);
        let authorized = auth.is_some()
            || headers.iter().any(|(name, template)| {
                names_secret(name.as_str()) || template.secrets().next().is_some()
            });
        let mut hands_out: BTreeSet<(String, String)> = BTreeSet::new();
        for (name, template) in headers.iter().chain(&auth) {
            let place = format!("the header {name}");
            hands_out.extend(template.secrets().map(|secret| (secret.to_owned(), place.clone())));
        }
        for text in &self.texts {
            for secret in text.template.secrets().filter(|_| !text.in_header) {
                hands_out.insert((secret.to_owned(), "the URL or the body".to_owned()));
            }
        }
        for secret in target.path_secrets() {
            hands_out.insert((secret.to_owned(), "the URL or the body".to_owned()));
        }
        let secret = |(name, _): &(String, String)| names_secret(name);
        self.check_transport(&target, authorized || hands_out.iter().any(secret));
        Some(Entry {
            hands_out,
            method,
            target,
            headers: headers.into_iter().chain(auth).collect(),
            query,
            sends_body: body.is_some() || any_into_body,
            body,
            body_type,
            places,
            templated,
            defaults: properties.defaults,
            response_path,
            max_response,
            retry,
            harmless,
            link_local,
            authorized,
        })
    }

    fn target(&mut self) -> Option<Target> {
        let Some(node) = self.written("endpoint_url") else {
            let mut problem = Problem::error("'endpoint_url' is missing");
            if self.spec.entry.get("url").is_some() {
                problem = problem.hint("an API tool says 'endpoint_url', not 'url'");
            }
            self.problems.push(problem.at(self.spec.place.clone()));
            return None;
        };
        let text = self.take(node.as_text())?;
        let read = self.reader(false).read(text);
        let template = self.take(read.map_err(|wrong| at(wrong, node)))?;
        let defaults = self.spec.defaults.as_ref().and_then(|defaults| defaults.get("base_url"));
        let base = match self.get("base_url").or(defaults) {
            Some(node) => Some(self.take(node.as_text())?),
            None => None,
        };
        let read = Target::read(template, base);
        let target = self.take(read.map_err(|wrong| at(wrong, node)))?;
        if target.path_has_context() {
            self.problems.push(
                Problem::error("the path takes arguments only, nothing of the context")
                    .hint("headers, query and body may hold {context.…}")
                    .at(node.place()),
            );
        }
        for name in target.path_arguments() {
            let template =
                Template { parts: vec![super::template::Part::Argument(name.to_owned())] };
            self.texts.push(Text { template, spot: node.place(), in_path: true, in_header: false });
        }
        for template in target.query_templates() {
            let template = template.clone();
            self.texts.push(Text {
                template,
                spot: node.place(),
                in_path: false,
                in_header: false,
            });
        }
        Some(target)
    }

    fn headers(&mut self) -> Vec<(HeaderName, Template)> {
        let mut headers: Vec<(HeaderName, Template)> = Vec::new();
        let Some(node) = self.written("headers") else { return headers };
        for (key, value) in self.take(node.as_map()).unwrap_or_default() {
            let place = node.place_of(key);
            let Some(name) = self.take(header_name(&key.text, &place)) else { continue };
            let Some(template) = self.template(value, true) else { continue };
            if headers.iter().any(|(other, _)| *other == name) {
                let message = format!("the header '{name}' is given twice");
                self.problems.push(Problem::error(message).at(place));
                continue;
            }
            let control = template.parts.iter().any(|part| match part {
                super::template::Part::Literal(text) => {
                    text.chars().any(|c| c.is_control() && c != '\t')
                }
                super::template::Part::Secret(value, _) => {
                    use secrecy::ExposeSecret as _;
                    value.expose_secret().chars().any(|c| c.is_control() && c != '\t')
                }
                _ => false,
            });
            if control {
                self.problems.push(
                    Problem::error(format!(
                        "the value of the header '{name}' holds a control character"
                    ))
                    .hint("a line break at the end of a token is the usual cause")
                    .at(value.place()),
                );
                continue;
            }
            headers.push((name, template));
        }
        headers
    }

    fn auth(&mut self, headers: &[(HeaderName, Template)]) -> Option<auth::Header> {
        let node = self.get("auth")?;
        let mut doubts = Vec::new();
        let read =
            auth::read(node, self.written("auth"), (self.environment, self.expanded), &mut doubts);
        self.problems.append(&mut doubts);
        let (name, template) = self.take(read)??;
        if headers.iter().any(|(other, _)| *other == name) {
            let message = format!("the header '{name}' is given twice, in headers and in auth");
            self.problems.push(Problem::error(message).at(node.place()));
        }
        Some((name, template))
    }

    fn query(&mut self) -> Vec<(String, Vec<Template>)> {
        let mut query = Vec::new();
        let Some(node) = self.written("query") else { return query };
        for (key, value) in self.take(node.as_map()).unwrap_or_default() {
            let values = match &value.value {
                NodeValue::List(items) => items.iter().collect(),
                _ => vec![value],
            };
            let templates = values.into_iter().filter_map(|node| self.template(node, false));
            query.push((key.text.clone(), templates.collect()));
        }
        query
    }

    fn body(&mut self) -> Option<Shape> {
        let node = self.written("body")?;
        let read = Shape::read(node, &self.reader(false));
        let shape = self.take(read)?;
        for template in shape.templates() {
            let template = template.clone();
            self.texts.push(Text {
                template,
                spot: node.place(),
                in_path: false,
                in_header: false,
            });
        }
        Some(shape)
    }

    /// What the schema says about arguments. Without a schema, one is made of the placeholders and
    /// of `params`.
    fn properties(&mut self, definition: &mut ToolDefinition) -> Properties {
        if self.spec.entry.get_any(&SCHEMAS).is_none() {
            definition.input_schema = self.schema().into();
            return Properties::of(&definition.input_schema);
        }
        let properties = Properties::of(&definition.input_schema);
        let mut told = BTreeSet::new();
        for text in &self.texts {
            for name in text.template.arguments() {
                let needed = text.in_path || text.template.only().is_none();
                let always = properties.is_certain(name);
                if !properties.has(name) {
                    self.problems.push(
                        Problem::error(format!("'{{{name}}}' is no property of the schema"))
                            .hint(properties.advice(name))
                            .at(text.spot.clone()),
                    );
                } else if needed && !always && !properties.open && told.insert(name.to_owned()) {
                    self.problems.push(
                        Problem::warning(format!("calls without '{name}' will be refused"))
                            .hint("make it required, or give it a default")
                            .at(text.spot.clone()),
                    );
                }
            }
        }
        properties
    }

    fn schema(&self) -> Value {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for text in &self.texts {
            for name in text.template.arguments() {
                let shape = if text.in_path { json!({ "type": "string" }) } else { json!({}) };
                properties.entry(name.to_owned()).or_insert(shape);
                let needed = text.in_path || text.template.only().is_none();
                if needed && !required.contains(&name) {
                    required.push(name);
                }
            }
        }
        for (key, _) in self.get("params").map(Node::entries).unwrap_or_default() {
            properties.entry(key.text.clone()).or_insert(json!({}));
        }
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }

    fn method(&mut self, has_body: bool) -> Option<Method> {
        let Some(node) = self.get("method") else {
            return Some(if has_body { Method::POST } else { Method::GET });
        };
        let word = self.take(node.as_text())?;
        let upper = word.to_ascii_uppercase();
        if let Some(known) = METHODS.iter().find(|known| **known == upper) {
            return Method::from_bytes(known.as_bytes()).ok();
        }
        let problem =
            Problem::error(format!("'{word}' is no method; it is one of {}", METHODS.join(", ")));
        let problem = match suggestion(&upper, METHODS.into_iter()) {
            Some(meant) => problem.hint(format!("did you mean '{meant}'?")),
            None => problem,
        };
        self.problems.push(problem.at(node.place()));
        None
    }

    fn body_type(&mut self, body: Option<&Shape>) -> BodyType {
        let Some(node) = self.get("body_type") else {
            return if matches!(body, Some(Shape::Text(template)) if template.only().is_none()) {
                BodyType::Text
            } else {
                BodyType::Json
            };
        };
        let word = node.as_text().unwrap_or_default();
        let parsed = BodyType::parse(word);
        if parsed.is_none() {
            let message = format!("'{word}' is no type of a body; it is one of json, form, text");
            self.problems.push(Problem::error(message).at(node.place()));
        }
        parsed.unwrap_or(BodyType::Json)
    }

    fn check_body(&mut self, method: &Method, body: Option<&Shape>, more: bool, kind: BodyType) {
        let spot = |draft: &Self, key: &str| {
            draft.get(key).map_or_else(|| draft.spec.place.clone(), Node::place)
        };
        let object = body.is_none_or(|body| matches!(body, Shape::Object(_)));
        if more && !object {
            self.problems.push(
                Problem::error("arguments cannot be added to a body that is no object")
                    .hint("put {name} into the body for each, or place them with 'params'")
                    .at(spot(self, "body")),
            );
        }
        match kind {
            BodyType::Form if !object => self
                .problems
                .push(Problem::error("the body of a form is an object").at(spot(self, "body"))),
            BodyType::Text if !matches!(body, Some(Shape::Text(_))) => self.problems.push(
                Problem::error("'body_type: text' needs a text as 'body'")
                    .hint("write body: \"{name}\"")
                    .at(spot(self, "body_type")),
            ),
            _ => {}
        }
        if [Method::GET, Method::HEAD].contains(method) && (body.is_some() || more) {
            let message = format!("many servers ignore the body of a {method}");
            self.problems.push(
                Problem::warning(message)
                    .hint("leave 'method' out for POST, or place arguments in the query")
                    .at(spot(self, "method")),
            );
        }
    }

    fn check_retry(&mut self, retry: &Retry, harmless: bool, definition: &mut ToolDefinition) {
        let own = self.get("retries");
        match (retry.max, own) {
            (Some(max), Some(node)) if max != definition.retries => self.problems.push(
                Problem::error(format!(
                    "'retries' says {}, 'retry' says {max}",
                    definition.retries
                ))
                .hint("one of them is enough")
                .at(node.place()),
            ),
            (Some(max), _) => definition.retries = max,
            (None, _) => {}
        }
        definition.backoff = retry.backoff;
        let asked = own.or_else(|| self.get("retry"));
        if let Some(node) = asked
            && !harmless
            && !retry.is_explicit()
            && definition.retries > 0
        {
            self.problems.push(
                Problem::warning(
                    "only failures to connect are repeated: this method may act twice",
                )
                .hint("say retry: { on: […] }, or annotations: { idempotentHint: true }")
                .at(node.place()),
            );
        }
        definition.repeatable |= harmless || retry.is_explicit();
    }

    /// Credentials go over TLS or to this machine, unless the user's own entry says otherwise.
    fn check_transport(&mut self, target: &Target, authorized: bool) {
        let origin = self.spec.definition.entry.as_deref();
        let insecure = self.take(transport::insecure(&self.spec.entry, origin));
        let place = self.get("endpoint_url").map_or_else(|| self.spec.place.clone(), Node::place);
        let refused =
            transport::unencrypted(target.origin(), authorized, insecure.unwrap_or_default());
        self.problems.extend(refused.map(|problem| problem.at(place)));
    }

    fn response_path(&mut self) -> Option<String> {
        let node = self.get("response_path")?;
        let text = self.take(node.as_text())?;
        self.take(pointer::check(text).map_err(|wrong| at(wrong, node)))
    }

    fn max_response(&mut self) -> usize {
        let defaults = self.spec.defaults.as_ref();
        let default = || defaults.and_then(|defaults| defaults.get("max_response_bytes"));
        let Some(node) = self.get("max_response_bytes").or_else(default) else {
            return usize::try_from(RESPONSE).unwrap_or(usize::MAX);
        };
        let size = node.as_scalar_text().ok().and_then(|text| units::size(&text));
        let size = size.filter(|size| (1..=MOST_RESPONSE).contains(size));
        if size.is_none() {
            self.problems.push(node.expected("a size from 1 to 16MiB, such as 256KiB"));
        }
        usize::try_from(size.unwrap_or(RESPONSE)).unwrap_or(usize::MAX)
    }

    fn link_local(&mut self, target: Option<&Target>) -> bool {
        let allowed = match self.get("allow_link_local") {
            Some(node) => self.take(node.as_bool()).unwrap_or_default(),
            None => false,
        };
        if let Some(address) = target.and_then(|target| literal(target.origin()))
            && is_link_local(address)
            && !allowed
        {
            let place =
                self.get("endpoint_url").map_or_else(|| self.spec.place.clone(), Node::place);
            self.problems.push(
                Problem::error(format!("{address} is a link-local address"))
                    .hint("clouds hand out credentials there; 'allow_link_local: true' permits it")
                    .at(place),
            );
        }
        allowed
    }
}

fn in_body(places: &BTreeMap<String, Place>) -> bool {
    places.values().any(|place| matches!(place, Place::Body(_)))
}

fn at(wrong: Wrong, node: &Node) -> Problem {
    let problem = Problem::error(wrong.message).at(node.place());
    if wrong.hint.is_empty() { problem } else { problem.hint(wrong.hint) }
}

/// Whether a header is one with which requests authenticate.
pub(super) fn is_authorization(name: &HeaderName) -> bool {
    *name == AUTHORIZATION || names_secret(name.as_str())
}
