//! The one audit record of a benchmark's calls, from the intent before the first to the outcome
//! after the last.

use std::sync::Arc;
use std::time::Instant;

use crate::host::ToolHost;
use crate::host::call_record::{new_call_record, record_intent};
use crate::host::listings::ListedTool;
use crate::host::request::CallRequest;
use crate::model::{CallId, CallRecord, Error, ErrorKind, JsonObject, RecordedOutcome};

/// An open record: the intent is written. Dropped before it is closed, it leaves a call without an
/// outcome.
pub struct LoadRunRecord {
    host: Arc<ToolHost>,
    call: CallRecord,
    started: Instant,
    warnings: Vec<String>,
}

impl LoadRunRecord {
    pub(super) fn open(
        host: &Arc<ToolHost>,
        tool: &ListedTool,
        call_id: &CallId,
        call_input: (&CallRequest, &JsonObject),
        decision: &str,
    ) -> Result<Self, Error> {
        let call = new_call_record(host, &tool.definition, call_id, None, call_input, decision);
        let warnings = record_intent(host, &call)?;
        let started = host.pipeline.clock.now();
        Ok(Self { host: Arc::clone(host), call, started, warnings })
    }

    /// Writes what became of the calls: how many were `made`, and of those that count how many were
    /// answered (`ok`) and how many were not. Returns what is wrong with the record, and the error of
    /// the run when a record was required and is lost.
    pub fn close(mut self, made: u64, ok: u64, failed: u64) -> (Vec<String>, Option<Error>) {
        let outcome = RecordedOutcome {
            failure: (ok == 0 && failed > 0).then_some(ErrorKind::Tool),
            message: Some(format!("{made} calls: {ok} answered, {failed} failed")),
            duration: self.host.pipeline.clock.now().saturating_duration_since(self.started),
            attempts: u32::try_from(made).unwrap_or(u32::MAX).max(1),
            ..RecordedOutcome::default()
        };
        let written = self.host.pipeline.recorder.record_batch_outcome(&self.call, &outcome);
        let mut lost = None;
        if let Err(error) = written {
            let warning = format!("not recorded: {error}");
            lost = self.host.pipeline.require_record.then(|| Error::internal(warning.clone()));
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
        (self.warnings, lost)
    }
}
