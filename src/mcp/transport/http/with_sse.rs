//! HTTP+SSE, the transport of revision 2024-11-05: one event stream that stays open, and POSTs to
//! an address that its first event names.
//!
//! Owns: [`SseWire`] — opening the stream, the address of the POSTs, and what the end of the stream
//! means. How a request is sent, what a refusal means, the limits and the secrets are those of
//! Streamable HTTP. Never does: post anywhere but at the origin of the stream, or open the stream
//! twice: when it ends, the connection has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;
use url::Url;

use super::answer::answered;
use super::events::{End, Stream};
use super::post::{Posted, no_headers};
use super::queue::Inbox;
use super::running::{Exchange, Stage, locked};
use super::sse::{Event, Item};
use super::status::Refusal;
use super::target::HttpTarget;
use super::{Shared, closed, headers};
use crate::mcp::wire::{Arrival, Frame, FrameKind, Vitals, Wire};
use crate::model::{Era, Fault};
use crate::net::address::show;
use crate::net::response::{Body, content_type};
use crate::net::words::{cut, lossy, words};

/// The longest address an `endpoint` event may name, in bytes.
const LONGEST_ENDPOINT: usize = 4096;
/// Where servers of this transport usually have their stream.
const USUAL: &str = "the event stream of this transport usually is at /sse";

/// A wire to one server that speaks HTTP+SSE.
pub struct SseWire {
    line: Arc<Line>,
    inbox: tokio::sync::Mutex<Inbox>,
}

/// What the wire and the reader of its stream share.
struct Line {
    shared: Arc<Shared>,
    state: watch::Sender<State>,
    begun: AtomicBool,
}

/// How far the stream is.
#[derive(Clone)]
enum State {
    /// Its first event has not come.
    Opening,
    /// Messages are posted to this address.
    Open(Url),
    /// It has ended.
    Gone(Fault),
}

impl SseWire {
    /// A wire to the stream at `target`. Nothing is sent before the first message.
    ///
    /// # Errors
    /// As [`HttpWire::connect`](super::HttpWire::connect).
    pub fn connect(target: HttpTarget) -> Result<Self, Fault> {
        let (shared, inbox) = Shared::new(target)?;
        let (state, _) = watch::channel(State::Opening);
        let begun = AtomicBool::new(false);
        let line = Arc::new(Line { shared: Arc::new(shared), state, begun });
        Ok(Self { line, inbox: tokio::sync::Mutex::new(inbox) })
    }
}

impl Line {
    /// Reads the stream until it ends or the wire is closed.
    async fn listen(self: Arc<Self>) {
        let ended = self.shared.closed.run_until_cancelled(self.read()).await;
        let fault = self.shared.secrets.clean_fault(ended.unwrap_or_else(closed));
        self.shared.heads.tracer.closed(fault.message());
        self.state.send_replace(State::Gone(fault));
    }

    /// Reads the stream to its end, and says why it ended.
    async fn read(&self) -> Fault {
        let limit = self.shared.limits.control;
        let opened = timeout(limit, self.open()).await;
        let (mut stream, url) = match opened.unwrap_or_else(|_| Err(no_headers("GET", limit))) {
            Ok(opened) => opened,
            Err(fault) => return fault,
        };
        let silent = || Err(Fault::timeout("the event stream names no endpoint").hint(USUAL));
        let first = timeout(limit, self.endpoint_event(&mut stream, &url)).await;
        match first.unwrap_or_else(|_| silent()) {
            Ok(endpoint) => self.state.send_replace(State::Open(endpoint)),
            Err(fault) => return fault,
        };
        loop {
            let event = match self.event(&mut stream).await {
                Ok(event) => event,
                Err(fault) => return fault,
            };
            if event.kind.as_deref() == Some("endpoint") {
                self.shared.note("a second endpoint event; the first one counts");
                continue;
            }
            let Some(bytes) = event.message() else { continue };
            self.shared.heads.tracer.received(&bytes, None);
            for id in answered(&bytes) {
                self.shared.running.cancel(&id);
            }
            self.shared.push(Arrival::Message { bytes, stream_of: None }).await;
        }
    }

