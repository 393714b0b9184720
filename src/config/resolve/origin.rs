//! Whose entry it is, and what it says it starts or contacts.

use std::path::PathBuf;
use std::sync::Arc;

use super::endpoint::URL_KEYS;
use super::{FileContext, Findings};
use crate::config::node::{Node, NodeValue};
use crate::config::variables::{decides_code, is_name};
use crate::model::{EntryOrigin, Layer, Problem};

/// Keys of a tool's entry that say what acts, in the order they are written down.
const ACTS: [&str; 9] = [
    "command",
    "args",
    "module",
    "function",
    "openapi",
    "base_url",
    "endpoint_url",
    "toolkit",
    "kind",
];

/// The identity of an entry of a file of servers, before anything in it is filled in.
pub fn of_server(entry: &Node, file: &FileContext<'_>) -> Arc<EntryOrigin> {
    let keys = ["command", "server_path", "args"].iter().chain(&URL_KEYS);
    origin(entry, keys.copied(), file)
}

/// The identity of an entry of a file of tools, before anything in it is filled in.
pub fn of_tool(entry: &Node, file: &FileContext<'_>) -> Arc<EntryOrigin> {
    origin(entry, ACTS.into_iter(), file)
}

fn origin(
    entry: &Node,
    keys: impl Iterator<Item = &'static str>,
    file: &FileContext<'_>,
) -> Arc<EntryOrigin> {
    let mut words = Vec::new();
    keys.filter_map(|key| entry.get(key)).for_each(|node| texts(node, &mut words));
    let project = file.project_root.as_ref().filter(|_| file.layer == Layer::Project);
    // The user's own entries are known by what they say, wherever their file lies.
    let directory = project.map(|root| root.canonicalize().unwrap_or_else(|_| root.clone()));
    let directory: PathBuf = directory.unwrap_or_default();
    Arc::new(EntryOrigin { layer: file.layer, directory, written: words.join(" ") })
}

fn texts(node: &Node, words: &mut Vec<String>) {
    match &node.value {
        NodeValue::List(items) => items.iter().for_each(|item| texts(item, words)),
        _ => words.extend(node.as_scalar_text()),
    }
}

/// The names under `context_env`.
pub fn context_env(value: &Node, findings: &mut Findings) -> Arc<[String]> {
    let names = findings.take(value.as_texts()).unwrap_or_default();
    for name in &names {
        let problem = if decides_code(name) {
            Problem::error(format!("'{name}' cannot be set by a call"))
                .hint("it decides which code runs: set it under 'env'")
        } else if is_name(name) {
            continue;
        } else {
            Problem::error(format!("'{name}' is not the name of a variable"))
        };
        findings.problems.push(problem.at(value.place()));
    }
    names.into()
}
