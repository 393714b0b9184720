//! One run of calls over the pipes of a connection.
//!
//! Owns: the requests that are on their way, and what came for them. Never does: wait for anything
//! but the wire, read a clock, or say when a call is too late.
//!
//! What is due is written at once and what came is read at once; in between nothing is allocated.
//! Whatever is not plainly an answer to one of these calls is read as usual, by the [`Session`].

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use rmcp::RoleClient;
use rmcp::service::RxJsonRpcMessage;
use serde_json::Value;

use super::answer;
use super::detour::{Running, Seat};
use super::flights::{Flight, Flights};
use super::request::{self, Request};
use crate::mcp::connection::Connection;
use crate::mcp::message::Raw;
use crate::mcp::session::Session;
use crate::mcp::transport::stdio::loan::{Incoming, Loan, Outgoing};
use crate::model::{CallId, Fault, JsonObject};

/// How much is put together before it is written.
const BATCH: usize = 64 * 1024;
/// How many ids of given-up calls are remembered, to know a late answer when it comes.
const RETIRED_KEPT: usize = 256;
/// A server that took nothing of what was begun for so long has stopped reading, for all we know.
const STALL: Duration = Duration::from_millis(100);
/// How long the end of a server is waited for that takes nothing any more.
const OBITUARY: Duration = Duration::from_millis(500);

/// The right to call one tool many times over a connection.
pub struct Lane {
    connection: Arc<Connection>,
    seat: Seat<RxJsonRpcMessage<RoleClient>>,
    request: Request,
    call: CallId,
}

impl Lane {
    /// A lane for calls of `tool`, with `meta` in each request. None when the connection is not one
    /// of pipes, or has a lane already.
    pub fn open(
        connection: Arc<Connection>,
        tool: &str,
        meta: &JsonObject,
        call: CallId,
    ) -> Option<Self> {
        connection.session().wire().as_stdio()?;
        let seat = connection.session().detour.seat()?;
        Some(Self { connection, seat, request: Request::new(tool, meta), call })
    }

    /// The connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Begins a run with at most `most` calls in flight. Until it is dropped, everything that comes
    /// from the server goes through it.
    ///
    /// # Errors
    /// When the connection is gone.
    pub async fn begin(&mut self, most: usize, now: Instant) -> Result<Run<'_>, Fault> {
        let session: &Session = self.connection.session();
        if let Some(fault) = session.closed() {
            return Err(fault);
        }
        let running = self.seat.begin();
        let Some(wire) = session.wire().as_stdio() else {
            return Err(Fault::internal("this connection has no pipes"));
        };
        let Loan { mut incoming, outgoing } = wire.lend().await;
        // What came before and was not looked at is none of ours.
        incoming.each_line(|line| session.route_around(line, &mut |_, outcome| Some(outcome)));
        let flights = Flights::new(most, running.next_id);
        Ok(Run {
            session,
            request: &self.request,
            call: &self.call,
            incoming,
            outgoing,
            flights,
            retired: VecDeque::new(),
            now,
            moved: now,
            stuck: None,
            running,
        })
    }
}

/// A run that is under way.
pub struct Run<'a> {
    session: &'a Session,
    request: &'a Request,
    call: &'a CallId,
    incoming: Incoming<'a>,
    outgoing: Outgoing<'a>,
    flights: Flights,
    retired: VecDeque<i64>,
    /// The last moment that is known.
    now: Instant,
    /// When the server was last seen to take something.
    moved: Instant,
    /// Why nothing can be sent any more, when the server may have ended.
    stuck: Option<Stuck>,
    // Dropped last: only then the session reads again.
    running: Running<'a, RxJsonRpcMessage<RoleClient>>,
}

struct Stuck {
    fault: Fault,
    /// The end of the server did not come within bounds.
    over: bool,
}

/// An answer to a call.
pub struct Landing<'a> {
    /// The call.
    pub flight: Flight,
    /// How much came for it, in bytes.
    pub bytes: usize,
    /// What came.
    pub answer: Answer<'a>,
}

/// What came for a call.
pub enum Answer<'a> {
    /// A result that does not say no; the line it stands in.
    Plain(&'a [u8]),
    /// Something that had to be read.
    Read(Result<Raw, Fault>),
}

