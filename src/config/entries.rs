//! Entries as written: their position in a file, their names, and those that do not act: with an error,
//! disabled, or not trusted yet.

use std::sync::Arc;

use super::node::{ConfigKey, ConfigNode, NodeValue};
use super::resolve::servers::ServersFile;
use super::resolve::settings::ToolsFile;
use super::spec::FileRole;
use super::typed::{self, canonical};
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

/// What stands at the top of a file.
#[derive(Debug, Clone, Copy)]
pub enum Top<'n> {
    Entry(WrittenEntry<'n>),
    /// A key that holds no entries, with its name; `None` if it is unknown.
    Other(Option<&'static str>, &'n ConfigKey, &'n ConfigNode),
}

#[derive(Debug, Clone, Copy)]
pub struct WrittenEntry<'n> {
    /// The key of its list or map; empty in a file that is a map of servers.
    pub list: &'n str,
    pub index: usize,
    /// Its name, if it stands in a map.
    key: Option<&'n ConfigKey>,
    pub node: &'n ConfigNode,
}

impl WrittenEntry<'_> {
    /// Its name, which may be one that no entry can have, and where it is named.
    pub fn name(&self) -> Result<(String, SourceLocation), Diagnostic> {
        if let Some(key) = self.key {
            return Ok((key.text.to_string(), self.node.location_of(key)));
        }
        let is_client = file_key(FileRole::Servers, self.list) == Some("clients");
        let (names, missing) = if is_client {
            (&["client_id", "name"][..], "this client has no 'client_id'")
        } else {
            (&NAMES[..], "this entry has no name")
        };
        let (_, node) = self.node.get_any(names).ok_or_else(|| self.node.error(missing))?;
        Ok((node.as_scalar_text()?, node.location()))
    }

    /// What it is called if it has no name.
    pub fn place(&self) -> String {
        format!("{}[{}]", self.list, self.index)
    }
}

/// Goes through a file as the resolver does.
pub fn top(root: &ConfigNode, role: FileRole) -> Vec<Top<'_>> {
    fn map<'n>(list: &'n str, node: &'n ConfigNode) -> impl Iterator<Item = Top<'n>> {
        node.entries().iter().enumerate().map(move |(index, (key, node))| {
            Top::Entry(WrittenEntry { list, index, key: Some(key), node })
        })
    }
    if role == FileRole::Servers && is_bare(root) {
        return map("", root).collect();
    }
    let mut top = Vec::new();
    for (key, value) in root.entries() {
        let list = &*key.text;
        match (file_key(role, list), &value.value) {
            (Some("mcp_servers"), NodeValue::Map(_)) => top.extend(map(list, value)),
            (Some("tools" | "toolkits" | "components" | "clients"), NodeValue::List(items)) => {
                top.extend(items.iter().enumerate().map(|(index, node)| {
                    Top::Entry(WrittenEntry { list, index, key: None, node })
                }));
            }
            (word, _) => top.push(Top::Other(word, key, value)),
        }
    }
    top
}

/// The entries of a file, without the rest of it.
pub fn written(root: &ConfigNode, role: FileRole) -> impl Iterator<Item = WrittenEntry<'_>> {
    top(root, role).into_iter().filter_map(|part| match part {
        Top::Entry(entry) => Some(entry),
        Top::Other(..) => None,
    })
}

/// An error for every key that is there twice, except in the entries and among their names.
pub fn repeated_keys(root: &ConfigNode, role: FileRole) -> Vec<Diagnostic> {
    if role == FileRole::Servers && is_bare(root) {
        return Vec::new();
    }
    let mut repeated = root.own_repeated_keys();
    for part in top(root, role) {
        if let Top::Other(_, _, value) = part {
            repeated.extend(value.repeated_keys());
        }
    }
    repeated
}

/// What is wrong with a key at the top of a file that is not known there.
pub fn unknown_key(root: &ConfigNode, key: &ConfigKey, role: FileRole) -> Option<Diagnostic> {
    let elsewhere = |other| file_key(other, &key.text);
    let (names, hint) = match role {
        FileRole::Tools => (
            typed::names::<ToolsFile>(),
            elsewhere(FileRole::Servers).map(|_| "servers belong in mcp.yaml (--mcp)"),
        ),
        FileRole::Servers => (
            typed::names::<ServersFile>(),
            elsewhere(FileRole::Tools)
                .filter(|word| matches!(*word, "tools" | "toolkits" | "components"))
                .map(|_| "tools belong in tools.yaml (--tools)"),
        ),
    };
    let unknown = typed::unknown_key(root, key, names);
    unknown.map(|diagnostic| hint.into_iter().fold(diagnostic, Diagnostic::with_hint))
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
