//! `toolhost resources`.

mod list;
mod read;
mod watch;

use clap::{Args, Subcommand};

use crate::cli::context::{Context, Outcome};

/// List, read and watch the resources of servers.
#[derive(Debug, Args)]
pub struct ResourcesArgs {
    /// What to do with them.
    #[command(subcommand)]
    pub action: Action,
}

/// What to do with resources.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// List the resources of all servers.
    List(list::ListArgs),
    /// Read a resource.
    Read(read::ReadArgs),
    /// Print a line each time a resource changes, until Ctrl-C.
    Watch(watch::WatchArgs),
}

/// Runs the command.
///
/// # Errors
/// What could not be listed, read or watched.
pub async fn run(args: &ResourcesArgs, context: &Context) -> Outcome {
    match &args.action {
        Action::List(args) => list::run(args, context).await,
        Action::Read(args) => read::run(args, context).await,
        Action::Watch(args) => watch::run(args, context).await,
    }
}
