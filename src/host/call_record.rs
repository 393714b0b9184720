//! The record of one call, from its intent to its outcome.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::questions::CallQuestions;
use super::recorder::RecordError;
use super::request::CallRequest;
use super::{ToolHost, variables};
use crate::model::{
    BreakpointRecord, CallId, CallRecord, CallerRecord, Error, ErrorKind, HostEvent, JsonObject,
    RecordedOutcome, Signal, ToolDefinition, ToolResult, ToolSource, TraceContext,
};
use crate::util::text::truncate;

/// An open entry: the intent is written, the outcome is not.
pub(super) struct ActiveCallRecord<'a> {
    host: &'a ToolHost,
    pub(super) call: CallRecord,
    pub(super) trace: Option<TraceContext>,
    pub(super) started: Instant,
    pub(super) attempts: u32,
    /// How long a person was waited for before it started.
    pub(super) earlier_wait: Duration,
    /// What the tool asked a person on the way.
    pub(super) call_questions: CallQuestions,
    /// What a breakpoint did to its result.
    pub(super) result_stop: Option<BreakpointRecord>,
    pub(super) warnings: Vec<String>,
    is_open: bool,
}

/// The most names of variables, and of metadata, that a record keeps.
const MAX_NAMES: usize = 50;

/// The most characters that a record keeps of a name, of a directory and of a user.
const MAX_NAME_CHARS: usize = 500;

/// The record of a call of a tool with these arguments; `decision` is what allowed it.
pub(super) fn new_call_record(
    host: &ToolHost,
    definition: &Arc<ToolDefinition>,
    id: &CallId,
    parent: Option<&CallId>,
    (request, arguments): (&CallRequest, &JsonObject),
    decision: &str,
) -> CallRecord {
    let server = definition.name.component().filter(|_| definition.source == ToolSource::Mcp);
    CallRecord {
        id: id.clone(),
        parent: parent.cloned(),
        tool: definition.name.full(),
        server: server.map(str::to_owned),
        source: Some(definition.source),
        definition: Some(Arc::clone(definition)),
        caller: caller_record(host, request, Some(definition)),
        protocol: None,
        arguments: host.pipeline.masker.arguments(arguments, &definition.input_schema),
        decision: Some(decision.to_owned()),
        breakpoint: None,
    }
}

pub(super) fn caller_record(
    host: &ToolHost,
    request: &CallRequest,
    tool: Option<&ToolDefinition>,
) -> CallerRecord {
    let mut info = host.sessions.caller_info(request);
    if let Some(tool) = tool {
        variables::retain(&mut info.environment, tool);
    }
    let text = |text: &str| truncate(&host.pipeline.masker.text(text), MAX_NAME_CHARS);
    CallerRecord {
        session: info.session_id,
        cwd: text(&info.cwd.to_string_lossy()),
        user_id: info.user_id.as_deref().map(text),
        client: host.client.clone().or_else(|| request.client_name.as_deref().map(text)),
        environment: info.environment.keys().take(MAX_NAMES).map(|name| text(name)).collect(),
        metadata: info.metadata.keys().take(MAX_NAMES).map(|name| text(name)).collect(),
    }
}

pub(super) fn require_audit(host: &ToolHost, name: &str) -> Result<(), Error> {
    if !host.pipeline.require_record || host.pipeline.recorder.is_switched_on() {
        return Ok(());
    }
    Err(Error::config(format!("'{name}' was not run: the audit log is switched off"))
        .with_hint("--require-record needs it: set audit: { enabled: true } in your tools.yaml"))
}

pub(super) fn record_intent(host: &ToolHost, call: &CallRecord) -> Result<Vec<String>, Error> {
    match host.pipeline.recorder.record_intent(call) {
        Ok(()) => Ok(Vec::new()),
        Err(RecordError::Unsafe(why)) => {
            Err(Error::denied(format!("'{}' was not run: {why}", call.tool))
                .with_hint("check who created it, and remove it"))
        }
        Err(RecordError::Lost(why)) if host.pipeline.require_record => {
            Err(Error::internal(format!("'{}' was not run: {why}", call.tool))
                .with_hint("a record of every call is required (--require-record)"))
        }
        Err(RecordError::Lost(why)) => Ok(vec![format!("not recorded: {why}")]),
    }
}

impl<'a> ActiveCallRecord<'a> {
    pub(super) fn open(
        host: &'a ToolHost,
        call: CallRecord,
        trace: Option<&TraceContext>,
    ) -> Result<Self, Error> {
        let warnings = record_intent(host, &call)?;
        let trace = host.pipeline.recorder.begin_span(&call, trace);
        host.sessions.events.emit(HostEvent::CallStarted {
            call_id: call.id.clone(),
            tool: call.tool.clone(),
            parent: call.parent.clone(),
            client: call.caller.client.clone(),
        });
        let started = host.pipeline.clock.now();
        Ok(Self {
            host,
            call,
            trace,
            started,
            attempts: 0,
            earlier_wait: Duration::ZERO,
            call_questions: CallQuestions::default(),
            result_stop: None,
            warnings,
            is_open: true,
        })
    }

    /// From the start until now, without the time in which a person was waited for.
    pub(super) fn duration(&self) -> Duration {
        let elapsed = self.host.pipeline.clock.now().saturating_duration_since(self.started);
        elapsed.saturating_sub(self.call_questions.waited)
    }

    /// How long a person was waited for: for the approval before, and for answers on the way.
    pub(super) fn person_wait(&self) -> Duration {
        self.earlier_wait + self.call_questions.waited
    }

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
        &mut self,
        error: Option<&Error>,
        result: Option<&ToolResult>,
        bytes: u64,
    ) -> Result<(), RecordError> {
        let outcome = RecordedOutcome {
            failure: error.map(Error::kind),
            message: error.map(|error| self.host.pipeline.masker.text(error.message())),
            duration: self.duration(),
            waited: self.person_wait(),
            attempts: self.attempts,
            result_bytes: bytes,
            questions: std::mem::take(&mut self.call_questions.questions),
            breakpoint: self.result_stop.take(),
        };
        tracing::info!(
            call = self.call.id.0,
            tool = self.call.tool,
            outcome = outcome.failure.map_or("ok", ErrorKind::as_str),
            duration_ms = outcome.duration.as_secs_f64() * 1e3,
            attempts = outcome.attempts,
            bytes,
            "call ended"
        );
        let written = self.host.pipeline.recorder.record_outcome(&self.call, &outcome, result);
        if written.is_err() {
            tracing::error!(call = self.call.id.0, "call not recorded");
        }
        self.host.sessions.events.emit(HostEvent::CallFinished {
            call_id: self.call.id.clone(),
            tool: self.call.tool.clone(),
            success: error.is_none(),
            is_cancelled: error.is_some_and(Error::is_cancelled),
            duration: outcome.duration,
        });
        written
    }
}

impl Drop for ActiveCallRecord<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.call_questions = self.host.pipeline.questions.end_call(&self.call.id);
            let kind = ErrorKind::Interrupted(Signal::Interrupt);
            let error = Error::new(kind, "the caller disconnected");
            // A failed write cannot be reported from `drop`.
            let _unheard = self.write_outcome(Some(&error), None, 0);
        }
    }
}
