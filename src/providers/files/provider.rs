//! The provider of one entry: its tools in its directory.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::arguments::Arguments;
use super::entry::{self, Access, Entry};
use super::inside::Inside;
use super::job::Job;
use super::root::Root;
use super::table::Operation;
use super::{info, list, read, search, transfer, write};
use crate::config::node::Node;
use crate::config::spec::ToolSpec;
use crate::model::{
    Fault, FaultKind, Phase, Problem, ToolCall, ToolContext, ToolDefinition, ToolResult,
};
use crate::provider::{Built, KindContext, Preview, ToolProvider};
use crate::providers::toolkit::{self, Chosen};

/// The tools of one entry.
struct FilesProvider {
    component: Option<String>,
    root: Arc<Root>,
    most: u64,
    /// Whether files whose names begin with a dot are out of reach: nobody agreed to the entry.
    hides_dotfiles: bool,
    tools: Vec<Tool>,
}

struct Tool {
    definition: Arc<ToolDefinition>,
    operation: Operation,
}

/// Builds a provider for each entry: they have directories of their own.
pub(super) fn build(specs: &[&ToolSpec], context: &KindContext) -> Built {
    Built::each(specs, |spec| provider(spec, context))
}

fn provider(spec: &ToolSpec, context: &KindContext) -> Result<FilesProvider, Vec<Problem>> {
    let base_dir = context.environment.cwd().join(&spec.base_dir);
    let read = entry::read(&spec.entry, &base_dir, &spec.scopes);
    let (entry, chosen) = match read {
        Ok(entry) => {
            let chosen = choose(spec, &entry)?;
            (entry, chosen)
        }
        // What is wrong with the selection is told together with the rest.
        Err(mut problems) => {
            let words = entry::vocabulary(&spec.entry);
            if spec.entry.get_any(&["tools", "selected_tools", "original_tool_name"]).is_some() {
                problems.extend(toolkit::choose(spec, words.offers()).err().unwrap_or_default());
            }
            return Err(problems);
        }
    };
    let root = Arc::new(Root::new(entry.directory.clone(), entry.create));
    let obstacle = root.obstacle();
    let tools: Vec<Tool> = chosen
        .iter()
        .filter_map(|tool| {
            let operation = Operation::named(tool.offer.name)?;
            let mut definition = define(spec, &entry, &root, tool, operation);
            if let Some(fault) = &obstacle {
                definition.withdraw(fault.clone());
            }
            Some(Tool { definition: Arc::new(definition), operation })
        })
        .collect();
    let shared = tools.first().and_then(|tool| tool.definition.name.component());
    Ok(FilesProvider {
        component: shared.map(str::to_owned),
        root,
        most: entry.most,
        hides_dotfiles: spec.grant.is_none(),
        tools,
    })
}

/// The tools of the entry. What changes something is given when the entry says `access: write`, or
/// when it names that tool.
fn choose(spec: &ToolSpec, entry: &Entry) -> Result<Vec<Chosen>, Vec<Problem>> {
    let selects = ["tools", "selected_tools", "original_tool_name"];
    let selected = spec.entry.get_any(&selects);
    let offers = match (entry.access, selected) {
        (Access::Unsaid | Access::Read, None) => entry.vocabulary.reading(),
        _ => entry.vocabulary.offers(),
    };
    let chosen = toolkit::choose(spec, offers)?;
    if entry.access != Access::Read {
        return Ok(chosen);
    }
    let at = spec.entry.get("access").map_or_else(|| spec.place.clone(), Node::place);
    let contradictions: Vec<Problem> = chosen
        .iter()
        .filter(|tool| Operation::named(tool.offer.name).is_some_and(Operation::writes))
        .map(|tool| {
            let name = tool.offer.name;
            Problem::error(format!("'{name}' is selected, but 'access' is read"))
                .hint("say 'access: write', or leave the tool out")
                .at(at.clone())
        })
        .collect();
    if contradictions.is_empty() { Ok(chosen) } else { Err(contradictions) }
}

