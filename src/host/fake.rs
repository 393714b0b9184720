//! Fake providers, approvers and recorders for tests.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::ToolHost;
use super::builder::ToolHostBuilder;
use super::policy::{Approval, ApprovalRequest, Approver};
use super::recorder::{RecordError, Recorder};
use super::request::{CallArguments, CallRequest};
use crate::model::{
    CallId, CallRecord, Error, Origin, RecordedOutcome, ServerState, ServerStatus, SourceLocation,
    ToolCall, ToolContext, ToolDefinition, ToolName, ToolResult, ToolSchema, ToolSource,
};
use crate::provider::{ManagedServer, Preview, ToolListVersion, ToolListing, ToolProvider};
use crate::util::ids::CountingIds;

type FakeAnswer = Box<
    dyn Fn(ToolContext, ToolCall) -> BoxFuture<'static, Result<ToolResult, Error>> + Send + Sync,
>;

pub(super) struct FakeProvider {
    pub(super) server: Option<String>,
    pub(super) declared: Vec<ToolDefinition>,
    pub(super) live: Mutex<Result<Vec<ToolDefinition>, Error>>,
    pub(super) lists: AtomicUsize,
    pub(super) calls: AtomicUsize,
    pub(super) closed: AtomicUsize,
    /// How often it told that its tools changed.
    pub(super) changes: AtomicU64,
    /// What it tells models, as a server.
    pub(super) instructions: Option<String>,
    /// Its share of calls, as a server; read when the host is built.
    pub(super) weight: Mutex<Option<f64>>,
    pub(super) answer: FakeAnswer,
    /// Hears of its end, and says how long that takes.
    pub(super) end: Option<Box<dyn Fn() -> Duration + Send + Sync>>,
}

impl FakeProvider {
    pub(super) fn local(tools: Vec<ToolDefinition>) -> Self {
        Self {
            server: None,
            declared: tools,
            live: Mutex::new(Ok(Vec::new())),
            lists: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
            closed: AtomicUsize::new(0),
            changes: AtomicU64::new(0),
            instructions: None,
            weight: Mutex::default(),
            answer: Box::new(|_, call| {
                Box::pin(async move { Ok(ToolResult::json(Value::Object(call.arguments))) })
            }),
            end: None,
        }
    }

    pub(super) fn server(name: &str, tools: &[&str]) -> Self {
        let tools = tools.iter().map(|tool| of_server(name, tool)).collect();
        Self { server: Some(name.into()), live: Mutex::new(Ok(tools)), ..Self::local(Vec::new()) }
    }

    pub(super) fn dead(name: &str) -> Self {
        let error = Error::unreachable("connection refused");
        Self { live: Mutex::new(Err(error)), ..Self::server(name, &[]) }
    }

