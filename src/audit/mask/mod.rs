//! Masking secrets in everything recorded or shown.
//!
//! Recognising secret arguments by their schema or their name.

use std::borrow::Cow;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use bytes::Bytes;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::traffic::{MessageInfo, TrafficKind};
use crate::model::{
    Diagnostic, Error, EventSink, HostEvent, JsonObject, ServerState, ServerStatus, ToolDefinition,
    ToolResult, ToolSchema, Traffic, TrafficSink,
};
use crate::util::json::map_json;
use crate::util::schema;
use crate::util::text::identifier_words;
use search::SecretSearch;

mod forms;
mod search;
mod unescape;

/// What replaces an argument that its schema or name marks as secret.
pub const MASK: &str = "‹secret›";

/// Values shorter than this are not searched for: they would be found everywhere.
pub const MIN_SECRET_LEN: usize = 4;

/// Replaces secrets.
///
/// Clones know the same values, also those that one of them learns later.
#[derive(Clone, Default)]
pub struct Masker(Arc<RwLock<KnownSecrets>>);

#[derive(Default)]
struct KnownSecrets {
    values: Vec<(String, String)>,
    /// Built when it is first needed, and again after another value was learned.
    search: Option<Arc<SecretSearch>>,
}

impl std::fmt::Debug for Masker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Masker({} values)", self.secrets().values.len())
    }
}

