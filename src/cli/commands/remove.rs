//! `toolhost remove`: removing a server from mcp.yaml, or a tool from tools.yaml.

use super::prelude::*;
use crate::cli::json::error::FileChangeJson;
use crate::cli::mcp_file::{McpFile, McpFileArgs};

/// Remove a server from mcp.yaml, or a tool from tools.yaml.
///
/// The counterpart of 'add': comments and layout of the rest are kept.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  toolhost remove time\n  toolhost remove github --user")]
#[command(arg = formats::option(formats::REPORT))]
pub struct RemoveArgs {
    /// Name of the server or tool
    #[arg(add = ArgValueCompleter::new(complete::servers))]
    pub name: String,
    /// Which file is written.
    #[command(flatten)]
    pub file: McpFileArgs,
}

pub async fn run(args: &RemoveArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::REPORT)?;
    let mut file = find(args, context)?;
    file.remove(&args.name)?;
    let trust_command = context.write_server_file(&file)?;
    let value = FileChangeJson {
        written: true,
        removed: vec![&args.name],
        trust_command: trust_command.clone(),
        ..FileChangeJson::of(&file)
    };
    if context.output.report(format, &value, Page::default)? {
        let removed = done("removed ", &args.name).then(Role::Plain, " from ");
        context.output.note(removed.then(Role::Name, file.path.display().to_string()));
        context.note_untrusted(trust_command);
    }
    Ok(())
}

/// The file that has the entry.
fn find(args: &RemoveArgs, context: &CommandContext) -> Result<McpFile, Error> {
    let servers = McpFile::open(args.file, &*context.environment)?;
    if servers.has(&args.name)? {
        return Ok(servers);
    }
    let tools = McpFile::tools(args.file, &*context.environment)?;
    if tools.has(&args.name)? {
        return Ok(tools);
    }
    let (servers, tools) = (servers.path.display(), tools.path.display());
    Err(Error::usage(format!("'{}' is in neither {servers} nor {tools}", args.name)).with_hint(
        "'toolhost servers' lists all servers, 'toolhost list --source internal' all tools",
    ))
}
