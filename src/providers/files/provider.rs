//! The provider of one entry: its tools in its directory.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::entry::{self, FileAccess, FilesEntry, FilesKeys};
use super::job::FileJob;
use super::operation::FileOperation;
use super::root::{self, RelativePath, RootDirectory};
use super::{read, search, transfer, walk, write};
use crate::config::spec::ToolSpec;
use crate::config::typed;
use crate::model::{
    Diagnostics, Error, ErrorKind, ErrorPhase, ToolCall, ToolContext, ToolDefinition, ToolResult,
    ToolSchema,
};
use crate::provider::{BuiltProviders, Preview, ProviderDeps};
use crate::providers::arguments::Arguments;
use crate::providers::local::{LocalProvider, LocalTool};
use crate::providers::toolkit::{self, SelectedTool, ToolkitKeys};

/// What the tools of one entry share.
struct FilesDirectory {
    root: Arc<RootDirectory>,
    /// Whether a call for a user has a directory of its own.
    is_by_user: bool,
    max_bytes: u64,
    /// Whether files whose names start with a dot are inaccessible, as for entries without a grant.
    hides_dotfiles: bool,
}

struct FilesTool {
    operation: FileOperation,
    directory: Arc<FilesDirectory>,
}

/// Builds a provider for each entry, as each has its own directory.
pub(super) fn build(specs: &[&ToolSpec], context: &ProviderDeps) -> BuiltProviders {
    BuiltProviders::each(specs, |spec, diagnostics| provider(spec, context, diagnostics))
}

fn provider(
    spec: &ToolSpec,
    context: &ProviderDeps,
    diagnostics: &Diagnostics,
) -> Option<LocalProvider<FilesTool>> {
    let base_dir = context.environment.cwd().join(&spec.base_dir);
    let keys = typed::read_part::<FilesKeys>(&spec.entry, diagnostics);
    let toolkit = typed::read_part::<ToolkitKeys>(&spec.entry, diagnostics);
    let (keys, toolkit) = (keys?, toolkit?);
    let entry = entry::resolve(&spec.entry, &keys, &base_dir, &spec.scopes, diagnostics);
    let chosen = choose(spec, &keys, &toolkit, diagnostics);
    let entry = entry.filter(|_| diagnostics.errors() == 0)?;
    let state_dir = context.state_dir.as_deref();
    let shared = state_dir.map(|state| state.join(entry::DIRECTORY));
    let is_by_user = shared.as_ref() == Some(&entry.directory);
    let root = match state_dir.filter(|_| is_by_user) {
        Some(state) => {
            let own = entry::of_project(state, context.project.as_deref());
            RootDirectory::moved_from(entry.directory.clone(), own, entry.create)
        }
        None => RootDirectory::new(entry.directory.clone(), entry.create),
    };
    let root = Arc::new(root);
    let obstacle = root.obstacle();
    let directory = Arc::new(FilesDirectory {
        root,
        is_by_user,
        max_bytes: entry.max_bytes,
        hides_dotfiles: spec.grant.is_none(),
    });
    let tools = chosen.iter().filter_map(|tool| {
        let operation = FileOperation::named(tool.original.name)?;
        let mut definition = define(spec, &entry, &directory.root, tool, operation);
        if let Some(error) = &obstacle {
            definition.mark_unavailable(error.clone());
        }
        let directory = Arc::clone(&directory);
        Some((Arc::new(definition), FilesTool { operation, directory }))
    });
    let tools: Vec<_> = tools.collect();
    let component = tools.first().and_then(|(definition, _)| definition.name.component());
    Some(LocalProvider { component: component.map(str::to_owned), tools })
}

/// The tools of the entry. What changes something is given when the entry says `access: write`, or
/// when it names that tool.
fn choose(
    spec: &ToolSpec,
    keys: &FilesKeys,
    toolkit: &ToolkitKeys,
    diagnostics: &Diagnostics,
) -> Vec<SelectedTool> {
    let vocabulary = entry::vocabulary(&spec.entry, keys);
    let gives_all = toolkit.selects() || keys.gives_all(vocabulary);
    let available = if gives_all { vocabulary.tools() } else { vocabulary.read_only_tools() };
    let chosen = toolkit::choose(spec, toolkit, available, diagnostics);
    let read = keys.access.as_ref().filter(|access| access.value == FileAccess::Read);
    if let Some(access) = read {
        let writes = |name| FileOperation::named(name).is_some_and(FileOperation::writes);
        for name in chosen.iter().map(|tool| tool.original.name).filter(|name| writes(name)) {
            diagnostics.push(
                access
                    .error(format!("'{name}' is selected, but 'access' is read"))
                    .with_hint("set 'access: write', or leave the tool out"),
            );
        }
    }
    chosen
}

