//! `toolhost replay`.

use std::path::PathBuf;

use clap::Args;

use crate::audit::trace::read;
use crate::cli::context::{CommandContext, CommandResult};
use crate::cli::output::plural;
use crate::cli::output::{SpanStyle, StyledLine};
use crate::serve::replay::{self, ServerRecording};

/// Serve a recording as an MCP server on standard input and output.
///
/// A request is answered as an equal one was in the recording, with the notifications that came
/// before the answer; asked again, the recorded answers come in turn and the last one stays. With
/// --strict, requests have to come in the recorded order.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The recording: written by record, or by --trace-save of any command
    #[arg(value_hint = clap::ValueHint::FilePath)]
    pub file: PathBuf,
    /// The server to play, when several were recorded
    #[arg(long, value_name = "NAME")]
    pub server: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// When the file is no recording, or the client breaks the protocol beyond repair.
pub async fn run(args: &ReplayArgs, context: &CommandContext) -> CommandResult {
    context.require_piped_stdout("replay")?;
    let output = &context.output;
    let recorded = read::read_file(&args.file)?;
    if recorded.damaged > 0 {
        let lines = plural(recorded.damaged, "line", "lines");
        output.warn(&format!("{lines} of {} cannot be read and left out", args.file.display()));
    }
    if recorded.is_truncated {
        output.warn(&format!("{} holds more than is read", args.file.display()));
    }
    let tape = ServerRecording::for_server(&recorded.items, args.server.as_deref())?;
    // The messages that are played are shared; the rest is not needed any more.
    drop(recorded);
    if output.verbosity() > 0 {
        let count = plural(tape.len(), "request", "requests");
        output.note(&StyledLine::styled(SpanStyle::Dim, format!("replaying {count}")));
    }
    let note = |text: &str| output.warn(text);
    let served = replay::run(tape, context.global.rare.strict, &note);
    context.cancel.run_until_cancelled(served).await.unwrap_or(Ok(()))?;
    Ok(())
}
