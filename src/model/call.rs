//! A request to run a tool, and the context it runs in.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::JsonObject;
use super::call_id::CallId;
use super::client_abilities::ClientAbilities;
use super::error::Error;
use super::event::EventSink;
use super::name::ToolName;
use super::result::ToolResult;
use super::trace_context::TraceContext;

/// A request to run a tool with these arguments.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// The tool to run, by its full name.
    pub name: ToolName,
    /// The arguments, already coerced and validated by the host unless that was switched off.
    pub arguments: JsonObject,
}

/// The context of a call, available to every kind of tool.
#[derive(Clone)]
pub struct ToolContext {
    /// The identity that records and events of the call share.
    pub call_id: CallId,
    /// The session the call belongs to.
    pub session_id: Arc<str>,
    /// The user on whose behalf the call is made, as named by the caller; `None` if not given.
    pub user_id: Option<String>,
    /// The position of the call in the caller's trace.
    pub trace: Option<TraceContext>,
    /// The working directory of the user.
    pub cwd: Arc<Path>,
    /// Variables the caller set (`--context`) and the tool's entry declares, given to the tool as
    /// its environment.
    pub environment: BTreeMap<String, String>,
    /// Free-form metadata attached by the caller.
    pub metadata: JsonObject,
    /// Fires when the call should stop: Ctrl-C, a deadline, a client that disconnected.
    pub cancel: CancellationToken,
    /// The client behind the call: what it can be asked, and which log lines it wants.
    #[doc(hidden)] // for `serve`
    pub client: ClientAbilities,
    /// Receives progress and log lines while the tool runs.
    pub events: EventSink,
    /// Idle timeout for the provider; a provider that receives progress may restart it. The host
    /// itself limits the whole call.
    pub idle_limit: Duration,
    /// Lets the tool call other tools as part of this call.
    pub caller: Option<Arc<dyn ToolCaller>>,
    /// The full names of the calls this one is part of, outermost first, this one not included.
    pub ancestors: Vec<String>,
}

impl ToolContext {
    /// The idle limit where nothing says another.
    pub(crate) const IDLE_LIMIT: Duration = Duration::from_mins(1);

    /// An empty context: no session, the root as its directory, no listener.
    pub fn empty(call_id: CallId) -> Self {
        Self {
            call_id,
            session_id: Arc::from(""),
            user_id: None,
            trace: None,
            cwd: Arc::from(Path::new("/")),
            environment: BTreeMap::new(),
            metadata: JsonObject::new(),
            cancel: CancellationToken::new(),
            client: ClientAbilities::default(),
            events: EventSink::discard(),
            idle_limit: Self::IDLE_LIMIT,
            caller: None,
            ancestors: Vec::new(),
        }
    }
}

/// A call that is part of another one.
#[derive(Debug, Clone)]
pub struct NestedCall {
    /// The tool: its full name, or a bare name that only one tool has.
    pub name: String,
    /// The arguments. They are checked, but not coerced.
    pub arguments: JsonObject,
    /// Overrides the configured timeout of an attempt. The limit of the outer call still applies.
    pub timeout: Option<Duration>,
    /// Overrides the configured number of retries; only for tools marked safe to repeat.
    pub retries: Option<u32>,
}

impl NestedCall {
    /// A call with the configured limits of its tool.
    pub fn new(name: impl Into<String>, arguments: JsonObject) -> Self {
        Self { name: name.into(), arguments, timeout: None, retries: None }
    }
}

/// Calls other tools on behalf of a tool that is composed of them. Such calls are treated like all
/// others: checks, policy, approval, limits, records.
#[async_trait]
pub trait ToolCaller: Send + Sync {
    /// Makes a call as part of the one that `context` belongs to. It inherits the session,
    /// variables and metadata of that call, but not its approval. It stops when `context.cancel`
    /// fires and never outlives that call.
    ///
    /// # Errors
    /// As for every call; and a usage error when calls would nest too deeply or would call a tool
    /// that is waiting for them. A tool that reports a failure is not an error: see
    /// [`ToolResult::error`].
    async fn run(&self, context: &ToolContext, call: NestedCall) -> Result<ToolResult, Error>;

    /// Like [`ToolCaller::run`], with the configured limits of the tool.
    ///
    /// # Errors
    /// As [`ToolCaller::run`].
    async fn call(
        &self,
        context: &ToolContext,
        name: &str,
        arguments: JsonObject,
    ) -> Result<ToolResult, Error> {
        self.run(context, NestedCall::new(name, arguments)).await
    }
}
