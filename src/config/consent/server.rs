//! What an entry of `mcp.yaml` would do, derived from the entry as written.

use std::path::Path;

use super::effect::{EntryEffect, EntrySite, ProgramEffect};
use crate::config::entries::URL_KEYS;
use crate::config::node::{ConfigNode, NodeValue};
use crate::config::permissions;

pub(super) fn effects(entry: &ConfigNode, site: &EntrySite<'_>) -> Vec<EntryEffect> {
    let mut effects = Vec::new();
    let program = entry.get_any(&["command", "server_path"]);
    if let Some((key, node)) = program {
        let mut argv = texts(node);
        if key == "server_path"
            && let Some(first) = argv.first_mut()
            && let Some(path) = site.path(first)
        {
            *first = path.to_string_lossy().into_owned();
            if let Some(interpreter) = interpreter_of(&path) {
                argv.insert(0, interpreter.to_owned());
            }
        }
        argv.extend(entry.get("args").map(texts).unwrap_or_default());
        let is_path = argv.first().is_some_and(|word| word.contains('/'));
        effects.push(EntryEffect::Runs(ProgramEffect {
            argv,
            cwd: entry.get("cwd").and_then(|node| node.as_text().ok()).map(str::to_owned),
            env: variables(entry),
            found_from: is_path.then(|| site.base_dir.to_path_buf()),
            usual_cwd: site.base_dir.to_path_buf(),
        }));
    }
    if let Some(path) = entry.get("envFile").and_then(|node| node.as_text().ok()) {
        effects.push(EntryEffect::EnvFile(path.to_owned()));
    }
    if let Some((_, node)) = entry.get_any(&URL_KEYS)
        && let Ok(text) = node.as_text()
    {
        effects.push(EntryEffect::Contacts(origin(text)));
    }
    for key in ["auth", "oauth"] {
        for (name, value) in entry.get(key).map(ConfigNode::entries).unwrap_or_default() {
            if let ("token_url" | "issuer" | "client_metadata_url", Ok(text)) =
                (name.text.as_str(), value.as_text())
            {
                effects.push(EntryEffect::Contacts(origin(text)));
            }
        }
    }
    if let Some(node) = entry.get("roots").filter(|node| !node.is_null()) {
        effects.push(EntryEffect::Other(format!("sends it the roots {}", node.to_json())));
    }
    if entry.get("routing_weight").is_some() {
        effects.push(EntryEffect::Other(
            "may answer bare tool names alongside other servers".to_owned(),
        ));
    }
    let loosens = entry.get("dev").is_some_and(|node| matches!(node.value, NodeValue::Bool(true)))
        || entry.get("drift").is_some_and(|node| node.as_text().is_ok_and(|word| word != "block"));
    if loosens {
        effects.push(EntryEffect::Other(
            "does not block tools that differ from their pins".to_owned(),
        ));
    }
    if let Some(node) = entry.get("permissions").filter(|node| !node.is_null()) {
        let lines = permissions::read(node, &mut Vec::new()).lines();
        effects.push(EntryEffect::Other(format!("may use only {}", lines.join("; "))));
    }
    if effects.is_empty() {
        // It does not say how to reach it: the error is reported when the entry is resolved.
        effects.push(EntryEffect::Other("does not say how to reach it".to_owned()));
    }
    effects
}

/// The interpreter for a file of this type if the entry names only the file.
pub(in crate::config) fn interpreter_of(path: &Path) -> Option<&'static str> {
    match path.extension().and_then(|e| e.to_str()) {
        Some("py") => Some("python3"),
        Some("js" | "mjs" | "cjs") => Some("node"),
        _ => None,
    }
}

/// The part of an address that says who is contacted: scheme, host and port, or the text as written
/// if it depends on a reference.
pub(super) fn origin(written: &str) -> String {
    match url::Url::parse(written) {
        Ok(url) if url.has_host() && !written.contains("${") => url.origin().ascii_serialization(),
        _ => written.to_owned(),
    }
}

fn texts(node: &ConfigNode) -> Vec<String> {
    match &node.value {
        NodeValue::Text(text) => vec![text.clone()],
        NodeValue::List(items) => {
            items.iter().map(|item| item.as_scalar_text().unwrap_or_default()).collect()
        }
        _ => Vec::new(),
    }
}

fn variables(entry: &ConfigNode) -> Vec<(String, String)> {
    let pairs = entry.get("env").map(ConfigNode::entries).unwrap_or_default();
    let pair = |(key, value): &(crate::config::node::ConfigKey, ConfigNode)| {
        Some((key.text.clone(), value.as_scalar_text().ok()?))
    };
    pairs.iter().filter_map(pair).collect()
}
