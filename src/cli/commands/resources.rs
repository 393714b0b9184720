//! `toolhost resources`: listing, reading and watching the resources of servers.

use tokio::sync::mpsc;

use super::call_output::{self, PrintOptions};
use super::offerings::{self, ItemList};
use super::prelude::*;
use crate::cli::json::offerings::{
    ResourceContentsJson, ResourceUpdateJson, ResourcesJson, TemplatesJson,
};
use crate::cli::records;
use crate::host::offerings::ServerChange;
use crate::host::request::{ItemRequest, LookupScope};
use crate::model::{Resource, ResourceContents, ResourceTemplate, SubscriptionEvent};
use crate::present::{content, offerings as documents};

/// Maximum number of changes waiting to be printed; more are only counted.
const WAITING: usize = 16;

/// List, read and watch resources of MCP servers.
#[derive(Debug, Args)]
pub struct ResourcesArgs {
    /// What to do with them.
    #[command(subcommand)]
    pub action: ResourcesAction,
}

/// What to do with resources.
#[derive(Debug, Subcommand)]
pub enum ResourcesAction {
    /// List the resources of all servers.
    List(ResourceListArgs),
    /// Read a resource.
    Read(ResourceReadArgs),
    /// Print a line each time a resource changes, until Ctrl-C.
    Watch(ResourceWatchArgs),
}

/// List the resources of all servers.
///
/// If a server fails, the others are still listed and the exit code is 11.
#[derive(Debug, Args)]
#[command(after_help = "\
JSON: {\"resources\": [...], \"servers\": [...], \"problems\": [...]}; \"templates\" with --templates")]
#[command(arg = formats::option(formats::LIST), arg = ad_hoc::command())]
pub struct ResourceListArgs {
    /// Only resources whose URI, name, title or description contains these words
    pub query: Vec<String>,
    /// Only ask this server (repeatable)
    #[arg(long, value_name = "NAME", value_parser = ad_hoc::server(), add = ArgValueCompleter::new(complete::servers))]
    pub server: Vec<String>,
    /// List resource templates instead
    #[arg(long)]
    pub templates: bool,
}

/// Read a resource.
///
/// Prints text; for anything else, its type and size. With -o raw the bytes are written unchanged,
/// unless stdout is a terminal.
#[derive(Debug, Args)]
#[command(after_help = "\
JSON: {\"server\", \"uri\", \"contents\": [...], \"ttl_ms\", \"cache_scope\", \"meta\"}")]
#[command(arg = formats::option(formats::CONTENT), arg = ad_hoc::command())]
pub struct ResourceReadArgs {
    /// URI of the resource
    #[arg(add = ArgValueCompleter::new(complete::resources))]
    pub uri: String,
    /// Read it from this server, even if it does not list the URI
    #[arg(long, value_name = "NAME", value_parser = ad_hoc::server(), add = ArgValueCompleter::new(complete::servers))]
    pub server: Vec<String>,
    /// Save it to this file; multiple parts go to FILE-1, FILE-2, …
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub save: Option<PathBuf>,
    /// Apply a jq expression, if the resource is JSON
    #[arg(long, value_name = "EXPR")]
    pub query: Option<String>,
}

/// Print a line each time a resource changes, until Ctrl-C.
///
/// The server must support subscriptions. Lost connections are reopened.
#[derive(Debug, Args)]
#[command(after_help = "\
JSON, a line for each change: {\"at\", \"server\", \"event\": \"updated\", \"uri\", \"times\"};
\"contents\" or \"error\" with --read")]
#[command(arg = formats::option(formats::STREAM), arg = ad_hoc::command())]
pub struct ResourceWatchArgs {
    /// URIs of the resources
    #[arg(required = true, value_name = "URI", add = ArgValueCompleter::new(complete::resources))]
    pub uris: Vec<String>,
    /// Watch them on this server, even if it does not list the URIs
    #[arg(long, value_name = "NAME", value_parser = ad_hoc::server(), add = ArgValueCompleter::new(complete::servers))]
    pub server: Vec<String>,
    /// Stop after this many changes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Read and print the resource after each change
    #[arg(long)]
    pub read: bool,
}

pub async fn run(args: &ResourcesArgs, context: &CommandContext) -> CommandResult {
    match &args.action {
        ResourcesAction::List(args) => list(args, context).await,
        ResourcesAction::Read(args) => read(args, context).await,
        ResourcesAction::Watch(args) => watch(args, context).await,
    }
}

