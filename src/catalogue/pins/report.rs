//! A whole listing compared with all pins.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::book::Group;
use super::table::{Pins, Verdict, server_of};
use crate::catalogue::changes::Change;
use crate::catalogue::{Catalogue, fingerprint};
use crate::model::{Fault, ToolDefinition, ToolStatus};

/// What became of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It is not what was pinned.
    Changed,
    /// It was pinned and is not listed any more.
    Gone,
    /// It has no pin.
    New,
    /// It is pinned, and its server did not answer.
    Unchecked,
    /// It is what was pinned.
    Same,
}

impl State {
    /// The word used in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Gone => "gone",
            Self::New => "new",
            Self::Unchecked => "unchecked",
            Self::Same => "same",
        }
    }
}

/// One tool compared with its pin.
#[derive(Debug, Clone)]
pub struct ToolReport {
    /// Its full name.
    pub name: String,
    /// Its server.
    pub server: Option<String>,
    /// What became of it.
    pub state: State,
    /// The fingerprint that was pinned.
    pub pinned: Option<String>,
    /// The fingerprint it has.
    pub now: Option<String>,
    /// What differs in the tool itself.
    pub changes: Vec<Change>,
}

/// A server whose own words or place are not what was pinned; all its tools count as changed.
#[derive(Debug, Clone)]
pub struct ServerReport {
    /// The server.
    pub name: String,
    /// `entry`, `endpoint` and `instructions`, as far as they changed.
    pub changes: Vec<Change>,
}

/// Everything that was compared.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The tools: those of the catalogue in its order, then what is gone.
    pub tools: Vec<ToolReport>,
    /// Servers that changed.
    pub servers: Vec<ServerReport>,
    /// Why a server with pins could not be checked.
    pub failures: Vec<Fault>,
}

impl Report {
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
        let mut seen = BTreeSet::new();
        for tool in catalogue.tools.iter().filter(listed) {
            let name = tool.name.full();
            seen.insert(name.clone());
            let server = server_of(tool);
            let words = server.and_then(instructions);
            let (state, mut changes) = match pins.judge(tool, words.as_deref()) {
                Verdict::New => (State::New, Vec::new()),
                Verdict::Same => (State::Same, Vec::new()),
                Verdict::Changed(changes) => (State::Changed, changes),
            };
            // What is true of the whole server is told once.
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
        for asked in &catalogue.servers {
            let Some(group) = pins.server(&asked.name) else { continue };
            let words = instructions(&asked.name);
            let failed = asked.fault.is_some();
            if !failed {
                let changes = pins.server_changes(&asked.name, words.as_deref());
                if !changes.is_empty() {
                    report.servers.push(ServerReport { name: asked.name.clone(), changes });
                }
            }
            report.failures.extend(asked.fault.clone());
            // Of a list with holes nobody can say what is gone.
            let state = if failed || asked.partial { State::Unchecked } else { State::Gone };
            report.missing(group, state, &seen);
        }
        let mut internal: Vec<&str> =
            pins.internal().filter(|name| !seen.contains(*name)).collect();
        internal.sort_unstable();
        let failed = !catalogue.failures.is_empty();
        report.failures.extend(catalogue.failures.iter().map(|failure| failure.fault.clone()));
        for name in internal {
            let state = if failed { State::Unchecked } else { State::Gone };
            report.tools.push(ToolReport {
                name: name.to_owned(),
                server: None,
                state,
                pinned: None,
                now: None,
                changes: Vec::new(),
            });
        }
        report
    }

    fn missing(&mut self, group: &Group, state: State, seen: &BTreeSet<String>) {
        let server = group.server.as_deref().unwrap_or_default();
        for (tool, pin) in &group.tools {
            let name = format!("{server}-{tool}");
            if !seen.contains(&name) {
                self.tools.push(ToolReport {
                    name,
                    server: group.server.clone(),
                    state,
                    pinned: Some(pin.fingerprint.clone()),
                    now: None,
                    changes: Vec::new(),
                });
            }
        }
    }

    /// How many tools are in this state.
    pub fn count(&self, state: State) -> usize {
        self.tools.iter().filter(|tool| tool.state == state).count()
    }
}
