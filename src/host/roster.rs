//! What is and was registered under which name.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::listings::RegisteredProvider;
use crate::catalogue::naming;
use crate::model::{Error, ErrorCause, RetryAdvice, ToolDefinition, ToolName};
use crate::provider::ComponentFactory;

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
