//! The one record of many calls, from the intent before the first to the outcome after the last.
//!
//! Owns: what it says. Never does: count (whoever closes it did), or reach the statistics, which
//! tell how a tool is used.

use std::sync::Arc;
use std::time::Instant;

use crate::host::ToolHost;
use crate::host::listings::ListedTool;
use crate::host::recorder::{IntentRecord, OutcomeRecord, RecordError};
use crate::model::{CallId, Error, ErrorKind, JsonObject};

/// An open record: the intent is written. Dropped before it is closed, it leaves a call without an
/// outcome.
pub struct LoadRunRecord {
    host: Arc<ToolHost>,
    tool: Arc<ListedTool>,
    call_id: CallId,
    started: Instant,
    warnings: Vec<String>,
}

impl LoadRunRecord {
    pub(super) fn open(
        host: &Arc<ToolHost>,
        tool: Arc<ListedTool>,
        call_id: CallId,
        (session, arguments): (&str, &JsonObject),
        decision: &str,
    ) -> Result<Self, Error> {
        let definition = &tool.definition;
        let name = definition.name.full();
        let masked = host.pipeline.masked_arguments(arguments, &definition.input_schema);
        let written = host.pipeline.recorder.record_intent(&IntentRecord {
            call_id: &call_id,
            parent: None,
            tool: &name,
            server: tool.definition.server(),
            source: definition.source,
            session,
            arguments: &masked,
            decision,
        });
        let warnings = match written {
            Ok(()) => Vec::new(),
            Err(RecordError::Unsafe(why)) => {
                return Err(Error::denied(format!("'{name}' was not run: {why}"))
                    .with_hint("look who made it, and remove it"));
            }
            Err(RecordError::Lost(why)) if host.pipeline.require_record => {
                return Err(Error::internal(format!("'{name}' was not run: {why}"))
                    .with_hint("a record of every call is required (--require-record)"));
            }
            Err(RecordError::Lost(why)) => vec![format!("not recorded: {why}")],
        };
        let started = host.pipeline.clock.now();
        Ok(Self { host: Arc::clone(host), tool, call_id, started, warnings })
    }

    /// Writes what became of the calls: how many were `made`, and of those that count how many were
    /// answered (`ok`) and how many were not. Returns what is wrong with the record, and the error of
    /// the run when a record was required and is lost.
    pub fn close(mut self, made: u64, ok: u64, failed: u64) -> (Vec<String>, Option<Error>) {
        let words = format!("{made} calls: {ok} answered, {failed} failed");
        let written = self.host.pipeline.recorder.record_batch_outcome(&OutcomeRecord {
            call_id: &self.call_id,
            parent: None,
            tool: &self.tool.definition.name.full(),
            server: self.tool.definition.server(),
            failure: (ok == 0 && failed > 0).then_some(ErrorKind::Tool),
            message: Some(&words),
            duration: self.host.pipeline.clock.now().saturating_duration_since(self.started),
            attempts: u32::try_from(made).unwrap_or(u32::MAX).max(1),
            result_bytes: 0,
            questions: &[],
            refusal: None,
        });
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
