//! `toolhost servers`: the status of the servers.

use std::collections::BTreeSet;

use super::call::parse_duration;
use super::prelude::*;
use crate::cli::json::server::ServersJson;
use crate::model::ServerStatus;
use crate::util::timestamp::local_time;
use crate::util::units::show_duration;

/// Minimum interval between refreshes of `--watch`.
const MIN_INTERVAL: Duration = Duration::from_millis(200);

/// Show the status of MCP servers: connection, latency and what they offer.
///
/// Contacts all servers concurrently. Exits with 11 if one does not respond or its entry is
/// invalid.
#[derive(Debug, Args)]
#[command(arg = formats::option(formats::LIST), arg = ad_hoc::command())]
pub struct ServersArgs {
    /// Only these servers
    #[arg(value_parser = ad_hoc::server(), add = ArgValueCompleter::new(complete::servers))]
    pub names: Vec<String>,
    /// Contact no server: show only what is known
    #[arg(long)]
    pub declared: bool,
    /// Refresh until interrupted
    #[arg(short, long, conflicts_with = "declared")]
    pub watch: bool,
    /// Refresh interval of --watch, such as 500ms, 2s or 1m
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_interval,
          requires = "watch")]
    pub interval: Duration,
}

fn parse_interval(text: &str) -> Result<Duration, Error> {
    match parse_duration(text)? {
        interval if interval >= MIN_INTERVAL => Ok(interval),
        _ => Err(Error::usage(format!("at least {}", show_duration(MIN_INTERVAL)))),
    }
}

pub async fn run(args: &ServersArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::LIST)?;
    if args.watch && matches!(format, Format::Yaml | Format::Names) {
        return Err(Error::usage("--watch prints only tables or JSON lines").into());
    }
    let starts = if args.declared { StartScope::Nothing } else { StartScope::Servers(&args.names) };
    let assembly = context.assemble_attached(starts, "toolhost servers").await?;
    let servers = assembly.host.servers();
    // Servers that are out of service are still listed, with the reason.
    let mut broken = assembly.host.servers_out_of_service();
    broken.retain(|server| args.names.is_empty() || args.names.contains(&server.name));
    let names: BTreeSet<&str> =
        servers.iter().chain(&broken).map(|server| server.name.as_str()).collect();
    entry_checks::require_servers(&assembly.configuration, &args.names, &names)?;
    if args.watch && !servers.is_empty() {
        return watch(args, context, &assembly.host, &broken, format).await;
    }
    let mut servers = if args.declared || servers.is_empty() {
        let is_selected = |s: &ServerStatus| args.names.is_empty() || args.names.contains(&s.name);
        servers.into_iter().filter(is_selected).collect()
    } else {
        assembly.host.check_servers(&args.names).await
    };
    servers.extend(broken);
    if servers.is_empty() {
        entry_checks::require_files(&assembly.configuration)?;
    }
    let output = &context.output;
    let value = ServersJson::from(servers.as_slice());
    let names = servers.iter().map(|server| &server.name);
    if output.listing(format, &value, names, || table(&servers, output))? {
        if servers.is_empty() {
            let nothing = match assembly.configuration.servers.as_slice() {
                [] => "no servers configured; add one under mcp_servers in mcp.yaml",
                _ => "the profile contains no servers",
            };
            output.note(nothing);
        } else if output.is_terminal() {
            output.note(plural(servers.len(), "server", "servers"));
        }
    }
    conclude_servers(&servers, output, format)
}

/// Ends a command that showed these servers. On a terminal its page has the details; stderr repeats
/// them for readers of stderr alone.
pub(super) fn conclude_servers(
    servers: &[ServerStatus],
    output: &Output,
    format: Format,
) -> CommandResult {
    let is_shown = output.is_terminal() && matches!(format, Format::Text | Format::Table);
    let verdict = present::server::verdict(servers);
    conclude(match verdict {
        Some(error) if is_shown => Some(present::server::without_details(&error)),
        verdict => verdict,
    })
}

/// Polls and shows the servers until a signal arrives or stdout is closed. A server that does not
/// respond is part of the display, not an error.
async fn watch(
    args: &ServersArgs,
    context: &CommandContext,
    host: &ToolHost,
    broken: &[ServerStatus],
    format: Format,
) -> CommandResult {
    let output = &context.output;
    let mut above = 0;
    loop {
        let mut servers = tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Ok(()),
            servers = host.check_servers(&args.names) => servers,
        };
        servers.extend_from_slice(broken);
        if format == Format::Json {
            output.line(&ServersJson::from(servers.as_slice()))?;
        } else {
            let head = headline(args.interval, &servers, context.now());
            let mut page = Page::from(head.truncate(output.width().unwrap_or(usize::MAX)));
            page.blank_line();
            page.append(table(&servers, output));
            page.blank_line();
            above = output.repaint(&page, above)?;
        }
        if !pause(context, args.interval).await? {
            return Ok(());
        }
    }
}

fn headline(interval: Duration, servers: &[ServerStatus], now: Duration) -> Line {
    let now = local_time(now.as_secs_f64());
    let count = plural(servers.len(), "server", "servers");
    let text = format!("{now}  {count}, every {}", show_duration(interval));
    Line::styled(Role::Dim, text)
}

fn table(servers: &[ServerStatus], output: &Output) -> Page {
    present::server::table(servers, output.verbosity() > 0, output.width())
}
