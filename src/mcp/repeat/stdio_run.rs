//! A run of calls over the pipes of a stdio connection.
//!
//! All due requests are written in one go and all responses read in one go, without allocating per
//! call. Anything not plainly a response to one of these calls is left to the [`McpSession`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use rmcp::RoleClient;
use rmcp::service::RxJsonRpcMessage;
use serde_json::Value;

use super::answer;
use super::in_flight::{InFlightCall, InFlightCalls};
use crate::mcp::call_template::{self, ToolCallTemplate};
use crate::mcp::connection::Connection;
use crate::mcp::message::RawJson;
use crate::mcp::protocol_warning::ProtocolWarning;
use crate::mcp::read_handoff::{RunningGuard, SessionPermit};
use crate::mcp::retired_ids::RetiredIds;
use crate::mcp::session::McpSession;
use crate::mcp::wire::{PipeLoan, PipeReader, PipeWriter};
use crate::model::{CallId, Error, JsonObject};

/// How much is put together before it is written.
const WRITE_BATCH: usize = 64 * 1024;
/// A server that reads nothing of a partly written line for this long is taken to have stopped reading.
const STALL_TIMEOUT: Duration = Duration::from_millis(100);
/// How long to wait for a server that no longer reads to exit.
const EXIT_REPORT_TIMEOUT: Duration = Duration::from_millis(500);

/// The right to call one tool many times over a connection.
pub struct StdioLane {
    connection: Arc<Connection>,
    permit: SessionPermit<RxJsonRpcMessage<RoleClient>>,
    template: ToolCallTemplate,
    call: CallId,
}

impl StdioLane {
    /// A lane for calls of `tool`, with `meta` in each request. None when the connection is not one
    /// of pipes, or has a lane already.
    pub fn open(
        connection: Arc<Connection>,
        tool: &str,
        meta: &JsonObject,
        call: CallId,
    ) -> Option<Self> {
        connection.session().wire().pipe_lender()?;
        let permit = connection.session().read_handoff.try_acquire()?;
        Some(Self { connection, permit, template: ToolCallTemplate::new(tool, meta), call })
    }

    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Begins a run with at most `most` calls in flight. Until it is dropped, everything that comes
    /// from the server goes through it.
    pub async fn start(&mut self, most: usize, now: Instant) -> Result<StdioRun<'_>, Error> {
        let session: &McpSession = self.connection.session();
        if let Some(error) = session.close_reason() {
            return Err(error);
        }
        let running = self.permit.begin();
        let Some(lender) = session.wire().pipe_lender() else {
            return Err(Error::internal("this connection has no pipes"));
        };
        let PipeLoan { mut incoming, outgoing } = lender.lend().await;
        // Unread input from before the run does not belong to it.
        incoming.each_line(&mut |line| {
            session.route_run_line(line, &mut |_, outcome| Some(outcome));
        });
        let flights = InFlightCalls::new(most, running.next_id);
        Ok(StdioRun {
            session,
            template: &self.template,
            call: &self.call,
            incoming,
            outgoing,
            in_flight: flights,
            retired: RetiredIds::default(),
            now,
            last_write: now,
            send_failure: None,
            running,
        })
    }
}

pub struct StdioRun<'a> {
    session: &'a McpSession,
    template: &'a ToolCallTemplate,
    call: &'a CallId,
    incoming: Box<dyn PipeReader + 'a>,
    outgoing: Box<dyn PipeWriter + 'a>,
    in_flight: InFlightCalls,
    retired: RetiredIds,
    /// The last moment that is known.
    now: Instant,
    last_write: Instant,
    /// Why nothing can be sent any more, when the server may have ended.
    send_failure: Option<SendFailure>,
    // Dropped last: only then the session reads again.
    running: RunningGuard<'a, RxJsonRpcMessage<RoleClient>>,
}

struct SendFailure {
    error: Error,
    /// The end of the server did not come within bounds.
    is_final: bool,
}

pub struct RunAnswer<'a> {
    pub call: InFlightCall,
    /// How much came for it, in bytes.
    pub bytes: usize,
    /// The answer, read only where that is needed.
    pub answer: AnswerBody<'a>,
}

/// The answer to a call, in the form it was read.
pub enum AnswerBody<'a> {
    /// A result that is not an error: the line that contains it.
    Plain(&'a [u8]),
    Parsed(Result<RawJson, Error>),
}

