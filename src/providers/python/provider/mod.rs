//! The provider of an entry: one function, all that a module offers, or the methods of a class.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;
use serde_json::{Value, json};

use super::definition::{self, OfferedTool};
use super::entry::{self, PythonEntry, Selection};
use super::module;
use super::runner::{PythonRunner, SharedPython};
use crate::config::node::ConfigNode;
use crate::config::spec::ToolSpec;
use crate::model::{
    Diagnostic, Error, ErrorKind, Origin, Safety, ToolCall, ToolContext, ToolDefinition, ToolName,
    ToolResult, ToolSchema, ToolScope, check_name,
};
use crate::provider::{BuiltProviders, Preview, ProviderDeps, ToolListing, ToolProvider};
use crate::providers::confinement::Sandbox;

/// What the worker calls the tool of a class that is one tool.
const SINGLE: &str = "__call__";

struct PythonProvider {
    /// What the entry says applies to each of its tools.
    template: ToolDefinition,
    /// The entry as written, which overrides what definitions say.
    node: Arc<ConfigNode>,
    runner: PythonRunner,
    function: OnceLock<Arc<ToolDefinition>>,
    is_remote: bool,
    /// The tools that want a worker for each session, as of the last list.
    session_tools: Mutex<BTreeSet<ToolName>>,
}

pub(super) fn build(specs: &[&ToolSpec], context: &ProviderDeps) -> BuiltProviders {
    let shared = Arc::new(SharedPython::new(context));
    BuiltProviders::each(specs, |spec, diagnostics| {
        let entry = entry::read(spec, shared.environment.as_ref(), diagnostics)?;
        Some(PythonProvider::new(spec, entry, &shared))
    })
}

/// What a call may touch: Python code says nothing about itself, so what confines it counts.
fn touches(runner: &PythonRunner) -> Vec<String> {
    let entry = &runner.entry;
    let what = match &entry.selection {
        Selection::Offered => format!("functions of {}", entry.module),
        Selection::Function(_) | Selection::Class(_) => entry.source(),
    };
    let code = match module::file_of(&entry.root, &entry.module) {
        Some(file) => format!("from {}", file.display()),
        None => "as installed for the interpreter".to_owned(),
    };
    let interpreter = match runner.interpreter() {
        Ok(path) => format!("starts {}", path.display()),
        Err(_) => format!("starts {}", entry.python.as_deref().unwrap_or("python3")),
    };
    let mut lines = vec![
        format!("runs the Python code of {what}, {code}"),
        interpreter,
        format!("works in {}", entry.root.display()),
    ];
    if !entry.sandbox.as_ref().is_some_and(Sandbox::confines) {
        lines.push("anything that code does, with your own permissions".to_owned());
    }
    lines.extend(entry.sandbox.iter().flat_map(|sandbox| sandbox.describe(Some(&entry.root))));
    lines
}

impl PythonProvider {
    fn new(spec: &ToolSpec, entry: PythonEntry, shared: &Arc<SharedPython>) -> Self {
        let runner = PythonRunner::new(entry, Arc::clone(shared));
        let mut template = spec.definition.clone();
        template.touches.extend(touches(&runner));
        let sandbox = runner.entry.sandbox.as_ref();
        template.sandbox = sandbox.and_then(Sandbox::coverage).map(Arc::new);
        if sandbox.is_some_and(Sandbox::confines) {
            template.safety = Safety::Sandboxed;
        }
        let mut provider = Self {
            template,
            node: Arc::clone(&spec.entry),
            runner,
            function: OnceLock::new(),
            is_remote: true,
            session_tools: Mutex::default(),
        };
        if let Some(tool) = provider.known_function() {
            provider.is_remote = false;
            provider.function = OnceLock::from(Arc::new(tool));
        }
        provider
    }

    fn entry(&self) -> &PythonEntry {
        &self.runner.entry
    }

    /// The tool of a single function, if nothing has to be started to know it.
    fn known_function(&self) -> Option<ToolDefinition> {
        let Selection::Function(function) = &self.entry().selection else { return None };
        match self.runner.obstacle() {
            Some(error) => Some(self.unavailable(error)),
            None if self.entry().has_schema => Some(self.stand_in()),
            None => self.runner.recall(function).map(|described| self.definition(described)),
        }
    }

    /// What is listed as long as only the module knows what there is.
    fn stand_in(&self) -> ToolDefinition {
        let mut tool = self.template.clone();
        let source = self.entry().source();
        tool.description.get_or_insert_with(|| match &self.entry().selection {
            Selection::Function(_) => format!("Calls {source}."),
            Selection::Class(_) => format!("The methods of {source}."),
            Selection::Offered => format!("The tools of {source}."),
        });
        tool
    }

    fn unavailable(&self, error: Error) -> ToolDefinition {
        let mut tool = self.stand_in();
        tool.mark_unavailable(error);
        tool
    }

    fn warning(&self, text: String) -> Diagnostic {
        let warning = Diagnostic::warning(text).with_entry(self.template.name.full());
        match &self.template.origin {
            Origin::File(place) => warning.with_location(place.clone()),
            Origin::Server(_) | Origin::Program => warning,
        }
    }

    /// Tells where the entry says what the worker could not make sense of.
    fn locate(&self, error: Error) -> Error {
        if self.entry().is_function()
            || error.kind() != ErrorKind::Config
            || error.location().is_some()
        {
            return error;
        }
        let keys = ["config", "class", "module"];
        let spot = keys.into_iter().find_map(|key| self.node.get(key)).unwrap_or(&self.node);
        error.with_location(spot.location())
    }

