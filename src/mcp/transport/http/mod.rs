//! Streamable HTTP: our own client wire, for both protocol eras; and the transport it replaced.
//!
//! Owns: [`SseWire`] (see `with_sse`) and [`HttpWire`] — sessions, headers, event streams and their resumption, redirects, limits,
//! and the classification of everything that can go wrong into faults. Never does: parse what is
//! inside a message (it only recognises the answer to a request by its id, see `answer`), retry a
//! request (but for one that was not let in, see `gate`), follow an address a server names
//! elsewhere, or log in.
//!
//! What the layer above may rely on:
//!
//! - When `send` of a request fails, nothing is pushed for it.
//! - When it succeeds, exactly one ending follows: the [`Arrival::Message`] with the request's id,
//!   or [`Arrival::Failed`]. A message that came instead of the answer (an error without an id, an
//!   answer to another id, no JSON) is pushed first, with `stream_of` naming the request, and
//!   `Failed` after it. Ids are found by a shallow reading: a message too deep to be parsed still
//!   is the answer.
//! - An error status (4xx) whose body is a JSON-RPC error is such a message; other refusals
//!   are faults whose `evidence` is `{"http_status": N}`.
//! - A cancelled request gets no ending. In the modern era the cancellation is not posted: it
//!   closes the request's stream. Dropping `send` does not cancel.

mod answer;
mod body;
mod departing;
mod events;
mod gate;
mod headers;
mod heads;
pub mod lanes;
mod post;
mod queue;
mod redact;
mod running;
mod session;
mod sse;
mod status;
mod target;
mod with_sse;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use reqwest::header::HeaderMap;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use url::Url;

pub use headers::header_text;
pub(in crate::mcp) use heads::Heads;
pub use status::is_session_lost;
pub use target::{HttpLimits, HttpTarget};
pub use with_sse::SseWire;

use self::gate::Gate;
use self::queue::{Inbox, Outbox, queue};
use self::redact::Redactor;
use self::running::{Running, locked};
use self::session::Session;
use crate::mcp::wire::{Arrival, Frame, FrameKind, Vitals, Wire};
use crate::model::{Era, Fault};
use crate::net::{client, trouble};

/// A wire to one Streamable HTTP server.
pub struct HttpWire {
    shared: Arc<Shared>,
    inbox: tokio::sync::Mutex<Inbox>,
}

/// What the wire and its tasks share.
struct Shared {
    client: reqwest::Client,
    /// The headers of the entry, which the client adds to every request.
    own: HeaderMap,
    /// Certificates are not checked.
    insecure: bool,
    /// The request that began the session, to begin another when the server forgot it.
    greeting: Mutex<Option<Frame>>,
    /// The endpoint in use; `/mcp` after the user's bare URL turned out to be nothing.
    url: Mutex<Url>,
    /// The Unix socket that stands in for the URL's host.
    socket: Option<PathBuf>,
    limits: HttpLimits,
    session: Mutex<Session>,
    /// The first POST may try another path.
    may_guess: AtomicBool,
    /// The server's own event stream was asked for.
    listening: AtomicBool,
    gate: Gate,
    running: Running,
    outbox: Outbox,
    secrets: Redactor,
    heads: Heads,
    closed: CancellationToken,
}

impl HttpWire {
    /// A wire to `target`. Nothing is sent before the first message.
    ///
    /// # Errors
    /// When the target is not acceptable (scheme, header names, credentials over plain HTTP) or
    /// the system's certificates cannot be loaded.
    pub fn connect(target: HttpTarget) -> Result<Self, Fault> {
        let (shared, inbox) = Shared::new(target)?;
        Ok(Self { shared: Arc::new(shared), inbox: tokio::sync::Mutex::new(inbox) })
    }
}

