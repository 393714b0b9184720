//! Entries of an untrusted project, as the host sees them.

use std::sync::Arc;

use async_trait::async_trait;

use crate::config::spec::{FileRole, UntrustedEntry};
use crate::model::{
    Error, ServerState, ServerStatus, ToolCall, ToolContext, ToolDefinition, ToolListing,
    ToolResult, ToolStatus,
};
use crate::provider::{ManagedServer, Preview, ToolProvider};

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
