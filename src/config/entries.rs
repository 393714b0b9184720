//! Entries as written: their position in a file, their names, and those that do not act: with an error,
//! disabled, or not trusted yet.

use std::sync::Arc;

use super::node::{ConfigKey, ConfigNode, NodeValue};
use super::resolve::servers::ServersFile;
use super::resolve::settings::ToolsFile;
use super::spec::FileRole;
use super::typed::canonical;
use crate::model::{Diagnostic, Error, ErrorKind, SourceLocation, ToolDefinition, check_name};
use crate::util::spelling;

pub const URL_KEYS: [&str; 4] = ["url", "baseUrl", "serverUrl", "httpUrl"];

/// Keys that name an entry, best first: one tool of a toolkit may use its name there.
pub const NAMES: [&str; 3] = ["name", "tool_name", "original_tool_name"];

/// Whether tools may be named after an entry of this list, as far as the entry shows.
pub fn may_be_component(entry: &ConfigNode, list: &str) -> bool {
    matches!(list, "components" | "toolkits")
        || entry.get_any(&["kind", "provider_type", "type", "openapi"]).is_some()
}

/// Whether an entry is switched off with `disabled` or `enabled`.
pub fn is_off(entry: &ConfigNode) -> bool {
    let flag = |key| entry.get(key).and_then(|node| node.as_bool().ok());
    flag("disabled") == Some(true) || flag("enabled") == Some(false)
}

/// The name of a key at the top of a file, whatever its spelling; `None` for an unknown one.
pub fn file_key(role: FileRole, spelling: &str) -> Option<&'static str> {
    match role {
        FileRole::Tools => canonical::<ToolsFile>(spelling),
        FileRole::Servers => canonical::<ServersFile>(spelling),
    }
}

