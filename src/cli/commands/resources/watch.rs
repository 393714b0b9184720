//! `toolhost resources watch`.

use clap::Args;
use clap_complete::ArgValueCompleter;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::cli::complete;
use crate::cli::context::{Context, Outcome};
use crate::cli::offered;
use crate::cli::output::{Door, Format, Label, Line, Stop, content, fault};
use crate::cli::records;
use crate::cli::views::offers as views;
use crate::host::ToolHost;
use crate::host::offers::Seen;
use crate::model::Change;
use crate::util::clock::{Clock as _, SystemClock};

/// How many changes wait to be printed; more are counted where they come in.
const WAITING: usize = 16;

/// Print a line each time a resource changes, until Ctrl-C.
///
/// The server has to offer subscriptions. A connection that is lost is made again.
#[derive(Debug, Args)]
#[command(after_help = "\
JSON, a line for each change: {\"at\", \"server\", \"event\": \"updated\", \"uri\", \"times\"};
\"contents\" or \"error\" with --read")]
pub struct WatchArgs {
    /// The addresses
    #[arg(required = true, value_name = "URI")]
    pub uris: Vec<String>,
    /// Watch them at this server, whether it lists the addresses or not
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(complete::servers))]
    pub server: Vec<String>,
    /// End after so many lines
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Read and print the resource after each change
    #[arg(long)]
    pub read: bool,
}

/// Runs the command.
///
/// # Errors
/// An address that nobody or several have, and what ended the watching for good.
pub async fn run(args: &WatchArgs, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json])?;
    let assembly = offered::assemble(context, &args.server).await?;
    let (sender, mut seen) = mpsc::channel(WAITING);
    let stop = context.cancel.child_token();
    let show = Show { args, format, context, host: &assembly.host, stop: &stop };
    // Whoever stops reading ends the watching, and the subscriptions are taken back.
    let end = stop.clone().drop_guard();
    let printing = async move {
        let _end = end;
        let mut left = args.count;
        while let Some(each) = seen.recv().await {
            if show.one(each).await? {
                left = left.map(|count| count - 1);
            }
            if left == Some(0) {
                break;
            }
        }
        Ok(())
    };
    let watching = async {
        let outcome = assembly.host.watch(&args.uris, &args.server, &sender, &stop).await;
        drop(sender);
        outcome
    };
    let (watched, printed): (_, Outcome) = tokio::join!(watching, printing);
    printed?;
    Ok(watched?)
}

/// How changes are shown.
struct Show<'a> {
    args: &'a WatchArgs,
    format: Format,
    context: &'a Context,
    host: &'a ToolHost,
    stop: &'a CancellationToken,
}

impl Show<'_> {
    /// Shows what happened; whether it was a change.
    async fn one(&self, seen: Seen) -> Result<bool, Stop> {
        let (door, server) = (&self.context.door, &seen.server);
        match seen.change {
            Change::Listening { refused } => {
                for uri in &refused {
                    door.warn(&format!("{server}: does not tell when '{uri}' changes"));
                }
                if door.is_watched() || door.verbosity() > 0 {
                    door.note(&Line::of(Label::Dim, format!("{server}: watching")));
                }
            }
            Change::List(_) => {}
            Change::Interrupted(fault) => door.warn(&format!("{fault}; trying again")),
            // The last one is the outcome of the command.
            Change::Failed(fault) => {
                if self.args.uris.len() > 1 {
                    door.warn(&fault.to_string());
                }
            }
            Change::Updated { uri, times } => {
                self.updated(door, server, &uri, times).await?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn updated(&self, door: &Door, server: &str, uri: &str, times: u64) -> Outcome {
        let at = SystemClock.unix().as_secs_f64();
        let owner = [server.to_owned()];
        let read =
            if self.args.read { Some(self.host.read(uri, &owner, self.stop).await) } else { None };
        if self.format == Format::Json {
            let mut line = json!({
                "at": records::rfc3339(at),
                "server": server,
                "event": "updated",
                "uri": uri,
                "times": times,
            });
            match &read {
                Some(Ok(read)) => line["contents"] = Value::Array(read.contents.clone()),
                Some(Err(failed)) => line["error"] = fault::object(failed),
                None => {}
            }
            return door.line(&line);
        }
        let mut line = Line::of(Label::Dim, records::local_time(at))
            .then(Label::Plain, "  ")
            .then(Label::Name, uri)
            .then(Label::Plain, format!(" changed at {server}"));
        if times > 1 {
            line.push(Label::Dim, format!(" ({times} times)"));
        }
        door.page(&line.into())?;
        match read {
            Some(Ok(read)) => {
                door.page(&content::page(&views::as_result(&read), door.verbosity() > 0))
            }
            Some(Err(failed)) => {
                door.warn(&failed.to_string());
                Ok(())
            }
            None => Ok(()),
        }
    }
}
