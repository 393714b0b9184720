//! The port through which every call is recorded, before and after.

use std::time::Duration;

use thiserror::Error;

use super::questions::QuestionRecord;
use crate::model::{CallId, ErrorKind, JsonObject, ToolDefinition, ToolResult, ToolSource};

/// Why a record was not kept.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RecordError {
    /// The place of the record is not what it should be (a symbolic link, another user's file):
    /// somebody may be hiding something, so nothing is run.
    #[error("{0}")]
    Unsafe(String),
    /// It could not be written. Shown as a warning; never costs the call, unless the user asked
    /// for records to be required.
    #[error("{0}")]
    Lost(String),
}

/// A call that is about to be dispatched.
#[derive(Debug, Clone)]
pub struct IntentRecord<'a> {
    /// The identity by which the records of one call belong together.
    pub call_id: &'a CallId,
    /// The call it is part of, when it is nested in one.
    pub parent: Option<&'a CallId>,
    /// The full name of the tool.
    pub tool: &'a str,
    /// The server, for MCP tools.
    pub server: Option<&'a str>,
    /// Whether the tool is internal or a server's.
    pub source: ToolSource,
    /// The session that the call belongs to.
    pub session: &'a str,
    /// The arguments after coercion, secrets masked.
    pub arguments: &'a JsonObject,
    /// What was decided and by which rule: `allowed`, `approved by a person`, `--yes`, …
    pub decision: &'a str,
}

/// How a call ended (or that it was refused, which has no intent).
#[derive(Debug, Clone)]
pub struct OutcomeRecord<'a> {
    /// The identity by which the records of one call belong together.
    pub call_id: &'a CallId,
    /// The call it is part of, when it is nested in one.
    pub parent: Option<&'a CallId>,
    /// The full name of the tool.
    pub tool: &'a str,
    /// The server, for MCP tools.
    pub server: Option<&'a str>,
    /// The kind of the error; `None` for a success.
    pub failure: Option<ErrorKind>,
    /// The message of the error, known secrets masked.
    pub message: Option<&'a str>,
    /// From first attempt to answer.
    pub duration: Duration,
    /// Attempts made; 0 when refused.
    pub attempts: u32,
    /// Bytes of the result as JSON.
    pub result_bytes: u64,
    /// What its server asked on the way, and what came of it.
    pub questions: &'a [QuestionRecord],
    /// What was refused: such a call has no intent that would tell it.
    pub refusal: Option<RefusedCall<'a>>,
}

/// A call that was refused before it began.
#[derive(Debug, Clone, Copy)]
pub struct RefusedCall<'a> {
    /// Whether the tool is internal or a server's.
    pub source: ToolSource,
    /// The session that the call belongs to.
    pub session: &'a str,
    /// The arguments after coercion, secrets masked.
    pub arguments: &'a JsonObject,
}

/// What was asked and what came of it, whole: told after the outcome, to those who keep it.
#[derive(Debug, Clone)]
pub struct ExchangeRecord<'a> {
    /// The identity by which the records of one call belong together.
    pub call_id: &'a CallId,
    /// The call this one was part of.
    pub parent: Option<&'a str>,
    /// The tool as it was called.
    pub definition: &'a ToolDefinition,
    /// The session that the call belongs to.
    pub session: &'a str,
    /// The protocol revision, for MCP tools.
    pub protocol: Option<&'a str>,
    /// The arguments after coercion, secrets masked.
    pub arguments: &'a JsonObject,
    /// What was decided and by which rule.
    pub decision: &'a str,
    /// The outcome as it was written before.
    pub outcome: &'a OutcomeRecord<'a>,
    /// What the tool gave, known secrets masked; `None` when nothing came.
    pub result: Option<&'a ToolResult>,
}

/// Keeps records. Called by dispatch itself, so nothing is lost; must not wait for anybody.
pub trait Recorder: Send + Sync {
    /// Writes the intent.
    ///
    /// # Errors
    /// Why the record could not be written.
    fn record_intent(&self, intent: &IntentRecord<'_>) -> Result<(), RecordError>;

    /// Writes the outcome.
    ///
    /// # Errors
    /// Why the record could not be written.
    fn record_outcome(&self, outcome: &OutcomeRecord<'_>) -> Result<(), RecordError>;

    /// Writes the one outcome of many calls, whose number stands for the attempts. It is no part of
    /// statistics: nobody used the tool.
    ///
    /// # Errors
    /// Why the record could not be written.
    fn record_batch_outcome(&self, outcome: &OutcomeRecord<'_>) -> Result<(), RecordError> {
        self.record_outcome(outcome)
    }

    /// Whether it keeps arguments and results, so that it is told them.
    fn keeps_exchanges(&self) -> bool {
        false
    }

    /// Keeps arguments and result.
    ///
    /// # Errors
    /// Why they could not be kept.
    fn record_exchange(&self, _exchange: &ExchangeRecord<'_>) -> Result<(), RecordError> {
        Ok(())
    }
}

/// A recorder that keeps nothing and never fails.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoRecorder;

impl Recorder for NoRecorder {
    fn record_intent(&self, _intent: &IntentRecord<'_>) -> Result<(), RecordError> {
        Ok(())
    }

    fn record_outcome(&self, _outcome: &OutcomeRecord<'_>) -> Result<(), RecordError> {
        Ok(())
    }
}