impl Masker {
    /// Knows these values by their names: `(name, value)`. Values below [`MIN_SECRET_LEN`] bytes are
    /// left out.
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let masker = Self::default();
        for (name, value) in secrets {
            masker.add_secret(name, value);
        }
        masker
    }

    /// Learns a secret: one from a file, or a token obtained while the program runs.
    /// `‹secret:name›` replaces it.
    pub fn add_secret(&self, name: &str, value: &str) {
        self.add(format!("‹secret:{name}›"), value);
    }

    /// Learns what a reference of a configuration file was replaced by. The reference, as it is
    /// written (`${NAME}`), replaces it again.
    pub fn add_reference(&self, written: &str, value: &str) {
        // The mark is also put into JSON unchanged.
        let plain = |c: char| if c.is_control() || matches!(c, '"' | '\\') { '_' } else { c };
        self.add(written.chars().map(plain).collect(), value);
    }

    fn add(&self, mark: String, value: &str) {
        if value.len() < MIN_SECRET_LEN {
            return;
        }
        let mut secrets = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if !secrets.values.iter().any(|(_, other)| other == value) {
            secrets.values.push((mark, value.to_owned()));
            secrets.search = None;
        }
    }

    fn secrets(&self) -> RwLockReadGuard<'_, KnownSecrets> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// What to search with; `None` when no value is known.
    fn search(&self) -> Option<Arc<SecretSearch>> {
        let secrets = self.secrets();
        if secrets.values.is_empty() || secrets.search.is_some() {
            return secrets.search.clone();
        }
        drop(secrets);
        let mut secrets = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let search = match &secrets.search {
            Some(search) => Arc::clone(search),
            None => Arc::new(SecretSearch::new(&secrets.values)),
        };
        secrets.search = Some(Arc::clone(&search));
        Some(search)
    }

    /// Text without known values, in whatever form: plain, in another case, escaped for JSON,
    /// percent-encoded, in base64 or hex. Beside a `…`, where a text was cut, also without the part
    /// of a value that the cut left.
    pub fn text(&self, text: &str) -> String {
        match self.search().and_then(|search| search.replaced(text.as_bytes())) {
            Some(bytes) => String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
            None => text.to_owned(),
        }
    }

    /// Bytes without known values; they need not be UTF-8. `None` when none stands in them.
    pub fn replaced(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.search()?.replaced(bytes)
    }

    /// Whether no value is known, so that there is nothing to replace.
    pub fn is_empty(&self) -> bool {
        self.secrets().values.is_empty()
    }

    /// What a call gave, without known values: a server may send back what it was given.
    pub fn result(&self, result: Result<ToolResult, Error>) -> Result<ToolResult, Error> {
        if self.is_empty() {
            return result;
        }
        let rewrite = |text: &str| self.text(text);
        result.map(|r| r.map_text(&rewrite)).map_err(|f| f.map_text(&rewrite))
    }

    /// An error without known values.
    pub fn error(&self, error: Error) -> Error {
        if self.is_empty() { error } else { error.map_text(&|text| self.text(text)) }
    }

    /// What is known about a server, without known values.
    pub fn status(&self, mut status: ServerStatus) -> ServerStatus {
        if self.is_empty() {
            return status;
        }
        if let ServerState::Failed(error) = status.state {
            status.state = ServerState::Failed(self.error(error));
        }
        if let Some(past) = &mut status.last_error {
            past.error = self.error(past.error.clone());
        }
        let lines = status.warnings.iter_mut().chain(&mut status.stderr_tail);
        for line in lines.chain(&mut status.confinement).chain(&mut status.supported_versions) {
            *line = self.text(line);
        }
        status.endpoint = self.text(&status.endpoint);
        for text in [&mut status.description, &mut status.instructions, &mut status.protocol] {
            *text = text.take().map(|text| self.text(&text));
        }
        for value in [&mut status.server_info, &mut status.capabilities] {
            *value = value.take().map(|value| map_json(&value, &|text| self.text(text)));
        }
        status
    }

    /// The description of a tool without known values; its names stay, because it is called by them.
    pub fn definition(&self, tool: &mut Arc<ToolDefinition>) {
        let Some(search) = self.search() else { return };
        let is_in = |text: &str| search.replaced(text.as_bytes()).is_some();
        // Most tools say nothing of a value, and need not be copied.
        let is_lazy = schemas_of(tool).any(ToolSchema::is_lazy);
        if tool.unavailable_reason.is_none() && !is_lazy && !texts_of(tool).any(|text| is_in(&text))
        {
            return;
        }
        let tool = Arc::make_mut(tool);
        let rewrite = |text: &str| self.text(text);
        for text in [&mut tool.title, &mut tool.description, &mut tool.category, &mut tool.version]
        {
            *text = text.take().map(|text| rewrite(&text));
        }
        tool.annotations.title = tool.annotations.title.take().map(|text| rewrite(&text));
        for line in tool.warnings.iter_mut().chain(&mut tool.touches) {
            *line = rewrite(line);
        }
        for schema in std::iter::once(&mut tool.input_schema).chain(&mut tool.output_schema) {
            let masker = self.clone();
            *schema = schema.mapped(move |value| map_json(value, &|text| masker.text(text)));
        }
        let raw = tool.raw.take().map(|raw| raw.get().to_owned());
        let raw = raw.and_then(|raw| RawValue::from_string(rewrite(&raw)).ok());
        tool.raw = raw.map(Arc::from);
        tool.unavailable_reason = tool.unavailable_reason.take().map(|error| self.error(error));
    }

    /// A finding without known values.
    pub fn diagnostic(&self, diagnostic: &mut Diagnostic) {
        diagnostic.message = self.text(&diagnostic.message);
        diagnostic.hint = diagnostic.hint.take().map(|hint| self.text(&hint));
    }

    /// A sink that hands on every event without known values.
    pub fn events(&self, next: EventSink) -> EventSink {
        let masker = self.clone();
        EventSink::new(move |event| {
            // A masker without secrets may learn some later.
            next.emit(if masker.is_empty() { event } else { masker.event(event) });
        })
    }

    /// A sink that hands on everything that crossed a wire without known values. Bytes in which
    /// none stands stay exactly as they were.
    pub fn traffic(&self, next: TrafficSink) -> TrafficSink {
        // Not whether one watches now: a gate may open later.
        if !next.is_configured() {
            return next;
        }
        let (masker, gate) = (self.clone(), next.gate());
        TrafficSink::new(move |traffic: Traffic| {
            // A masker without secrets may learn some later.
            next.emit(if masker.is_empty() {
                traffic
            } else {
                Traffic { kind: masker.traffic_kind(traffic.kind), ..traffic }
            });
        })
        .with_gate(gate)
    }

    fn traffic_kind(&self, mut kind: TrafficKind) -> TrafficKind {
        match &mut kind {
            TrafficKind::Message { bytes, info, .. } => {
                if let Some(masked) = self.replaced(bytes) {
                    *bytes = Bytes::from(masked);
                }
                self.message_info(info);
            }
            TrafficKind::HttpHead { line, headers, .. } => {
                let parts = headers.iter_mut().flat_map(|(name, value)| [name, value]);
                parts.chain([line]).for_each(|text| *text = self.text(text));
            }
            TrafficKind::Stderr(text)
            | TrafficKind::NonJsonLine(text)
            | TrafficKind::Opened(text)
            | TrafficKind::Closed(text) => *text = self.text(text),
        }
        kind
    }

    fn message_info(&self, info: &mut MessageInfo) {
        let (id, method) = match info {
            MessageInfo::Request { id, method } => (Some(id), Some(method)),
            MessageInfo::Response { id, method, .. } => (Some(id), method.as_mut()),
            MessageInfo::Notification { method } => (None, Some(method)),
            MessageInfo::Unknown => (None, None),
        };
        if let Some(Value::String(id)) = id {
            *id = self.text(id);
        }
        if let Some(method) = method {
            *method = self.text(method);
        }
    }

    fn event(&self, mut event: HostEvent) -> HostEvent {
        match &mut event {
            HostEvent::Log { text, .. }
            | HostEvent::Notice { text, .. }
            | HostEvent::Warning { text }
            | HostEvent::QuestionAnswered { message: text, .. }
            | HostEvent::Progress { message: Some(text), .. }
            | HostEvent::ResourceUpdated { uri: text, .. } => *text = self.text(text),
            HostEvent::AttemptFailed { error, .. }
            | HostEvent::ServerStateChanged { state: ServerState::Failed(error), .. } => {
                *error = self.error(error.clone());
            }
            _ => {}
        }
        event
    }

    /// Arguments without secrets: properties that the schema marks (`writeOnly`, `x-secret`,
    /// `format: password`) or whose name says so, and known values anywhere.
    pub fn arguments(&self, arguments: &JsonObject, schema: &Value) -> JsonObject {
        self.object(arguments, Some(schema), schema)
    }

    fn object(&self, object: &JsonObject, schema: Option<&Value>, root: &Value) -> JsonObject {
        object
            .iter()
            .map(|(key, value)| {
                let inner = schema
                    .and_then(|s| s.get("properties"))
                    .and_then(|p| p.get(key))
                    .and_then(|s| resolve(s, root));
                let value = if inner.is_some_and(is_marked)
                    || (is_secret_argument(key) && is_maskable(value))
                {
                    Value::String(MASK.into())
                } else {
                    self.value(value, inner, root)
                };
                (self.text(key), value)
            })
            .collect()
    }

    fn value(&self, value: &Value, schema: Option<&Value>, root: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => {
                let inner = schema.and_then(|s| s.get("items")).and_then(|s| resolve(s, root));
                if inner.is_some_and(is_marked) {
                    return Value::String(MASK.into());
                }
                items.iter().map(|item| self.value(item, inner, root)).collect()
            }
            Value::Object(map) => Value::Object(self.object(map, schema, root)),
            other => other.clone(),
        }
    }
}

