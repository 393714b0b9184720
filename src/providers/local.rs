//! The provider of tools that entries define and that run here: a list of them, each called by name.

use std::sync::Arc;

use async_trait::async_trait;

use crate::config::spec::ToolSpec;
use crate::model::{
    Diagnostics, Error, ErrorKind, ToolCall, ToolContext, ToolDefinition, ToolResult,
};
use crate::provider::{BuiltProviders, Preview, ToolProvider, read_each};

/// What a kind does with a call of one of its tools.
#[async_trait]
pub(super) trait LocalTool: Send + Sync + 'static {
    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Error>;

    fn preview(&self, call: &ToolCall) -> Result<Preview, Error>;

    /// Releases what the tool shares with the others of its entry.
    async fn close(&self) {}
}

pub(super) struct LocalProvider<T> {
    pub(super) component: Option<String>,
    pub(super) tools: Vec<(Arc<ToolDefinition>, T)>,
}

/// A no of the tool is an answer: an error of this kind becomes a result.
pub(super) fn answered(outcome: Result<ToolResult, Error>) -> Result<ToolResult, Error> {
    outcome.or_else(|error| match error.kind() {
        ErrorKind::Tool => {
            let answer = ToolResult::failure(error.message());
            Ok(ToolResult { error: Some(error), ..answer })
        }
        _ => Err(error),
    })
}

/// One provider of all entries of a kind. `read` gives the tool of an entry, or none, and adds what
/// is wrong with it to the diagnostics.
pub(super) fn build<T: LocalTool>(
    specs: &[&ToolSpec],
    mut read: impl FnMut(&ToolSpec, &Diagnostics) -> Option<(ToolDefinition, T)>,
) -> BuiltProviders {
    let (tools, diagnostics) = read_each(specs, |spec, diagnostics| {
        read(spec, diagnostics).map(|(definition, tool)| (Arc::new(definition), tool))
    });
    let mut built = BuiltProviders { providers: Vec::new(), diagnostics };
    if !tools.is_empty() {
        built.providers.push(Arc::new(LocalProvider { component: None, tools }));
    }
    built
}

impl<T> LocalProvider<T> {
    fn tool(&self, call: &ToolCall) -> Result<&T, Error> {
        let tool = self.tools.iter().find(|(definition, _)| definition.name == call.name);
        tool.map(|(_, tool)| tool).ok_or_else(|| {
            Error::internal(format!("'{}' is not a tool of this provider", call.name))
        })
    }
}

#[async_trait]
impl<T: LocalTool> ToolProvider for LocalProvider<T> {
    fn component(&self) -> Option<&str> {
        self.component.as_deref()
    }

    fn declared(&self) -> Vec<Arc<ToolDefinition>> {
        self.tools.iter().map(|(definition, _)| Arc::clone(definition)).collect()
    }

    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Error> {
        self.tool(call)?.call(context, call).await
    }

    async fn preview(&self, call: &ToolCall) -> Result<Preview, Error> {
        self.tool(call)?.preview(call)
    }

    async fn close(&self) {
        for (_, tool) in &self.tools {
            tool.close().await;
        }
    }
}
