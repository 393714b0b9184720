//! `toolhost prompts`.

mod get;
mod list;

use clap::{Args, Subcommand};

use crate::cli::context::{Context, Outcome};

/// List and fill in the prompts of servers.
#[derive(Debug, Args)]
pub struct PromptsArgs {
    /// What to do with them.
    #[command(subcommand)]
    pub action: Action,
}

/// What to do with prompts.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// List the prompts of all servers.
    List(list::ListArgs),
    /// Fill in a prompt and show its messages.
    Get(get::GetArgs),
}

/// Runs the command.
///
/// # Errors
/// What could not be listed or filled in.
pub async fn run(args: &PromptsArgs, context: &Context) -> Outcome {
    match &args.action {
        Action::List(args) => list::run(args, context).await,
        Action::Get(args) => get::run(args, context).await,
    }
}
