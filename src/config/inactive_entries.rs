//! Entries that exist but do not act: with an error, disabled, or not trusted yet.
//!
//! Owns: what can be listed of them, and the error for everything that needs one. Never does:
//! decide that an entry is one of them.

use std::sync::Arc;

use super::discover::FileRole;
use crate::model::{Diagnostic, Error, SourceLocation, ToolDefinition};

/// An entry out of service.
#[derive(Debug, Clone)]
pub struct DisabledEntry {
    /// Its name, if it has one.
    pub name: String,
    /// A tool entry or a server entry.
    pub role: FileRole,
    /// The diagnostic that took the entry out of service.
    pub diagnostic: Diagnostic,
    /// The tools that it has according to its file, as far as they can be read: the entry itself,
    /// or what a server's entry declares.
    pub definitions: Vec<ToolDefinition>,
    /// The error for calls that need the entry; `None` if it is simply out of service.
    pub refusal: Option<Error>,
}

impl DisabledEntry {
    /// Whether its file disables it, so that nothing is wrong with it.
    pub fn is_switched_off(&self) -> bool {
        self.refusal.is_none() && !self.diagnostic.is_error()
    }

    /// The error for everything that needs the entry, with its location and a hint.
    pub fn error(&self) -> Error {
        if let Some(refusal) = &self.refusal {
            return refusal.clone();
        }
        let Diagnostic { message, .. } = &self.diagnostic;
        self.placed(Error::config(format!("'{}' is out of service: {message}", self.name)))
    }

    /// The same error, for places that show the name of the entry anyway.
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
    /// The name as written in the entry.
    pub name: String,
    /// A tool entry or a server entry.
    pub role: FileRole,
    /// Its kind, `mcp` for servers.
    pub kind: &'static str,
    /// What the file says about it.
    pub description: Option<String>,
    /// What can be listed of it: the entry itself, and the tools that a server's entry declares.
    pub definitions: Vec<ToolDefinition>,
    /// What it would do, as human-readable lines.
    pub effects: Vec<String>,
    /// The command that allows it.
    pub trust_command: String,
    /// Why it may not act, in words that follow "is".
    pub reason: String,
    /// Whether the user declined the project as it is.
    pub is_declined: bool,
    /// The position in its file, for messages.
    pub location: SourceLocation,
}

impl UntrustedEntry {
    /// The error for everything that would make it act.
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
