//! Errors and diagnostics in JSON.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::model::{Diagnostic, Error};

/// An error, as in the `error` of every output that has one.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ErrorJson<'a> {
    /// The kind of error, such as `tool`, `timeout` or `unreachable`: the name that goes with the
    /// exit code.
    pub kind: &'static str,
    /// The cause in one line.
    pub message: &'a str,
    /// The server that caused it.
    pub server: Option<&'a str>,
    /// A hint on how to fix it.
    pub hint: Option<&'a str>,
    /// The step in which it occurred, such as `connect`, `handshake` or `call`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<&'static str>,
    /// Details, one per line: server output, what would be started, or individual failures.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub details: &'a [String],
    /// The configuration file that caused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in that file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column in that line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The `data` of a JSON-RPC error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<&'a Value>,
}

impl<'a> From<&'a Error> for ErrorJson<'a> {
    fn from(error: &'a Error) -> Self {
        let place = error.location();
        // An error about a whole file has no position in it.
        let position = place.filter(|place| place.line > 0);
        Self {
            kind: error.kind().as_str(),
            message: error.message(),
            server: error.server(),
            hint: error.hint(),
            phase: error.phase().map(crate::model::ErrorPhase::as_str),
            details: error.details(),
            file: place.map(|place| place.file.display().to_string()),
            line: position.map(|place| place.line),
            column: position.map(|place| place.column),
            data: error.data(),
        }
    }
}

/// The line on stderr when a command fails under `--json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ErrorLineJson<'a> {
    /// Why the command failed.
    pub error: FinalErrorJson<'a>,
}

/// The error that made a command fail.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FinalErrorJson<'a> {
    #[serde(flatten)]
    error: ErrorJson<'a>,
    /// The exit code.
    pub exit: u8,
}

impl<'a> From<&'a Error> for ErrorLineJson<'a> {
    fn from(error: &'a Error) -> Self {
        Self { error: FinalErrorJson { error: error.into(), exit: error.kind().exit_code() } }
    }
}

/// An error or warning about a configuration file or a server's list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DiagnosticJson<'a> {
    /// `error`: the entry cannot be used; or `warning`.
    pub severity: &'static str,
    /// The configuration file.
    pub file: Option<String>,
    /// The line, from 1; null for a whole file.
    pub line: Option<u32>,
    /// The column, from 1; null for a whole file.
    pub column: Option<u32>,
    /// What is wrong.
    pub message: &'a str,
    /// A hint on how to fix it.
    pub hint: Option<&'a str>,
    /// The entry it is about.
    pub entry: Option<&'a str>,
}

impl<'a> From<&'a Diagnostic> for DiagnosticJson<'a> {
    fn from(diagnostic: &'a Diagnostic) -> Self {
        let place = diagnostic.location.as_ref();
        let position = place.filter(|place| place.line > 0);
        Self {
            severity: if diagnostic.is_error() { "error" } else { "warning" },
            file: place.map(|place| place.file.display().to_string()),
            line: position.map(|place| place.line),
            column: position.map(|place| place.column),
            message: &diagnostic.message,
            hint: diagnostic.hint.as_deref(),
            entry: diagnostic.entry.as_deref(),
        }
    }
}
