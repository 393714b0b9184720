//! Which part of the catalogue a command about pins is about.
//!
//! Owns: names of tools and servers as typed, turned into what has to be listed. Never does:
//! compare.

use std::collections::BTreeSet;

use super::context::Starts;
use super::entries;
use crate::assembly::Assembly;
use crate::catalogue::Catalogue;
use crate::catalogue::pins::{Pins, Report};
use crate::host::request::Reach;
use crate::model::{Fault, Origin};

/// What was asked for.
#[derive(Debug, Default)]
pub struct Selection {
    everything: bool,
    /// Servers with all their tools.
    whole: BTreeSet<String>,
    /// Single tools by full name.
    tools: BTreeSet<String>,
    /// Servers that have to be listed.
    asked: BTreeSet<String>,
}

impl Selection {
    /// What a command about these names may have to start.
    pub fn starts<'a>(names: &'a [String], servers: &'a [String]) -> Starts<'a> {
        match names {
            [name] => Starts::Named(name, servers),
            _ => Starts::Servers(servers),
        }
    }

    /// Finds out what is meant: all tools without a name, otherwise the named tools and servers. A
    /// tool that has a pin need not exist any more.
    ///
    /// # Errors
    /// Unknown and ambiguous names, and what finding out ran into.
    pub async fn resolve(
        names: &[String],
        servers: &[String],
        assembly: &Assembly,
        pins: &Pins,
    ) -> Result<Self, Fault> {
        let known = assembly.host.servers();
        let known: BTreeSet<&str> = known.iter().map(|server| server.name.as_str()).collect();
        entries::expect_servers(&assembly.configuration, servers, &known)?;
        let mut selection = Self::default();
        if names.is_empty() {
            selection.everything = servers.is_empty();
            selection.whole.extend(servers.iter().cloned());
        }
        for name in names {
            if known.contains(name.as_str()) {
                selection.whole.insert(name.clone());
            } else if let Some(server) = pinned_at(pins, name) {
                selection.tools.insert(name.clone());
                selection.asked.insert(server.to_owned());
            } else if pins.internal().any(|pinned| pinned == name) {
                selection.tools.insert(name.clone());
            } else {
                let tool = assembly.host.find(name, servers).await?;
                selection.tools.insert(tool.name.full());
                if let Origin::Server(server) = &tool.origin {
                    selection.asked.insert(server.clone());
                } else if let Some(fault) = tool.unavailable {
                    return Err(fault);
                }
            }
        }
        let whole = selection.whole.clone();
        selection.asked.extend(whole);
        Ok(selection)
    }

    /// How far a listing has to reach.
    pub fn reach(&self) -> Reach {
        if self.everything {
            return Reach::Everything;
        }
        Reach::Servers(self.asked.iter().cloned().collect())
    }

    /// Whether a tool is meant.
    pub fn takes(&self, name: &str, server: Option<&str>) -> bool {
        self.everything
            || self.tools.contains(name)
            || server.is_some_and(|server| self.whole.contains(server))
    }

    /// Whether a server was asked for by a name of its own, or of one of its tools.
    pub fn names_server(&self, server: &str) -> bool {
        self.asked.contains(server)
    }

    /// Leaves in a comparison and in the listing behind it only what is meant.
    pub fn narrow(&self, report: &mut Report, catalogue: &mut Catalogue) {
        report.tools.retain(|tool| self.takes(&tool.name, tool.server.as_deref()));
        if self.everything {
            return;
        }
        report.servers.retain(|server| self.asked.contains(&server.name));
        let internal = report.tools.iter().any(|tool| tool.server.is_none());
        if !internal {
            catalogue.failures.clear();
        }
    }
}

/// The server at which a tool of this name is pinned.
fn pinned_at<'p>(pins: &'p Pins, name: &str) -> Option<&'p str> {
    let mut servers = pins.servers();
    let owner = servers.find(|(server, group)| {
        let tool = name.strip_prefix(server).and_then(|rest| rest.strip_prefix('-'));
        tool.is_some_and(|tool| group.tools.contains_key(tool))
    });
    owner.map(|(server, _)| server)
}
