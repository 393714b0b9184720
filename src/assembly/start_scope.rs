//! Determines which entries a request would start or contact, from the configuration alone.
//!
//! Entries of an untrusted project, as the host sees them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::catalogue::naming;
use crate::config::spec::{Configuration, FileRole, ServerSpec, UntrustedEntry};
use crate::model::{
    Error, ServerState, ServerStatus, ToolCall, ToolContext, ToolDefinition, ToolListing,
    ToolResult, ToolStatus,
};
use crate::provider::{ManagedServer, Preview, ToolProvider};

#[derive(Debug, Clone, Copy)]
pub enum StartScope<'a> {
    /// Nothing: the command only reads files.
    Nothing,
    /// These servers; all entries when the list is empty.
    Servers(&'a [String]),
    /// What the tools or servers with these names need. The second list is `--server`: only tools
    /// from these servers, or from all if it is empty.
    Named(&'a [String], &'a [String]),
}

/// The entries that a request needs and that are not trusted yet.
pub fn untrusted_entries<'a>(
    configuration: &'a Configuration,
    scope: StartScope<'_>,
) -> Vec<&'a UntrustedEntry> {
    let is_needed = |entry: &&UntrustedEntry| match scope {
        StartScope::Nothing => false,
        StartScope::Servers(names) => names.is_empty() || names.contains(&entry.name),
        StartScope::Named(names, servers) => {
            names.iter().any(|name| needs(configuration, entry, name, servers))
        }
    };
    configuration.untrusted.iter().filter(is_needed).collect()
}

/// How long a background host should stay for the servers that a call names; `None` if none of
/// their entries requests one.
pub fn keep(configuration: &Configuration, scope: StartScope<'_>) -> Option<Duration> {
    let StartScope::Named(names, servers) = scope else { return None };
    let is_named = |server: &&ServerSpec| {
        let is_owner = names.iter().any(|name| is_entry_or_tool(&server.name, name));
        is_owner || servers.contains(&server.name)
    };
    configuration.servers.iter().filter(is_named).filter_map(|server| server.keep).max()
}

/// Whether finding and calling the tool `name` needs `entry`: the tool belongs to the entry, or it
/// is a bare name that any server may have.
fn needs(
    configuration: &Configuration,
    entry: &UntrustedEntry,
    name: &str,
    servers: &[String],
) -> bool {
    if is_entry_or_tool(&entry.name, name) {
        return true;
    }
    let other_owners = configuration.untrusted.iter().map(|entry| entry.name.as_str());
    let trusted_servers = configuration.servers.iter().map(|server| server.name.as_str());
    let tools = configuration.tools.iter().map(|tool| tool.definition.name.tool());
    let is_owned =
        other_owners.chain(trusted_servers).chain(tools).any(|owner| is_entry_or_tool(owner, name));
    !is_owned
        && entry.role == FileRole::Servers
        && (servers.is_empty() || servers.contains(&entry.name))
}

/// Whether `name` is the entry itself or one of its tools, with any separator.
fn is_entry_or_tool(entry: &str, name: &str) -> bool {
    !entry.is_empty()
        && (naming::is_meant(name, entry) || naming::after_component(name, entry).is_some())
}

pub(super) struct UntrustedProvider {
    entry: UntrustedEntry,
    tools: Vec<Arc<ToolDefinition>>,
}

impl UntrustedProvider {
    /// Lists the entry's declared tools as unavailable, with the refusal as the reason.
    pub(super) fn new(entry: UntrustedEntry) -> Self {
        let refusal = entry.refusal();
        let tools = entry
            .definitions
            .iter()
            .map(|definition| {
                let mut definition = definition.clone();
                definition.mark_unavailable(refusal.clone());
                definition.status = ToolStatus::Untrusted;
                definition.touches.clone_from(&entry.effects);
                Arc::new(definition)
            })
            .collect();
        Self { entry, tools }
    }

    fn refusal(&self) -> Error {
        self.entry.refusal()
    }

    fn is_server(&self) -> bool {
        self.entry.role == FileRole::Servers
    }
}

