//! Entries that exist and do not act: with an error, switched off, or not trusted yet.
//!
//! Owns: what can be listed of them, and the error of everything that needs one. Never does: decide
//! that an entry is one of them.

use std::sync::Arc;

use super::discover::FileRole;
use crate::model::{Diagnostic, Error, SourceLocation, ToolDefinition};

/// An entry out of service.
#[derive(Debug, Clone)]
pub struct DisabledEntry {
    /// Its name, as far as it has one.
    pub name: String,
    /// A tool entry or a server entry.
    pub role: FileRole,
    /// The finding that took the entry out of service.
    pub diagnostic: Diagnostic,
    /// The tools that its file says it has, as far as they can be read: the entry itself, or what a
    /// server's entry declares.
    pub definitions: Vec<ToolDefinition>,
    /// The error of calls that need the entry; `None` when it is simply out of service.
    pub refusal: Option<Error>,
}

impl DisabledEntry {
    /// Whether its file switches it off, so that nothing is wrong with it.
    pub fn is_switched_off(&self) -> bool {
        self.refusal.is_none() && !self.diagnostic.is_error()
    }

    /// The error of everything that needs the entry, with its place and what can be done.
    pub fn error(&self) -> Error {
        if let Some(refusal) = &self.refusal {
            return refusal.clone();
        }
        let Diagnostic { message, .. } = &self.diagnostic;
        self.placed(Error::config(format!("'{}' is out of service: {message}", self.name)))
    }

    /// The same where the name of the entry stands beside it.
    pub fn state_error(&self) -> Error {
        self.placed(Error::config(format!("out of service: {}", self.diagnostic.message)))
    }

    fn placed(&self, error: Error) -> Error {
        let Diagnostic { location, hint, .. } = &self.diagnostic;
        let error = match location {
            Some(location) => error.with_location(location.clone()),
            None => error,
        };
        match hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }

    /// The tools that its file says it has, as unavailable; none of an entry that is switched off.
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

    /// Whether one of its tools has this name, full or without the server's.
    pub fn declares(&self, name: &str) -> bool {
        self.definitions.iter().any(|tool| tool.name.tool() == name || tool.name.full() == name)
    }
}

/// An entry of an untrusted project: only what its file says of it.
#[derive(Debug, Clone)]
pub struct UntrustedEntry {
    /// The name as the entry writes it.
    pub name: String,
    /// A tool entry or a server entry.
    pub role: FileRole,
    /// Its kind, `mcp` for servers.
    pub kind: &'static str,
    /// What the file says about it.
    pub description: Option<String>,
    /// What can be listed of it: the entry itself, and the tools that a server's entry declares.
    pub definitions: Vec<ToolDefinition>,
    /// What it would do, in lines for people.
    pub effects: Vec<String>,
    /// The command that allows it.
    pub trust_command: String,
    /// Whether the project was trusted before it became what it is.
    pub has_changed: bool,
    /// The position in its file, for messages.
    pub location: SourceLocation,
}

impl UntrustedEntry {
    /// The refusal of everything that would make it act.
    pub fn refusal(&self) -> Error {
        let why = if self.has_changed {
            "not trusted any more: its project changed"
        } else {
            "not trusted yet"
        };
        let error = match self.role {
            FileRole::Servers => Error::denied(why).with_server(&self.name),
            FileRole::Tools => Error::denied(format!("'{}' is {why}", self.name)),
        };
        error
            .with_location(self.location.clone())
            .with_details(self.effects.iter().cloned())
            .with_hint(format!("see what it would do and allow it: {}", self.trust_command))
    }
}
