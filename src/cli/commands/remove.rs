//! `toolhost remove`: removing a server from mcp.yaml.

use super::prelude::*;
use crate::cli::mcp_file::{McpFile, McpFileArgs};

/// Remove a server from mcp.yaml.
///
/// The counterpart of 'add': comments and layout of the rest are kept.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  toolhost remove time\n  toolhost remove github --user")]
pub struct RemoveArgs {
    /// Name of the server
    #[arg(add = ArgValueCompleter::new(complete::servers))]
    pub name: String,
    /// Which file is written.
    #[command(flatten)]
    pub file: McpFileArgs,
}

pub async fn run(args: &RemoveArgs, context: &CommandContext) -> CommandResult {
    let mut file = McpFile::open(args.file, &*context.environment)?;
    if !file.has(&args.name)? {
        let what = format!("'{}' is not in {}", args.name, file.path.display());
        return Err(Error::usage(what).with_hint("'toolhost servers' lists all servers").into());
    }
    file.set(&args.name, None)?;
    let trust_command = context.write_server_file(&file)?;
    let removed = done("removed ", &args.name).then(Role::Plain, " from ");
    context.output.note(removed.then(Role::Name, file.path.display().to_string()));
    context.note_untrusted(trust_command);
    Ok(())
}
