//! `toolhost servers`.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;
use clap_complete::ArgValueCompleter;
use serde_json::{Value, json};

use crate::cli::complete;
use crate::cli::context::{Context, Outcome, Starts, plural};
use crate::cli::entries;
use crate::cli::output::{Door, Format, Label, Line, Page, Stop};
use crate::cli::records::local_time;
use crate::cli::views;
use crate::host::ToolHost;
use crate::model::{Fault, ServerStatus};
use crate::util::clock::{Clock as _, SystemClock};
use crate::util::units::{self, show_duration};

/// The shortest time between two rounds of `--watch`.
const SHORTEST: Duration = Duration::from_millis(200);

/// Show the servers: whether they answer, how fast, and what they offer.
///
/// Every server is contacted, all at once. One that does not answer, or whose entry cannot be used,
/// makes the exit code 11.
#[derive(Debug, Args)]
pub struct ServersArgs {
    /// Only these servers
    #[arg(add = ArgValueCompleter::new(complete::servers))]
    pub names: Vec<String>,
    /// Contact none: show what is known without asking
    #[arg(long)]
    pub declared: bool,
    /// Ask again and again, until interrupted
    #[arg(short, long, conflicts_with = "declared")]
    pub watch: bool,
    /// The time between two rounds of --watch, such as 500ms, 2s or 1m
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_interval,
          requires = "watch")]
    pub interval: Duration,
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    match units::duration(text) {
        Some(interval) if interval >= SHORTEST => Ok(interval),
        Some(_) => Err(format!("at least {}", show_duration(SHORTEST))),
        None => Err("expected a time such as 500ms, 2s or 1m".to_owned()),
    }
}

/// Runs the command.
///
/// # Errors
/// What did not answer, after everything has been printed.
pub async fn run(args: &ServersArgs, context: &Context) -> Outcome {
    use Format::{Json, Names, Table, Text, Yaml};
    let format = context.format(&[Text, Table, Json, Yaml, Names])?;
    if args.watch && matches!(format, Yaml | Names) {
        return Err(Fault::usage("--watch prints tables or JSON lines").into());
    }
    let starts = if args.declared { Starts::Nothing } else { Starts::Servers(&args.names) };
    let assembly = context.assemble(starts).await?;
    let known = assembly.host.servers();
    // What cannot be used is a server of the files all the same: it is listed, with the reason.
    let broken = entries::broken_servers(&assembly.configuration, &args.names);
    let names: BTreeSet<&str> =
        known.iter().chain(&broken).map(|server| server.name.as_str()).collect();
    entries::expect_servers(&assembly.configuration, &args.names, &names)?;
    if args.watch && !known.is_empty() {
        return watch(args, context, &assembly.host, &broken, format).await;
    }
    let mut servers = if args.declared || known.is_empty() {
        let wanted = |s: &ServerStatus| args.names.is_empty() || args.names.contains(&s.name);
        known.into_iter().filter(wanted).collect()
    } else {
        assembly.host.check_servers(&args.names).await
    };
    servers.extend(broken);
    match format {
        Json | Yaml => context.door.value(format, &json(&servers))?,
        Names => {
            let mut page = Page::default();
            for server in &servers {
                page.push(Line::plain(&server.name));
            }
            context.door.page(&page)?;
        }
        _ => {
            context.door.page(&table(&servers, &context.door))?;
            if servers.is_empty() {
                let nothing = "no server is configured; they are declared in mcp.yaml";
                context.door.note(&Line::plain(nothing));
            } else if context.door.is_terminal() {
                context.door.note(&Line::plain(plural(servers.len(), "server", "servers")));
            }
        }
    }
    match views::server::verdict(&servers) {
        None => Ok(()),
        Some(fault) if context.door.is_terminal() && matches!(format, Text | Table) => {
            Err(views::server::brief(&fault).into())
        }
        Some(fault) => Err(fault.into()),
    }
}

/// Asks and shows, round after round, until a signal comes or nobody reads any more. A server that
/// does not answer is part of what is watched, and no failure.
async fn watch(
    args: &ServersArgs,
    context: &Context,
    host: &ToolHost,
    broken: &[ServerStatus],
    format: Format,
) -> Outcome {
    let door = &context.door;
    let mut above = 0;
    loop {
        let mut servers = tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Ok(()),
            servers = host.check_servers(&args.names) => servers,
        };
        servers.extend_from_slice(broken);
        if format == Format::Json {
            door.line(&json(&servers))?;
        } else {
            let head = headline(args.interval, &servers);
            let mut page = Page::from(match door.width() {
                Some(width) => head.cut(width),
                None => head,
            });
            page.gap();
            page.append(table(&servers, door));
            page.gap();
            above = door.repaint(&page, above)?;
        }
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Ok(()),
            () = tokio::time::sleep(args.interval) => {}
        }
        if door.reader_is_gone() {
            return Err(Stop::ReaderGone);
        }
    }
}

fn headline(interval: Duration, servers: &[ServerStatus]) -> Line {
    let now = local_time(SystemClock.unix().as_secs_f64());
    let count = plural(servers.len(), "server", "servers");
    let text = format!("{now}  {count}, every {}", show_duration(interval));
    Line::of(Label::Dim, text)
}

fn table(servers: &[ServerStatus], door: &Door) -> Page {
    views::server::table(servers, door.verbosity() > 0, door.width())
}

fn json(servers: &[ServerStatus]) -> Value {
    let list: Vec<Value> = servers.iter().map(views::server::json).collect();
    json!({ "servers": list })
}
