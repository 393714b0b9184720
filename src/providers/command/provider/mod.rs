//! The provider of all command entries.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::entry::{self, CommandEntry, CommandInput, fill_argument};
use super::result;
use super::run::{self, CommandEventReader, ProgramLimits};
use crate::config::environment::Environment;
use crate::config::expanded::ExpandedValues;
use crate::config::spec::ToolSpec;
use crate::model::{
    Error, ErrorPhase, JsonObject, Safety, ToolCall, ToolContext, ToolDefinition, ToolResult,
};
use crate::provider::{BuiltProviders, Preview, ProviderDeps, verify_trust};
use crate::providers::arguments::with_defaults;
use crate::providers::confinement;
use crate::providers::local::{self, LocalTool};
use crate::providers::program_env::{build_env, not_found};
use crate::providers::template::value_text;
use crate::util::confine::Confinement;
use crate::util::process::{Process, Program, StartError, resolve};

/// What the programs of all entries get.
struct CommandContext {
    environment: Arc<dyn Environment>,
    expanded: ExpandedValues,
}

struct CommandTool {
    entry: CommandEntry,
    shared: Arc<CommandContext>,
}

/// A prepared call, before anything is started.
struct Invocation {
    argv: Vec<String>,
    env: BTreeMap<String, String>,
    stdin: Option<Vec<u8>>,
}

pub(super) fn build(specs: &[&ToolSpec], context: &ProviderDeps) -> BuiltProviders {
    let shared = Arc::new(CommandContext {
        environment: Arc::clone(&context.environment),
        expanded: context.expanded.clone(),
    });
    let mut programs = HashMap::new();
    local::build(specs, |spec, diagnostics| {
        let environment = shared.environment.as_ref();
        let entry = entry::read(spec, environment, diagnostics)?;
        let definition = complete(spec.definition.clone(), &entry, environment, &mut programs);
        Some((definition, CommandTool { entry, shared: Arc::clone(&shared) }))
    })
}

/// Fills what the entry left out, and says beforehand what a call would run into.
fn complete(
    mut definition: ToolDefinition,
    entry: &CommandEntry,
    environment: &dyn Environment,
    programs: &mut HashMap<(String, Option<String>, PathBuf), Result<PathBuf, Error>>,
) -> ToolDefinition {
    definition.description.get_or_insert_with(|| format!("Runs {}.", entry.program));
    let place = (entry.program.clone(), entry.env.get("PATH").cloned(), entry.base_dir.clone());
    // Many entries may start one program, and the directories of PATH are many.
    let program = programs.entry(place).or_insert_with(|| locate(entry, environment));
    let obstacle = match program.clone() {
        Ok(program) => {
            definition.touches.push(format!("starts {}", program.display()));
            None
        }
        Err(error) => {
            definition.touches.push(format!("starts {}", entry.program));
            Some(error)
        }
    };
    definition.touches.push(match &entry.cwd {
        Some(cwd) => format!("works in {}", cwd.display()),
        None => "works in the directory it is called from".to_owned(),
    });
    let obstacle = match &entry.sandbox {
        None => obstacle,
        Some(sandbox) => {
            definition.touches.extend(sandbox.describe(entry.cwd.as_deref()));
            definition.sandbox = sandbox.coverage().map(Arc::new);
            if sandbox.confines() {
                definition.safety = Safety::Sandboxed;
            }
            obstacle.or_else(|| sandbox.obstacle())
        }
    };
    if let Some(error) = obstacle {
        definition.mark_unavailable(error);
    }
    definition
}

/// The executable. A name is looked for in the `PATH` the program itself will see; a path is
/// relative to the file of the entry.
fn locate(entry: &CommandEntry, environment: &dyn Environment) -> Result<PathBuf, Error> {
    let path = entry.env.get("PATH").cloned().or_else(|| environment.var("PATH"));
    resolve(&entry.program, path.as_deref(), &entry.base_dir)
        .map_err(|cause| not_found(&cause, "a path is relative to the file of the entry"))
}

