//! Streamable HTTP: our own client wire, for both protocol eras; and its predecessor HTTP+SSE.
//!
//! Owns: [`HttpWire`] and [`SseWire`] — sessions, headers, event streams and their resumption,
//! redirects, limits, and the classification of everything that can go wrong into errors. Never
//! does: look into a message (it only recognises the response to a request by its id, see
//! `answer_match`), retry a request (but for one whose credentials were refused, see
//! `credential_gate`), follow an address a server names elsewhere, or log in.
//!
//! What the layer above may rely on:
//!
//! - When `send` of a request fails, nothing is pushed for it.
//! - When it succeeds, exactly one ending follows: the [`Arrival::Message`] with the
//!   request's id, or [`Arrival::Failed`]. A message that came instead of the response (an error
//!   without an id, a response to another id, not JSON) is pushed first, with `stream_of` naming the
//!   request, and `Failed` after it. A message too deep to be parsed is still the response.
//! - An error status (4xx) whose body is a JSON-RPC error is such a message; other refusals
//!   are errors with their own cause: [`ErrorCause::Http`](crate::model::ErrorCause::Http) or
//!   [`ErrorCause::SessionLost`](crate::model::ErrorCause::SessionLost).
//! - A cancelled request gets no ending. In the modern era the cancellation is not posted: it
//!   closes the request's stream. Dropping `send` before a request was accepted abandons it.

mod answer_match;
mod credential_gate;
mod events;
mod exchanges;
mod head_tracer;
mod headers;
mod http_session;
mod post;
pub mod sse;
mod sse_wire;
mod status;
mod target;
pub mod web_socket;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use url::Url;

pub(in crate::mcp) use head_tracer::HeadTracer;
pub use sse_wire::SseWire;
pub use target::{HttpLimits, HttpTarget};

use self::exchanges::ExchangeTable;
use self::http_session::HttpSession;
use self::status::HttpRefusal;
use crate::mcp::credentials::Credentials;
use crate::mcp::wire::{Arrival, FrameKind, OutgoingFrame, Wire};
use crate::model::{Era, Error};
use crate::net::client::{ClientSettings, HttpClient};
use crate::net::errors;
use crate::util::lock::lock;
use exchanges::{ArrivalReceiver, ArrivalSender, queue};
use head_tracer::Redactor;

pub struct HttpWire {
    shared: Arc<HttpShared>,
    arrival_receiver: tokio::sync::Mutex<ArrivalReceiver>,
}

struct HttpShared {
    client: HttpClient,
    /// The endpoint in use; `/mcp` after the user's bare URL turned out to be nothing.
    url: Mutex<Url>,
    socket: Option<PathBuf>,
    limits: HttpLimits,
    session: Mutex<HttpSession>,
    may_guess_path: AtomicBool,
    /// The server's own event stream was asked for.
    is_listening: AtomicBool,
    credentials: Arc<dyn Credentials>,
    /// Whether the newest request showed something.
    sent_credentials: AtomicBool,
    /// The user wrote `Authorization` among the headers: nothing else is shown.
    has_user_authorization: bool,
    exchanges: ExchangeTable,
    arrival_sender: ArrivalSender,
    redactor: Redactor,
    head_tracer: HeadTracer,
    closed: CancellationToken,
}

impl HttpWire {
    /// A wire to `target`. Nothing is sent before the first message.
    pub fn connect(target: HttpTarget) -> Result<Self, Error> {
        let (shared, inbox, warning) = HttpShared::new(target)?;
        shared.warn_of_address(warning);
        Ok(Self { shared: Arc::new(shared), arrival_receiver: tokio::sync::Mutex::new(inbox) })
    }
}

