//! The providers of entries with one function each.
//!
//! There are two: one for entries whose definition is whole, which lists them without starting
//! anything, and one for entries whose schema comes from the function itself.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::description_cache::FunctionDescription;
use super::entry::{self, PythonEntry, Selection};
use super::offered::OfferedToolsProvider;
use super::runner::PythonRunner;
use super::wire::{WorkerOp, WorkerTarget};
use super::{describe, installation, module_file, preview, result};
use crate::config::spec::ToolSpec;
use crate::model::{Diagnostic, Error, Safety, ToolCall, ToolContext, ToolDefinition, ToolResult};
use crate::provider::{BuiltProviders, Preview, ProviderDeps, ToolListing, ToolProvider};
use crate::providers::confinement::Sandbox;

/// Calls the functions that entries name.
struct PythonProvider {
    tools: Vec<PythonTool>,
    runner: Arc<PythonRunner>,
    /// The descriptions of the functions of `tools`; `None` when every entry has a schema of its
    /// own.
    descriptions: Option<Mutex<Vec<Option<FunctionDescription>>>>,
}

struct PythonTool {
    definition: Arc<ToolDefinition>,
    entry: PythonEntry,
    function: String,
}

/// Builds the providers from the entries of this kind.
pub(super) fn build(specs: &[&ToolSpec], context: &ProviderDeps) -> BuiltProviders {
    let runner = Arc::new(PythonRunner::new(context));
    let mut built = BuiltProviders { providers: Vec::new(), diagnostics: Vec::new() };
    let (mut described_tools, mut undescribed_tools) = (Vec::new(), Vec::new());
    for spec in specs {
        let mut own_diagnostics = Vec::new();
        let read = entry::read(spec, context.environment.as_ref(), &mut own_diagnostics);
        let named = |p: Diagnostic| p.with_entry(spec.definition.name.full());
        built.diagnostics.extend(own_diagnostics.into_iter().map(named));
        let mut entry = match read {
            Ok(entry) => entry,
            Err(diagnostics) => {
                built.diagnostics.extend(diagnostics.into_iter().map(named));
                continue;
            }
        };
        grant_python_paths(&mut entry, &runner);
        runner.keep_worker(&entry);
        let mut definition = spec.definition.clone();
        definition.touches.extend(touches(&entry, &runner));
        definition.sandbox = entry.sandbox.as_ref().and_then(Sandbox::coverage).map(Arc::new);
        if entry.sandbox.as_ref().is_some_and(Sandbox::confines) {
            definition.safety = Safety::Sandboxed;
        }
        let Selection::Function(function) = entry.selection.clone() else {
            let provider = OfferedToolsProvider::new(definition, spec, entry, Arc::clone(&runner));
            built.providers.push(Arc::new(provider));
            continue;
        };
        let obstacle = runner.obstacle(&entry);
        let cached = || {
            let key = runner.key(&entry).ok()?;
            runner.descriptions.recall(key, &entry.module, &function)
        };
        let list = if entry.has_schema || obstacle.is_some() {
            &mut described_tools
        } else if let Some(described) = cached() {
            fill(&mut definition, described);
            &mut described_tools
        } else {
            &mut undescribed_tools
        };
        if let Some(error) = obstacle {
            definition.mark_unavailable(error);
        }
        let definition = Arc::new(definition);
        list.push(PythonTool { definition, entry, function });
    }
    for (tools, asks) in [(described_tools, false), (undescribed_tools, true)] {
        if !tools.is_empty() {
            let descriptions = asks.then(|| Mutex::new(vec![None; tools.len()]));
            let runner = Arc::clone(&runner);
            built.providers.push(Arc::new(PythonProvider { tools, runner, descriptions }));
        }
    }
    built
}

/// Lets the sandbox of an entry give what no Python works without: its modules and its library.
fn grant_python_paths(entry: &mut PythonEntry, runner: &PythonRunner) {
    let interpreter = runner.interpreter(entry);
    let Some(sandbox) = &mut entry.sandbox else { return };
    sandbox.require_readable([entry.root.clone()]);
    sandbox.require_readable(
        interpreter.iter().flat_map(|path| installation::interpreter_paths(path)),
    );
}

