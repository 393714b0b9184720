//! The status of an MCP server at one moment.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::Error;
use super::permissions::{CredentialUse, ServerPermissions};
use crate::util::confine::Coverage;

/// Which lifecycle a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Era {
    /// `initialize`, up to revision 2025-11-25.
    Legacy,
    /// Stateless with `server/discover`, from revision 2026-07-28.
    Modern,
}

/// A place that a server may know; its resources and arguments may point into it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Root {
    pub uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl From<&str> for Root {
    fn from(uri: &str) -> Self {
        Self { uri: uri.to_owned(), name: None }
    }
}

/// The lifecycle state of a server.
#[derive(Debug, Clone, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ServerState {
    /// Nothing was started or contacted in this run.
    Idle,
    /// Being started or connected to.
    Starting,
    /// Connected, with a protocol version agreed on.
    Ready,
    /// Could not be started, or died.
    Failed(Error),
    /// An entry of an untrusted project; nothing is started or contacted.
    Untrusted(Error),
    /// Shut down by toolhost, not by a failure.
    Closed,
}

impl ServerState {
    /// Why it offers nothing, if so.
    pub fn error(&self) -> Option<&Error> {
        match self {
            Self::Failed(error) | Self::Untrusted(error) => Some(error),
            _ => None,
        }
    }

    /// The word used in output.
    pub fn as_str(&self) -> &'static str {
        self.into()
    }
}

/// An error of the past.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PastError {
    /// When, since the Unix epoch.
    pub at: Duration,
    /// The failure itself, including the server's name.
    pub error: Error,
}

/// One row of `toolhost servers`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerStatus {
    /// The key of its entry in `mcp.yaml`.
    pub name: String,
    /// What the file says about it.
    pub description: Option<String>,
    /// The state in its lifecycle.
    pub state: ServerState,
    /// `stdio`, `http`, `unix` (HTTP over a socket) or `sse` (HTTP+SSE); empty when its entry cannot
    /// be used.
    pub transport: Cow<'static, str>,
    /// The command line or URL; empty when its entry cannot be used.
    pub endpoint: String,
    /// What its program is confined to, as lines; empty if it has the user's rights.
    pub confinement: Vec<String>,
    /// What its sandbox blocks and leaves open; `None` without a sandbox.
    #[doc(hidden)] // for the program's own views
    pub sandbox: Option<Coverage>,
    /// What its entry allows it to offer and use.
    #[doc(hidden)] // for the program's own views
    pub permissions: ServerPermissions,
    /// The credentials it is given, by their handles.
    #[doc(hidden)] // for the program's own views
    pub credentials: Vec<CredentialUse>,
    /// The lifecycle it speaks, once known.
    pub era: Option<Era>,
    /// The protocol revision agreed on.
    pub protocol: Option<String>,
    /// All revisions the server says it speaks, if it says.
    pub supported_versions: Vec<String>,
    /// The server's own name and version (claims, not identity).
    pub server_info: Option<serde_json::Value>,
    /// The capabilities of its handshake, as sent; `None` before one.
    pub capabilities: Option<serde_json::Value>,
    /// The `instructions` of its handshake, meant for models.
    pub instructions: Option<String>,
    /// Process id of a child process.
    pub pid: Option<u32>,
    /// Resident memory of the child, in bytes.
    pub memory: Option<u64>,
    /// The CPU time the child has used since it started.
    #[serde(default)]
    pub cpu_time: Option<Duration>,
    /// From starting or dialling to the end of the handshake.
    pub connect: Option<Duration>,
    /// How long the newest ping took.
    pub ping: Option<Duration>,
    /// Number of tools listed; `None` before it was asked.
    pub tools: Option<usize>,
    /// Whether part of its tool list is missing.
    #[serde(default)]
    pub is_tool_list_partial: bool,
    /// Number of resources listed, when asked.
    pub resources: Option<usize>,
    /// Number of prompts listed, when asked.
    pub prompts: Option<usize>,
    /// Connections made in this run; all but the first are restarts.
    pub starts: u32,
    /// How long the connection has been open.
    pub uptime: Option<Duration>,
    /// The latest error, kept even when the server works again.
    pub last_error: Option<PastError>,
    /// Its place among servers that offer the same tool, if the file sets one: the greatest goes first.
    pub weight: Option<f64>,
    /// Number of client sessions with their own open connection; `None` for a shared server.
    #[serde(default)]
    pub connections: Option<usize>,
    /// Deviations from the protocol, as text.
    pub warnings: Vec<String>,
    /// The end of its stderr output.
    pub stderr_tail: Vec<String>,
}

impl ServerStatus {
    /// A server that cannot be used, and why; nothing else is known about it.
    pub fn failed(name: &str, error: Error) -> Self {
        Self { state: ServerState::Failed(error.with_server(name)), ..Self::unknown(name) }
    }

    /// The status of a server of which only the name is known.
    pub fn unknown(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            description: None,
            state: ServerState::Idle,
            transport: "".into(),
            endpoint: String::new(),
            confinement: Vec::new(),
            sandbox: None,
            permissions: ServerPermissions::default(),
            credentials: Vec::new(),
            era: None,
            protocol: None,
            supported_versions: Vec::new(),
            server_info: None,
            capabilities: None,
            instructions: None,
            pid: None,
            memory: None,
            cpu_time: None,
            connect: None,
            ping: None,
            tools: None,
            is_tool_list_partial: false,
            resources: None,
            prompts: None,
            starts: 0,
            uptime: None,
            last_error: None,
            weight: None,
            connections: None,
            warnings: Vec::new(),
            stderr_tail: Vec::new(),
        }
    }
}
