//! `toolhost prompts`: listing and rendering the prompts of servers.

use super::offerings::{self, ItemList};
use super::prelude::*;
use crate::cli::json::offerings::{PromptMessagesJson, PromptsJson};
use crate::host::arguments::coerce_word;
use crate::host::request::{ItemRequest, LookupScope};
use crate::model::{JsonObject, Prompt, ToolResult};
use crate::util::json;

/// List and render prompts of MCP servers.
#[derive(Debug, Args)]
pub struct PromptsArgs {
    /// What to do with them.
    #[command(subcommand)]
    pub action: PromptsAction,
}

/// What to do with prompts.
#[derive(Debug, Subcommand)]
pub enum PromptsAction {
    /// List the prompts of all servers.
    List(PromptListArgs),
    /// Render a prompt and show its messages.
    Get(PromptGetArgs),
}

/// List the prompts of all servers.
///
/// If a server fails, the others are still listed and the exit code is 11.
#[derive(Debug, Args)]
#[command(after_help = "\
JSON: {\"prompts\": [...], \"servers\": [...], \"problems\": [...]}")]
#[command(arg = formats::option(formats::LIST), arg = ad_hoc::command())]
pub struct PromptListArgs {
    /// Only prompts whose name, title or description contains these words
    pub query: Vec<String>,
    /// Only ask this server (repeatable)
    #[arg(long, value_name = "NAME", value_parser = ad_hoc::server(), add = ArgValueCompleter::new(complete::servers))]
    pub server: Vec<String>,
}

/// Render a prompt and show its messages.
///
/// Arguments are validated before anything is sent. With -o raw, prints only the content of the
/// messages.
#[derive(Debug, Args)]
#[command(after_help = "\
JSON: {\"name\", \"server\", \"description\", \"messages\": [{\"role\", \"content\"}], \"meta\"}")]
#[command(arg = formats::option(formats::CONTENT), arg = ad_hoc::command())]
pub struct PromptGetArgs {
    /// Prompt: its full name, or its bare name if that is unique
    #[arg(add = ArgValueCompleter::new(complete::prompts))]
    pub name: String,
    /// key=value, or key=@file; arguments of prompts are always strings
    #[arg(value_name = "ARGS", add = ArgValueCompleter::new(complete::prompt_arguments))]
    pub words: Vec<String>,
    /// Only look for the prompt on this server (repeatable)
    #[arg(long, value_name = "NAME", value_parser = ad_hoc::server(), add = ArgValueCompleter::new(complete::servers))]
    pub server: Vec<String>,
}

pub async fn run(args: &PromptsArgs, context: &CommandContext) -> CommandResult {
    match &args.action {
        PromptsAction::List(args) => list(args, context).await,
        PromptsAction::Get(args) => get(args, context).await,
    }
}

async fn list(args: &PromptListArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::LIST)?;
    let assembly = offerings::assemble(context, "toolhost prompts", &args.server).await?;
    let all = assembly.host.prompts(&LookupScope::of_servers(&args.server)).await?;
    complete::update_names(context, &assembly, |names| names.add_prompts(&all));
    let shown = ItemList::<Prompt> {
        nouns: ("prompt", "prompts"),
        name: |prompt| prompt.name.full(),
        texts: |prompt| [prompt.title.as_deref(), prompt.description.as_deref(), None],
        table: present::offerings::prompts,
        empty_note: "",
    };
    shown.print(&all, &args.query, |items| PromptsJson::from((items, &all)), (format, context))
}

async fn get(args: &PromptGetArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::CONTENT)?;
    let arguments = arguments(args, context).await?;
    let assembly = offerings::assemble(context, "toolhost prompts", &args.server).await?;
    let filled = assembly
        .host
        .prompt(&args.name, &arguments, &ItemRequest::to_servers(&args.server, &context.cancel))
        .await?;
    let output = &context.output;
    output.note_routing(filled.routing.as_ref());
    match format {
        Format::Json | Format::Yaml => output.value(format, &PromptMessagesJson::from(&filled)),
        Format::Raw => {
            let blocks = filled.messages.iter().filter_map(|m| m.get("content").cloned());
            let all = ToolResult { content: blocks.collect(), ..ToolResult::default() };
            let parts = super::call_output::payloads(&all)?;
            let parts: Vec<Vec<u8>> = parts.into_iter().map(|payload| payload.bytes).collect();
            output.raw(&parts.join(&b'\n'))
        }
        _ => output.page(&present::offerings::messages(&filled, output.width())),
    }
}

async fn arguments(args: &PromptGetArgs, context: &CommandContext) -> Result<JsonObject, Error> {
    let text = |value: Value| match value {
        Value::String(text) => Value::String(text),
        other => Value::String(json::compact(&other)),
    };
    Ok(match read_arguments(&args.words, None, context).await? {
        CallArguments::Object(object) => object.into_iter().map(|(k, v)| (k, text(v))).collect(),
        CallArguments::Words(words) => words
            .iter()
            .map(|word| {
                let value = coerce_word(word, &Value::Null, &Value::Null);
                (word.key().to_owned(), text(value))
            })
            .collect(),
    })
}
