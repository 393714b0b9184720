//! Tools registered at run time, the providers of a host at one moment, and what is and was registered
//! under which name.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Deref;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use indexmap::IndexMap;
use serde_json::json;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::function_tool::ToolHandler;
use super::listings::{ListedTool, RegisteredProvider};
use super::sessions::{SessionInfo, Sessions};
use crate::catalogue::naming;
use crate::model::{
    Error, ErrorCause, RetryAdvice, ToolCall, ToolContext, ToolDefinition, ToolName, ToolResult,
};
use crate::provider::{ComponentFactory, Preview, ToolListVersion, ToolListing, ToolProvider};

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
        tools.by_name.get(&name.full()).cloned().ok_or_else(|| removed_tool_error(&name.full()))
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

/// The providers in catalogue order. The registry of single tools comes last, so that what files
/// declare is listed first.
#[derive(Default)]
pub(super) struct ProviderTable(pub(super) Vec<Arc<RegisteredProvider>>);

impl ProviderTable {
    pub(super) fn iter(&self) -> std::slice::Iter<'_, Arc<RegisteredProvider>> {
        self.0.iter()
    }

    pub(super) fn server(&self, name: &str) -> Option<&Arc<RegisteredProvider>> {
        self.iter().find(|provider| provider.server.as_deref() == Some(name))
    }

    pub(super) fn source(&self, name: &str) -> Option<&Arc<RegisteredProvider>> {
        self.iter().find(|provider| provider.source.as_deref() == Some(name))
    }

    pub(super) fn remote(&self) -> impl Iterator<Item = &Arc<RegisteredProvider>> {
        self.iter().filter(|provider| provider.is_remote())
    }

    /// The tool of this full name and who has it, as far as known without contacting a server.
    pub(super) fn known_tool(
        &self,
        full: &str,
    ) -> Option<(&Arc<RegisteredProvider>, Arc<ListedTool>)> {
        self.iter().find_map(|provider| Some((provider, provider.known_tool(full)?)))
    }
}

/// A provider that is not closed while this is held: its removal waits, within bounds.
pub(super) struct ProviderLease {
    pub(super) provider: Arc<RegisteredProvider>,
    _user: TaskTrackerToken,
}

impl ProviderLease {
    /// `None` once the provider is removed.
    pub(super) fn of(provider: &Arc<RegisteredProvider>) -> Option<Self> {
        Some(Self { provider: Arc::clone(provider), _user: provider.begin_use()? })
    }
}

impl Deref for ProviderLease {
    type Target = RegisteredProvider;

    fn deref(&self) -> &RegisteredProvider {
        &self.provider
    }
}

const MAX_REMOVED: usize = 1_000;

#[derive(Default)]
pub(super) struct Roster {
    pub(super) factories: BTreeMap<String, Arc<dyn ComponentFactory>>,
    pub(super) client_factory: Option<Arc<dyn ComponentFactory>>,
    pub(super) is_closed: bool,
    /// Providers that were removed and are not closed yet.
    pub(super) leaving: Vec<Arc<RegisteredProvider>>,
    removed: VecDeque<RemovedName>,
}

/// What callers may still ask for.
enum RemovedName {
    Component(String),
    Tool(String),
}

impl RemovedName {
    fn has(&self, name: &str) -> bool {
        match self {
            Self::Component(component) => naming::after_component(name, component).is_some(),
            Self::Tool(tool) => tool == name,
        }
    }
}

impl Roster {
    pub(super) fn remember_tool(&mut self, tool: &ToolDefinition) {
        self.remember(RemovedName::Tool(tool.name.full()));
    }

    pub(super) fn remember_provider(&mut self, provider: &RegisteredProvider) {
        for tool in &provider.declared().tools {
            if tool.definition.name.component().is_none() {
                self.remember_tool(&tool.definition);
            }
        }
        for component in provider.components() {
            self.remember(RemovedName::Component(component));
        }
    }

    fn remember(&mut self, name: RemovedName) {
        self.removed.truncate(MAX_REMOVED - 1);
        self.removed.push_front(name);
    }

    /// Forgets that these components and tools were removed: they are there again.
    pub(super) fn forget_removed(&mut self, is_back: impl Fn(&str) -> bool) {
        self.removed.retain(|removed| match removed {
            RemovedName::Component(name) | RemovedName::Tool(name) => !is_back(name),
        });
    }

    /// The error for a tool that no provider has, if it was removed while the host runs.
    pub(super) fn removed_error(&self, name: &str) -> Option<Error> {
        self.removed.iter().any(|removed| removed.has(name)).then(|| removed_tool_error(name))
    }
}

pub(super) fn removed_tool_error(name: &str) -> Error {
    Error::usage(format!("'{name}' was removed"))
        .with_cause(ErrorCause::ToolRemoved)
        .with_hint("it existed earlier in this run; list the tools again")
}

/// The error of a call that was still running some time after its provider was removed.
pub(super) fn cancelled_by_removal(name: &ToolName) -> Error {
    Error::unreachable(format!("'{name}' was cancelled, because it was removed while it ran"))
        .with_cause(ErrorCause::ToolRemoved)
        .with_retry_advice(RetryAdvice::Never)
}
