//! The protocol between front ends and a background host, in addition to MCP.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::audit::trace::TraceRow;
use crate::host::approval::ApprovalRequest;
use crate::host::link::Observation;
use crate::host::request::CallOutcome;
use crate::model::{
    CallId, CallMetadata, CapturedTraffic, Error, HostEvent, JsonObject, Origin, Question,
    SubscriptionEvent, ToolDefinition, ToolName, ToolResult, ToolSource,
};
use crate::provider::Preview;
use crate::util::static_text::{self, StaticText};

/// Method: a call. Its `_meta` has [`CallMeta`], that of its result [`OutcomeMeta`].
pub const CALL: &str = "tools/call";
/// Member of the `_meta` of a question: the [`FrontEndQuestion`] as a text.
pub const QUESTION: &str = "dev.toolhost/question";
/// The property by which a person approves a call, in the answer to the question about it.
pub const APPROVE: &str = "approve";
/// Member of the `_meta` of an answer: no person could be asked.
pub const UNATTENDED: &str = "dev.toolhost/unattended";
/// Method: a [`HostQuery`](crate::host::link::HostQuery). Its result is a text, the JSON of the answer:
/// what servers sent may have line breaks.
pub const QUERY: &str = "dev.toolhost/query";
/// Method: the [`HostStatus`].
pub const STATUS: &str = "dev.toolhost/status";
/// Method: to end, with everything that was started.
pub const STOP: &str = "dev.toolhost/stop";
/// Method: to be told what happens, from now until the front end disconnects. Its parameters are an
/// [`ObserveRequest`](crate::host::link::ObserveRequest).
pub const OBSERVE: &str = "dev.toolhost/observe";
/// Notification: what happened. Its parameters are a text, the [`SentObservation`]s, one a line.
pub const OBSERVED: &str = "dev.toolhost/observed";
/// Method: to look again whether the host is still what was trusted, and to end if not.
pub const RECHECK: &str = "dev.toolhost/recheck";
/// The longest message that a client may send, in bytes.
pub const MAX_REQUEST: usize = 4 << 20;
/// The code of the error that nothing was done: the host is about to end, or the call came too late.
pub const NOT_BEGUN: i32 = -32_090;
/// The code of the error that the host ended while the request ran.
pub const ENDED: i32 = -32_091;

/// The parameters and the result of a request that is not MCP.
#[derive(Debug, Serialize, Deserialize)]
pub struct Payload<T> {
    /// What is asked or answered.
    pub payload: T,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct CallMeta<R> {
    #[serde(rename = "dev.toolhost/call")]
    pub call: SentCall<R>,
}

/// A [`CallRequest`](crate::host::request::CallRequest) on its way to another process.
#[derive(Debug, Serialize, Deserialize)]
pub struct SentCall<R> {
    pub front_end: String,
    /// Until when the host may begin the call, by [`monotonic_time`](crate::util::local_peer::monotonic_time). A host that was stopped meanwhile
    /// must not: its front end went on without it.
    pub begins_by: Duration,
    pub request: R,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct OutcomeMeta {
    /// How the call ended.
    #[serde(rename = "dev.toolhost/outcome")]
    pub outcome: Result<SentOutcome, Error>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum FrontEndQuestion {
    Server(Question),
    Approval(Box<SentApproval>),
}

/// An [`ApprovalRequest`] on its way to another process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SentApproval {
    definition: ToolDefinition,
    arguments: JsonObject,
    reason: String,
    preview: Result<Preview, Error>,
    identity: String,
    call: Option<CallId>,
}

impl From<&ApprovalRequest<'_>> for SentApproval {
    fn from(request: &ApprovalRequest<'_>) -> Self {
        Self {
            definition: request.definition.clone(),
            arguments: request.arguments.clone(),
            reason: request.reason.clone(),
            preview: request.preview.clone(),
            identity: request.identity.clone(),
            call: request.call.clone(),
        }
    }
}

impl SentApproval {
    pub fn request(&self) -> ApprovalRequest<'_> {
        ApprovalRequest {
            definition: &self.definition,
            arguments: &self.arguments,
            reason: self.reason.clone(),
            preview: self.preview.clone(),
            identity: self.identity.clone(),
            call: self.call.clone(),
        }
    }
}

