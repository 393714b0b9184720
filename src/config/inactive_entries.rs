//! Entries that exist but do not act: with an error, disabled, or not trusted yet.

use std::sync::Arc;

use super::discover::FileRole;
use crate::model::{Diagnostic, Error, ErrorKind, SourceLocation, ToolDefinition};

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