    pub(super) fn answering<F>(
        mut self,
        answer: impl Fn(ToolContext, ToolCall) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<ToolResult, Error>> + Send + 'static,
    {
        self.answer = Box::new(move |context, call| Box::pin(answer(context, call)));
        self
    }

    pub(super) fn set_weight(&self, weight: Option<f64>) {
        *self.weight.lock().unwrap() = weight;
    }

    /// Tells `end` that it is closed, which takes as long as that says.
    pub(super) fn ending(mut self, end: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        self.end = Some(Box::new(end));
        self
    }

    pub(super) fn listed(&self) -> usize {
        self.lists.load(Ordering::Relaxed)
    }

    /// What a server does when it tells that its tools changed.
    pub(super) fn announce_change(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn ended(&self) -> usize {
        self.closed.load(Ordering::Relaxed)
    }

    pub(super) fn called(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl ToolProvider for FakeProvider {
    fn component(&self) -> Option<&str> {
        self.server.as_deref()
    }

    fn declared(&self) -> Vec<Arc<ToolDefinition>> {
        self.declared.iter().cloned().map(Arc::new).collect()
    }

    fn is_remote(&self) -> bool {
        self.server.is_some()
    }

    fn list_version(&self) -> ToolListVersion {
        let change = self.changes.load(Ordering::Relaxed);
        ToolListVersion { change, ..ToolListVersion::default() }
    }

    async fn list(&self) -> Result<ToolListing, Error> {
        self.lists.fetch_add(1, Ordering::Relaxed);
        if self.server.is_none() {
            return Ok(ToolListing { tools: self.declared(), ..ToolListing::default() });
        }
        let tools = self.live.lock().unwrap().clone()?;
        let tools = tools.into_iter().map(Arc::new).collect();
        Ok(ToolListing { tools, ..ToolListing::default() })
    }

    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Error> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        (self.answer)(context.clone(), call.clone()).await
    }

    async fn preview(&self, call: &ToolCall) -> Result<Preview, Error> {
        let request = json!({ "name": call.name.full(), "arguments": call.arguments });
        Ok(Preview { summary: "would call".into(), request })
    }

    async fn close(&self) {
        self.closed.fetch_add(1, Ordering::Relaxed);
        if let Some(end) = &self.end {
            tokio::time::sleep(end()).await;
        }
    }

    fn as_server(&self) -> Option<&dyn ManagedServer> {
        self.server.as_ref().map(|_| self as &dyn ManagedServer)
    }
}

#[async_trait]
impl ManagedServer for FakeProvider {
    fn routing_weight(&self) -> Option<f64> {
        *self.weight.lock().unwrap()
    }

    fn status(&self) -> ServerStatus {
        let state = if self.listed() == 0 { ServerState::Idle } else { ServerState::Ready };
        ServerStatus {
            name: self.server.clone().unwrap_or_default(),
            description: None,
            state,
            transport: "stdio".into(),
            endpoint: "fake".into(),
            confinement: Vec::new(),
            sandbox: None,
            permissions: crate::model::ServerPermissions::default(),
            credentials: Vec::new(),
            era: None,
            protocol: Some("2025-11-25".into()),
            supported_versions: Vec::new(),
            server_info: None,
            capabilities: None,
            instructions: self.instructions.clone(),
            pid: None,
            memory: None,
            cpu_time: None,
            connect: Some(Duration::from_millis(12)),
            ping: None,
            tools: None,
            is_tool_list_partial: false,
            resources: None,
            prompts: None,
            starts: 1,
            uptime: None,
            last_error: None,
            weight: None,
            connections: None,
            warnings: Vec::new(),
            stderr_tail: Vec::new(),
        }
    }

    async fn check(&self) -> ServerStatus {
        self.status()
    }

    async fn restart(&self) -> ServerStatus {
        self.close().await;
        // What a server lists is not what is tested here.
        let _listed = self.list().await;
        self.status()
    }
}

pub(super) fn internal(name: ToolName, line: u32) -> ToolDefinition {
    let place =
        SourceLocation { file: Arc::new("tools.yaml".into()), line, column: 1, text: "".into() };
    ToolDefinition::new(name, ToolSource::Internal, "fake", Origin::File(place))
}

pub(super) fn of_server(server: &str, tool: &str) -> ToolDefinition {
    let mut tool = ToolDefinition::new(
        ToolName::of(server, tool),
        ToolSource::Mcp,
        "mcp",
        Origin::Server(server.into()),
    );
    tool.input_schema = ToolSchema::from(json!({
        "type": "object",
        "properties": {"message": {"type": "string"}, "count": {"type": "integer"}}
    }));
    tool
}

/// A person with one answer; remembers what was asked.
pub(super) struct FakeApprover {
    pub(super) answer: Approval,
    pub(super) asked: Mutex<Vec<(String, Value)>>,
}

impl FakeApprover {
    pub(super) fn with_answer(answer: Approval) -> Arc<Self> {
        Arc::new(Self { answer, asked: Mutex::default() })
    }
}

#[async_trait]
impl Approver for FakeApprover {
    async fn ask(&self, request: &ApprovalRequest<'_>) -> Approval {
        let arguments = Value::Object(request.arguments.clone().into_owned());
        self.asked.lock().unwrap().push((request.reason.clone(), arguments));
        self.answer
    }
}

/// Records in memory; fails when told to.
#[derive(Default)]
pub(super) struct MemoryRecorder {
    pub(super) lines: Mutex<Vec<String>>,
    pub(super) error: Option<RecordError>,
    /// What becomes of outcomes, when intents are written well.
    pub(super) lost: Option<RecordError>,
}

impl MemoryRecorder {
    pub(super) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
}

impl Recorder for MemoryRecorder {
    fn record_intent(&self, call: &CallRecord) -> Result<(), RecordError> {
        self.lines.lock().unwrap().push(format!(
            "intent {} {} {}{}",
            call.tool,
            Value::Object(call.arguments.clone()),
            call.decision.as_deref().unwrap_or("?"),
            part_of(call.parent.as_ref())
        ));
        self.error.clone().map_or(Ok(()), Err)
    }

    fn record_outcome(
        &self,
        call: &CallRecord,
        outcome: &RecordedOutcome,
        _result: Option<&ToolResult>,
    ) -> Result<(), RecordError> {
        self.lines.lock().unwrap().push(format!(
            "outcome {} {} after {}{}{}",
            call.tool,
            outcome.word(),
            outcome.attempts,
            part_of(call.parent.as_ref()),
            outcome.breakpoint.as_ref().map_or("", |_| " at a breakpoint")
        ));
        self.error.clone().or_else(|| self.lost.clone()).map_or(Ok(()), Err)
    }
}

fn part_of(parent: Option<&CallId>) -> String {
    parent.map(|id| format!(" in {id}")).unwrap_or_default()
}

/// A host of these providers, with identities that can be told.
pub(super) fn host(providers: &[&Arc<FakeProvider>]) -> ToolHostBuilder {
    providers.iter().fold(ToolHost::builder().ids(Arc::new(CountingIds::default())), |b, p| {
        b.provider(Arc::clone(p) as _)
    })
}

pub(super) fn call(name: &str) -> CallRequest {
    CallRequest::new(name, CallArguments::Words(Vec::new()))
}

pub(super) fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}