/// The first key of an entry that is not known and was probably meant to be one of `keys`, with
/// what was meant.
pub fn misspelled<'e, 'k>(
    entry: &'e ConfigNode,
    keys: &[&'k str],
    is_known: impl Fn(&str) -> bool,
) -> Option<(&'e ConfigKey, &'k str)> {
    let mut unknown = entry.entries().iter().map(|(key, _)| key).filter(|key| !is_known(&key.text));
    unknown.find_map(|key| Some((key, spelling::nearest(&key.text, keys.iter().copied())?)))
}

pub fn name(entry: &ConfigNode) -> Result<String, Diagnostic> {
    entry.as_map()?;
    let Some((_, node)) = entry.get_any(&NAMES) else {
        return Err(entry.error("this entry has no name").with_hint("add 'name: …'"));
    };
    let name = node.as_scalar_text()?;
    check_name(&name).map_err(|error| node.error(error.to_string()))?;
    Ok(name)
}

/// Whether the file is a map of servers without a key around it.
pub fn is_bare(root: &ConfigNode) -> bool {
    let entries = root.entries();
    let describes_a_server = |node: &ConfigNode| {
        ["command", "server_path"].iter().chain(&URL_KEYS).any(|key| node.get(key).is_some())
    };
    !entries.is_empty()
        && !entries.iter().any(|(key, value)| {
            // Handles for secrets do not describe a server, and a server may have that name.
            file_key(FileRole::Servers, &key.text)
                .is_some_and(|word| word != "credentials" || !describes_a_server(value))
        })
        && entries.iter().all(|(_, value)| describes_a_server(value))
}

/// Every entry of a file with its name, as the resolver finds them.
pub fn servers_as_written(root: &ConfigNode) -> Vec<(String, SourceLocation, &ConfigNode)> {
    fn pairs(node: &ConfigNode) -> impl Iterator<Item = (String, SourceLocation, &ConfigNode)> {
        let pairs = node.entries().iter();
        pairs.map(|(key, value)| (key.text.to_string(), node.location_of(key), value))
    }
    if is_bare(root) {
        return pairs(root).collect();
    }
    let mut servers = Vec::new();
    for (key, value) in root.entries() {
        match (file_key(FileRole::Servers, &key.text), &value.value) {
            (Some("mcp_servers"), NodeValue::Map(_)) => servers.extend(pairs(value)),
            (Some("clients"), NodeValue::List(items)) => {
                for item in items.iter() {
                    let named = item.get_any(&["client_id", "name"]);
                    if let Some((_, Ok(name))) = named.map(|(k, n)| (k, n.as_scalar_text())) {
                        servers.push((name, item.location(), item));
                    }
                }
            }
            _ => {}
        }
    }
    servers
}

#[derive(Debug, Clone)]
pub struct DisabledEntry {
    pub name: String,
    pub role: FileRole,
    pub diagnostic: Diagnostic,
    /// The tools that it has according to its file, as far as they can be read: the entry itself,
    /// or what a server's entry declares.
    pub definitions: Vec<ToolDefinition>,
    /// The error for calls that need the entry; `None` if it is simply out of service.
    pub refusal: Option<Error>,
}

impl DisabledEntry {
    /// An entry that something is wrong with.
    pub fn new(name: impl Into<String>, role: FileRole, diagnostic: Diagnostic) -> Self {
        Self { name: name.into(), role, diagnostic, definitions: Vec::new(), refusal: None }
    }

    /// Whether its file disables it, so that nothing is wrong with it.
    pub fn is_switched_off(&self) -> bool {
        self.refusal.is_none() && !self.diagnostic.is_error()
    }

    pub fn error(&self) -> Error {
        if let Some(refusal) = &self.refusal {
            return refusal.clone();
        }
        self.problem(format!("'{}' is out of service: {}", self.name, self.diagnostic.message))
    }

    pub fn state_error(&self) -> Error {
        self.problem(format!("out of service: {}", self.diagnostic.message))
    }

    fn problem(&self, message: String) -> Error {
        let problem = Diagnostic { message, ..self.diagnostic.clone() };
        Error::of_diagnostic(ErrorKind::Config, problem)
    }

    /// The tools that it has according to its file, as unavailable; none for a disabled entry.
    pub fn unavailable_tools(&self) -> Vec<Arc<ToolDefinition>> {
        if self.is_switched_off() {
            return Vec::new();
        }
        let error = self.error();
        let unavailable = |definition: &ToolDefinition| {
            let mut definition = definition.clone();
            definition.mark_unavailable(error.clone());
            Arc::new(definition)
        };
        self.definitions.iter().map(unavailable).collect()
    }

    /// Whether one of its tools has this name, with or without the server's prefix.
    pub fn declares(&self, name: &str) -> bool {
        self.definitions.iter().any(|tool| tool.name.tool() == name || tool.name.full() == name)
    }
}

/// An entry of an untrusted project: only what its file says about it.
#[derive(Debug, Clone)]
pub struct UntrustedEntry {
    pub name: String,
    pub role: FileRole,
    /// Its kind, `mcp` for servers.
    pub kind: &'static str,
    pub description: Option<String>,
    /// What can be listed of it: the entry itself, and the tools that a server's entry declares.
    pub definitions: Vec<ToolDefinition>,
    /// What it would do, as human-readable lines.
    pub effects: Vec<String>,
    pub trust_command: String,
    /// Why it may not act, in words that follow "is".
    pub reason: String,
    pub is_declined: bool,
    pub location: SourceLocation,
}

impl UntrustedEntry {
    pub fn refusal(&self) -> Error {
        let reason = &self.reason;
        let error = match self.role {
            FileRole::Servers => Error::denied(reason).with_server(&self.name),
            FileRole::Tools => Error::denied(format!("'{}' is {reason}", self.name)),
        };
        let hint = if self.is_declined {
            format!("{} asks again", self.trust_command)
        } else {
            format!("see what it would do and allow it: {}", self.trust_command)
        };
        error
            .with_location(self.location.clone())
            .with_details(self.effects.iter().cloned())
            .with_hint(hint)
    }
}