    /// The stream, and the address that it came from.
    async fn open(&self) -> Result<(Stream, Url), Fault> {
        let shared = &self.shared;
        let url = locked(&shared.url).clone();
        let headers = headers::get(&locked(&shared.session));
        let response = shared.exchange(Method::GET, &url, headers, None, None).await?;
        let (status, url) = (response.status(), response.url().clone());
        let kind = content_type(response.headers());
        if status.is_success() && kind == "text/event-stream" {
            return Ok((shared.stream(Body::new(response)), url));
        }
        let (headers, authorized) = (response.headers().clone(), shared.gate.authorized());
        let body = shared.beginning(&mut Body::new(response)).await;
        let fault = if status.is_success() {
            let kind = if kind.is_empty() { "no content type" } else { &kind };
            Fault::protocol(format!("{} is no event stream: {kind}", show(&url)))
                .details(words(&body))
                .data(json!({ "http_status": status.as_u16() }))
        } else {
            Refusal { status, headers: &headers, body: &body, url: &url, authorized }.fault()
        };
        let fault = shared.placed(fault);
        Err(if matches!(status.as_u16(), 401 | 403) { fault } else { fault.hint(USUAL) })
    }

    /// Where to post to, out of the first event that means anything.
    async fn endpoint_event(&self, stream: &mut Stream, url: &Url) -> Result<Url, Fault> {
        loop {
            let event = self.event(stream).await?;
            if event.kind.as_deref() == Some("endpoint") {
                return endpoint(&event.data, url);
            }
            if event.message().is_some() {
                let what = "the event stream does not begin with an endpoint event";
                return Err(Fault::protocol(what).hint("is it a server of the transport sse?"));
            }
        }
    }

    async fn event(&self, stream: &mut Stream) -> Result<Event, Fault> {
        loop {
            let item = stream.items.pop_front();
            if let Some(item) = &item {
                self.shared.trace(item, None);
            }
            match item {
                Some(Item::Event(event)) => return Ok(event),
                // Coming back is up to whoever opens the next connection.
                Some(Item::Retry(_) | Item::Comment(_)) => {}
                None => match self.shared.read_on(stream).await {
                    Ok(_) => {}
                    Err(End::Broken(fault)) => return Err(fault),
                    Err(End::Over(reason)) => return Err(Fault::unreachable(reason)),
                    Err(End::Answered) => return Err(closed()),
                },
            }
        }
    }

    /// The address to post to, as soon as it is known.
    async fn known_endpoint(&self) -> Result<Url, Fault> {
        let mut states = self.state.subscribe();
        // The reader has a limit of time for this.
        let known = states.wait_for(|state| !matches!(state, State::Opening)).await;
        match known.map(|state| state.clone()) {
            Ok(State::Open(url)) => Ok(url),
            Ok(State::Gone(fault)) => Err(fault),
            Ok(State::Opening) | Err(_) => Err(closed()),
        }
    }

    async fn post(&self, frame: &Frame, exchange: Option<&Arc<Exchange>>) -> Result<(), Fault> {
        let shared = &self.shared;
        let url = self.known_endpoint().await?;
        let (what, limit) = match &exchange {
            Some(_) => ("the request", shared.limits.exchange),
            None => ("a notification or an answer", shared.limits.control),
        };
        let posted = timeout(limit, shared.post_to(&url, frame, exchange)).await;
        match posted.unwrap_or_else(|_| Err(no_headers(what, limit)))? {
            Posted::Good(response) => {
                if let Some(exchange) = exchange {
                    let (status, kind) = (response.status().as_u16(), "text/event-stream".into());
                    exchange.reach(Stage::Answering { status, kind });
                }
                Ok(())
            }
            Posted::Error(_, fault) | Posted::Refused(_, fault) => Err(fault),
        }
    }
}

/// What an `endpoint` event names, when messages may be posted there.
fn endpoint(data: &[u8], stream: &Url) -> Result<Url, Fault> {
    if data.len() > LONGEST_ENDPOINT {
        let what = format!("the endpoint event names an address of {} bytes", data.len());
        return Err(Fault::protocol(what).detail(format!("limit: {LONGEST_ENDPOINT} bytes")));
    }
    let text = lossy(data);
    let named = stream.join(text.trim()).map_err(|why| {
        Fault::protocol(format!("the endpoint event names no address: {why}")).detail(cut(&text))
    })?;
    let own = named.username().is_empty() && named.password().is_none();
    if named.origin() != stream.origin() || !own {
        return Err(Fault::denied(format!(
            "the event stream of {} wants messages to be sent to {}, which is not done",
            show(stream),
            cut(&show(&named))
        ))
        .hint("an endpoint has to be at the same scheme, host and port as the stream"));
    }
    Ok(named)
}

