//! The record of one call, from its intent to its outcome.
//!
//! Owns: that every intent gets an outcome, even when the caller drops the call, and what a
//! record that cannot be kept means. Never does: write files.

use std::sync::Arc;
use std::time::Instant;

use super::ToolHost;
use super::nested::Nesting;
use super::questions::CallQuestions;
use super::recorder::{ExchangeRecord, IntentRecord, OutcomeRecord, RecordError, RefusedCall};
use crate::model::{
    CallId, Error, ErrorKind, HostEvent, JsonObject, Signal, ToolDefinition, ToolResult,
};

/// An open entry: the intent is written, the outcome is not.
pub(super) struct ActiveCallRecord<'a> {
    host: &'a ToolHost,
    tool: Arc<super::listings::ListedTool>,
    name: String,
    pub(super) call_id: CallId,
    parent: Option<CallId>,
    pub(super) started: Instant,
    pub(super) attempts: u32,
    /// The protocol revision, for MCP tools.
    pub(super) protocol: Option<String>,
    /// What the tool asked a person on the way.
    pub(super) call_questions: CallQuestions,
    /// What was asked, for a recorder that keeps it.
    request: Option<RecordedRequest>,
    /// What is wrong with the records of this call.
    pub(super) warnings: Vec<String>,
    is_open: bool,
}

/// The request of a call, for recorders that keep exchanges.
struct RecordedRequest {
    session: String,
    /// As they were sent, secrets masked.
    arguments: JsonObject,
    decision: String,
}

impl<'a> ActiveCallRecord<'a> {
    /// Writes the intent.
    ///
    /// # Errors
    /// When the record is unsafe to write, or required and cannot be written.
    pub(super) fn open(
        host: &'a ToolHost,
        tool: Arc<super::listings::ListedTool>,
        call_id: CallId,
        nesting: &Nesting,
        session: &str,
        arguments: &JsonObject,
        decision: &str,
    ) -> Result<Self, Error> {
        let definition = &tool.definition;
        let name = definition.name.full();
        let masked = host.pipeline.masked_arguments(arguments, &definition.input_schema);
        let written = host.pipeline.recorder.record_intent(&IntentRecord {
            call_id: &call_id,
            parent: nesting.parent.as_ref(),
            tool: &name,
            server: definition.server(),
            source: definition.source,
            session,
            arguments: &masked,
            decision,
        });
        let mut warnings = Vec::new();
        match written {
            Ok(()) => {}
            Err(RecordError::Unsafe(why)) => {
                return Err(Error::denied(format!("'{name}' was not run: {why}"))
                    .with_hint("look who made it, and remove it"));
            }
            Err(RecordError::Lost(why)) if host.pipeline.require_record => {
                return Err(Error::internal(format!("'{name}' was not run: {why}"))
                    .with_hint("a record of every call is required (--require-record)"));
            }
            Err(RecordError::Lost(why)) => warnings.push(format!("not recorded: {why}")),
        }
        let parent = nesting.parent.clone();
        host.sessions.events.emit(HostEvent::CallStarted {
            call_id: call_id.clone(),
            tool: name.clone(),
            parent: parent.clone(),
        });
        let started = host.pipeline.clock.now();
        let recorded = host.pipeline.recorder.keeps_exchanges().then(|| RecordedRequest {
            session: session.to_owned(),
            arguments: masked,
            decision: decision.to_owned(),
        });
        Ok(Self {
            host,
            tool,
            name,
            call_id,
            parent,
            started,
            attempts: 0,
            protocol: None,
            call_questions: CallQuestions::default(),
            request: recorded,
            warnings,
            is_open: true,
        })
    }

    /// Writes the outcome of a call that was refused before it had an intent; `asked` is its session
    /// and its arguments.
    pub(super) fn record_refusal(
        host: &ToolHost,
        tool: &ToolDefinition,
        call_id: &CallId,
        nesting: &Nesting,
        context: (&str, &JsonObject),
        error: &Error,
    ) {
        let (session, arguments) = context;
        let masked = host.pipeline.masked_arguments(arguments, &tool.input_schema);
        let message = host.pipeline.masker.text(error.message());
        let written = host.pipeline.recorder.record_outcome(&OutcomeRecord {
            call_id,
            parent: nesting.parent.as_ref(),
            tool: &tool.name.full(),
            server: tool.server(),
            failure: Some(error.kind()),
            message: Some(&message),
            duration: std::time::Duration::ZERO,
            attempts: 0,
            result_bytes: 0,
            questions: &[],
            refusal: Some(RefusedCall { source: tool.source, session, arguments: &masked }),
        });
        if let Err(cause) = written {
            host.sessions
                .events
                .emit(HostEvent::Warning { text: format!("not recorded: {cause}") });
        }
    }

    /// Writes the outcome and tells the viewers.
    pub(super) fn close(mut self, result: &mut Result<ToolResult, Error>, bytes: u64) {
        self.is_open = false;
        let error = result.as_ref().map_or_else(Some, |result| result.error.as_ref());
        let written = self.write_outcome(error, result.as_ref().ok(), bytes);
        if let Err(cause) = written {
            let warning = format!("not recorded: {cause}");
            if self.host.pipeline.require_record {
                // Too late to refuse: the result stays, and the exit code says what happened.
                if let Ok(result) = result {
                    result.error = Some(Error::internal(warning.clone()));
                }
            }
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
        let warnings = std::mem::take(&mut self.warnings);
        match result {
            Ok(result) => result.warnings.extend(warnings),
            Err(error) => *error = error.clone().with_details(warnings),
        }
    }

    fn write_outcome(
        &self,
        error: Option<&Error>,
        result: Option<&ToolResult>,
        bytes: u64,
    ) -> Result<(), RecordError> {
        let duration = self.host.pipeline.clock.now().saturating_duration_since(self.started);
        let message = error.map(|error| self.host.pipeline.masker.text(error.message()));
        let outcome = OutcomeRecord {
            call_id: &self.call_id,
            parent: self.parent.as_ref(),
            tool: &self.name,
            server: self.tool.definition.server(),
            failure: error.map(Error::kind),
            message: message.as_deref(),
            duration,
            attempts: self.attempts,
            result_bytes: bytes,
            questions: &self.call_questions.questions,
            refusal: None,
        };
        let written = self.host.pipeline.recorder.record_outcome(&outcome);
        let kept = self.request.as_ref().map_or(Ok(()), |request| {
            self.host.pipeline.recorder.record_exchange(&ExchangeRecord {
                call_id: &self.call_id,
                parent: self.parent.as_ref().map(|parent| parent.0.as_str()),
                definition: &self.tool.definition,
                session: &request.session,
                protocol: self.protocol.as_deref(),
                arguments: &request.arguments,
                decision: &request.decision,
                outcome: &outcome,
                result,
            })
        });
        self.host.sessions.events.emit(HostEvent::CallFinished {
            call_id: self.call_id.clone(),
            tool: self.name.clone(),
            success: error.is_none(),
            duration,
        });
        written.and(kept)
    }
}

impl Drop for ActiveCallRecord<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.call_questions = self.host.pipeline.questions.end_call(&self.call_id);
            let kind = ErrorKind::Interrupted(Signal::Interrupt);
            let error = Error::new(kind, "the caller went away");
            // Nobody is left who could be told.
            let _unheard = self.write_outcome(Some(&error), None, 0);
        }
    }
}
