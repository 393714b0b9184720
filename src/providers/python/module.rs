//! The provider of an entry that makes tools of all typed functions of a module.

use std::sync::Arc;

use async_trait::async_trait;

use super::entry::Entry;
use super::runner::Runner;
use super::wire::Op;
use super::{answer, describe, provider};
use crate::model::{
    Fault, Origin, Problem, ToolCall, ToolContext, ToolDefinition, ToolName, ToolResult, check_name,
};
use crate::provider::{Listing, Preview, ToolProvider};

/// Calls the typed functions of one module; each is a tool of its own name.
pub(super) struct ModuleProvider {
    /// What the entry says holds for each of them.
    template: ToolDefinition,
    entry: Entry,
    runner: Arc<Runner>,
}

impl ModuleProvider {
    /// The provider of an entry with `functions: typed`.
    pub(super) fn new(template: ToolDefinition, entry: Entry, runner: Arc<Runner>) -> Self {
        Self { template, entry, runner }
    }

    fn place(&self, problem: Problem) -> Problem {
        let problem = problem.entry(self.template.name.full());
        match &self.template.origin {
            Origin::File(place) => problem.at(place.clone()),
            Origin::Server(_) | Origin::Program => problem,
        }
    }
}

#[async_trait]
impl ToolProvider for ModuleProvider {
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

    async fn list(&self) -> Result<Listing, Fault> {
        let told = describe::module(&self.runner, &self.entry).await?;
        let mut listing = Listing::default();
        let module = &self.entry.module;
        for reason in &told.left_out {
            let message = format!("a function of '{module}' is no tool: {reason}");
            listing.problems.push(self.place(Problem::warning(message)));
        }
        if told.functions.is_empty() {
            let message =
                format!("'{module}' has no public function with types for all parameters");
            listing.problems.push(self.place(Problem::warning(message)));
        }
        for function in told.functions {
            if let Err(why) = check_name(&function.name) {
                listing.problems.push(self.place(Problem::warning(why)));
                continue;
            }
            let mut definition = self.template.clone();
            definition.name = ToolName::plain(&function.name);
            definition.description = function.described.description;
            let sentence = || format!("Calls {module}.{}.", function.name);
            definition.description.get_or_insert_with(sentence);
            definition.input_schema = Arc::new(function.described.input_schema);
            definition.warnings.extend(function.described.doubts);
            listing.tools.push(Arc::new(definition));
        }
        Ok(listing)
    }

    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Fault> {
        let what = (Op::Call, Some(call.name.tool()), Some(&call.arguments));
        let reply = self.runner.ask(&self.entry, what, context, &call.name.full()).await?;
        answer::read(reply)
    }

    async fn preview(&self, call: &ToolCall) -> Result<Preview, Fault> {
        provider::preview(&self.runner, &self.entry, call.name.tool(), call)
    }

    async fn close(&self) {
        self.runner.close().await;
    }
}