impl Run<'_> {
    /// Whether another call can be sent now. Nothing is added to what the server is taking in:
    /// others may have something to say after it.
    pub fn has_room(&self) -> bool {
        let out = &self.outgoing;
        let stalled = || self.now.saturating_duration_since(self.moved) >= STALL;
        !self.flights.is_full()
            && out.waiting() < BATCH
            && self.stuck.is_none()
            && (!out.is_under_way() || stalled() || self.flights.is_empty())
    }

    /// How many calls are in flight.
    pub fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// The call that waits longest.
    pub fn oldest(&self) -> Option<&Flight> {
        self.flights.oldest()
    }

    /// Puts a call among those that go out with the next [`flush`](Self::flush); `arguments` is a
    /// JSON object.
    pub fn send(&mut self, ticket: u64, arguments: &str) {
        let id = self.flights.reserve();
        self.running.next_id = self.flights.next();
        let request = self.request;
        let bytes = self.outgoing.line(Some(self.call), |out| request.write(id, arguments, out));
        self.flights.depart(id, ticket, bytes, self.now);
    }

    /// Hands what was put together to the wire, which is the moment `now` for all of it. What a
    /// server does not take at once goes out while it is [waited for](Self::wait).
    pub fn flush(&mut self, now: Instant) {
        self.tick(now);
        self.flights.sent(now);
        if self.outgoing.waiting() > 0
            && self.stuck.is_none()
            && let Some(Err(fault)) = self.outgoing.write().now_or_never()
        {
            self.stuck = Some(Stuck { fault, over: false });
        }
    }

    /// Waits until something came, all was written that waited to be, or the wire is gone.
    /// Cancel-safe.
    pub async fn wait(&mut self) {
        let Self { session, incoming, outgoing, stuck, .. } = self;
        if session.gone.is_cancelled() {
            return;
        }
        session.detour.room().await;
        if let Some(stuck) = stuck {
            // Why it takes nothing is best told by its end.
            if tokio::time::timeout(OBITUARY, incoming.more()).await.is_err() {
                stuck.over = true;
            }
            return;
        }
        let writing = outgoing.waiting() > 0;
        tokio::select! {
            biased;
            () = incoming.more() => {}
            written = outgoing.write(), if writing => {
                if let Err(fault) = written {
                    *stuck = Some(Stuck { fault, over: false });
                }
            }
        }
    }

    fn tick(&mut self, now: Instant) {
        self.now = now;
        if self.outgoing.has_moved() || !self.outgoing.is_under_way() {
            self.moved = now;
        }
    }

    /// Tells `take` every answer that has come until `now`, and hands everything else to the
    /// session.
    pub fn land(&mut self, now: Instant, mut take: impl FnMut(Landing<'_>)) {
        self.tick(now);
        let Self { session, incoming, flights, retired, .. } = self;
        incoming.each_line(|line| {
            if let Some(id) = answer::plain(line)
                && let Some(flight) = flights.land(id)
            {
                let (bytes, answer) = (line.len() + 1, Answer::Plain(line));
                return take(Landing { flight, bytes, answer });
            }
            session.route_around(line, &mut |id, outcome| {
                let Some(number) = number(id).filter(|number| flights.knows(*number)) else {
                    return Some(outcome);
                };
                match flights.land(number) {
                    Some(flight) => {
                        let outcome = if id.is_string() {
                            let what = "the id of an answer came back as a text, not as a number";
                            Err(Fault::protocol(what).detail(format!("id: {id}")))
                        } else {
                            outcome
                        };
                        if id.as_i64().is_none() {
                            session.doubt("an id came back written otherwise than it was sent");
                        }
                        let (bytes, answer) = (line.len() + 1, Answer::Read(outcome));
                        take(Landing { flight, bytes, answer });
                    }
                    None if retired.contains(&number) => {
                        session.doubt("an answer came after its request was given up; ignored");
                    }
                    None => {
                        session.doubt("a request was answered twice; the first answer counts");
                    }
                }
                None
            });
        });
    }

    /// Gives up the call that waits longest; the server is told why, and its answer is not waited
    /// for any more.
    pub fn give_up(&mut self, reason: &str) -> Option<Flight> {
        let flight = self.flights.take_oldest()?;
        if self.retired.len() >= RETIRED_KEPT {
            self.retired.pop_front();
        }
        self.retired.push_back(flight.id);
        self.outgoing.line(Some(self.call), |out| {
            request::write_cancellation(flight.id, reason, out);
        });
        if self.flights.is_empty() {
            // A server that takes nothing would have to read all this for nobody.
            self.outgoing.forget();
        }
        Some(flight)
    }

    /// Takes out the call that waits longest, of which nothing can be told to the server any more.
    pub fn forget(&mut self) -> Option<Flight> {
        self.flights.take_oldest()
    }

    /// Why nothing can be carried any more, when that is so.
    pub fn closed(&self) -> Option<Fault> {
        let stuck = self.stuck.as_ref().filter(|stuck| stuck.over).map(|stuck| &stuck.fault);
        if let Some(fault) = self.incoming.closed() {
            // Whoever looks for a connection next finds this one gone.
            self.session.close(fault.clone());
        }
        stuck.cloned().or_else(|| self.session.closed())
    }
}

/// The number an id stands for, however it is written.
fn number(id: &Value) -> Option<i64> {
    match id {
        Value::String(text) => text.parse().ok(),
        id => crate::mcp::session::whole_number(id),
    }
}