fn texts_of(tool: &ToolDefinition) -> impl Iterator<Item = Cow<'_, str>> {
    let texts = [&tool.title, &tool.description, &tool.category, &tool.version];
    let texts = texts.into_iter().chain([&tool.annotations.title]).flatten();
    let lines =
        texts.chain(&tool.warnings).chain(&tool.touches).map(|text| Cow::from(text.as_str()));
    let raw = tool.raw.as_ref().map(|raw| Cow::from(raw.get()));
    lines.chain(schemas_of(tool).map(|schema| Cow::from(schema.to_string()))).chain(raw)
}

fn schemas_of(tool: &ToolDefinition) -> impl Iterator<Item = &ToolSchema> {
    std::iter::once(&tool.input_schema).chain(&tool.output_schema)
}

/// How many `$ref`s are followed to find a property's schema.
const MAX_REFS: usize = 16;

pub fn is_marked(schema: &Value) -> bool {
    let says = |key: &str| schema.get(key).and_then(Value::as_bool).unwrap_or(false);
    says("writeOnly")
        || says("x-secret")
        || schema.get("format").and_then(Value::as_str) == Some("password")
}

/// Whether a property's name calls it secret: `password`, `api_key`, `authToken`, … Plurals of
/// `token` are counts more often than secrets.
pub fn is_secret_argument(key: &str) -> bool {
    let words = identifier_words(key);
    let has = |word: &str| words.iter().any(|w| w == word);
    let pair = |a: &str, b: &str| words.windows(2).any(|w| w[0] == a && w[1] == b);
    ["password", "passwd", "passphrase", "pwd", "secret", "secrets", "token", "apikey"]
        .iter()
        .any(|word| has(word))
        || ["authorization", "credential", "credentials", "bearer", "cookie"].iter().any(|w| has(w))
        || pair("api", "key")
        || pair("access", "key")
        || pair("private", "key")
}

/// Numbers and booleans under a telling name (`token: 5`) are no secrets.
fn is_maskable(value: &Value) -> bool {
    matches!(value, Value::String(_) | Value::Array(_) | Value::Object(_))
}

fn resolve<'a>(mut schema: &'a Value, root: &'a Value) -> Option<&'a Value> {
    for _ in 0..MAX_REFS {
        if schema.get("$ref").is_none() || is_marked(schema) {
            return Some(schema);
        }
        schema = schema::referenced(root, schema)?;
    }
    None
}

#[cfg(test)]
mod tests;