    /// The name of a tool: its own, or below the entry's for a method.
    fn name_of(&self, offered: &str) -> ToolName {
        match &self.entry().selection {
            Selection::Class(_) if offered != SINGLE => {
                ToolName::of(self.template.name.full(), offered)
            }
            Selection::Function(_) | Selection::Class(_) => self.template.name.clone(),
            Selection::Offered => ToolName::plain(offered),
        }
    }

    fn offered_name<'a>(&'a self, name: &'a ToolName) -> &'a str {
        match &self.entry().selection {
            Selection::Function(function) => function,
            Selection::Class(_) if *name == self.template.name => SINGLE,
            Selection::Class(_) | Selection::Offered => name.tool(),
        }
    }

    /// The function behind a tool, within its module.
    fn function_of(&self, name: &ToolName) -> String {
        match (&self.entry().selection, self.offered_name(name)) {
            (Selection::Class(class), SINGLE) => class.name.clone(),
            (Selection::Class(class), method) => format!("{}.{method}", class.name),
            (_, function) => function.to_owned(),
        }
    }

    fn definition(&self, offered: OfferedTool) -> ToolDefinition {
        let mut tool = self.template.clone();
        tool.name = self.name_of(&offered.name);
        let is_entrys_own = tool.name == self.template.name;
        if !is_entrys_own || tool.description.is_none() {
            tool.description = offered.description;
        }
        let called = format!("{}.{}", self.entry().module, self.function_of(&tool.name));
        tool.description.get_or_insert_with(|| format!("Calls {called}."));
        let about = offered.meta.about;
        if !(is_entrys_own && self.entry().has_schema) {
            tool.input_schema = ToolSchema::from(offered.input_schema);
            tool.warnings.extend(about.doubts);
        }
        if !self.entry().is_function() {
            definition::fill(&mut tool, &about.attributes, &self.node);
        }
        tool
    }
}

#[async_trait]
impl ToolProvider for PythonProvider {
    fn declared(&self) -> Vec<Arc<ToolDefinition>> {
        let definition = self.function.get().filter(|_| !self.is_remote).cloned();
        vec![definition.unwrap_or_else(|| Arc::new(self.stand_in()))]
    }

    /// All that a class gives bears the name of its entry, so that no other name asks for it.
    fn component(&self) -> Option<&str> {
        let is_class = matches!(self.entry().selection, Selection::Class(_));
        is_class.then(|| self.template.name.tool())
    }

    fn is_remote(&self) -> bool {
        self.is_remote
    }

    fn declares_all(&self) -> bool {
        self.entry().is_function()
    }

    async fn list(&self) -> Result<ToolListing, Error> {
        let mut listing = ToolListing::default();
        if let Some(tool) = self.function.get() {
            listing.tools.push(Arc::clone(tool));
            return Ok(listing);
        }
        let is_function = self.entry().is_function();
        let offered = match self.runner.list().await {
            Ok(offered) => offered,
            Err(error) if is_function => {
                listing.tools.push(Arc::new(self.unavailable(error)));
                return Ok(listing);
            }
            Err(error) => return Err(self.locate(error)),
        };
        let source = self.entry().source();
        let not_a_tool = |reason| format!("a function of '{source}' is not a tool: {reason}");
        let mut warnings: Vec<String> = offered.about.reasons.iter().map(not_a_tool).collect();
        if offered.tools.is_empty() {
            warnings.push(format!(
                "'{source}' has no tool definition, and no public function with types for all \
                 parameters"
            ));
        }
        let mut by_session = BTreeSet::new();
        for one in offered.tools {
            if is_function {
                self.runner.remember(&one);
            } else if one.name != SINGLE
                && let Err(error) = check_name(&one.name)
            {
                warnings.push(error.to_string());
                continue;
            }
            let tool = Arc::new(self.definition(one));
            if is_function {
                let _first = self.function.set(Arc::clone(&tool));
            }
            if tool.scope == ToolScope::Session {
                by_session.insert(tool.name.clone());
            }
            listing.tools.push(tool);
        }
        *self.session_tools.lock().unwrap_or_else(PoisonError::into_inner) = by_session;
        listing.diagnostics.extend(warnings.into_iter().map(|text| self.warning(text)));
        Ok(listing)
    }

    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Error> {
        let by_session = self.entry().by_session || {
            let tools = self.session_tools.lock().unwrap_or_else(PoisonError::into_inner);
            tools.contains(&call.name)
        };
        let tool = (self.offered_name(&call.name), &call.arguments);
        let result = self.runner.call(tool, by_session, context, &call.name.full()).await;
        result.map_err(|error| self.locate(error))
    }

    async fn preview(&self, call: &ToolCall) -> Result<Preview, Error> {
        let (entry, workers) = (self.entry(), self.runner.workers()?);
        let key = &workers.key;
        let function = self.function_of(&call.name);
        let file = module::file_of(&entry.root, &entry.module);
        Ok(Preview {
            summary: format!("calls {}.{function} in {}", entry.module, key.interpreter.display()),
            request: json!({
                "interpreter": key.interpreter.display().to_string(),
                "root": entry.root.display().to_string(),
                "env": key.env.keys().collect::<Vec<_>>(),
                "module": entry.module,
                "file": file.map(|file| file.display().to_string()),
                "function": function,
                "arguments": Value::Object(call.arguments.clone()),
            }),
        })
    }

    async fn close(&self) {
        self.runner.close().await;
    }
}

#[cfg(test)]
mod describe_tests;
#[cfg(test)]
mod tests;