impl Shared {
    fn new(target: HttpTarget) -> Result<(Self, Inbox), Fault> {
        let checked = target.check()?;
        let written = checked.headers.contains_key(reqwest::header::AUTHORIZATION);
        let settings = client::Settings {
            connect: target.limits.connect,
            insecure: target.insecure,
            // The user wrote this address and nobody else can change it.
            link_local: true,
            public: false,
        };
        let heads = Heads::new(target.tracer, &checked.headers);
        let own = checked.headers.clone();
        let client = match &target.socket {
            Some(socket) => client::over_socket(socket, &target.url, &settings, checked.headers)?,
            None => client::build(&target.url, &settings, checked.headers)?,
        };
        let (outbox, inbox) = queue();
        if let Some(warning) = checked.warning {
            outbox.note(warning);
        }
        let shared = Self {
            client,
            own,
            insecure: target.insecure,
            greeting: Mutex::default(),
            url: Mutex::new(target.url),
            socket: target.socket,
            limits: target.limits,
            session: Mutex::new(Session::default()),
            may_guess: AtomicBool::new(true),
            listening: AtomicBool::new(false),
            gate: Gate::new(target.credentials, written),
            running: Running::default(),
            outbox,
            secrets: checked.secrets,
            heads,
            closed: CancellationToken::new(),
        };
        Ok((shared, inbox))
    }

    /// Pushes an arrival, without the secrets it may quote.
    async fn push(&self, arrival: Arrival) {
        self.outbox.push(self.secrets.clean_arrival(arrival)).await;
    }

    /// Leaves a warning if there is room. What `send` waits for must not wait for `receive`.
    fn note(&self, text: &str) {
        self.outbox.note(self.secrets.clean(text));
    }

    /// Why no response came.
    fn no_response(&self, error: &reqwest::Error, url: &Url) -> Fault {
        let connect = self.limits.connect;
        match &self.socket {
            Some(socket) => trouble::no_response_over(error, socket, url, connect),
            None => trouble::no_response(error, url, connect),
        }
    }

    /// Says over which socket something was refused: the URL does not.
    fn placed(&self, fault: Fault) -> Fault {
        match &self.socket {
            Some(socket) => fault.detail(trouble::over(socket)),
            None => fault,
        }
    }

    /// Why a request has no outcome.
    fn stopped(&self) -> Fault {
        if self.closed.is_cancelled() {
            closed()
        } else {
            Fault::unreachable("the request was cancelled")
        }
    }
}

fn closed() -> Fault {
    Fault::unreachable("the connection was closed")
}

#[async_trait]
impl Wire for HttpWire {
    async fn send(&self, frame: Frame) -> Result<(), Fault> {
        let shared = Arc::clone(&self.shared);
        if shared.closed.is_cancelled() {
            return Err(closed());
        }
        let sent = match &frame.kind {
            FrameKind::Request { id, .. } => {
                let id = id.clone();
                let exchange = shared.running.begin(&id, &shared.closed);
                let (accepted, acceptance) = oneshot::channel();
                // A task of its own: an abandoned `send` must still be able to say what it
                // waited for, until it is cancelled.
                tokio::spawn(Box::pin(shared.request(frame, id, exchange, accepted)));
                acceptance.await.unwrap_or_else(|_| Err(self.shared.stopped()))
            }
            FrameKind::Notification { cancels: Some(id), .. } => {
                let id = id.clone();
                shared.cancel(frame, &id).await
            }
            FrameKind::Notification { .. } | FrameKind::Response => shared.control(frame).await,
        };
        sent.map_err(|fault| self.shared.secrets.clean_fault(fault))
    }

    async fn receive(&self) -> Arrival {
        let mut inbox = self.inbox.lock().await;
        tokio::select! {
            biased;
            () = self.shared.closed.cancelled() => Arrival::Closed(closed()),
            next = inbox.next() => next.unwrap_or_else(|| Arrival::Closed(closed())),
        }
    }

    fn agreed(&self, era: Era, version: &str) {
        locked(&self.shared.session).agree(era, version);
    }

    fn delimits_messages(&self) -> bool {
        true
    }

    fn waiting_for(&self, id: &Value) -> Option<String> {
        self.shared.running.waiting_for(id)
    }

    fn vitals(&self) -> Vitals {
        Vitals::default()
    }

    fn as_http(&self) -> Option<&HttpWire> {
        Some(self)
    }

    async fn close(&self) {
        self.shared.closed.cancel();
        self.shared.farewell().await;
        self.shared.heads.tracer.closed("ended by toolhost");
    }
}

impl Drop for HttpWire {
    /// Ends the tasks of a wire that nobody closed.
    fn drop(&mut self) {
        self.shared.closed.cancel();
    }
}
