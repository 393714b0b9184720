//! The trait for recording every call, before and after it runs.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use thiserror::Error;

use crate::model::{CallRecord, RecordedOutcome, ToolResult, TraceContext};

/// Why a record was not written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RecordError {
    /// The place of the record is not what it should be (a symbolic link, another user's file):
    /// calls may be hidden from the user, so nothing is run.
    #[error("{0}")]
    Unsafe(String),
    /// It could not be written. Shown as a warning; the call still runs, unless the user requires
    /// records.
    #[error("{0}")]
    Lost(String),
}

/// Keeps records. Dispatch calls a recorder directly, so nothing is lost; a recorder must not wait
/// for another process.
pub trait Recorder: Send + Sync {
    /// Whether calls are recorded at all; `false` when a person switched the audit log off.
    fn is_switched_on(&self) -> bool {
        true
    }

    /// The trace context for what the tool does during the call: the caller's, unless the recorder
    /// starts its own span for the call.
    fn begin_span(
        &self,
        _call: &CallRecord,
        parent: Option<&TraceContext>,
    ) -> Option<TraceContext> {
        parent.cloned()
    }

    /// Writes a call that is about to be dispatched.
    ///
    /// # Errors
    /// Why the record could not be written.
    fn record_intent(&self, call: &CallRecord) -> Result<(), RecordError>;

    /// Writes how a call ended, or why it was never dispatched (then it has no decision and no
    /// attempts); `result` is what the tool returned, secrets masked.
    ///
    /// # Errors
    /// Why the record could not be written.
    fn record_outcome(
        &self,
        call: &CallRecord,
        outcome: &RecordedOutcome,
        result: Option<&ToolResult>,
    ) -> Result<(), RecordError>;

    /// Writes one outcome for many calls, with their number as the attempts. Benchmarks are not
    /// part of the statistics or the history, which cover real use.
    ///
    /// # Errors
    /// Why the record could not be written.
    fn record_batch_outcome(
        &self,
        call: &CallRecord,
        outcome: &RecordedOutcome,
    ) -> Result<(), RecordError> {
        self.record_outcome(call, outcome, None)
    }

    /// Sends what it still holds, within its own time limit; called once, when the host has closed.
    fn close(&self) -> BoxFuture<'_, ()> {
        std::future::ready(()).boxed()
    }
}

/// The recorder of a host that was built without one: records nothing.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoRecorder;

impl Recorder for NoRecorder {
    fn is_switched_on(&self) -> bool {
        false
    }

    fn record_intent(&self, _call: &CallRecord) -> Result<(), RecordError> {
        Ok(())
    }

    fn record_outcome(
        &self,
        _call: &CallRecord,
        _outcome: &RecordedOutcome,
        _result: Option<&ToolResult>,
    ) -> Result<(), RecordError> {
        Ok(())
    }
}