impl CommandTool {
    fn prepare(&self, call_arguments: &JsonObject) -> Result<Invocation, Error> {
        let entry = &self.entry;
        let arguments = with_defaults(call_arguments, &entry.defaults);
        let mut argv = vec![entry.program.clone()];
        for element in &entry.arguments {
            argv.extend(fill_argument(element, &arguments, entry.allow_dash)?);
        }
        let stdin = match entry.input {
            CommandInput::StdinJson => {
                Some(Value::Object(arguments.clone()).to_string().into_bytes())
            }
            CommandInput::StdinText => {
                let text = arguments.get(&entry.stdin_argument).and_then(value_text);
                Some(text.unwrap_or_default().into_bytes())
            }
            CommandInput::Env | CommandInput::Args | CommandInput::None => None,
        };
        let CommandContext { environment, expanded } = self.shared.as_ref();
        let mut env = build_env(&entry.env, &entry.env_keys, environment.as_ref(), expanded);
        run::add_arguments(&mut env, entry, &arguments)?;
        Ok(Invocation { argv, env, stdin })
    }
}

#[async_trait]
impl LocalTool for CommandTool {
    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Error> {
        let entry = &self.entry;
        verify_trust(&entry.seal)?;
        let mut prepared = self.prepare(&call.arguments)?;
        run::add_context(&mut prepared.env, context)?;
        let path = locate(entry, self.shared.environment.as_ref())?;
        let cwd = entry.cwd.clone().unwrap_or_else(|| context.cwd.to_path_buf());
        require_directory(&cwd)?;
        let program = Program {
            path,
            args: prepared.argv.split_off(1),
            env: prepared.env,
            cwd,
            stdin: prepared.stdin.is_some(),
        };
        let (process, confinement) = start(&program, entry)?;
        let events = CommandEventReader::new(&context.call_id, call.name.full(), &context.events);
        let limits = ProgramLimits::with_max_stdout(entry.max_output);
        let finished =
            run::run_to_end(process, prepared.stdin, events, &context.cancel, &limits).await?;
        let sandboxed = confinement.as_ref();
        let hint = sandboxed
            .and_then(|confinement| confinement::for_exit(&program, confinement, finished.status));
        let mut result = result::read(&entry.program, finished, entry.output)?;
        if let Some(hint) = hint {
            result.error = result.error.map(|error| error.with_hint(hint));
        }
        Ok(result)
    }

    fn preview(&self, call: &ToolCall) -> Result<Preview, Error> {
        let entry = &self.entry;
        let mut prepared = self.prepare(&call.arguments)?;
        let path = locate(entry, self.shared.environment.as_ref())?;
        let cwd = entry.cwd.clone().unwrap_or_else(|| self.shared.environment.cwd());
        prepared.argv[0] = path.display().to_string();
        let stdin = prepared.stdin.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ok(Preview {
            summary: format!("starts {} in {}", path.display(), cwd.display()),
            request: json!({
                "argv": prepared.argv,
                "cwd": cwd.display().to_string(),
                "env": prepared.env.keys().collect::<Vec<_>>(),
                "stdin": stdin,
            }),
        })
    }
}

fn start(program: &Program, entry: &CommandEntry) -> Result<(Process, Option<Confinement>), Error> {
    let sandbox = entry.sandbox.as_ref();
    let confinement =
        sandbox.map(|sandbox| sandbox.confinement(&program.path, &program.cwd)).transpose()?;
    match Process::start_within(program, confinement.as_ref(), true) {
        Ok(process) => Ok((process, confinement)),
        Err(error) => {
            let failed = confinement::not_started(&error, |error| {
                format!("'{}' could not be started: {error}", program.path.display())
            });
            let hint = confinement.as_ref().filter(|_| matches!(error, StartError::System(_)));
            let hint = hint.and_then(|within| confinement::for_start(program, within));
            Err(match hint {
                Some(hint) => failed.with_hint(hint),
                None => failed,
            })
        }
    }
}

/// The system reports a missing directory as a missing program; this tells them apart.
fn require_directory(cwd: &Path) -> Result<(), Error> {
    if cwd.is_dir() {
        return Ok(());
    }
    Err(Error::unreachable(format!("the working directory '{}' does not exist", cwd.display()))
        .with_phase(ErrorPhase::Start)
        .with_hint("'cwd' in the entry is relative to its file"))
}

#[cfg(test)]
mod tests;
