//! The servers and tools selected for a `pin` or `verify` command.

use std::collections::BTreeSet;

use super::context::{CommandContext, StartScope};
use super::entry_checks;
use crate::assembly::Assembly;
use crate::catalogue::Catalogue;
use crate::catalogue::pins::{PinReport, PinReportState, Pins};
use crate::host::request::{ListScope, LookupScope};
use crate::model::{Error, Origin};

#[derive(Debug, Default)]
pub struct PinSelection {
    everything: bool,
    whole_servers: BTreeSet<String>,
    tools: BTreeSet<String>,
    listed_servers: BTreeSet<String>,
}

impl PinSelection {
    pub fn start_scope<'a>(names: &'a [String], servers: &'a [String]) -> StartScope<'a> {
        match names {
            [_] => StartScope::Named(names, servers),
            _ => StartScope::Servers(servers),
        }
    }

    /// Resolves the selection: all tools without a name, otherwise the named tools and servers. A
    /// tool with a pin need not exist any more.
    pub async fn resolve(
        names: &[String],
        servers: &[String],
        assembly: &Assembly,
        pins: &Pins,
    ) -> Result<Self, Error> {
        let statuses = assembly.host.servers();
        let server_names: BTreeSet<&str> =
            statuses.iter().map(|server| server.name.as_str()).collect();
        entry_checks::require_servers(&assembly.configuration, servers, &server_names)?;
        let mut selection = Self::default();
        if names.is_empty() {
            selection.everything = servers.is_empty();
            selection.whole_servers.extend(servers.iter().cloned());
        }
        for name in names {
            if server_names.contains(name.as_str()) {
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

    /// What is selected of a comparison with the pins, and the listing behind it.
    pub async fn compare(
        &self,
        assembly: &Assembly,
        pins: &Pins,
        context: &CommandContext,
    ) -> (PinReport, Catalogue) {
        let mut catalogue = assembly.host.catalogue(&self.reach()).await;
        let mut report = assembly.host.compare(pins, &catalogue);
        self.retain_selected(&mut report, &mut catalogue);
        if context.global.rare.profile.is_some() {
            // A profile hides names; a hidden tool is not missing.
            report.tools.retain(|tool| tool.state != PinReportState::Missing);
        }
        (report, catalogue)
    }

    pub fn reach(&self) -> ListScope {
        if self.everything {
            return ListScope::Everything;
        }
        ListScope::Servers(self.listed_servers.iter().cloned().collect())
    }

    fn includes(&self, name: &str, server: Option<&str>) -> bool {
        self.everything
            || self.tools.contains(name)
            || server.is_some_and(|server| self.whole_servers.contains(server))
    }

    pub fn includes_server(&self, server: &str) -> bool {
        self.listed_servers.contains(server)
    }

    fn retain_selected(&self, report: &mut PinReport, catalogue: &mut Catalogue) {
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

fn pinned_at<'p>(pins: &'p Pins, name: &str) -> Option<&'p str> {
    let mut servers = pins.servers();
    let owner = servers.find(|(server, group)| {
        let tool = name.strip_prefix(server).and_then(|rest| rest.strip_prefix('-'));
        tool.is_some_and(|tool| group.tools.contains_key(tool))
    });
    owner.map(|(server, _)| server)
}