#[async_trait]
impl Wire for SseWire {
    async fn send(&self, frame: Frame) -> Result<(), Fault> {
        let shared = &self.line.shared;
        if !self.line.begun.swap(true, Ordering::Relaxed) {
            tokio::spawn(Box::pin(Arc::clone(&self.line).listen()));
        }
        let exchange = match &frame.kind {
            FrameKind::Request { id, .. } => Some(shared.running.begin(id, &shared.closed)),
            FrameKind::Notification { .. } | FrameKind::Response => None,
        };
        if let FrameKind::Notification { cancels: Some(id), .. } = &frame.kind {
            shared.running.cancel(id);
        }
        let work = self.line.post(&frame, exchange.as_ref());
        let sent = shared.closed.run_until_cancelled(work).await;
        let sent = sent.unwrap_or_else(|| Err(closed()));
        if let (Err(_), FrameKind::Request { id, .. }, Some(exchange)) =
            (&sent, &frame.kind, &exchange)
        {
            shared.running.end(id, exchange);
        }
        sent.map_err(|fault| shared.secrets.clean_fault(fault))
    }

    async fn receive(&self) -> Arrival {
        let mut inbox = self.inbox.lock().await;
        let mut states = self.line.state.subscribe();
        tokio::select! {
            biased;
            () = self.line.shared.closed.cancelled() => Arrival::Closed(closed()),
            // What came before the end is not lost.
            Some(next) = inbox.next() => next,
            state = states.wait_for(|state| matches!(state, State::Gone(_))) => {
                match state.as_deref() {
                    Ok(State::Gone(fault)) => Arrival::Closed(fault.clone()),
                    _ => Arrival::Closed(closed()),
                }
            }
        }
    }

    fn agreed(&self, era: Era, version: &str) {
        locked(&self.line.shared.session).agree(era, version);
    }

    fn delimits_messages(&self) -> bool {
        true
    }

    fn waiting_for(&self, id: &Value) -> Option<String> {
        self.line.shared.running.waiting_for(id)
    }

    fn vitals(&self) -> Vitals {
        Vitals::default()
    }

    async fn close(&self) {
        self.line.shared.heads.tracer.closed("ended by toolhost");
        self.line.shared.closed.cancel();
    }
}

impl Drop for SseWire {
    /// Ends the reader of a wire that nobody closed.
    fn drop(&mut self) {
        self.line.shared.closed.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FaultKind;

    fn named(data: &str) -> Result<String, FaultKind> {
        let stream = "http://127.0.0.1:8001/api/sse?key=1".parse().unwrap();
        endpoint(data.as_bytes(), &stream).map(|url| url.to_string()).map_err(|fault| fault.kind())
    }

    #[test]
    fn an_endpoint_is_resolved_against_the_stream() {
        let at = |path: &str| Ok(format!("http://127.0.0.1:8001{path}"));
        assert_eq!(named("/messages?session=1"), at("/messages?session=1"));
        assert_eq!(named("messages/1"), at("/api/messages/1"));
        assert_eq!(named(" http://127.0.0.1:8001/m\n"), at("/m"));
        assert_eq!(named("?session=1"), at("/api/sse?session=1"));
    }

    #[test]
    fn messages_never_go_elsewhere() {
        for elsewhere in [
            "http://127.0.0.1:8002/m",
            "https://127.0.0.1:8001/m",
            "//evil.example/m",
            "file:///etc/passwd",
            "http://me:you@127.0.0.1:8001/m",
        ] {
            assert_eq!(named(elsewhere), Err(FaultKind::Denied), "{elsewhere}");
        }
        assert_eq!(named("http://[broken"), Err(FaultKind::Protocol));
        assert_eq!(named(&"x".repeat(5000)), Err(FaultKind::Protocol));
    }
}
