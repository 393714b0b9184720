//! Tools registered at run time: functions of the embedding program.

use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use indexmap::IndexMap;
use serde_json::json;

use super::handler::ToolHandler;
use super::roster;
use super::sessions::{SessionInfo, Sessions};
use crate::model::{Error, ToolCall, ToolContext, ToolDefinition, ToolName, ToolResult};
use crate::provider::{Preview, ToolListVersion, ToolListing, ToolProvider};

pub(super) type HandlerFactory = dyn Fn(&SessionInfo) -> Arc<dyn ToolHandler> + Send + Sync;

pub(super) enum HandlerSource {
    Global(Arc<dyn ToolHandler>),
    /// Makes a handler for each session, at its first call.
    Session(Arc<HandlerFactory>),
}

struct RegisteredTool {
    definition: Arc<ToolDefinition>,
    handler: HandlerSource,
}

pub(super) struct ToolRegistry {
    tools: RwLock<ToolTable>,
    sessions: Arc<Sessions>,
}

#[derive(Default)]
struct ToolTable {
    /// By their full names, in the order in which they were registered.
    by_name: IndexMap<String, Arc<RegisteredTool>>,
    /// How often a tool was added or removed.
    changes: u64,
}

impl ToolRegistry {
    pub(super) fn new(sessions: Arc<Sessions>) -> Self {
        Self { tools: RwLock::default(), sessions }
    }

    pub(super) fn add(&self, definition: ToolDefinition, code: HandlerSource) {
        let mut tools = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        tools.changes += 1;
        let full = definition.name.full();
        tools.by_name.insert(
            full,
            Arc::new(RegisteredTool { definition: Arc::new(definition), handler: code }),
        );
    }

    /// Removes a tool with its instances; running calls continue. Returns the tool, if there was
    /// one.
    pub(super) fn remove(&self, full: &str) -> Option<Arc<ToolDefinition>> {
        let mut tools = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        let removed = tools.by_name.shift_remove(full);
        tools.changes += u64::from(removed.is_some());
        drop(tools);
        self.sessions.drop_tool(full);
        Some(Arc::clone(&removed?.definition))
    }

    pub(super) fn definitions(&self) -> Vec<Arc<ToolDefinition>> {
        let tools = self.tools.read().unwrap_or_else(PoisonError::into_inner);
        tools.by_name.values().map(|tool| Arc::clone(&tool.definition)).collect()
    }

    fn tool(&self, name: &ToolName) -> Result<Arc<RegisteredTool>, Error> {
        let tools = self.tools.read().unwrap_or_else(PoisonError::into_inner);
        tools
            .by_name
            .get(&name.full())
            .cloned()
            .ok_or_else(|| roster::removed_tool_error(&name.full()))
    }
}

#[async_trait]
impl ToolProvider for ToolRegistry {
    fn component(&self) -> Option<&str> {
        None
    }

    fn declared(&self) -> Vec<Arc<ToolDefinition>> {
        self.definitions()
    }

    fn list_version(&self) -> ToolListVersion {
        let tools = self.tools.read().unwrap_or_else(PoisonError::into_inner);
        ToolListVersion { change: tools.changes, ..ToolListVersion::default() }
    }

    async fn list(&self) -> Result<ToolListing, Error> {
        Ok(ToolListing { tools: self.definitions(), ..ToolListing::default() })
    }

    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Error> {
        let tool = self.tool(&call.name)?;
        let arguments = call.arguments.clone();
        match &tool.handler {
            HandlerSource::Global(handler) => handler.call(arguments, context.clone()).await,
            HandlerSource::Session(factory) => {
                let info = SessionInfo {
                    session_id: Arc::clone(&context.session_id),
                    user_id: context.user_id.clone(),
                    cwd: Arc::clone(&context.cwd),
                    environment: context.environment.clone(),
                    metadata: context.metadata.clone(),
                };
                let stay = self.sessions.acquire(info, &call.name.full())?;
                let handler = stay.instance.get_or_init(|| factory(&stay.info));
                handler.call(arguments, context.clone()).await
            }
        }
    }

    async fn preview(&self, call: &ToolCall) -> Result<Preview, Error> {
        let tool = self.tool(&call.name)?;
        let whose = match tool.handler {
            HandlerSource::Global(_) => "calls a function of this program",
            HandlerSource::Session(_) => "calls a function of this program, made for the session",
        };
        Ok(Preview { summary: whose.to_owned(), request: json!({ "arguments": call.arguments }) })
    }
}
