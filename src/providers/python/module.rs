//! The provider of an entry that exposes all typed functions of a module.

use std::sync::Arc;

use async_trait::async_trait;

use super::entry::PythonEntry;
use super::runner::PythonRunner;
use super::wire::WorkerOp;
use super::{describe, provider, result};
use crate::model::{
    Diagnostic, Error, Origin, ToolCall, ToolContext, ToolDefinition, ToolName, ToolResult,
    check_name,
};
use crate::provider::{Preview, ToolListing, ToolProvider};

/// Calls the typed functions of one module; each is a tool of its own name.
pub(super) struct PythonModuleProvider {
    /// What the entry says holds for each of them.
    template: ToolDefinition,
    entry: PythonEntry,
    runner: Arc<PythonRunner>,
}

impl PythonModuleProvider {
    /// The provider of an entry with `functions: typed`.
    pub(super) fn new(
        template: ToolDefinition,
        entry: PythonEntry,
        runner: Arc<PythonRunner>,
    ) -> Self {
        Self { template, entry, runner }
    }

    fn place(&self, diagnostic: Diagnostic) -> Diagnostic {
        let diagnostic = diagnostic.with_entry(self.template.name.full());
        match &self.template.origin {
            Origin::File(place) => diagnostic.with_location(place.clone()),
            Origin::Server(_) | Origin::Program => diagnostic,
        }
    }
}

#[async_trait]
impl ToolProvider for PythonModuleProvider {
    /// One that stands for all of them: only the module knows its functions. It is what is listed
    /// as unavailable when the module cannot be imported.
    fn declared(&self) -> Vec<Arc<ToolDefinition>> {
        let mut all = self.template.clone();
        let sentence = || format!("The typed functions of {}.", self.entry.module);
        all.description.get_or_insert_with(sentence);
        vec![Arc::new(all)]
    }

    fn is_remote(&self) -> bool {
        true
    }

    async fn list(&self) -> Result<ToolListing, Error> {
        let module_functions = describe::module(&self.runner, &self.entry).await?;
        let mut listing = ToolListing::default();
        let module = &self.entry.module;
        for reason in &module_functions.left_out {
            let message = format!("a function of '{module}' is no tool: {reason}");
            listing.diagnostics.push(self.place(Diagnostic::warning(message)));
        }
        if module_functions.functions.is_empty() {
            let message =
                format!("'{module}' has no public function with types for all parameters");
            listing.diagnostics.push(self.place(Diagnostic::warning(message)));
        }
        for function in module_functions.functions {
            if let Err(error) = check_name(&function.name) {
                listing.diagnostics.push(self.place(Diagnostic::warning(error.to_string())));
                continue;
            }
            let mut definition = self.template.clone();
            definition.name = ToolName::plain(&function.name);
            definition.description = function.described.description;
            let sentence = || format!("Calls {module}.{}.", function.name);
            definition.description.get_or_insert_with(sentence);
            definition.input_schema = Arc::new(function.described.input_schema);
            definition.warnings.extend(function.described.warnings);
            listing.tools.push(Arc::new(definition));
        }
        Ok(listing)
    }

    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Error> {
        let what = (WorkerOp::Call, Some(call.name.tool()), Some(&call.arguments));
        let reply = self.runner.request(&self.entry, what, context, &call.name.full()).await?;
        result::read(reply)
    }

    async fn preview(&self, call: &ToolCall) -> Result<Preview, Error> {
        provider::preview(&self.runner, &self.entry, call.name.tool(), call)
    }

    async fn close(&self) {
        self.runner.close().await;
    }
}