async fn list(args: &ResourceListArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::LIST)?;
    let assembly = offerings::assemble(context, "toolhost resources", &args.server).await?;
    let scope = LookupScope::of_servers(&args.server);
    if args.templates {
        let all = assembly.host.templates(&scope).await?;
        let shown = ItemList::<ResourceTemplate> {
            nouns: ("template", "templates"),
            name: |item| item.template.clone(),
            texts: |item| [Some(&item.name), item.title.as_deref(), item.description.as_deref()],
            table: documents::templates,
            empty_note: "",
        };
        let json = |items: &[_]| TemplatesJson::from((items, &all));
        return shown.print(&all, &args.query, json, (format, context));
    }
    let all = assembly.host.resources(&scope).await?;
    complete::update_names(context, &assembly, |names| names.add_resources(&all));
    let shown = ItemList::<Resource> {
        nouns: ("resource", "resources"),
        name: |item| item.uri.clone(),
        texts: |item| [Some(&item.name), item.title.as_deref(), item.description.as_deref()],
        table: documents::resources,
        empty_note: "; --templates lists URI templates",
    };
    shown.print(&all, &args.query, |items| ResourcesJson::from((items, &all)), (format, context))
}

async fn read(args: &ResourceReadArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::CONTENT)?;
    let options = PrintOptions {
        query: args.query.as_deref(),
        save: args.save.as_deref(),
        ..PrintOptions::default()
    };
    options.check()?;
    let assembly = offerings::assemble(context, "toolhost resources", &args.server).await?;
    let request = ItemRequest::to_servers(&args.server, &context.cancel);
    let read = assembly.host.read(&args.uri, &request).await?;
    let output = &context.output;
    output.note_routing(read.routing.as_ref());
    if read.contents.is_empty() {
        output.warn("the resource is empty");
    }
    let value = ResourceContentsJson::from(&read);
    call_output::print_result(options, output, format, &documents::as_result(&read), &value, false)
}

async fn watch(args: &ResourceWatchArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::STREAM)?;
    let assembly = offerings::assemble(context, "toolhost resources", &args.server).await?;
    let (host, output) = (&assembly.host, &*context.output);
    let (sender, mut changes) = mpsc::channel(WAITING);
    let stop = context.cancel.child_token();
    // A closed stdout ends watching, and the subscriptions are cancelled.
    let end = stop.clone().drop_guard();
    let printing = async {
        let _end = end;
        let mut left = args.count;
        while let Some(ServerChange { server, change }) = changes.recv().await {
            match change {
                SubscriptionEvent::Subscribed { refused } => {
                    for uri in &refused {
                        output.warn(&format!("{server}: does not report changes of '{uri}'"));
                    }
                    if output.is_stderr_terminal() || output.verbosity() > 0 {
                        output.note(hint(format!("{server}: watching")));
                    }
                }
                SubscriptionEvent::Interrupted(error) => output.warn(&format!("{error}; retrying")),
                SubscriptionEvent::Failed(error) if args.uris.len() > 1 => {
                    output.warn(&error.to_string());
                }
                // The last one is the outcome of the command.
                SubscriptionEvent::Failed(_) | SubscriptionEvent::ListChanged(_) => {}
                SubscriptionEvent::ResourceUpdated { uri, times } => {
                    let request = ItemRequest::to_servers(std::slice::from_ref(&server), &stop);
                    let read = if args.read { Some(host.read(&uri, &request).await) } else { None };
                    print_update((format, context), &server, (&uri, times), read)?;
                    left = left.map(|count| count - 1);
                    if left == Some(0) {
                        break;
                    }
                }
            }
        }
        Ok(())
    };
    let scope = LookupScope::of_servers(&args.server);
    let watching = async {
        let outcome = host.watch_resources(&args.uris, &scope, &sender, &stop).await;
        drop(sender);
        outcome
    };
    let (watched, printed): (_, CommandResult) = tokio::join!(watching, printing);
    printed?;
    Ok(watched?)
}

fn print_update(
    (format, context): (Format, &CommandContext),
    server: &str,
    (uri, times): (&str, u64),
    read: Option<Result<ResourceContents, Error>>,
) -> CommandResult {
    let (output, at) = (&context.output, context.now().as_secs_f64());
    if format == Format::Json {
        let (contents, error) = match &read {
            Some(Ok(read)) => (Some(read.contents.as_slice()), None),
            Some(Err(error)) => (None, Some(error.into())),
            None => (None, None),
        };
        let at = records::rfc3339(at);
        let event = "updated";
        return output.line(&ResourceUpdateJson { at, server, event, uri, times, contents, error });
    }
    let mut line = Line::styled(Role::Dim, records::local_time(at))
        .then(Role::Plain, "  ")
        .then(Role::Name, uri)
        .then(Role::Plain, format!(" changed at {server}"));
    if times > 1 {
        line.push(Role::Dim, format!(" ({times} times)"));
    }
    output.page(&line.into())?;
    match read {
        Some(Ok(read)) => {
            output.page(&content::page(&documents::as_result(&read), output.verbosity() > 0))
        }
        Some(Err(failed)) => {
            output.warn(&failed.to_string());
            Ok(())
        }
        None => Ok(()),
    }
}