/// What a call may touch: Python code says nothing about itself, so what confines it counts.
fn touches(entry: &PythonEntry, runner: &PythonRunner) -> Vec<String> {
    let what = match &entry.selection {
        Selection::Function(function) => format!("{}.{function}", entry.module),
        Selection::Offered => format!("functions of {}", entry.module),
        Selection::Class(class) => format!("{}.{}", entry.module, class.name),
    };
    let code = match module_file::file_of(&entry.root, &entry.module) {
        Some(file) => format!("from {}", file.display()),
        None => "as installed for the interpreter".to_owned(),
    };
    let interpreter = match runner.interpreter(entry) {
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

/// Completes a definition with what the function says about itself.
fn fill(definition: &mut ToolDefinition, described: FunctionDescription) {
    if definition.description.is_none() {
        definition.description = described.description;
    }
    definition.input_schema = Arc::new(described.input_schema);
    definition.warnings.extend(described.warnings);
}

impl PythonProvider {
    fn tool(&self, call: &ToolCall) -> Result<&PythonTool, Error> {
        self.tools.iter().find(|tool| tool.definition.name == call.name).ok_or_else(|| {
            Error::internal(format!("'{}' is not one of the Python tools", call.name))
        })
    }
}

#[async_trait]
impl ToolProvider for PythonProvider {
    fn declared(&self) -> Vec<Arc<ToolDefinition>> {
        let described = |tool: &PythonTool| {
            let mut definition = Arc::clone(&tool.definition);
            if definition.description.is_none() {
                let sentence = format!("Calls {}.{}.", tool.entry.module, tool.function);
                Arc::make_mut(&mut definition).description = Some(sentence);
            }
            definition
        };
        self.tools.iter().map(described).collect()
    }

    fn is_remote(&self) -> bool {
        self.descriptions.is_some()
    }

    async fn list(&self) -> Result<ToolListing, Error> {
        let Some(descriptions) = &self.descriptions else {
            return Ok(ToolListing { tools: self.declared(), ..ToolListing::default() });
        };
        let cached = descriptions.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let missing: Vec<usize> = (0..self.tools.len())
            .filter(|at| cached.get(*at).is_none_or(Option::is_none))
            .collect();
        let targets: Vec<(&PythonEntry, &str)> = missing
            .iter()
            .filter_map(|at| self.tools.get(*at))
            .map(|tool| (&tool.entry, tool.function.as_str()))
            .collect();
        let answers = describe::functions(&self.runner, &targets).await;
        let mut answers: std::collections::HashMap<usize, _> =
            missing.into_iter().zip(answers).collect();
        let mut tools = Vec::new();
        let mut now = cached.clone();
        for (at, (tool, cached)) in self.tools.iter().zip(cached).enumerate() {
            let mut definition = ToolDefinition::clone(&tool.definition);
            match cached.map(Ok).or_else(|| answers.remove(&at)) {
                Some(Ok(described)) => {
                    if let Some(slot) = now.get_mut(at) {
                        *slot = Some(described.clone());
                    }
                    fill(&mut definition, described);
                }
                Some(Err(error)) => {
                    definition.mark_unavailable(error);
                }
                None => {}
            }
            let sentence = || format!("Calls {}.{}.", tool.entry.module, tool.function);
            definition.description.get_or_insert_with(sentence);
            tools.push(Arc::new(definition));
        }
        *descriptions.lock().unwrap_or_else(PoisonError::into_inner) = now;
        Ok(ToolListing { tools, ..ToolListing::default() })
    }

    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Error> {
        let tool = self.tool(call)?;
        let target = WorkerTarget::Function(&tool.function);
        let what = (WorkerOp::Call, target, Some(&call.arguments));
        let reply = self.runner.request(&tool.entry, what, context, &call.name.full()).await?;
        result::read(reply)
    }

    async fn preview(&self, call: &ToolCall) -> Result<Preview, Error> {
        let tool = self.tool(call)?;
        preview::of_call(&self.runner, &tool.entry, &tool.function, call)
    }

    async fn close(&self) {
        self.runner.close().await;
    }
}

#[cfg(test)]
mod tests;