/// A [`CallOutcome`] to be sent to another process. Of the tool's definition it has only what
/// identifies the tool and describes its result: a front end gets the rest with a query.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SentOutcome {
    name: ToolName,
    source: ToolSource,
    #[serde(deserialize_with = "static_text::deserialize")]
    kind: StaticText,
    origin: Origin,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<Arc<Value>>,
    result: Result<ToolResult, Error>,
    metadata: CallMetadata,
}

impl From<CallOutcome> for SentOutcome {
    fn from(outcome: CallOutcome) -> Self {
        let CallOutcome { definition, result, metadata } = outcome;
        Self {
            name: definition.name.clone(),
            source: definition.source,
            kind: definition.kind,
            origin: definition.origin.clone(),
            output_schema: definition.output_schema.clone(),
            result,
            metadata,
        }
    }
}

impl From<SentOutcome> for CallOutcome {
    fn from(sent: SentOutcome) -> Self {
        let SentOutcome { name, source, kind, origin, output_schema, result, metadata } = sent;
        let definition = ToolDefinition::new(name, source, kind, origin);
        let definition = Arc::new(ToolDefinition { output_schema, ..definition });
        Self { definition, result, metadata }
    }
}

/// An [`Observation`] on its way to another process.
#[derive(Debug, Serialize, Deserialize)]
pub enum SentObservation {
    /// From here on nothing is missed.
    Started,
    /// Something happened.
    Event(HostEvent),
    /// Something crossed the wire of a server.
    Traffic {
        row: Box<TraceRow>,
        /// Its size in bytes, before anything was cut.
        size: usize,
        /// Whether only its beginning is in the row.
        is_cut: bool,
    },
    Change(String, SubscriptionEvent),
    /// The number of observations dropped because the viewer is too slow.
    Lost(u64),
}

impl SentObservation {
    /// Something that crossed a wire.
    pub fn traffic(captured: &CapturedTraffic) -> Self {
        let row = Box::new(TraceRow::of(&captured.traffic));
        Self::Traffic { row, size: captured.size, is_cut: captured.is_cut }
    }

    pub fn line(&self) -> Arc<str> {
        // A map without texts for keys is all that could fail here.
        serde_json::to_string(self).unwrap_or_default().into()
    }

    pub fn read(lines: &str) -> Vec<Observation> {
        // In JSON a line break is always escaped.
        lines.split('\n').filter_map(Self::read_line).collect()
    }

    fn read_line(line: &str) -> Option<Observation> {
        Some(match serde_json::from_str(line).ok()? {
            Self::Started => Observation::Started,
            Self::Event(event) => Observation::Event(event),
            Self::Traffic { row, size, is_cut } => {
                let traffic = row.traffic()?;
                Observation::Traffic(Box::new(CapturedTraffic { traffic, size, is_cut }))
            }
            Self::Change(server, change) => Observation::Change(server, change),
            Self::Lost(count) => Observation::Lost(count),
        })
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HostedServer {
    pub name: String,
    pub state: String,
    /// How many client sessions have a connection of their own; `None` when they share one.
    pub connections: Option<usize>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HostStatus {
    pub pid: u32,
    pub version: String,
    pub directory: PathBuf,
    /// How long it has run.
    pub uptime: Duration,
    pub servers: Vec<HostedServer>,
    pub calls: u64,
    /// How many of them run now.
    pub running: usize,
    /// Its own resident memory, in bytes; `None` when the system does not tell.
    pub memory: Option<u64>,
    /// How long it stays without a call.
    pub idle_limit: Duration,
    /// What is left of that; `None` while a call runs.
    pub idle_left: Option<Duration>,
}
