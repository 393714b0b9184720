//! The port through which every call is recorded, before and after.

use std::time::Duration;

use crate::model::{CallId, FaultKind, JsonObject, Source};

/// A call that is about to be dispatched.
#[derive(Debug, Clone)]
pub struct Intent<'a> {
    /// The call's identity.
    pub call_id: &'a CallId,
    /// The full tool name.
    pub tool: &'a str,
    /// The server, for MCP tools.
    pub server: Option<&'a str>,
    /// Internal or MCP.
    pub source: Source,
    /// The session.
    pub session: &'a str,
    /// The arguments, secrets masked.
    pub arguments: &'a JsonObject,
    /// What was decided and by which rule: `allowed`, `approved by a person`, `--yes`, …
    pub decision: &'a str,
}

/// How a call ended (or that it was refused, which has no intent).
#[derive(Debug, Clone)]
pub struct Outcome<'a> {
    /// The call's identity.
    pub call_id: &'a CallId,
    /// The full tool name.
    pub tool: &'a str,
    /// The server, for MCP tools.
    pub server: Option<&'a str>,
    /// `None` is success.
    pub failure: Option<FaultKind>,
    /// The failure in words.
    pub message: Option<&'a str>,
    /// From first attempt to answer.
    pub duration: Duration,
    /// Attempts made; 0 when refused.
    pub attempts: u32,
    /// Bytes of the result as JSON.
    pub result_bytes: u64,
}

/// Keeps records. Called by dispatch itself, so nothing is lost; must not wait for anybody.
pub trait Recorder: Send + Sync {
    /// Writes the intent. An error is shown as a warning and never costs the call, unless the
    /// user asked for records to be required.
    ///
    /// # Errors
    /// Why the record could not be written.
    fn intent(&self, intent: &Intent<'_>) -> Result<(), String>;

    /// Writes the outcome.
    ///
    /// # Errors
    /// Why the record could not be written.
    fn outcome(&self, outcome: &Outcome<'_>) -> Result<(), String>;
}

/// Keeps nothing.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoRecorder;

impl Recorder for NoRecorder {
    fn intent(&self, _intent: &Intent<'_>) -> Result<(), String> {
        Ok(())
    }

    fn outcome(&self, _outcome: &Outcome<'_>) -> Result<(), String> {
        Ok(())
    }
}
