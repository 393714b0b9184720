//! The optional ability of an HTTP wire to open dedicated connections for one tool's calls.
//!
//! Owns: the port between a run of many calls and such connections. Never does: know how requests
//! are framed, or decide what is sent when.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use async_trait::async_trait;

use crate::mcp::call_template::ToolCallTemplate;
use crate::model::Error;

/// A wire that can open dedicated connections for calls.
#[async_trait]
pub trait LaneOpener: Send + Sync {
    /// Opens `count` connections for calls of `tool`, each of which is given `limit`. `None` where
    /// calls have to go through the session: the wire is traced, or each request has credentials of
    /// its own.
    ///
    /// # Errors
    /// When not all connections can be made.
    async fn open_lanes(
        &self,
        tool: &str,
        request: ToolCallTemplate,
        count: usize,
        limit: Duration,
    ) -> Result<Option<Box<dyn CallLanes>>, Error>;
}

/// Connections to one server for the calls of one tool, one call at a time on each.
pub trait CallLanes: Send {
    /// Whether a call can be sent now.
    fn has_idle(&self) -> bool;

    /// Whether a call is under way.
    fn is_busy(&self) -> bool;

    /// Sends a call with these lines of headers of its own; false when no connection is left and
    /// the call has to wait.
    fn send(&mut self, ticket: u64, arguments: &str, own: &[u8], now: Instant) -> bool;

    /// The next thing that happens.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<LanePoolEvent>;

    /// The text of an answer. It stays until anything else is done with the lanes.
    fn answer(&self, came: LaneAnswer) -> &[u8];

    /// When [`expire`](Self::expire) has something to do, at the soonest.
    fn next_deadline(&self) -> Option<Instant>;

    /// Ends one call whose time is over; its connection is closed, and another one is made. To be
    /// called until it returns `None`.
    fn expire(&mut self, now: Instant) -> Option<CallCompletion>;

    /// Abandons the calls in flight; returns their tickets and when they were sent.
    fn abandon(&mut self) -> Vec<(u64, Instant)>;

    /// What was odd about the connections, a line for each kind with its count.
    fn protocol_warnings(&self) -> Vec<String>;
}

/// How a call on a lane ended.
#[derive(Debug)]
pub struct CallCompletion {
    /// The ticket it was sent with.
    pub ticket: u64,
    /// When the call was sent.
    pub sent: Instant,
    /// How many bytes its request had.
    pub bytes_out: u64,
    /// How many bytes its response had.
    pub bytes_in: u64,
    /// The answer, or why there is none.
    pub answer: Result<LaneAnswer, Error>,
}

/// A response in the buffer of a lane.
#[derive(Debug, Clone, Copy)]
pub struct LaneAnswer {
    /// Whether it is plainly a successful result; otherwise it must be parsed.
    pub is_plain: bool,
    /// The lane whose buffer holds it, as its index.
    pub lane: usize,
}

/// Something that happened on the lanes.
#[derive(Debug)]
pub enum LanePoolEvent {
    /// A call ended, with an answer or an error.
    Completed(CallCompletion),
    /// A lane can be used that could not before.
    Free,
    /// No connection is left, and none can be made. No call is under way any more.
    Closed(Error),
}
