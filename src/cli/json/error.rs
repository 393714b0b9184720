//! Errors and diagnostics in JSON, and what the commands that change files say they did.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::cli::mcp_file::McpFile;
use crate::model::{Diagnostic, Error};
use crate::util::shape::shape;

shape! {
    /// An error, as in the `error` of every output that has one.
    pub ErrorJson<'a> of error: &'a Error, with {
        let place = error.location();
        // An error about a whole file has no position in it.
        let position = place.filter(|place| place.line > 0);
    } {
        /// The kind of error, such as `tool`, `timeout` or `unreachable`: the name that goes with the
        /// exit code.
        kind: &'static str = error.kind().as_str(),
        /// The cause in one line.
        message: &'a str = error.message(),
        /// The server that caused it.
        server: Option<&'a str> = error.server(),
        /// A hint on how to fix it.
        hint: Option<&'a str> = error.hint(),
        /// The step in which it occurred, such as `connect`, `handshake` or `call`.
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'static str> = error.phase().map(crate::model::ErrorPhase::as_str),
        /// Details, one per line: server output, what would be started, or individual failures.
        #[serde(skip_serializing_if = "<[String]>::is_empty")]
        details: &'a [String] = error.details(),
        /// The configuration file that caused it.
        #[serde(skip_serializing_if = "Option::is_none")]
        file: Option<String> = place.map(|place| place.file.display().to_string()),
        /// The line in that file, from 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        line: Option<u32> = position.map(|place| place.line),
        /// The column in that line, from 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        column: Option<u32> = position.map(|place| place.column),
        /// The `data` of a JSON-RPC error.
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<&'a Value> = error.data(),
    }
}

shape! {
    /// The line on stderr when a command fails under `--json`.
    pub ErrorLineJson<'a> of failure: &'a Error {
        /// Why the command failed.
        error: FinalErrorJson<'a> = failure.into(),
    }
}

shape! {
    /// The error that made a command fail.
    pub FinalErrorJson<'a> of failure: &'a Error {
        #[serde(flatten)]
        error: ErrorJson<'a> = failure.into(),
        /// The exit code.
        exit: u8 = failure.kind().exit_code(),
    }
}

shape! {
    /// An error or warning about a configuration file or a server's list.
    pub DiagnosticJson<'a> of diagnostic: &'a Diagnostic, with {
        let place = diagnostic.location.as_ref();
        let position = place.filter(|place| place.line > 0);
    } {
        /// `error`: the entry cannot be used; or `warning`.
        severity: &'static str = if diagnostic.is_error() { "error" } else { "warning" },
        /// The configuration file.
        file: Option<String> = place.map(|place| place.file.display().to_string()),
        /// The line, from 1; null for a whole file.
        line: Option<u32> = position.map(|place| place.line),
        /// The column, from 1; null for a whole file.
        column: Option<u32> = position.map(|place| place.column),
        /// What is wrong.
        message: &'a str = &diagnostic.message,
        /// A hint on how to fix it.
        hint: Option<&'a str> = diagnostic.hint.as_deref(),
        /// The entry it is about.
        entry: Option<&'a str> = diagnostic.entry.as_deref(),
    }
}

/// A change of the entries of a configuration file.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct FileChangeJson<'a> {
    /// The file.
    pub file: String,
    /// Whether it was written: false with `--dry-run`, and when there was nothing to change.
    pub written: bool,
    /// The entries that are added or replaced.
    pub added: Vec<&'a str>,
    /// The entries that are removed.
    pub removed: Vec<&'a str>,
    /// The lines around the change, each with `-`, `+` or a space in front.
    pub diff: Vec<String>,
    /// Variables that imported entries need.
    pub variables: Vec<&'a str>,
    /// The file as it was, if a copy was kept.
    pub backup: Option<String>,
    /// The command that trusts the project, where that is still needed.
    pub trust_command: Option<String>,
}

impl FileChangeJson<'_> {
    pub fn of(file: &McpFile) -> Self {
        let hunks = file.hunks();
        let lines = hunks.iter().flat_map(|hunk| &hunk.lines);
        Self {
            file: file.path.display().to_string(),
            diff: lines.map(|line| format!("{}{}", line.mark.sign(), line.text)).collect(),
            ..Self::default()
        }
    }
}
