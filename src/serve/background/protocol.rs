//! What front ends and a background host say to each other in addition to MCP.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::Question;

/// Member of the `_meta` of `tools/call`: the whole [`CallRequest`](crate::host::request::CallRequest).
pub const CALL: &str = "dev.toolhost/call";
/// Member of the `_meta` of its result: how the call ended, as the text of its JSON.
pub const OUTCOME: &str = "dev.toolhost/outcome";
/// Member of the schema of a form: the [`FrontEndQuestion`], as the text of its JSON.
pub const QUESTION: &str = "dev.toolhost/question";
/// Member of the answer to such a form: the [`QuestionReply`](crate::model::QuestionReply).
pub const REPLY: &str = "reply";
/// The property by which a person approves a call, in the answer to the question about it.
pub const APPROVE: &str = "approve";
/// Method: a [`HostQuery`](crate::host::link::HostQuery).
pub const QUERY: &str = "dev.toolhost/query";
/// Method: the [`HostStatus`].
pub const STATUS: &str = "dev.toolhost/status";
/// Method: to end, with everything that was started.
pub const STOP: &str = "dev.toolhost/stop";
/// Method: to be told what happens, as the messages of its progress, until it is cancelled. Its
/// parameters are an [`ObserveRequest`](crate::host::link::ObserveRequest).
pub const OBSERVE: &str = "dev.toolhost/observe";
/// Method: to look again whether the host is still what was trusted, and to end if not.
pub const RECHECK: &str = "dev.toolhost/recheck";
/// The longest message that a client may send, in bytes.
pub const MAX_REQUEST: usize = 4 << 20;
/// The code of the error that nothing was done: the host is about to end.
pub const NOT_BEGUN: i32 = -32_090;
/// The code of the error that the host ended while the request ran.
pub const ENDED: i32 = -32_091;

/// The parameters of a request that is not MCP, and its result, which is the text of JSON.
#[derive(Debug, Serialize, Deserialize)]
pub struct Payload<T> {
    pub payload: T,
}

/// What a person is asked at a front end; `A` is an
/// [`ApprovalRequest`](crate::host::policy::ApprovalRequest), or a reference to one.
#[derive(Debug, Serialize, Deserialize)]
pub enum FrontEndQuestion<A> {
    Server(Question),
    Approval(A),
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
    pub running: usize,
    /// Its own resident memory, in bytes; `None` when the system does not tell.
    pub memory: Option<u64>,
    /// How long it stays without a call.
    pub idle_limit: Duration,
    /// What is left of that; `None` while a call runs.
    pub idle_left: Option<Duration>,
}
