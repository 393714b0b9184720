//! The origin of an entry, and what it declares to start or contact.

use std::path::PathBuf;
use std::sync::Arc;

use super::FileContext;
use crate::config::entries::URL_KEYS;
use crate::config::node::{ConfigNode, NodeValue};
use crate::config::typed::{Located, Texts};
use crate::config::variables::{is_name, is_setting};
use crate::model::{Diagnostics, EntryOrigin, Layer};

const ACTION_KEYS: &str = "command args module function class openapi base_url endpoint_url \
    toolkit kind";

/// The identity of an entry of a file of servers, before anything in it is filled in.
pub fn of_server(entry: &ConfigNode, file: &FileContext<'_>) -> Arc<EntryOrigin> {
    let keys = ["command", "server_path", "args"].iter().chain(&URL_KEYS);
    origin(entry, keys.copied(), file)
}

/// The identity of an entry of a file of tools, before anything in it is filled in.
pub fn of_tool(entry: &ConfigNode, file: &FileContext<'_>) -> Arc<EntryOrigin> {
    origin(entry, ACTION_KEYS.split(' '), file)
}

fn origin(
    entry: &ConfigNode,
    keys: impl Iterator<Item = &'static str>,
    file: &FileContext<'_>,
) -> Arc<EntryOrigin> {
    let mut parts = Vec::new();
    keys.filter_map(|key| entry.get(key)).for_each(|node| texts(node, &mut parts));
    let project = file.shared.project.as_ref().filter(|_| file.layer == Layer::Project);
    // The user's own entries are identified by content, regardless of the location of their file.
    let directory = project.map(|root| root.canonicalize().unwrap_or_else(|_| root.clone()));
    let directory: PathBuf = directory.unwrap_or_default();
    Arc::new(EntryOrigin {
        layer: file.layer,
        directory,
        declaration: parts.join(" "),
        command_end: file.shared.command_end.clone(),
    })
}

fn texts(node: &ConfigNode, parts: &mut Vec<String>) {
    match &node.value {
        NodeValue::List(items) => items.iter().for_each(|item| texts(item, parts)),
        _ => parts.extend(node.as_scalar_text()),
    }
}

/// Reads `context_env`: names of variables that a call may set. Only names of
/// settings are accepted.
pub fn context_env(names: Located<Texts>, diagnostics: &Diagnostics) -> Arc<[String]> {
    for name in &names.0 {
        if is_setting(name) {
            continue;
        }
        diagnostics.push(if is_name(name) {
            names.error(format!("'{name}' cannot be set by a call")).with_hint(format!(
                "it may decide which code runs: set it under 'env', or name it APP_{name}"
            ))
        } else {
            names.error(format!("invalid variable name '{name}'"))
        });
    }
    names.value.0.into()
}
