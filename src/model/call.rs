//! A request to run a tool, and the surroundings it runs in.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use super::JsonObject;
use super::event::EventSink;
use super::name::ToolName;

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
#[derive(Debug, Clone)]
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
    pub idle_limit: std::time::Duration,
}
