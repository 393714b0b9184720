//! The optional ability of an HTTP wire to open dedicated connections for one tool's calls.

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
    async fn open_lanes(
        &self,
        tool: &str,
        request: ToolCallTemplate,
        count: usize,
        limit: Duration,
    ) -> Result<Option<Box<dyn CallLanes>>, Error>;
}

pub trait CallLanes: Send {
    fn has_idle(&self) -> bool;

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

#[derive(Debug)]
pub struct CallCompletion {
    pub ticket: u64,
    pub sent: Instant,
    pub bytes_out: u64,
    pub bytes_in: u64,
    pub answer: Result<LaneAnswer, Error>,
}

#[derive(Debug, Clone, Copy)]
pub struct LaneAnswer {
    /// Whether it is plainly a successful result; otherwise it must be parsed.
    pub is_plain: bool,
    pub lane: usize,
}

/// Something that happened on the lanes.
#[derive(Debug)]
pub enum LanePoolEvent {
    Completed(CallCompletion),
    /// A lane can be used that could not before.
    Free,
    /// No connection is left, and none can be made. No call is under way any more.
    Closed(Error),
}
