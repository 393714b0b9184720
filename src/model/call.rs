//! A request to run a tool, and the context it runs in.

use std::collections::BTreeMap;
use std::path::PathBuf;
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

/// Run this tool with these arguments.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// The tool to run, by its full name.
    pub name: ToolName,
    /// The arguments, already coerced and validated by the host unless that was switched off.
    pub arguments: JsonObject,
}

/// What surrounds a call; reaches every kind of tool.
#[derive(Clone)]
pub struct ToolContext {
    /// The identity that records and events of the call share.
    pub call_id: CallId,
    /// The session the call belongs to.
    pub session_id: String,
    /// On whose behalf the call is made, in the caller's words; `None` when unsaid.
    pub user_id: Option<String>,
    /// Where the call stands in the caller's trace.
    pub trace: Option<TraceContext>,
    /// The directory the user works in.
    pub cwd: PathBuf,
    /// Variables the caller set (`--context`) and the tool's entry declares, given to the tool as
    /// its environment.
    pub environment: BTreeMap<String, String>,
    /// Free metadata, as the caller attached it.
    pub metadata: JsonObject,
    /// Fires when the call should stop: Ctrl-C, a deadline, a client that went away.
    pub cancel: CancellationToken,
    /// The client behind the call: what it can be asked, and which log lines it wants.
    #[doc(hidden)] // for `serve`
    pub client: ClientAbilities,
    /// Where progress and log lines go while the tool runs.
    pub events: EventSink,
    /// How long the provider may wait without any sign of life; a provider that hears progress
    /// may start this clock again. The host bounds the whole call by itself.
    pub idle_limit: Duration,
    /// Lets the tool call other tools as part of this call.
    pub caller: Option<Arc<dyn ToolCaller>>,
    /// The full names of the calls this one is part of, outermost first, this one not included.
    pub ancestors: Vec<String>,
}

impl ToolContext {
    /// An empty context: no session, no directory but the root, no listener.
    pub fn empty(call_id: CallId) -> Self {
        Self {
            call_id,
            session_id: String::new(),
            user_id: None,
            trace: None,
            cwd: PathBuf::from("/"),
            environment: BTreeMap::new(),
            metadata: JsonObject::new(),
            cancel: CancellationToken::new(),
            client: ClientAbilities::default(),
            events: EventSink::discard(),
            idle_limit: Duration::from_mins(1),
            caller: None,
            ancestors: Vec::new(),
        }
    }
}

/// A call that is part of another one.
#[derive(Debug, Clone)]
pub struct NestedCall {
    /// The tool: its full name, or a bare one that only one tool has.
    pub name: String,
    /// The arguments, as they are; they are checked and not coerced.
    pub arguments: JsonObject,
    /// The limit of an attempt in place of the configured one. The outer call bounds it in any
    /// case.
    pub timeout: Option<Duration>,
    /// The number of retries in place of the configured one; only for tools marked safe to repeat.
    pub retries: Option<u32>,
}

impl NestedCall {
    /// A call with the limits that are configured for its tool.
    pub fn new(name: impl Into<String>, arguments: JsonObject) -> Self {
        Self { name: name.into(), arguments, timeout: None, retries: None }
    }
}

/// Calls other tools on behalf of a tool that is made of them. What holds for every call holds for
/// these too: checks, policy, approval, limits, records.
#[async_trait]
pub trait ToolCaller: Send + Sync {
    /// Makes a call as part of the one that `context` belongs to. It has the session,
    /// variables and metadata of that call, not its approval, stops when `context.cancel` fires, and never outlives
    /// it.
    ///
    /// # Errors
    /// As for every call; and a usage error when calls would nest too deep or come back to a tool
    /// that waits for them. A tool that says no is no error: see [`ToolResult::error`].
    async fn run(&self, context: &ToolContext, call: NestedCall) -> Result<ToolResult, Error>;

    /// As [`ToolCaller::run`], with the limits that are configured for the tool.
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
