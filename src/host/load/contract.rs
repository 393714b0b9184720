//! The port between a benchmark and the calls it makes: the benchmark ([`Load`]) says what is sent
//! when, and hears how each call ended.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use tokio::sync::Notify;

use crate::model::{Error, JsonObject};

#[async_trait]
pub trait LoadExecutor: Send {
    /// Sends the calls that `load` hands out and reports how each ended, exactly once, until the
    /// load is done and nothing is in flight, or its time for calls in flight is over. May be
    /// called again afterwards, with a load whose tickets continue where the last one's ended.
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

    /// What is to be done now, by [`Load::now`]. Asked again after each request, each end, and when
    /// what it said to wait for has come.
    fn next(&mut self, now: Instant) -> LoadDecision;

    fn on_completed(&mut self, end: CompletedRequest);

    /// Woken when [`Load::next`] may say something else although no call ended and no time came.
    fn wakeup(&self) -> Arc<Notify>;
}

#[derive(Debug, Clone)]
pub enum LoadDecision {
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
    pub arguments: Arc<JsonObject>,
}

#[derive(Debug)]
pub struct CompletedRequest {
    /// The number of its [`BenchRequest`].
    pub ticket: u64,
    pub sent_at: Instant,
    /// When its result was read, or it was abandoned.
    pub ended_at: Instant,
    /// The size of its arguments as JSON.
    pub bytes_out: u64,
    pub bytes_in: u64,
    pub outcome: LoadOutcome,
}

impl CompletedRequest {
    /// The end of a call that the end of its run came before.
    pub fn unanswered(ticket: u64, sent_at: Instant, ended_at: Instant) -> Self {
        let outcome = LoadOutcome::Unanswered;
        Self { ticket, sent_at, ended_at, bytes_out: 0, bytes_in: 0, outcome }
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
