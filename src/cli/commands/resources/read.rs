//! `toolhost resources read`: reading one resource.

use serde_json::Value;

use crate::cli::commands::call_output;
use crate::cli::commands::prelude::*;
use crate::cli::json::offerings::ResourceContentsJson;
use crate::cli::offering_lists;
use crate::cli::save;
use crate::host::request::ItemRequest;
use crate::model::ToolResult;
use crate::present::{content, offerings};
use crate::util::jq;
use crate::util::json;

/// Read a resource.
///
/// Prints text; for anything else, its type and size. With -o raw the bytes are written unchanged,
/// unless stdout is a terminal.
#[derive(Debug, Args)]
#[command(after_help = "\
JSON: {\"server\", \"uri\", \"contents\": [...], \"ttl_ms\", \"cache_scope\", \"meta\"}")]
#[command(arg = formats::option(formats::CONTENT))]
pub struct ResourceReadArgs {
    /// URI of the resource
    #[arg(add = ArgValueCompleter::new(complete::resources))]
    pub uri: String,
    /// Read it from this server, even if it does not list the URI
    #[arg(long, value_name = "NAME", value_parser = server_target::server(), add = ArgValueCompleter::new(complete::servers))]
    pub server: Vec<String>,
    /// Save it to this file; multiple parts go to FILE-1, FILE-2, …
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub save: Option<PathBuf>,
    /// Apply a jq expression, if the resource is JSON
    #[arg(long, value_name = "EXPR")]
    pub query: Option<String>,
    /// An ad-hoc server, if the command line names one.
    #[command(flatten)]
    pub target: ServerCommandArgs,
}

pub async fn run(args: &ResourceReadArgs, context: &CommandContext) -> CommandResult {
    use Format::{Json, Raw, Yaml};
    let format = context.format(formats::CONTENT)?;
    if let Some(path) = &args.save {
        save::check(path)?;
    }
    if let Some(filter) = &args.query {
        call_output::check_filter(filter)?;
    }
    let assembly = offering_lists::assemble(context, &args.server).await?;
    let read = assembly
        .host
        .read(&args.uri, &ItemRequest::to_servers(&args.server, &context.cancel))
        .await?;
    let output = &context.output;
    output.note_routing(read.routing.as_ref());
    let result = offerings::as_result(&read);
    if read.contents.is_empty() {
        output.warn("the resource is empty");
    }
    let filtered = match &args.query {
        Some(filter) => Some(filtered(filter, &result)?),
        None => None,
    };
    if let Some(path) = &args.save {
        call_output::save_result(path, output, &result, filtered.as_deref())?;
    }
    match (format, filtered) {
        (Json | Yaml, Some(values)) => {
            values.iter().try_for_each(|value| output.value(format, value))
        }
        (Json | Yaml, None) => output.value(format, &ResourceContentsJson::from(&read)),
        _ if args.save.is_some() => Ok(()),
        (Raw, Some(values)) => output.raw(&call_output::lines(&values)),
        (Raw, None) => {
            let payloads = call_output::payloads(&result)?;
            output.raw(&payloads.into_iter().flat_map(|payload| payload.bytes).collect::<Vec<u8>>())
        }
        (_, Some(values)) => {
            let mut page = Page::default();
            for value in &values {
                let text = value.as_str().map_or_else(|| json::pretty(value), str::to_owned);
                page.text(Role::Plain, 0, &text);
            }
            output.page(&page)
        }
        (_, None) => output.page(&content::page(&result, output.verbosity() > 0)),
    }
}

fn filtered(filter: &str, result: &ToolResult) -> Result<Vec<Value>, Error> {
    jq::query(filter, &content::filter_input(result))
        .map_err(|why| Error::usage(format!("--query: {why}")))
}