#[async_trait]
impl ToolProvider for UntrustedProvider {
    fn component(&self) -> Option<&str> {
        self.is_server().then_some(self.entry.name.as_str())
    }

    fn declared(&self) -> Vec<Arc<ToolDefinition>> {
        self.tools.clone()
    }

    fn is_remote(&self) -> bool {
        self.is_server()
    }

    async fn list(&self) -> Result<ToolListing, Error> {
        if self.is_server() {
            return Err(self.refusal());
        }
        Ok(ToolListing { tools: self.declared(), ..ToolListing::default() })
    }

    async fn call(&self, _: &ToolContext, _: &ToolCall) -> Result<ToolResult, Error> {
        Err(self.refusal())
    }

    async fn preview(&self, _: &ToolCall) -> Result<Preview, Error> {
        Err(self.refusal())
    }

    fn as_server(&self) -> Option<&dyn ManagedServer> {
        self.is_server().then_some(self as &dyn ManagedServer)
    }
}

#[async_trait]
impl ManagedServer for UntrustedProvider {
    fn status(&self) -> ServerStatus {
        ServerStatus {
            state: ServerState::Untrusted(self.refusal()),
            description: self.entry.description.clone(),
            ..ServerStatus::unknown(&self.entry.name)
        }
    }

    async fn check(&self) -> ServerStatus {
        self.status()
    }

    async fn restart(&self) -> ServerStatus {
        self.status()
    }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;
    use crate::model::SourceLocation;

    fn untrusted(name: &str, role: FileRole) -> UntrustedEntry {
        UntrustedEntry {
            name: name.to_owned(),
            role,
            kind: "command",
            description: None,
            definitions: Vec::new(),
            effects: Vec::new(),
            trust_command: String::new(),
            reason: String::new(),
            is_declined: false,
            location: SourceLocation {
                file: Arc::default(),
                line: 1,
                column: 1,
                text: Arc::from(""),
            },
        }
    }

    fn needed(scope: StartScope<'_>) -> Vec<String> {
        let configuration = Configuration {
            untrusted: vec![
                untrusted("github", FileRole::Servers),
                untrusted("log", FileRole::Tools),
            ],
            ..Configuration::default()
        };
        untrusted_entries(&configuration, scope).iter().map(|entry| entry.name.clone()).collect()
    }

    fn named(name: &str, servers: &[String]) -> Vec<String> {
        needed(StartScope::Named(from_ref(&name.to_owned()), servers))
    }

    #[test]
    fn a_request_needs_only_the_entries_it_may_start() {
        let (git, github) = (["git".to_owned()], ["github".to_owned()]);
        assert!(needed(StartScope::Nothing).is_empty());
        assert_eq!(needed(StartScope::Servers(&[])), ["github", "log"]);
        assert_eq!(needed(StartScope::Servers(&github)), ["github"]);
        assert!(needed(StartScope::Servers(&git)).is_empty());
        assert_eq!(named("github-search", &[]), ["github"]);
        assert_eq!(named("log", &[]), ["log"]);
        // A bare name may be that of a tool of any server.
        assert_eq!(named("search", &[]), ["github"]);
        assert_eq!(named("search", &github), ["github"]);
        assert!(named("search", &git).is_empty());
    }

    #[test]
    fn several_targets_need_what_any_of_them_needs() {
        let targets = ["log".to_owned(), "github-search".to_owned()];
        assert_eq!(needed(StartScope::Named(&targets, &[])), ["github", "log"]);
        assert!(needed(StartScope::Named(&[], &[])).is_empty());
    }

    #[test]
    fn an_entry_owns_its_tools_with_every_separator() {
        for name in ["github", "github-search", "github.search", "github/x", "github__search"] {
            assert!(is_entry_or_tool("github", name), "{name}");
        }
        for name in ["git", "githubber", "search", ""] {
            assert!(!is_entry_or_tool("github", name), "{name}");
        }
        assert!(!is_entry_or_tool("", "-x"));
    }
}