fn define(
    spec: &ToolSpec,
    entry: &Entry,
    root: &Root,
    tool: &Chosen,
    operation: Operation,
) -> ToolDefinition {
    let mut definition = tool.definition(spec);
    definition.description.get_or_insert_with(|| operation.about().to_owned());
    definition.input_schema = Arc::new(operation.input_schema(entry.vocabulary));
    definition.output_schema = operation.output_schema().map(Arc::new);
    definition.requires_approval = tool.approval.unwrap_or(operation.writes());
    let said = &spec.definition.annotations;
    let mut annotations = operation.annotations(entry.vocabulary);
    annotations.title.clone_from(&said.title);
    // The host asks about every tool that calls itself destructive. `requires_approval: false` is
    // the word of whoever wrote the entry about a tool of this program, so the hint is left unsaid;
    // an entry that says it keeps it.
    if tool.approval == Some(false) {
        annotations.destructive = annotations.destructive.filter(|destructive| !destructive);
    }
    if said.destructive == Some(true) {
        annotations.destructive = Some(true);
    }
    definition.repeatable = annotations.idempotent == Some(true);
    definition.annotations = annotations;
    definition.touches.push(operation.touches(&root.shown()));
    if root.is_to_come() {
        definition.touches.push(format!("creates {} when it is first used", root.shown()));
    }
    definition
}

impl FilesProvider {
    fn tool(&self, call: &ToolCall) -> Result<&Tool, Fault> {
        self.tools
            .iter()
            .find(|tool| tool.definition.name == call.name)
            .ok_or_else(|| Fault::internal(format!("'{}' is none of these tools", call.name)))
    }
}

#[async_trait]
impl ToolProvider for FilesProvider {
    fn component(&self) -> Option<&str> {
        self.component.as_deref()
    }

    fn declared(&self) -> Vec<Arc<ToolDefinition>> {
        self.tools.iter().map(|tool| Arc::clone(&tool.definition)).collect()
    }

    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Fault> {
        let operation = self.tool(call)?.operation;
        let job = Job {
            root: Arc::clone(&self.root),
            most: self.most,
            hides_dotfiles: self.hides_dotfiles,
            cancel: context.cancel.clone(),
            call_id: context.call_id.clone(),
            events: context.events.clone(),
        };
        let arguments = call.arguments.clone();
        // Files block; whoever waits for the call must still be able to stop waiting.
        let work =
            tokio::task::spawn_blocking(move || perform(operation, &job, &Arguments(&arguments)));
        let done = work.await.map_err(|error| {
            Fault::internal(format!("the work on files ended unexpectedly: {error}"))
        })?;
        match done {
            // A no of the tool is an answer.
            Err(fault) if fault.kind() == FaultKind::Tool => {
                let hint = fault.hint_text().map(|hint| format!("; {hint}")).unwrap_or_default();
                let mut result = ToolResult::failure(format!("{}{hint}", fault.message()));
                result.fault = Some(fault.phase(Phase::Call));
                Ok(result)
            }
            done => done.map_err(|fault| fault.phase(Phase::Call)),
        }
    }

    async fn preview(&self, call: &ToolCall) -> Result<Preview, Fault> {
        let operation = self.tool(call)?.operation;
        let arguments = Arguments(&call.arguments);
        let mut paths = serde_json::Map::new();
        for names in operation.paths() {
            let text = arguments.text(names)?.unwrap_or(".");
            let inside = Inside::read(text, self.root.spellings())?;
            paths.insert(names[0].to_owned(), Value::String(inside.shown()));
        }
        let word = operation.word();
        let shown: Vec<&str> = paths.values().filter_map(Value::as_str).collect();
        let root = self.root.shown();
        let summary = format!("{word} {} in {root}", shown.join(" to "));
        let request = json!({
            "operation": word,
            "directory": root,
            "paths": paths,
            "arguments": call.arguments,
        });
        Ok(Preview { summary, request })
    }
}

fn perform(
    operation: Operation,
    job: &Job,
    arguments: &Arguments<'_>,
) -> Result<ToolResult, Fault> {
    match operation {
        Operation::Read => read::run(job, arguments),
        Operation::List => list::run(job, arguments),
        Operation::Search => search::run(job, arguments),
        Operation::Info => info::run(job, arguments),
        Operation::Write => write::run(job, arguments, false),
        Operation::Append => write::run(job, arguments, true),
        Operation::Edit => write::edit(job, arguments),
        Operation::Copy => transfer::copy(job, arguments),
        Operation::Move => transfer::rename(job, arguments),
        Operation::Delete => transfer::delete(job, arguments),
    }
}
