//! The record of one call, from its intent to its outcome.
//!
//! Owns: that every intent gets an outcome, even when the caller drops the call, and what a
//! record that cannot be kept means. Never does: write files.

use std::sync::Arc;
use std::time::Instant;

use super::ToolHost;
use super::nested::Nesting;
use super::questions::Asked as Answers;
use super::recorder::{Exchange, Intent, Outcome, RecordError, Refused};
use crate::model::{
    CallId, Event, Fault, FaultKind, JsonObject, Signal, Source, ToolDefinition, ToolResult,
};

/// An open entry: the intent is written, the outcome is not.
pub(super) struct Ledger<'a> {
    host: &'a ToolHost,
    tool: Arc<super::listings::Tool>,
    name: String,
    pub(super) call_id: CallId,
    parent: Option<CallId>,
    pub(super) started: Instant,
    pub(super) attempts: u32,
    /// The protocol revision, for MCP tools.
    pub(super) protocol: Option<String>,
    /// What the tool asked a person on the way.
    pub(super) asked_for: Answers,
    /// What was asked, for a recorder that keeps it.
    asked: Option<Asked>,
    /// What is wrong with the records of this call.
    pub(super) warnings: Vec<String>,
    open: bool,
}

/// What was asked.
struct Asked {
    session: String,
    /// Secrets masked.
    arguments: JsonObject,
    decision: String,
}

impl<'a> Ledger<'a> {
    /// Writes the intent.
    ///
    /// # Errors
    /// When the record is unsafe to write, or required and cannot be written.
    pub(super) fn open(
        host: &'a ToolHost,
        tool: Arc<super::listings::Tool>,
        call_id: CallId,
        nesting: &Nesting,
        session: &str,
        arguments: &JsonObject,
        decision: &str,
    ) -> Result<Self, Fault> {
        let definition = &tool.definition;
        let name = definition.name.full();
        let masked = host.masker.arguments(arguments, &definition.input_schema);
        let written = host.recorder.intent(&Intent {
            call_id: &call_id,
            parent: nesting.parent.as_ref(),
            tool: &name,
            server: server_of(definition),
            source: definition.source,
            session,
            arguments: &masked,
            decision,
        });
        let mut warnings = Vec::new();
        match written {
            Ok(()) => {}
            Err(RecordError::Unsafe(why)) => {
                return Err(Fault::denied(format!("'{name}' was not run: {why}"))
                    .hint("look who made it, and remove it"));
            }
            Err(RecordError::Lost(why)) if host.require_record => {
                return Err(Fault::internal(format!("'{name}' was not run: {why}"))
                    .hint("a record of every call is required (--require-record)"));
            }
            Err(RecordError::Lost(why)) => warnings.push(format!("not recorded: {why}")),
        }
        let parent = nesting.parent.clone();
        host.events.emit(Event::CallStarted {
            call_id: call_id.clone(),
            tool: name.clone(),
            parent: parent.clone(),
        });
        let started = host.clock.now();
        let asked = host.recorder.keeps_exchanges().then(|| Asked {
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
            asked_for: Answers::default(),
            asked,
            warnings,
            open: true,
        })
    }

    /// Writes the outcome of a call that was refused before it had an intent; `asked` is its session
    /// and its arguments.
    pub(super) fn refused(
        host: &ToolHost,
        tool: &ToolDefinition,
        call_id: &CallId,
        nesting: &Nesting,
        asked: (&str, &JsonObject),
        fault: &Fault,
    ) {
        let (session, arguments) = asked;
        let masked = host.masker.arguments(arguments, &tool.input_schema);
        let message = host.masker.text(fault.message());
        let written = host.recorder.outcome(&Outcome {
            call_id,
            parent: nesting.parent.as_ref(),
            tool: &tool.name.full(),
            server: server_of(tool),
            failure: Some(fault.kind()),
            message: Some(&message),
            duration: std::time::Duration::ZERO,
            attempts: 0,
            result_bytes: 0,
            questions: &[],
            refused: Some(Refused { source: tool.source, session, arguments: &masked }),
        });
        if let Err(error) = written {
            host.events.emit(Event::Warning { text: format!("not recorded: {error}") });
        }
    }

    /// Writes the outcome and tells the viewers.
    pub(super) fn close(mut self, result: &mut Result<ToolResult, Fault>, bytes: u64) {
        self.open = false;
        let fault = result.as_ref().map_or_else(Some, |result| result.fault.as_ref());
        let written = self.write(fault, result.as_ref().ok(), bytes);
        if let Err(error) = written {
            let warning = format!("not recorded: {error}");
            if self.host.require_record {
                // Too late to refuse: the result stays, and the exit code says what happened.
                if let Ok(result) = result {
                    result.fault = Some(Fault::internal(warning.clone()));
                }
            }
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
        let warnings = std::mem::take(&mut self.warnings);
        match result {
            Ok(result) => result.warnings.extend(warnings),
            Err(fault) => *fault = fault.clone().details(warnings),
        }
    }

    fn write(
        &self,
        fault: Option<&Fault>,
        result: Option<&ToolResult>,
        bytes: u64,
    ) -> Result<(), RecordError> {
        let duration = self.host.clock.now().saturating_duration_since(self.started);
        let message = fault.map(|fault| self.host.masker.text(fault.message()));
        let outcome = Outcome {
            call_id: &self.call_id,
            parent: self.parent.as_ref(),
            tool: &self.name,
            server: server_of(&self.tool.definition),
            failure: fault.map(Fault::kind),
            message: message.as_deref(),
            duration,
            attempts: self.attempts,
            result_bytes: bytes,
            questions: &self.asked_for.questions,
            refused: None,
        };
        let written = self.host.recorder.outcome(&outcome);
        let kept = self.asked.as_ref().map_or(Ok(()), |asked| {
            self.host.recorder.exchange(&Exchange {
                call_id: &self.call_id,
                parent: self.parent.as_ref().map(|parent| parent.0.as_str()),
                definition: &self.tool.definition,
                session: &asked.session,
                protocol: self.protocol.as_deref(),
                arguments: &asked.arguments,
                decision: &asked.decision,
                outcome: &outcome,
                result,
            })
        });
        self.host.events.emit(Event::CallFinished {
            call_id: self.call_id.clone(),
            tool: self.name.clone(),
            success: fault.is_none(),
            duration,
        });
        written.and(kept)
    }
}

impl Drop for Ledger<'_> {
    fn drop(&mut self) {
        if self.open {
            self.asked_for = self.host.questions.ended(&self.call_id);
            let kind = FaultKind::Interrupted(Signal::Interrupt);
            let fault = Fault::new(kind, "the caller went away");
            // Nobody is left who could be told.
            let _unheard = self.write(Some(&fault), None, 0);
        }
    }
}

fn server_of(tool: &ToolDefinition) -> Option<&str> {
    tool.name.component().filter(|_| tool.source == Source::Mcp)
}
