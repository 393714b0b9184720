//! The keys of an entry about a class: which one, the arguments of its constructor, which methods.

use std::time::Duration;

use serde::Serialize;

use super::module::is_dotted;
use crate::config::node::ConfigNode;
use crate::model::{Diagnostic, JsonObject};

/// How long a constructor may take when the entry does not say.
const START_TIMEOUT: Duration = Duration::from_secs(20);
const KEYS: [&str; 3] = ["config", "methods", "start_timeout"];

/// A class whose methods are tools; one instance serves all calls of a worker. Serialized it is the
/// part of a request that names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct PythonClass {
    /// Its name in the module; a dotted one leads through another class.
    #[serde(rename = "class")]
    pub(super) name: String,
    /// The arguments of its constructor, by name.
    config: JsonObject,
    methods: Option<Vec<String>>,
    /// How long its constructor may take, in seconds.
    #[serde(serialize_with = "seconds")]
    start_timeout: Duration,
}

fn seconds<S: serde::Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(value.as_secs_f64())
}

/// Reads what an entry says about the class that `node` names.
pub(super) fn read(entry: &ConfigNode, node: &ConfigNode) -> Result<PythonClass, Vec<Diagnostic>> {
    let mut diagnostics = Vec::new();
    let mut note = |diagnostic: Diagnostic| diagnostics.push(diagnostic);
    let name = name(node).map_err(&mut note).unwrap_or_default();
    let setting = |key| entry.get(key).filter(|node| !node.is_null());
    let config = setting("config").map(config).transpose().map_err(&mut note).unwrap_or_default();
    let methods =
        setting("methods").map(methods).transpose().map_err(&mut note).unwrap_or_default();
    let start_timeout =
        setting("start_timeout").map(limit).transpose().map_err(&mut note).unwrap_or_default();
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    Ok(PythonClass {
        name,
        config: config.unwrap_or_default(),
        methods,
        start_timeout: start_timeout.unwrap_or(START_TIMEOUT),
    })
}

fn name(node: &ConfigNode) -> Result<String, Diagnostic> {
    let text = node.as_text()?;
    if is_dotted(text) {
        return Ok(text.to_owned());
    }
    Err(Diagnostic::error(format!("'{text}' cannot be the name of a class"))
        .with_hint("write its name alone; 'module' says where it is")
        .with_location(node.location()))
}

fn config(node: &ConfigNode) -> Result<JsonObject, Diagnostic> {
    node.as_map().map_err(|diagnostic| {
        diagnostic.with_hint("'config' gives the constructor its arguments by name")
    })?;
    match node.to_json() {
        serde_json::Value::Object(config) => Ok(config),
        _ => Ok(JsonObject::new()),
    }
}

fn methods(node: &ConfigNode) -> Result<Vec<String>, Diagnostic> {
    for item in node.as_list()? {
        let text = item.as_text()?;
        if !is_dotted(text) || text.contains('.') {
            return Err(item.expected("the name of a method"));
        }
    }
    if node.as_list()?.is_empty() {
        return Err(Diagnostic::error("the list selects no methods")
            .with_hint("name some, or omit the list to select all")
            .with_location(node.location()));
    }
    node.as_texts()
}

fn limit(node: &ConfigNode) -> Result<Duration, Diagnostic> {
    let limit = node.as_duration()?;
    // The maximum of Python's timers is much longer, and of no practical use.
    if limit.is_zero() || limit > Duration::from_hours(1) {
        return Err(node.expected("a duration up to 1h, greater than 0"));
    }
    Ok(limit)
}

pub(super) fn refuse_keys_of_classes(entry: &ConfigNode) -> Result<(), Vec<Diagnostic>> {
    let refuse = |key: &str| {
        let location = entry.location_of(entry.key(key)?);
        let error = Diagnostic::error(format!("'{key}' is for a 'class', but the entry has none"));
        Some(error.with_hint("add 'class: …', or remove the key").with_location(location))
    };
    let diagnostics: Vec<Diagnostic> = KEYS.into_iter().filter_map(refuse).collect();
    if diagnostics.is_empty() { Ok(()) } else { Err(diagnostics) }
}