impl StdioRun<'_> {
    /// Whether another call can be sent now. Nothing is added to what the server is taking in:
    /// others may have something to say after it.
    pub fn has_room(&self) -> bool {
        let out = &self.outgoing;
        let stalled = || self.now.saturating_duration_since(self.last_write) >= STALL_TIMEOUT;
        !self.in_flight.is_full()
            && out.waiting() < WRITE_BATCH
            && self.send_failure.is_none()
            && (!out.is_under_way() || stalled() || self.in_flight.is_empty())
    }

    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    pub fn oldest(&self) -> Option<&InFlightCall> {
        self.in_flight.oldest()
    }

    /// Puts a call among those that go out with the next [`flush`](Self::flush); `arguments` is a
    /// JSON object.
    pub fn send(&mut self, ticket: u64, arguments: &str) {
        let id = self.in_flight.reserve();
        self.running.next_id = self.in_flight.next();
        let request = self.template;
        let bytes =
            self.outgoing.line(Some(self.call), &mut |out| request.write(id, arguments, out));
        self.in_flight.insert(id, ticket, bytes, self.now);
    }

    /// Hands what was put together to the wire, which is the moment `now` for all of it. What a
    /// server does not take at once goes out while it is [waited for](Self::wait).
    pub fn flush(&mut self, now: Instant) {
        self.tick(now);
        self.in_flight.mark_sent(now);
        if self.outgoing.waiting() > 0
            && self.send_failure.is_none()
            && let Some(Err(error)) = self.outgoing.write().now_or_never()
        {
            self.send_failure = Some(SendFailure { error, is_final: false });
        }
    }

    /// Waits until something came, all was written that waited to be, or the wire is gone.
    /// Cancel-safe.
    pub async fn wait(&mut self) {
        let Self { session, incoming, outgoing, send_failure: stuck, .. } = self;
        if session.closed_token.is_cancelled() {
            return;
        }
        session.read_handoff.wait_for_room().await;
        if let Some(stuck) = stuck {
            // How the process ends explains best why it takes nothing.
            if tokio::time::timeout(EXIT_REPORT_TIMEOUT, incoming.wait_for_input()).await.is_err() {
                stuck.is_final = true;
            }
            return;
        }
        let writing = outgoing.waiting() > 0;
        tokio::select! {
            biased;
            () = incoming.wait_for_input() => {}
            written = outgoing.write(), if writing => {
                if let Err(error) = written {
                    *stuck = Some(SendFailure { error, is_final: false });
                }
            }
        }
    }

    fn tick(&mut self, now: Instant) {
        self.now = now;
        if self.outgoing.take_has_written() || !self.outgoing.is_under_way() {
            self.last_write = now;
        }
    }

    /// Passes every response that has arrived by `now` to `take`, and everything else to the
    /// session.
    pub fn take_answers(&mut self, now: Instant, mut take: impl FnMut(RunAnswer<'_>)) {
        self.tick(now);
        let Self { session, incoming, in_flight: flights, retired, .. } = self;
        incoming.each_line(&mut |line| {
            if let Some(id) = answer::plain_answer_id(line)
                && let Some(flight) = flights.remove(id)
            {
                let (bytes, answer) = (line.len() + 1, AnswerBody::Plain(line));
                return take(RunAnswer { call: flight, bytes, answer });
            }
            session.route_run_line(line, &mut |id, outcome| {
                let Some(number) = number(id).filter(|number| flights.has_issued(*number)) else {
                    return Some(outcome);
                };
                match flights.remove(number) {
                    Some(flight) => {
                        let outcome = if id.is_string() {
                            let what = "the id of a response is a string, not a number";
                            Err(Error::protocol(what).with_detail(format!("id: {id}")))
                        } else {
                            outcome
                        };
                        if id.as_i64().is_none() {
                            session.add_warning(ProtocolWarning::RunIdRewritten);
                        }
                        let (bytes, answer) = (line.len() + 1, AnswerBody::Parsed(outcome));
                        take(RunAnswer { call: flight, bytes, answer });
                    }
                    None if retired.contains(number) => {
                        session.add_warning(ProtocolWarning::LateAnswer);
                    }
                    None => {
                        session.add_warning(ProtocolWarning::AnsweredTwice);
                    }
                }
                None
            });
        });
    }

    /// Abandons the call that has waited longest: tells the server why, and no longer waits for the
    /// response.
    pub fn cancel_oldest(&mut self, reason: &str) -> Option<InFlightCall> {
        let flight = self.in_flight.take_oldest()?;
        self.retired.insert(flight.id);
        self.outgoing.line(Some(self.call), &mut |out| {
            call_template::write_cancellation(flight.id, reason, out);
        });
        if self.in_flight.is_empty() {
            // The server reads nothing now; later, these lines would be of no use.
            self.outgoing.discard_unsent();
        }
        Some(flight)
    }

    /// Takes out the call that waits longest, of which nothing can be told to the server any more.
    pub fn drop_oldest(&mut self) -> Option<InFlightCall> {
        self.in_flight.take_oldest()
    }

    /// Why nothing can be carried any more, when that is so.
    pub fn close_reason(&self) -> Option<Error> {
        let stuck =
            self.send_failure.as_ref().filter(|stuck| stuck.is_final).map(|stuck| &stuck.error);
        if let Some(error) = self.incoming.close_reason() {
            // The next caller finds the connection closed and opens another one.
            self.session.close(error.clone());
        }
        stuck.cloned().or_else(|| self.session.close_reason())
    }
}

fn number(id: &Value) -> Option<i64> {
    match id {
        Value::String(text) => text.parse().ok(),
        id => crate::mcp::session::whole_number(id),
    }
}
