//! `toolhost prompts get`: rendering one prompt.

use serde_json::Value;

use crate::cli::commands::call_output;
use crate::cli::commands::prelude::*;
use crate::cli::json::offerings::PromptMessagesJson;
use crate::cli::offering_lists;
use crate::cli::raw_arguments::{self, RawArguments};
use crate::host::request::{ArgumentWord, CallArguments, ItemRequest};
use crate::model::{JsonObject, ToolResult};
use crate::present::offerings;
use crate::util::json;

/// Render a prompt and show its messages.
///
/// Arguments are validated before anything is sent. With -o raw, prints only the content of the
/// messages.
#[derive(Debug, Args)]
#[command(after_help = "\
JSON: {\"name\", \"server\", \"description\", \"messages\": [{\"role\", \"content\"}], \"meta\"}")]
#[command(arg = formats::option(formats::CONTENT))]
pub struct PromptGetArgs {
    /// Prompt: its full name, or its bare name if that is unique
    #[arg(add = ArgValueCompleter::new(complete::prompts))]
    pub name: String,
    /// key=value, or key=@file; arguments of prompts are always strings
    #[arg(value_name = "ARGS", add = ArgValueCompleter::new(complete::prompt_arguments))]
    pub words: Vec<String>,
    /// Only look for the prompt on this server (repeatable)
    #[arg(long, value_name = "NAME", value_parser = server_target::server(), add = ArgValueCompleter::new(complete::servers))]
    pub server: Vec<String>,
    /// An ad-hoc server, if the command line names one.
    #[command(flatten)]
    pub target: ServerCommandArgs,
}

pub async fn run(args: &PromptGetArgs, context: &CommandContext) -> CommandResult {
    use Format::{Json, Raw, Yaml};
    let format = context.format(formats::CONTENT)?;
    let arguments = arguments(args, context).await?;
    let assembly = offering_lists::assemble(context, &args.server).await?;
    let filled = assembly
        .host
        .prompt(&args.name, &arguments, &ItemRequest::to_servers(&args.server, &context.cancel))
        .await?;
    let output = &context.output;
    output.note_routing(filled.routing.as_ref());
    match format {
        Json | Yaml => output.value(format, &PromptMessagesJson::from(&filled)),
        Raw => {
            let blocks = filled.messages.iter().filter_map(|m| m.get("content").cloned());
            let all = ToolResult { content: blocks.collect(), ..ToolResult::default() };
            let parts = call_output::payloads(&all)?;
            let parts: Vec<Vec<u8>> = parts.into_iter().map(|payload| payload.bytes).collect();
            output.raw(&parts.join(&b'\n'))
        }
        _ => output.page(&offerings::messages(&filled, output.width())),
    }
}

/// The arguments as text. Reading a file may block; signals must still be handled.
async fn arguments(args: &PromptGetArgs, context: &CommandContext) -> Result<JsonObject, Error> {
    let cwd = context.environment.cwd();
    let sources = RawArguments { words: args.words.clone(), json_option: None, cwd };
    let read = move || raw_arguments::read(&sources, &mut std::io::empty());
    let arguments = tokio::task::spawn_blocking(read)
        .await
        .map_err(|error| Error::internal(format!("cannot read the arguments: {error}")))??;
    let text = |value: Value| match value {
        Value::String(text) => Value::String(text),
        other => Value::String(json::compact(&other)),
    };
    Ok(match arguments {
        CallArguments::Object(object) => object.into_iter().map(|(k, v)| (k, text(v))).collect(),
        CallArguments::Words(words) => words
            .into_iter()
            .map(|word| match word {
                ArgumentWord::Text { key, value } => (key, Value::String(value)),
                ArgumentWord::Json { key, value } => (key, text(value)),
            })
            .collect(),
    })
}
