//! `toolhost ps`: listing background hosts.

use super::prelude::*;
use crate::cli::host_sockets;
use crate::cli::json::background::HostsJson;
use crate::serve::background::protocol::HostStatus;

/// List background hosts.
#[derive(Debug, Args)]
#[command(arg = formats::option(formats::ROWS))]
pub struct PsArgs {}

pub async fn run(_args: &PsArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::ROWS)?;
    let hosts = host_sockets::running_hosts(context.environment.as_ref()).await;
    let silent = hosts.iter().filter(|host| host.status.is_none()).count();
    let hosts: Vec<HostStatus> = hosts.into_iter().filter_map(|host| host.status).collect();
    let page = || present::background::table(&hosts, context.output.width());
    if context.output.report(format, &HostsJson::from(hosts.as_slice()), page)? && hosts.is_empty()
    {
        context.output.note("no background host is running");
    }
    if silent > 0 {
        let hosts = plural(silent, "background host does", "background hosts do");
        context.output.warn(&format!(
            "{hosts} not respond: another version, or overloaded; \
             'toolhost down --all' stops all"
        ));
    }
    Ok(())
}
