//! `toolhost record`: recording the traffic of a server.

use std::slice;

use super::prelude::*;
use crate::assembly::recording;
use crate::serve::record;
use crate::util::orphans;

/// Record the traffic between another client and a server.
///
/// The client starts this command instead of the server. All traffic is passed through unchanged
/// and saved. 'toolhost replay FILE' then stands in for the server.
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// Server to record: its name in mcp.yaml, or its URL
    #[arg(
        required_unless_present = "command",
        conflicts_with = "command",
        value_parser = ad_hoc::server(), add = ArgValueCompleter::new(complete::servers)
    )]
    pub server: Option<String>,
    /// Save the recording to this file; an existing one is appended to
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub save: PathBuf,
    /// Command line of the server, after --
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

pub async fn run(args: &RecordArgs, context: &CommandContext) -> CommandResult {
    context.format(formats::TEXT)?;
    context.require_piped_stdout("record")?;
    let file = context.trace_outputs.file(Some(&args.save))?;
    let traffic = context.trace_outputs.sink(&context.output)?;
    let environment = &*context.environment;
    let recorded = match &args.server {
        None => recording::start_command(&args.command, environment, traffic)?,
        Some(name) => {
            let server = slice::from_ref(name);
            let assembly = context.assemble(StartScope::Servers(server)).await?;
            entry_checks::require_hosted(&assembly, server)?;
            recording::start_server(&assembly, name, environment, traffic)?
        }
    };
    let passed = record::run(recorded, &context.cancel).await;
    // Processes that left the server's group are not killed with it.
    for pid in orphans::kill_all().await {
        context.output.warn(&format!("process {pid} is still running: it cannot be killed"));
    }
    passed?;
    file.map_or(Ok(()), |file| file.ensure_complete().map_err(Error::into))
}
