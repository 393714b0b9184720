//! Comparing a whole listing with all pins.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::content::PinGroup;
use super::table::{Pins, server_of};
use crate::catalogue::changes::DefinitionChange;
use crate::catalogue::{Catalogue, fingerprint};
use crate::model::{Error, ToolDefinition, ToolStatus, impl_as_str};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum PinReportState {
    /// It is not what was pinned.
    Changed,
    /// It was pinned and is not listed any more.
    #[strum(serialize = "gone")]
    Missing,
    /// Listed now, and never pinned.
    New,
    /// It is pinned, and its server did not answer.
    Unchecked,
    Same,
}

impl_as_str!(PinReportState);

#[derive(Debug, Clone, PartialEq)]
pub struct ToolReport {
    pub name: String,
    /// The MCP server; `None` for internal tools.
    pub server: Option<String>,
    pub state: PinReportState,
    pub pinned: Option<String>,
    /// The fingerprint of the current definition; `None` when the tool is gone.
    pub now: Option<String>,
    pub changes: Vec<DefinitionChange>,
}

impl ToolReport {
    /// Of a tool that is pinned and not listed.
    fn unlisted(
        name: String,
        server: Option<String>,
        state: PinReportState,
        pinned: Option<String>,
    ) -> Self {
        Self { name, server, state, pinned, now: None, changes: Vec::new() }
    }
}

/// A server whose instructions or location differ from what was pinned; all its tools count as
/// changed.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerReport {
    pub name: String,
    /// `entry`, `endpoint` and `instructions`, as far as they changed.
    pub changes: Vec<DefinitionChange>,
}

#[derive(Debug, Clone, Default)]
pub struct PinReport {
    /// The tools: those of the catalogue in its order, then what is gone.
    pub tools: Vec<ToolReport>,
    pub servers: Vec<ServerReport>,
    /// Why a server with pins could not be checked.
    pub failures: Vec<Error>,
}

impl PinReport {
    /// Compares what was listed with `pins`. `instructions` gives those of a server.
    pub fn new(
        pins: &Pins,
        catalogue: &Catalogue,
        instructions: &dyn Fn(&str) -> Option<String>,
    ) -> Self {
        let mut report = Self::default();
        let listed = |tool: &&Arc<ToolDefinition>| {
            !matches!(tool.status, ToolStatus::Unavailable | ToolStatus::Declared)
        };
        let mut names = BTreeSet::new();
        for tool in catalogue.tools.iter().filter(listed) {
            let name = tool.name.full();
            names.insert(name.clone());
            let server = server_of(tool);
            let server_instructions = server.and_then(instructions);
            let differences = pins.compare(tool, server_instructions.as_deref());
            let state = match differences.as_deref() {
                None => PinReportState::New,
                Some([]) => PinReportState::Same,
                Some(_) => PinReportState::Changed,
            };
            let mut changes = differences.unwrap_or_default();
            // What is true of the whole server is reported once.
            changes.retain(|change| {
                server.is_none() || !matches!(change.part, "entry" | "endpoint" | "instructions")
            });
            report.tools.push(ToolReport {
                name,
                server: server.map(str::to_owned),
                state,
                pinned: pins.pin(tool).map(|pin| pin.fingerprint.clone()),
                now: Some(fingerprint::fingerprint(tool)),
                changes,
            });
        }
        for server_status in &catalogue.servers {
            let Some(group) = pins.server(&server_status.name) else { continue };
            let server_instructions = instructions(&server_status.name);
            let failed = server_status.error.is_some();
            if !failed {
                let changes =
                    pins.server_changes(&server_status.name, server_instructions.as_deref());
                if !changes.is_empty() {
                    report.servers.push(ServerReport { name: server_status.name.clone(), changes });
                }
            }
            report.failures.extend(server_status.error.clone());
            // A list with holes does not tell what is gone.
            let state = if failed || server_status.is_partial {
                PinReportState::Unchecked
            } else {
                PinReportState::Missing
            };
            report.add_missing(group, state, &names);
        }
        let mut internal: Vec<&str> =
            pins.internal().filter(|name| !names.contains(*name)).collect();
        internal.sort_unstable();
        let failed = !catalogue.failures.is_empty();
        report.failures.extend(catalogue.failures.iter().map(|failure| failure.error.clone()));
        for name in internal {
            let state = if failed { PinReportState::Unchecked } else { PinReportState::Missing };
            report.tools.push(ToolReport::unlisted(name.to_owned(), None, state, None));
        }
        report
    }

    fn add_missing(&mut self, group: &PinGroup, state: PinReportState, names: &BTreeSet<String>) {
        let server = group.server.as_deref().unwrap_or_default();
        for (tool, pin) in &group.tools {
            let name = format!("{server}-{tool}");
            if !names.contains(&name) {
                let (server, pinned) = (group.server.clone(), Some(pin.fingerprint.clone()));
                self.tools.push(ToolReport::unlisted(name, server, state, pinned));
            }
        }
    }

    pub fn count(&self, state: PinReportState) -> usize {
        self.tools.iter().filter(|tool| tool.state == state).count()
    }
}
