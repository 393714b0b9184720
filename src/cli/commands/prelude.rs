//! What most commands use: their options, their context, and what they print.

pub(super) use std::path::{Path, PathBuf};
pub(super) use std::sync::Arc;
pub(super) use std::time::Duration;

pub(super) use clap::{Args, Subcommand};
pub(super) use clap_complete::ArgValueCompleter;
pub(super) use schemars::JsonSchema;
pub(super) use serde::Serialize;
pub(super) use serde_json::Value;

pub(super) use super::choice::{Choice, choice};
pub(super) use crate::assembly::{self, Assembly};
pub(super) use crate::cli::context::{CommandContext, CommandResult, StartScope};
pub(super) use crate::cli::output::{CommandError, Format, Output, conclude};
use crate::cli::raw_arguments::RawArguments;
pub(super) use crate::cli::{ad_hoc, complete, entry_checks, formats, prompt};
pub(super) use crate::host::ToolHost;
pub(super) use crate::host::request::{CallArguments, ListScope};
pub(super) use crate::model::{Error, ErrorKind};
pub(super) use crate::present::{self, Line, Page, Role, Table, TableColumn, plural};
pub(super) use crate::util::shape::shape;

/// The arguments of a call as given on the command line: words, or a whole object.
pub(super) async fn read_arguments(
    words: &[String],
    whole: Option<&String>,
    context: &CommandContext,
) -> Result<CallArguments, Error> {
    let cwd = context.environment.cwd();
    RawArguments { words: words.to_vec(), json_option: whole.cloned(), cwd }.read().await
}

/// Waits until it is time to look again; false when a signal arrived.
pub(super) async fn pause(
    context: &CommandContext,
    interval: Duration,
) -> Result<bool, CommandError> {
    let waited = context.cancel.run_until_cancelled(tokio::time::sleep(interval)).await;
    if context.output.is_stdout_closed() {
        return Err(CommandError::OutputClosed);
    }
    Ok(waited.is_some())
}

/// Warns of the first, or of all of them with `-v`, and says how many more there are.
pub(super) fn warn_some(output: &Output, warnings: &[impl AsRef<str>], most: usize) {
    let most = if output.verbosity() > 0 { warnings.len() } else { most };
    for warning in warnings.iter().take(most) {
        output.warn(warning.as_ref());
    }
    if let Some(hidden @ 1..) = warnings.len().checked_sub(most) {
        let count = plural(hidden, "more warning", "more warnings");
        output.note(hint(format!("{count}, -v shows all")));
    }
}

/// A line that says what was done to what.
pub(super) fn done(verb: &str, name: impl AsRef<str>) -> Line {
    Line::styled(Role::Success, verb).then(Role::Name, name)
}

/// A line about what could be done next, or about what is not shown.
pub(super) fn hint(text: impl AsRef<str>) -> Line {
    Line::styled(Role::Dim, text)
}
