//! `toolhost replay`: serving a recording as an MCP server.

use super::prelude::*;
use crate::audit::trace;
use crate::serve::replay::{self, ServerRecording};

/// Serve a recording as an MCP server over stdio.
///
/// Each request gets the response that an equal request got in the recording, preceded by the same
/// notifications. Repeated requests get the recorded responses in order; the last one repeats. With
/// --strict, requests must arrive in the recorded order.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// Recording made by 'record' or with --trace-save
    #[arg(value_hint = clap::ValueHint::FilePath)]
    pub file: PathBuf,
    /// Server to stand in for, if several were recorded
    #[arg(long, value_name = "NAME")]
    pub server: Option<String>,
}

pub async fn run(args: &ReplayArgs, context: &CommandContext) -> CommandResult {
    context.format(formats::TEXT)?;
    context.require_piped_stdout("replay")?;
    let output = &context.output;
    let recorded = trace::read_file(&args.file)?;
    if recorded.damaged > 0 {
        let lines = plural(recorded.damaged, "unreadable line", "unreadable lines");
        output.warn(&format!("skipped {lines} of {}", args.file.display()));
    }
    if recorded.is_truncated {
        output.warn(&format!("{} is too large; only its start was read", args.file.display()));
    }
    let tape = ServerRecording::for_server(&recorded.items, args.server.as_deref())?;
    // The replayed messages are shared; the rest is no longer needed.
    drop(recorded);
    if output.verbosity() > 0 {
        output.note(hint(format!("replaying {}", plural(tape.len(), "request", "requests"))));
    }
    let note = |text: &str| output.warn(text);
    let served = replay::run(tape, context.global.rare.strict, &note);
    context.cancel.run_until_cancelled(served).await.unwrap_or(Ok(()))?;
    Ok(())
}
