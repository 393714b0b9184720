//! The servers and tools selected for a `pin` or `verify` command.
//!
//! Owns: resolving names of tools and servers to what has to be listed. Never does: compare.

use std::collections::BTreeSet;

use super::context::StartScope;
use super::entry_checks;
use crate::assembly::Assembly;
use crate::catalogue::Catalogue;
use crate::catalogue::pins::{PinReport, Pins};
use crate::host::request::{ListScope, LookupScope};
use crate::model::{Error, Origin};

/// The selected servers and tools.
#[derive(Debug, Default)]
pub struct PinSelection {
    everything: bool,
    /// Servers with all their tools.
    whole_servers: BTreeSet<String>,
    /// Single tools by full name.
    tools: BTreeSet<String>,
    /// Servers that have to be listed.
    listed_servers: BTreeSet<String>,
}

impl PinSelection {
    /// What a command with these names may have to start.
    pub fn start_scope<'a>(names: &'a [String], servers: &'a [String]) -> StartScope<'a> {
        match names {
            [_] => StartScope::Named(names, servers),
            _ => StartScope::Servers(servers),
        }
    }

    /// Resolves the selection: all tools without a name, otherwise the named tools and servers. A
    /// tool with a pin need not exist any more.
    ///
    /// # Errors
    /// Unknown or ambiguous names, or an error of the servers.
    pub async fn resolve(
        names: &[String],
        servers: &[String],
        assembly: &Assembly,
        pins: &Pins,
    ) -> Result<Self, Error> {
        let known = assembly.host.servers();
        let known: BTreeSet<&str> = known.iter().map(|server| server.name.as_str()).collect();
        entry_checks::require_servers(&assembly.configuration, servers, &known)?;
        let mut selection = Self::default();
        if names.is_empty() {
            selection.everything = servers.is_empty();
            selection.whole_servers.extend(servers.iter().cloned());
        }
        for name in names {
            if known.contains(name.as_str()) {
                selection.whole_servers.insert(name.clone());
            } else if let Some(server) = pinned_at(pins, name) {
                selection.tools.insert(name.clone());
                selection.listed_servers.insert(server.to_owned());
            } else if pins.internal().any(|pinned| pinned == name) {
                selection.tools.insert(name.clone());
            } else {
                let tool = assembly.host.find(name, &LookupScope::of_servers(servers)).await?;
                selection.tools.insert(tool.name.full());
                if let Origin::Server(server) = &tool.origin {
                    selection.listed_servers.insert(server.clone());
                } else if let Some(error) = tool.unavailable_reason {
                    return Err(error);
                }
            }
        }
        let whole = selection.whole_servers.clone();
        selection.listed_servers.extend(whole);
        Ok(selection)
    }

    /// Which tools and servers have to be listed.
    pub fn reach(&self) -> ListScope {
        if self.everything {
            return ListScope::Everything;
        }
        ListScope::Servers(self.listed_servers.iter().cloned().collect())
    }

    /// Whether a tool is selected.
    pub fn includes(&self, name: &str, server: Option<&str>) -> bool {
        self.everything
            || self.tools.contains(name)
            || server.is_some_and(|server| self.whole_servers.contains(server))
    }

    /// Whether a server was selected by its name or by one of its tools.
    pub fn includes_server(&self, server: &str) -> bool {
        self.listed_servers.contains(server)
    }

    /// Reduces a comparison and its listing to the selection.
    pub fn retain_selected(&self, report: &mut PinReport, catalogue: &mut Catalogue) {
        report.tools.retain(|tool| self.includes(&tool.name, tool.server.as_deref()));
        if self.everything {
            return;
        }
        report.servers.retain(|server| self.listed_servers.contains(&server.name));
        let internal = report.tools.iter().any(|tool| tool.server.is_none());
        if !internal {
            catalogue.failures.clear();
        }
    }
}

/// The server of the pinned tool with this name.
fn pinned_at<'p>(pins: &'p Pins, name: &str) -> Option<&'p str> {
    let mut servers = pins.servers();
    let owner = servers.find(|(server, group)| {
        let tool = name.strip_prefix(server).and_then(|rest| rest.strip_prefix('-'));
        tool.is_some_and(|tool| group.tools.contains_key(tool))
    });
    owner.map(|(server, _)| server)
}