impl HttpShared {
    /// What all wires of HTTP share, its arrivals, and what is to be known of its address.
    fn new(target: HttpTarget) -> Result<(Self, ArrivalReceiver, Option<String>), Error> {
        let checked = target.check()?;
        let written = checked.headers.contains_key(reqwest::header::AUTHORIZATION);
        let settings = ClientSettings {
            connect_timeout: target.limits.connect,
            insecure: target.insecure,
            // The user wrote this address and no server can change it.
            allows_link_local: true,
            requires_public: false,
            tls: target.tls.clone(),
        };
        let heads = HeadTracer::new(target.tracer, &checked.headers);
        let client =
            HttpClient::new(&target.url, target.socket.clone(), &settings, checked.headers)?;
        let (outbox, inbox) = queue();
        let shared = Self {
            client,
            url: Mutex::new(target.url),
            socket: target.socket,
            limits: target.limits,
            session: Mutex::new(HttpSession::default()),
            may_guess_path: AtomicBool::new(true),
            is_listening: AtomicBool::new(false),
            credentials: target.credentials,
            sent_credentials: AtomicBool::new(written),
            has_user_authorization: written,
            exchanges: ExchangeTable::default(),
            arrival_sender: outbox,
            redactor: checked.secrets,
            head_tracer: heads,
            closed: CancellationToken::new(),
        };
        Ok((shared, inbox, checked.warning))
    }

    /// Pushes an arrival, without the secrets it may quote.
    async fn push(&self, arrival: Arrival) {
        self.arrival_sender.push(self.redactor.redact_arrival(arrival)).await;
    }

    fn warn_of_address(&self, warning: Option<String>) {
        if let Some(warning) = warning {
            self.try_warn(&warning);
        }
    }

    /// Leaves a warning if there is room. What `send` waits for must not wait for `receive`.
    fn try_warn(&self, warning: &str) {
        self.arrival_sender.try_warn(self.redactor.redact(warning));
    }

    /// Says over which socket something was refused: the URL does not.
    fn with_socket(&self, error: Error) -> Error {
        match &self.socket {
            Some(socket) => error.with_detail(errors::socket_detail(socket)),
            None => error,
        }
    }

    /// The error that a status other than success means.
    fn refusal(&self, status: StatusCode, headers: &HeaderMap, body: &[u8], url: &Url) -> Error {
        let authorized = self.sent_credentials.load(Ordering::Relaxed);
        self.with_socket(HttpRefusal { status, headers, body, url, authorized }.error())
    }

    /// Why a request has no outcome.
    fn stop_error(&self) -> Error {
        if self.closed.is_cancelled() {
            closed_error()
        } else {
            Error::unreachable("the request was cancelled")
        }
    }
}

fn closed_error() -> Error {
    Error::unreachable("the connection was closed")
}

#[async_trait]
impl Wire for HttpWire {
    async fn send(&self, frame: OutgoingFrame) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        if shared.closed.is_cancelled() {
            return Err(closed_error());
        }
        let sent = match &frame.kind {
            FrameKind::Request { id, .. } => {
                // An abandoned `send` can still say what it waited for, until it is cancelled.
                let exchange = shared.exchanges.begin(id, &shared.closed);
                shared.request(&frame, id, &exchange).await
            }
            FrameKind::Notification { cancels: Some(id), .. } => {
                let id = id.clone();
                shared.cancel(frame, &id).await
            }
            _ => shared.send_control(frame).await,
        };
        sent.map_err(|error| self.shared.redactor.redact_error(error))
    }

    async fn receive(&self) -> Arrival {
        let mut inbox = self.arrival_receiver.lock().await;
        tokio::select! {
            biased;
            () = self.shared.closed.cancelled() => Arrival::Closed(closed_error()),
            next = inbox.next() => next.unwrap_or_else(|| Arrival::Closed(closed_error())),
        }
    }

    fn set_agreement(&self, era: Era, version: &str) {
        lock(&self.shared.session).set_agreement(era, version);
    }

    fn delimits_messages(&self) -> bool {
        true
    }

    /// Each exchange fails on its own, and its error says all there is.
    fn explains_failed_sends(&self) -> bool {
        false
    }

    fn waiting_for(&self, id: &Value) -> Option<String> {
        self.shared.exchanges.waiting_for(id)
    }

    async fn close(&self) {
        self.shared.closed.cancel();
        self.shared.end_session().await;
        self.shared.head_tracer.tracer.closed("ended by toolhost");
    }
}

impl Drop for HttpWire {
    /// Ends the tasks of a wire that was dropped without `close`.
    fn drop(&mut self) {
        self.shared.closed.cancel();
    }
}