fn define(
    spec: &ToolSpec,
    entry: &FilesEntry,
    root: &RootDirectory,
    tool: &SelectedTool,
    operation: FileOperation,
) -> ToolDefinition {
    let mut definition = tool.definition(spec);
    definition.description.get_or_insert_with(|| operation.description().to_owned());
    definition.input_schema = ToolSchema::from(operation.input_schema(entry.vocabulary));
    definition.output_schema = operation.output_schema().map(ToolSchema::from);
    definition.requires_approval = tool.approval.unwrap_or(operation.writes());
    let written = &spec.definition.annotations;
    let mut annotations = operation.annotations(entry.vocabulary);
    annotations.title.clone_from(&written.title);
    // The host asks about every tool that calls itself destructive. `requires_approval: false` is
    // the entry's decision about a tool of this program, so the hint is left out; an entry that
    // states the hint keeps it.
    if tool.approval == Some(false) {
        annotations.destructive = annotations.destructive.filter(|destructive| !destructive);
    }
    if written.destructive == Some(true) {
        annotations.destructive = Some(true);
    }
    definition.is_repeatable = annotations.idempotent == Some(true);
    definition.has_own_retries = false;
    definition.annotations = annotations;
    definition.touches.push(operation.touches(&root.shown()));
    if root.will_be_created() {
        definition.touches.push(format!("creates {} when it is first used", root.shown()));
    }
    definition
}

#[async_trait]
impl LocalTool for FilesTool {
    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Error> {
        let (operation, directory) = (self.operation, self.directory.as_ref());
        let user = context.user_id.as_deref().filter(|_| directory.is_by_user);
        let job = FileJob {
            root: user.map_or_else(
                || Arc::clone(&directory.root),
                |user| Arc::new(directory.root.of_user(user)),
            ),
            max_bytes: directory.max_bytes,
            hides_dotfiles: directory.hides_dotfiles,
            cancel: context.cancel.clone(),
            call_id: context.call_id.clone(),
            events: context.events.clone(),
        };
        let arguments = operation.plain_arguments(&call.arguments);
        // Files block, and yet the caller must be able to stop waiting.
        let work =
            tokio::task::spawn_blocking(move || perform(operation, &job, Arguments(&arguments)));
        let done = work.await.map_err(|cause| {
            Error::internal(format!("the file operation ended unexpectedly: {cause}"))
        })?;
        match done {
            // A no of the tool is an answer.
            Err(error) if error.kind() == ErrorKind::Tool => {
                let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
                let mut result = ToolResult::failure(format!("{}{hint}", error.message()));
                result.error = Some(error.with_phase(ErrorPhase::Call));
                Ok(result)
            }
            done => done.map_err(|error| error.with_phase(ErrorPhase::Call)),
        }
    }

    fn preview(&self, call: &ToolCall) -> Result<Preview, Error> {
        let (operation, root) = (self.operation, &self.directory.root);
        let arguments = operation.plain_arguments(&call.arguments);
        let mut paths = serde_json::Map::new();
        for name in operation.path_arguments() {
            let text = Arguments(&arguments).optional_text(name)?.unwrap_or(".");
            let inside = RelativePath::read(text, root.spellings())?;
            paths.insert(name.to_owned(), Value::String(inside.shown()));
        }
        let word = operation.name();
        let shown: Vec<&str> = paths.values().filter_map(Value::as_str).collect();
        let root = root.shown();
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
    operation: FileOperation,
    job: &FileJob,
    arguments: Arguments<'_>,
) -> Result<ToolResult, Error> {
    match operation {
        FileOperation::Read => read::run(job, arguments),
        FileOperation::List => walk::run(job, arguments),
        FileOperation::Search => search::run(job, arguments),
        FileOperation::Info => root::run(job, arguments),
        FileOperation::Write => write::run(job, arguments, false),
        FileOperation::Append => write::run(job, arguments, true),
        FileOperation::Edit => write::edit(job, arguments),
        FileOperation::Copy => transfer::copy(job, arguments),
        FileOperation::Move => transfer::rename(job, arguments),
        FileOperation::Delete => transfer::delete(job, arguments),
    }
}
