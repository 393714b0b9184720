//! A call that was requested but has not been dispatched yet.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::ToolHost;
use super::call_record::caller_record;
use super::coerce::coerce_word;
use super::request::{CallArguments, CallRequest};
use crate::audit::mask::MASK;
use crate::catalogue::naming::{self, NameResolution};
use crate::model::{
    BreakpointRecord, CallId, CallRecord, Error, ErrorKind, HostEvent, JsonObject, RecordedOutcome,
    Signal, ToolDefinition, ToolName, ToolSource,
};

/// What is known about a call before it is dispatched. If dropped while open, the call was
/// abandoned.
pub(super) struct UnsentCall<'a> {
    host: &'a ToolHost,
    request: &'a CallRequest,
    id: &'a CallId,
    parent: Option<&'a CallId>,
    started: Instant,
    definition: OnceLock<Arc<ToolDefinition>>,
    arguments: OnceLock<JsonObject>,
    breakpoint: OnceLock<BreakpointRecord>,
    approval_wait: OnceLock<Duration>,
    breakpoint_wait: OnceLock<Duration>,
    /// Whether it represents the calls of a benchmark, which do not count as use of the tool.
    is_batch: bool,
    is_open: bool,
}

impl<'a> UnsentCall<'a> {
    /// A call of which only the request is known.
    pub(super) fn new(
        host: &'a ToolHost,
        request: &'a CallRequest,
        id: &'a CallId,
        parent: Option<&'a CallId>,
    ) -> Self {
        Self {
            host,
            request,
            id,
            parent,
            started: host.pipeline.clock.now(),
            definition: OnceLock::new(),
            arguments: OnceLock::new(),
            breakpoint: OnceLock::new(),
            approval_wait: OnceLock::new(),
            breakpoint_wait: OnceLock::new(),
            is_batch: false,
            is_open: true,
        }
    }

    pub(super) fn of_batch(mut self) -> Self {
        self.is_batch = true;
        self
    }

    pub(super) fn set_tool(&self, definition: &Arc<ToolDefinition>) {
        let _known_before = self.definition.set(Arc::clone(definition));
    }

    pub(super) fn set_arguments(&self, arguments: JsonObject) {
        let _known_before = self.arguments.set(arguments);
    }

    /// How long a person took to approve or refuse it.
    pub(super) fn set_approval_wait(&self, waited: Duration) {
        let _known_before = self.approval_wait.set(waited);
    }

    /// What a breakpoint did to it, and how long a person took for that.
    pub(super) fn set_breakpoint(&self, record: BreakpointRecord, waited: Duration) {
        let _stopped_before = self.breakpoint.set(record);
        let _waited_before = self.breakpoint_wait.set(waited);
    }

    /// Which call it is, and the one that it is part of.
    pub(super) fn place(&self) -> (&CallId, Option<&CallId>) {
        (self.id, self.parent)
    }

    pub(super) fn breakpoint(&self) -> Option<BreakpointRecord> {
        self.breakpoint.get().cloned()
    }

    /// How long a person was waited for; zero when none was asked.
    pub(super) fn person_wait(&self) -> Duration {
        let waits = [&self.approval_wait, &self.breakpoint_wait];
        waits.iter().filter_map(|wait| wait.get()).sum()
    }

    pub(super) fn has_tool(&self) -> bool {
        self.definition.get().is_some()
    }

    pub(super) fn close(mut self) {
        self.is_open = false;
    }

    /// Records why the call was not dispatched.
    pub(super) fn fail(mut self, error: &Error) {
        self.is_open = false;
        self.record(error);
    }

    fn record(&self, error: &Error) {
        if error.kind() == ErrorKind::Usage && self.is_batch {
            return;
        }
        tracing::info!(
            call = self.id.0,
            tool = self.request.name,
            outcome = error.kind().as_str(),
            "call refused"
        );
        let (pipeline, now) = (&self.host.pipeline, self.host.pipeline.clock.now());
        let waited = self.person_wait();
        let outcome = RecordedOutcome {
            failure: Some(error.kind()),
            message: Some(pipeline.masker.text(error.message())),
            duration: now.saturating_duration_since(self.started).saturating_sub(waited),
            waited,
            ..RecordedOutcome::default()
        };
        let (recorder, call) = (&pipeline.recorder, self.call(error));
        let written = if self.is_batch {
            recorder.record_batch_outcome(&call, &outcome)
        } else {
            recorder.record_outcome(&call, &outcome, None)
        };
        if let Err(cause) = written {
            let text = format!("not recorded: {cause}");
            self.host.sessions.events.emit(HostEvent::Warning { text });
        }
    }

    fn call(&self, error: &Error) -> CallRecord {
        let definition = self.definition.get();
        let component = |tool: &Arc<ToolDefinition>| tool.name.component().map(str::to_owned);
        let (tool, server, source) = match definition {
            Some(tool) if tool.source == ToolSource::Mcp => {
                (tool.name.full(), component(tool), Some(ToolSource::Mcp))
            }
            Some(tool) => (tool.name.full(), None, Some(tool.source)),
            None => {
                let name = self.host.pipeline.masker.text(&self.request.name);
                let server = error.server().map(str::to_owned);
                let source = server.is_some().then_some(ToolSource::Mcp);
                // A tool has one name in records, however it was named and whether or not its
                // server could say so.
                let full = server.as_deref().filter(|server| *server != name).map(|server| {
                    let tool = naming::after_component(&name, server).unwrap_or(&name);
                    ToolName::of(server, tool).full()
                });
                (full.unwrap_or(name), server, source)
            }
        };
        CallRecord {
            id: self.id.clone(),
            parent: self.parent.cloned(),
            tool,
            server,
            source,
            definition: definition.cloned(),
            caller: caller_record(self.host, self.request, definition.map(AsRef::as_ref)),
            protocol: None,
            arguments: self.masked_arguments(),
            decision: None,
            breakpoint: self.breakpoint.get().cloned(),
        }
    }

    /// The definition in the files of a tool that could not be looked up, because its server is down.
    fn declared_definition(&self) -> Option<Arc<ToolDefinition>> {
        let providers = self.host.directory.providers();
        let declared: Vec<_> = providers.iter().map(|provider| provider.declared()).collect();
        let tools: Vec<_> = declared.iter().flat_map(|list| &list.tools).collect();
        let names: Vec<_> = tools.iter().map(|tool| &tool.definition.name).collect();
        match naming::resolve(&self.request.name, &names) {
            NameResolution::Found(at) => tools.get(at).map(|tool| Arc::clone(&tool.definition)),
            NameResolution::Ambiguous(_) | NameResolution::Unknown => None,
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
        let arguments = self.arguments.get().cloned().unwrap_or_else(fallback);
        match self.definition.get().cloned().or_else(|| self.declared_definition()) {
            Some(tool) => self.host.pipeline.masker.arguments(&arguments, &tool.input_schema),
            None => arguments.into_iter().map(|(key, _)| (key, Value::from(MASK))).collect(),
        }
    }
}

impl Drop for UnsentCall<'_> {
    fn drop(&mut self) {
        if self.is_open {
            let kind = ErrorKind::Interrupted(Signal::Interrupt);
            self.record(&Error::new(kind, "the caller disconnected"));
        }
    }
}
