//! `toolhost servers`.

use std::collections::BTreeSet;

use clap::Args;
use clap_complete::ArgValueCompleter;
use serde_json::{Value, json};

use crate::cli::complete;
use crate::cli::context::{Context, Outcome, Starts, plural};
use crate::cli::entries;
use crate::cli::output::{Format, Line, Page};
use crate::cli::views;
use crate::model::ServerStatus;

/// Show the servers: whether they answer, how fast, and what they offer.
///
/// Every server is contacted, all at once. One that does not answer makes the exit code 11.
#[derive(Debug, Args)]
pub struct ServersArgs {
    /// Only these servers
    #[arg(add = ArgValueCompleter::new(complete::servers))]
    pub names: Vec<String>,
    /// Contact none: show what is known without asking
    #[arg(long)]
    pub declared: bool,
}

/// Runs the command.
///
/// # Errors
/// What did not answer, after everything has been printed.
pub async fn run(args: &ServersArgs, context: &Context) -> Outcome {
    use Format::{Json, Names, Table, Text, Yaml};
    let format = context.format(&[Text, Table, Json, Yaml, Names])?;
    let starts = if args.declared { Starts::Nothing } else { Starts::Servers(&args.names) };
    let assembly = context.assemble(starts).await?;
    let known = assembly.host.servers();
    let names: BTreeSet<&str> = known.iter().map(|server| server.name.as_str()).collect();
    entries::expect_servers(&assembly.configuration, &args.names, &names)?;
    let servers = if args.declared || known.is_empty() {
        let wanted = |s: &ServerStatus| args.names.is_empty() || args.names.contains(&s.name);
        known.into_iter().filter(wanted).collect()
    } else {
        assembly.host.check_servers(&args.names).await
    };
    match format {
        Json | Yaml => {
            let list: Vec<Value> = servers.iter().map(views::server::json).collect();
            context.door.value(format, &json!({ "servers": list }))?;
        }
        Names => {
            let mut page = Page::default();
            for server in &servers {
                page.push(Line::plain(&server.name));
            }
            context.door.page(&page)?;
        }
        _ => {
            context.door.page(&views::server::table(&servers, context.door.width()))?;
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
