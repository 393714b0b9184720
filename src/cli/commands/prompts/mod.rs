//! `toolhost prompts`: its subcommands.

mod get;
mod list;

use crate::cli::commands::prelude::*;

/// List and render prompts of MCP servers.
#[derive(Debug, Args)]
pub struct PromptsArgs {
    /// What to do with them.
    #[command(subcommand)]
    pub action: PromptsAction,
}

/// What to do with prompts.
#[derive(Debug, Subcommand)]
pub enum PromptsAction {
    /// List the prompts of all servers.
    List(list::PromptListArgs),
    /// Render a prompt and show its messages.
    Get(get::PromptGetArgs),
}

pub async fn run(args: &PromptsArgs, context: &CommandContext) -> CommandResult {
    match &args.action {
        PromptsAction::List(args) => list::run(args, context).await,
        PromptsAction::Get(args) => get::run(args, context).await,
    }
}
