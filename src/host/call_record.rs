//! The record of one call, from its request to its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::arguments::coerce_word;
use super::questions::CallQuestions;
use super::recorder::RecordError;
use super::request::{CallArguments, CallRequest};
use super::{ToolHost, variables};
use crate::audit::mask::MASK;
use crate::catalogue::naming;
use crate::model::{
    BreakpointRecord, CallId, CallRecord, CallerRecord, Error, ErrorKind, HostEvent, JsonObject,
    RecordedOutcome, ToolDefinition, ToolName, ToolResult, ToolSource, TraceContext,
};
use crate::util::text::truncate;

/// The most names of variables, and of metadata, that a record keeps.
const MAX_NAMES: usize = 50;
/// The most characters that a record keeps of a name, of a directory and of a user.
const MAX_NAME_CHARS: usize = 500;

/// A call that goes on. If dropped before its end, it was abandoned.
pub(super) struct OpenCall<'a> {
    host: &'a ToolHost,
    request: &'a CallRequest,
    pub(super) id: CallId,
    pub(super) parent: Option<&'a CallId>,
    pub(super) started: Instant,
    /// The tool, once it is known.
    pub(super) tool: Option<Arc<ToolDefinition>>,
    /// The arguments, once they are ready.
    pub(super) arguments: Option<JsonObject>,
    /// What a breakpoint did to it before it was sent, and then to its result.
    pub(super) breakpoint: Option<BreakpointRecord>,
    pub(super) result_stop: Option<BreakpointRecord>,
    /// How long a person was waited for before it was dispatched.
    pub(super) earlier_wait: Duration,
    /// What the tool asked a person on the way.
    pub(super) questions: CallQuestions,
    /// Whether it represents the calls of a benchmark, which do not count as use of the tool.
    is_batch: bool,
    /// The intent, when it was written.
    intent: Option<CallRecord>,
    pub(super) trace: Option<TraceContext>,
    pub(super) attempts: u32,
    pub(super) warnings: Vec<String>,
    is_open: bool,
}

/// The record of a call of a tool with these arguments; `decision` is what allowed it.
pub(super) fn new_call_record(
    host: &ToolHost,
    definition: &Arc<ToolDefinition>,
    id: &CallId,
    parent: Option<&CallId>,
    (request, arguments): (&CallRequest, &JsonObject),
    decision: &str,
) -> CallRecord {
    CallRecord {
        id: id.clone(),
        parent: parent.cloned(),
        tool: definition.name.full(),
        server: definition.server().map(str::to_owned),
        source: Some(definition.source),
        definition: Some(Arc::clone(definition)),
        caller: caller_record(host, request, Some(definition)),
        protocol: None,
        arguments: host.pipeline.masker.arguments(arguments, &definition.input_schema),
        decision: Some(decision.to_owned()),
        breakpoint: None,
    }
}

