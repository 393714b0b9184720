//! `toolhost resources watch`: printing changes of resources.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::cli::commands::prelude::*;
use crate::cli::json::offerings::ResourceUpdateJson;
use crate::cli::offering_lists;
use crate::cli::records;
use crate::host::ToolHost;
use crate::host::offerings::ServerChange;
use crate::host::request::{ItemRequest, LookupScope};
use crate::model::SubscriptionEvent;
use crate::present::{content, offerings};
use crate::util::clock::{Clock as _, SystemClock};

/// Maximum number of changes waiting to be printed; more are only counted.
const WAITING: usize = 16;

/// Print a line each time a resource changes, until Ctrl-C.
///
/// The server must support subscriptions. Lost connections are reopened.
#[derive(Debug, Args)]
#[command(after_help = "\
JSON, a line for each change: {\"at\", \"server\", \"event\": \"updated\", \"uri\", \"times\"};
\"contents\" or \"error\" with --read")]
#[command(arg = formats::option(formats::STREAM))]
pub struct ResourceWatchArgs {
    /// URIs of the resources
    #[arg(required = true, value_name = "URI", add = ArgValueCompleter::new(complete::resources))]
    pub uris: Vec<String>,
    /// Watch them on this server, even if it does not list the URIs
    #[arg(long, value_name = "NAME", value_parser = server_target::server(), add = ArgValueCompleter::new(complete::servers))]
    pub server: Vec<String>,
    /// Stop after this many changes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Read and print the resource after each change
    #[arg(long)]
    pub read: bool,
    /// An ad-hoc server, if the command line names one.
    #[command(flatten)]
    pub target: ServerCommandArgs,
}

pub async fn run(args: &ResourceWatchArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::STREAM)?;
    let assembly = offering_lists::assemble(context, &args.server).await?;
    let (sender, mut seen) = mpsc::channel(WAITING);
    let stop = context.cancel.child_token();
    let show = ChangePrinter { args, format, context, host: &assembly.host, cancel: &stop };
    // A closed stdout ends watching, and the subscriptions are cancelled.
    let end = stop.clone().drop_guard();
    let printing = async move {
        let _end = end;
        let mut left = args.count;
        while let Some(each) = seen.recv().await {
            if show.print_event(each).await? {
                left = left.map(|count| count - 1);
            }
            if left == Some(0) {
                break;
            }
        }
        Ok(())
    };
    let scope = LookupScope::of_servers(&args.server);
    let watching = async {
        let outcome = assembly.host.watch_resources(&args.uris, &scope, &sender, &stop).await;
        drop(sender);
        outcome
    };
    let (watched, printed): (_, CommandResult) = tokio::join!(watching, printing);
    printed?;
    Ok(watched?)
}

struct ChangePrinter<'a> {
    args: &'a ResourceWatchArgs,
    format: Format,
    context: &'a CommandContext,
    host: &'a ToolHost,
    cancel: &'a CancellationToken,
}

impl ChangePrinter<'_> {
    /// Shows an event; returns whether it was a change.
    async fn print_event(&self, seen: ServerChange) -> Result<bool, CommandError> {
        let (output, server) = (&self.context.output, &seen.server);
        match seen.change {
            SubscriptionEvent::Subscribed { refused } => {
                for uri in &refused {
                    output.warn(&format!("{server}: does not report changes of '{uri}'"));
                }
                if output.is_stderr_terminal() || output.verbosity() > 0 {
                    output.note(&Line::styled(Role::Dim, format!("{server}: watching")));
                }
            }
            SubscriptionEvent::ListChanged(_) => {}
            SubscriptionEvent::Interrupted(error) => output.warn(&format!("{error}; retrying")),
            // The last one is the outcome of the command.
            SubscriptionEvent::Failed(error) => {
                if self.args.uris.len() > 1 {
                    output.warn(&error.to_string());
                }
            }
            SubscriptionEvent::ResourceUpdated { uri, times } => {
                self.print_update(output, server, &uri, times).await?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn print_update(
        &self,
        output: &Output,
        server: &str,
        uri: &str,
        times: u64,
    ) -> CommandResult {
        let at = SystemClock.unix().as_secs_f64();
        let request = ItemRequest::to_servers(&[server.to_owned()], self.cancel);
        let read = if self.args.read { Some(self.host.read(uri, &request).await) } else { None };
        if self.format == Format::Json {
            let read = read.as_ref();
            return output.line(&ResourceUpdateJson {
                at: records::rfc3339(at),
                server,
                event: "updated",
                uri,
                times,
                contents: read.and_then(|read| Some(read.as_ref().ok()?.contents.as_slice())),
                error: read.and_then(|read| Some(read.as_ref().err()?.into())),
            });
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
                output.page(&content::page(&offerings::as_result(&read), output.verbosity() > 0))
            }
            Some(Err(failed)) => {
                output.warn(&failed.to_string());
                Ok(())
            }
            None => Ok(()),
        }
    }
}
