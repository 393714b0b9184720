//! A request to run a tool, and the surroundings it runs in.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::JsonObject;
use super::event::EventSink;
use super::fault::Fault;
use super::name::ToolName;
use super::result::ToolResult;

/// The identity of one call, in every record of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CallId(pub String);

impl std::fmt::Display for CallId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Run this tool with these arguments.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// Which tool.
    pub name: ToolName,
    /// The arguments, already coerced and validated by the host unless that was switched off.
    pub arguments: JsonObject,
}

/// What surrounds a call; reaches every kind of tool.
#[derive(Clone)]
pub struct ToolContext {
    /// The call's identity.
    pub call_id: CallId,
    /// The session the call belongs to.
    pub session_id: String,
    /// The directory the user works in.
    pub cwd: PathBuf,
    /// Variables the user passed with `--context`, given to the tool as its environment.
    pub environment: BTreeMap<String, String>,
    /// Free metadata of the session.
    pub metadata: JsonObject,
    /// Fires when the call should stop: Ctrl-C, a deadline, a client that went away.
    pub cancel: CancellationToken,
    /// Where progress and log lines go while the tool runs.
    pub events: EventSink,
    /// How long the provider may wait without any sign of life; a provider that hears progress
    /// may start this clock again. The host bounds the whole call by itself.
    pub idle_limit: Duration,
    /// Lets the tool call other tools as part of this call.
    pub caller: Option<Arc<dyn Caller>>,
    /// The full names of the calls this one is part of, outermost first, this one not included.
    pub chain: Vec<String>,
}

impl ToolContext {
    /// A context with nothing in it: no session, no directory but the root, nobody who listens.
    pub fn bare(call_id: CallId) -> Self {
        Self {
            call_id,
            session_id: String::new(),
            cwd: PathBuf::from("/"),
            environment: BTreeMap::new(),
            metadata: JsonObject::new(),
            cancel: CancellationToken::new(),
            events: EventSink::nowhere(),
            idle_limit: Duration::from_mins(1),
            caller: None,
            chain: Vec::new(),
        }
    }
}

/// Calls other tools on behalf of a tool that is made of them. What holds for every call holds for
/// these too: checks, policy, approval, limits, records.
#[async_trait]
pub trait Caller: Send + Sync {
    /// Calls the tool `name` as part of the call that `context` belongs to, and ends with it.
    ///
    /// # Errors
    /// As for every call; and when calls would nest too deep or come back to a tool that waits for
    /// them.
    async fn call(
        &self,
        context: &ToolContext,
        name: &str,
        arguments: JsonObject,
    ) -> Result<ToolResult, Fault>;
}
