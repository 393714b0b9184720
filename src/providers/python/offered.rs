//! The provider of an entry that makes tools of all that a module offers, or of a class.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::describe::OfferedTool;
use super::entry::{PythonEntry, Selection};
use super::runner::PythonRunner;
use super::wire::{WorkerOp, WorkerTarget};
use super::{definition, describe, preview, result};
use crate::config::node::ConfigNode;
use crate::config::spec::ToolSpec;
use crate::model::{
    Diagnostic, Error, ErrorKind, Origin, ToolCall, ToolContext, ToolDefinition, ToolName,
    ToolResult, ToolScope, check_name,
};
use crate::provider::{Preview, ToolListing, ToolProvider};

/// Calls what one module offers, each under its own name, or the methods of one class.
pub(super) struct OfferedToolsProvider {
    /// What the entry says applies to each of them.
    template: ToolDefinition,
    /// The entry as written, which overrides what definitions say.
    node: Arc<ConfigNode>,
    entry: PythonEntry,
    /// The same entry for tools whose definition wants a worker for each session.
    session_entry: PythonEntry,
    /// The tools that do, as of the last list.
    session_tools: Mutex<BTreeSet<ToolName>>,
    runner: Arc<PythonRunner>,
}

impl OfferedToolsProvider {
    /// The provider of an entry that names a class, or no function.
    pub(super) fn new(
        template: ToolDefinition,
        spec: &ToolSpec,
        entry: PythonEntry,
        runner: Arc<PythonRunner>,
    ) -> Self {
        let session_entry = PythonEntry { by_session: true, ..entry.clone() };
        let node = Arc::clone(&spec.entry);
        let session_tools = Mutex::default();
        Self { template, node, entry, session_entry, session_tools, runner }
    }

    fn located(&self, diagnostic: Diagnostic) -> Diagnostic {
        let diagnostic = diagnostic.with_entry(self.template.name.full());
        match &self.template.origin {
            Origin::File(place) => diagnostic.with_location(place.clone()),
            Origin::Server(_) | Origin::Program => diagnostic,
        }
    }

    /// Tells where the entry says what the worker could not make sense of.
    fn locate(&self, error: Error) -> Error {
        if error.kind() != ErrorKind::Config || error.location().is_some() {
            return error;
        }
        let keys = ["config", "class", "module"];
        let spot = keys.into_iter().find_map(|key| self.node.get(key)).unwrap_or(&self.node);
        error.with_location(spot.location())
    }

    /// The source of the tools, for people.
    fn source(&self) -> String {
        match &self.entry.selection {
            Selection::Class(class) => format!("{}.{}", self.entry.module, class.name),
            Selection::Function(_) | Selection::Offered => self.entry.module.clone(),
        }
    }

    /// The name of a tool: its own, or below the entry's for a method.
    fn name_of(&self, offered: &str) -> ToolName {
        match &self.entry.selection {
            Selection::Class(_) if offered.is_empty() => self.template.name.clone(),
            Selection::Class(_) => ToolName::of(self.template.name.full(), offered),
            Selection::Function(_) | Selection::Offered => ToolName::plain(offered),
        }
    }

    /// The part of the module that a call of this name is about.
    fn target<'a>(&'a self, name: &'a ToolName) -> WorkerTarget<'a> {
        match &self.entry.selection {
            Selection::Class(class) => {
                let is_single = *name == self.template.name;
                WorkerTarget::Class(class, (!is_single).then(|| name.tool()))
            }
            Selection::Function(_) | Selection::Offered => WorkerTarget::Offer(name.tool()),
        }
    }

    /// The definition of one tool.
    fn definition(&self, offered: OfferedTool) -> ToolDefinition {
        let mut tool = self.template.clone();
        tool.name = self.name_of(&offered.name);
        let is_entrys_own = tool.name == self.template.name;
        if !is_entrys_own || tool.description.is_none() {
            tool.description = offered.described.description;
        }
        let source = self.source();
        let called = match offered.name.as_str() {
            "" => source,
            name => format!("{source}.{name}"),
        };
        tool.description.get_or_insert_with(|| format!("Calls {called}."));
        if !(is_entrys_own && self.entry.has_schema) {
            tool.input_schema = Arc::new(offered.described.input_schema);
            tool.warnings.extend(offered.described.warnings);
        }
        definition::fill(&mut tool, offered.said, &self.node);
        tool
    }
}

#[async_trait]
impl ToolProvider for OfferedToolsProvider {
    /// One that stands for all of them: only the module knows what it offers. It is what is listed
    /// as unavailable when the module cannot be imported.
    fn declared(&self) -> Vec<Arc<ToolDefinition>> {
        let mut all = self.template.clone();
        let sentence = || match &self.entry.selection {
            Selection::Class(_) => format!("The methods of {}.", self.source()),
            Selection::Function(_) | Selection::Offered => {
                format!("The tools of {}.", self.source())
            }
        };
        all.description.get_or_insert_with(sentence);
        vec![Arc::new(all)]
    }

    /// All that a class gives bears the name of its entry, so that no other name asks for it.
    fn component(&self) -> Option<&str> {
        let is_class = matches!(self.entry.selection, Selection::Class(_));
        is_class.then(|| self.template.name.tool())
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn declares_all(&self) -> bool {
        false
    }

    async fn list(&self) -> Result<ToolListing, Error> {
        let offered = describe::offered(&self.runner, &self.entry).await;
        let offered = offered.map_err(|error| self.locate(error))?;
        let mut listing = ToolListing::default();
        let source = self.source();
        for reason in &offered.left_out {
            let message = format!("a function of '{source}' is not a tool: {reason}");
            listing.diagnostics.push(self.located(Diagnostic::warning(message)));
        }
        if offered.functions.is_empty() {
            let message = format!(
                "'{source}' has no tool definition, and no public function with types for all \
                 parameters"
            );
            listing.diagnostics.push(self.located(Diagnostic::warning(message)));
        }
        let mut by_session = BTreeSet::new();
        for one in offered.functions {
            if !one.name.is_empty()
                && let Err(error) = check_name(&one.name)
            {
                listing.diagnostics.push(self.located(Diagnostic::warning(error.to_string())));
                continue;
            }
            let tool = self.definition(one);
            if tool.scope == ToolScope::Session {
                by_session.insert(tool.name.clone());
            }
            listing.tools.push(Arc::new(tool));
        }
        *self.session_tools.lock().unwrap_or_else(PoisonError::into_inner) = by_session;
        Ok(listing)
    }

    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Error> {
        let by_session = {
            let tools = self.session_tools.lock().unwrap_or_else(PoisonError::into_inner);
            tools.contains(&call.name)
        };
        let entry = if by_session { &self.session_entry } else { &self.entry };
        let what = (WorkerOp::Call, self.target(&call.name), Some(&call.arguments));
        let reply = self.runner.request(entry, what, context, &call.name.full()).await?;
        result::read(reply).map_err(|error| self.locate(error))
    }

    async fn preview(&self, call: &ToolCall) -> Result<Preview, Error> {
        let function = match &self.entry.selection {
            Selection::Class(class) if call.name == self.template.name => class.name.clone(),
            Selection::Class(class) => format!("{}.{}", class.name, call.name.tool()),
            Selection::Function(_) | Selection::Offered => call.name.tool().to_owned(),
        };
        preview::of_call(&self.runner, &self.entry, &function, call)
    }

    async fn close(&self) {
        self.runner.close().await;
    }
}
