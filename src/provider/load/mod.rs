//! The optional ability of a provider to call one tool many times, as fast as its transport allows.
//!
//! Owns: the port between a benchmark and the way to a tool. The benchmark ([`Load`]) says what is
//! sent when, and hears how each call ended; the way to the tool ([`LoadExecutor`]) drives
//! its own loop, so that nothing stands between a call and the wire. Never does: count, or decide
//! when to stop.

mod load_loop;
mod sampling;

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::sync::Notify;

use crate::model::{Error, JsonObject, ToolContext, ToolName, ToolResult};

pub use load_loop::{LoadTransport, LoadWait, drive, split_decision};
pub use sampling::{AnswerSampler, tool_error};

/// An ability of providers that have a faster way for many equal calls than one call after the
/// other. The host carries the calls of those that have none.
#[async_trait]
pub trait LoadSupport: Send + Sync {
    /// Whether several runs at once have this way. Where only one has it, runs that are compared are
    /// all carried by the host, or they would be measured at two speeds.
    fn supports_parallel_runs(&self) -> bool;

    /// Readies a run: connects, opens what is needed, serialises what all calls share. All that
    /// takes time and is no part of a call happens here. `None` when this tool, or the way to it as
    /// it is now, has no faster way; the host carries its calls then.
    ///
    /// # Errors
    /// When the tool cannot be reached.
    async fn executor(&self, order: &LoadJob) -> Result<Option<Box<dyn LoadExecutor>>, Error>;
}

/// The tool of a run and the conditions that hold for all its calls.
#[derive(Clone)]
pub struct LoadJob {
    /// The tool, one of the provider's names.
    pub tool: ToolName,
    /// The most calls that are in flight at once.
    pub concurrency: usize,
    /// How long an answer is waited for; a call without one by then ended as a timeout.
    pub timeout: Duration,
    /// Which answers are read and checked whole, as in an ordinary call. Of the others only whose
    /// answer they are and whether they say no.
    pub inspection: Option<Inspection>,
    /// The caller. `cancel` ends the run at once.
    pub context: ToolContext,
}

/// Which answers are read whole, and by whom they are checked.
#[derive(Clone)]
pub struct Inspection {
    /// One answer of so many, beginning with the first; at least 1, which is every answer.
    pub every: u64,
    /// Checks each result that is selected.
    pub inspector: Arc<dyn Inspector>,
}

/// Checks whole results, for example against the tool's output schema.
pub trait Inspector: Send + Sync {
    /// What is wrong with it, if anything is.
    fn inspect(&self, result: &ToolResult) -> Option<Error>;
}

impl std::fmt::Debug for Inspection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inspection").field("every", &self.every).finish_non_exhaustive()
    }
}

/// Executes the calls of one run.
#[async_trait]
pub trait LoadExecutor: Send {
    /// Sends the calls that `load` hands out and reports how each ended, exactly once, until the
    /// load is done and nothing is in flight, or its time for calls in flight is over. May be
    /// called again afterwards, with a load whose tickets continue where the last one's ended:
    /// targets under comparison take turns, each over its existing connection.
    ///
    /// # Errors
    /// When no more calls can be sent (for example because the server died). Calls in flight have
    /// been reported as ended; a new executor may work again.
    async fn run(&mut self, load: &mut dyn Load) -> Result<(), Error>;

    /// Oddities of the run, as text for people.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Says what is sent when, and counts what became of it. All of it must return at once.
pub trait Load: Send {
    /// The time, by the clock that all times of this run are read from.
    fn now(&self) -> Instant;

    /// What is to be done now, by [`Load::now`]: one reading does for several calls that go out
    /// together. Asked again after each request, each end, and when what it said to wait for has come.
    fn next(&mut self, now: Instant) -> LoadDecision;

    /// Takes the end of a call, once for each ticket that was handed out.
    fn on_completed(&mut self, end: CompletedRequest);

    /// Woken when [`Load::next`] may say something else although no call ended and no time came.
    fn wakeup(&self) -> Arc<Notify>;
}

/// What an executor is to do now.
#[derive(Debug, Clone)]
pub enum LoadDecision {
    /// Send this call now, if there is room for it.
    Send(BenchRequest),
    /// Send nothing before this moment, unless a call ends or there is news.
    WaitUntil(Instant),
    /// Send nothing until a call ends or there is news.
    WaitForWakeup,
    /// Send nothing more. Calls in flight may end until this moment; then they are reported as
    /// [`LoadOutcome::Unanswered`].
    Drain(Instant),
}

/// One call that is handed out to be sent.
#[derive(Debug, Clone)]
pub struct BenchRequest {
    /// Its number among those of this executor, from 0 without gaps in the order of being handed out.
    pub ticket: u64,
    /// Its arguments; equal ones are shared, so that an executor can compare pointers.
    pub arguments: Arc<EncodedArguments>,
}

/// Arguments in the forms that carriers need.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodedArguments {
    /// The object, for carriers that take values.
    pub object: JsonObject,
    /// The same as compact JSON.
    pub json: Box<str>,
}

impl EncodedArguments {
    /// Serialises the object once for all calls that send it.
    pub fn new(object: JsonObject) -> Self {
        // Of text, numbers and lists of them there is nothing that cannot be written.
        let json = serde_json::to_string(&object).unwrap_or_default().into_boxed_str();
        Self { object, json }
    }
}

/// How a call of a run ended.
#[derive(Debug)]
pub struct CompletedRequest {
    /// The number of its [`BenchRequest`].
    pub ticket: u64,
    /// When it was handed to the wire or started.
    pub sent_at: Instant,
    /// When its response was read, or it was abandoned.
    pub ended_at: Instant,
    /// Bytes sent for it, as far as they are counted.
    pub bytes_out: u64,
    /// Bytes that came for it.
    pub bytes_in: u64,
    /// Whether it succeeded, and why not.
    pub outcome: LoadOutcome,
}

impl CompletedRequest {
    /// The end of a call that the end of its run came before.
    pub fn unanswered(ticket: u64, sent: Instant, at: Instant) -> Self {
        Self {
            ticket,
            sent_at: sent,
            ended_at: at,
            bytes_out: 0,
            bytes_in: 0,
            outcome: LoadOutcome::Unanswered,
        }
    }

    /// The end of a call that was never sent.
    pub fn unsent(ticket: u64, at: Instant, outcome: LoadOutcome) -> Self {
        Self { outcome, ..Self::unanswered(ticket, at, at) }
    }
}

/// What became of a call of a run.
#[derive(Debug)]
pub enum LoadOutcome {
    /// The tool answered without an error.
    Ok,
    /// The tool said no: `isError`, a non-zero exit, an HTTP status. With what it said, cut.
    ToolError(Box<str>),
    /// No usable answer came: a limit fired, the protocol was broken, the connection ended, the
    /// peer answered with an error.
    Failed(Box<Error>),
    /// The run ended before an answer came.
    Unanswered,
}
