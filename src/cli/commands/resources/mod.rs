//! `toolhost resources`: its subcommands.

mod list;
mod read;
mod watch;

use crate::cli::commands::prelude::*;

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
    List(list::ResourceListArgs),
    /// Read a resource.
    Read(read::ResourceReadArgs),
    /// Print a line each time a resource changes, until Ctrl-C.
    Watch(watch::ResourceWatchArgs),
}

pub async fn run(args: &ResourcesArgs, context: &CommandContext) -> CommandResult {
    match &args.action {
        ResourcesAction::List(args) => list::run(args, context).await,
        ResourcesAction::Read(args) => read::run(args, context).await,
        ResourcesAction::Watch(args) => watch::run(args, context).await,
    }
}