fn caller_record(
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
        session: info.session_id.to_string(),
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

impl<'a> OpenCall<'a> {
    /// A call of which only the request is known.
    pub(super) fn new(
        host: &'a ToolHost,
        request: &'a CallRequest,
        id: CallId,
        parent: Option<&'a CallId>,
    ) -> Self {
        Self {
            host,
            request,
            id,
            parent,
            started: host.pipeline.clock.now(),
            tool: None,
            arguments: None,
            breakpoint: None,
            result_stop: None,
            earlier_wait: Duration::ZERO,
            questions: CallQuestions::default(),
            is_batch: false,
            intent: None,
            trace: None,
            attempts: 0,
            warnings: Vec::new(),
            is_open: true,
        }
    }

    pub(super) fn of_batch(mut self) -> Self {
        self.is_batch = true;
        self
    }

    /// Ends it without a record.
    pub(super) fn discard(mut self) {
        self.is_open = false;
    }

    /// Writes that it is about to be dispatched. When that must not be, it ends without a record.
    pub(super) fn dispatch(
        &mut self,
        tool: &Arc<ToolDefinition>,
        arguments: &JsonObject,
        protocol: Option<&String>,
        decision: &str,
    ) -> Result<(), Error> {
        self.is_open = false;
        let input = (self.request, arguments);
        let mut call = new_call_record(self.host, tool, &self.id, self.parent, input, decision);
        call.protocol = protocol.cloned();
        call.breakpoint.clone_from(&self.breakpoint);
        self.warnings = record_intent(self.host, &call)?;
        let trace = self.host.sessions.trace_of(self.request);
        self.trace = self.host.pipeline.recorder.begin_span(&call, trace);
        self.host.sessions.events.emit(HostEvent::CallStarted {
            call_id: call.id.clone(),
            tool: call.tool.clone(),
            parent: call.parent.clone(),
            client: call.caller.client.clone(),
        });
        tracing::debug!(
            call = &*call.id.0,
            tool = call.tool,
            parent = call.parent(),
            session = call.caller.session,
            "call started"
        );
        self.started = self.host.pipeline.clock.now();
        self.intent = Some(call);
        self.is_open = true;
        Ok(())
    }

    /// From the start until now, without the time in which a person was waited for.
    pub(super) fn duration(&self) -> Duration {
        let elapsed = self.host.pipeline.clock.now().saturating_duration_since(self.started);
        let waited = match &self.intent {
            Some(_) => self.questions.waited,
            None => self.earlier_wait,
        };
        elapsed.saturating_sub(waited)
    }

    /// How long a person was waited for: for the approval before, and for answers on the way.
    pub(super) fn person_wait(&self) -> Duration {
        self.earlier_wait + self.questions.waited
    }

    /// Records why it was not dispatched.
    pub(super) fn fail(mut self, error: &Error) {
        self.abandon(error);
    }

    /// Records how it ended; gives why it is missing in a record.
    pub(super) fn close(
        mut self,
        result: &mut Result<ToolResult, Error>,
        bytes: u64,
    ) -> Option<String> {
        let error = result.as_ref().map_or_else(Some, |result| result.error.as_ref());
        let written = self.write(error, result.as_ref().ok(), bytes);
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
        let unrecorded = warnings.first().cloned();
        match result {
            Ok(result) => result.warnings.extend(warnings),
            Err(error) => *error = error.clone().with_details(warnings),
        }
        unrecorded
    }

    /// Records a call that ended without a result, which nobody hears of but by this.
    fn abandon(&mut self, error: &Error) {
        let is_of_form = self.request.from_form && self.tool.is_some();
        if (self.is_batch || is_of_form) && error.kind() == ErrorKind::Usage {
            self.is_open = false;
        } else if let Err(cause) = self.write(Some(error), None, 0)
            && self.intent.is_none()
        {
            let text = format!("not recorded: {cause}");
            self.host.sessions.events.emit(HostEvent::Warning { text });
        }
    }

    fn write(
        &mut self,
        error: Option<&Error>,
        result: Option<&ToolResult>,
        bytes: u64,
    ) -> Result<(), RecordError> {
        self.is_open = false;
        let pipeline = &self.host.pipeline;
        let outcome = RecordedOutcome {
            failure: error.map(Error::kind),
            message: error.map(|error| pipeline.masker.text(error.message())),
            duration: self.duration(),
            waited: self.person_wait(),
            attempts: self.attempts,
            result_bytes: bytes,
            questions: std::mem::take(&mut self.questions.questions),
            breakpoint: self.result_stop.take(),
        };
        let Some(call) = &self.intent else {
            tracing::info!(
                call = &*self.id.0,
                tool = self.request.name,
                outcome = outcome.word(),
                "call refused"
            );
            let call = self.undispatched(error);
            return if self.is_batch {
                pipeline.recorder.record_batch_outcome(&call, &outcome)
            } else {
                pipeline.recorder.record_outcome(&call, &outcome, None)
            };
        };
        tracing::info!(
            call = &*call.id.0,
            tool = call.tool,
            outcome = outcome.word(),
            duration_ms = outcome.duration.as_secs_f64() * 1e3,
            attempts = outcome.attempts,
            bytes,
            "call ended"
        );
        let written = pipeline.recorder.record_outcome(call, &outcome, result);
        if written.is_err() {
            tracing::error!(call = &*call.id.0, "call not recorded");
        }
        self.host.sessions.events.emit(HostEvent::CallFinished {
            call_id: call.id.clone(),
            tool: call.tool.clone(),
            success: error.is_none(),
            is_cancelled: error.is_some_and(Error::is_cancelled),
            duration: outcome.duration,
        });
        written
    }

    fn undispatched(&self, error: Option<&Error>) -> CallRecord {
        let (tool, server, source) = if let Some(tool) = &self.tool {
            (tool.name.full(), tool.server().map(str::to_owned), Some(tool.source))
        } else {
            let name = self.host.pipeline.masker.text(&self.request.name);
            let server = error.and_then(Error::server).map(str::to_owned);
            let source = server.is_some().then_some(ToolSource::Mcp);
            // A tool has one name in records, however it was named and whether or not its
            // server could say so.
            let full = server.as_deref().filter(|server| *server != name).map(|server| {
                let tool = naming::after_component(&name, server).unwrap_or(&name);
                ToolName::of(server, tool).full()
            });
            (full.unwrap_or(name), server, source)
        };
        CallRecord {
            id: self.id.clone(),
            parent: self.parent.cloned(),
            tool,
            server,
            source,
            definition: self.tool.clone(),
            caller: caller_record(self.host, self.request, self.tool.as_deref()),
            protocol: None,
            arguments: self.masked_arguments(),
            decision: None,
            breakpoint: self.breakpoint.clone(),
        }
    }

    /// The definition in the files of a tool that could not be looked up, because its server is down.
    fn declared_definition(&self) -> Option<Arc<ToolDefinition>> {
        let providers = self.host.directory.providers();
        let declared: Vec<_> = providers.iter().map(|provider| provider.declared()).collect();
        let tools: Vec<_> = declared.iter().flat_map(|list| &list.tools).collect();
        match naming::resolve(&self.request.name, &tools, |tool| &tool.definition.name)[..] {
            [tool] => Some(Arc::clone(&tool.definition)),
            _ => None,
        }
    }

    /// The arguments without secrets. Without the schema it is unknown which of them are, so only their
    /// names are told.
    fn masked_arguments(&self) -> JsonObject {
        let fallback = || match &self.request.arguments {
            CallArguments::Object(object) => object.clone(),
            CallArguments::Words(pairs) => pairs
                .iter()
                .map(|word| (word.key().to_owned(), coerce_word(word, &Value::Null, &Value::Null)))
                .collect(),
        };
        let arguments = self.arguments.clone().unwrap_or_else(fallback);
        match self.tool.clone().or_else(|| self.declared_definition()) {
            Some(tool) => self.host.pipeline.masker.arguments(&arguments, &tool.input_schema),
            None => arguments.into_iter().map(|(key, _)| (key, Value::from(MASK))).collect(),
        }
    }
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        if self.is_open {
            if self.intent.is_some() {
                self.questions = self.host.pipeline.questions.end_call(&self.id);
            }
            self.abandon(&Error::interrupted("the caller disconnected"));
        }
    }
}
