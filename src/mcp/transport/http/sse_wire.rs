//! HTTP+SSE, the transport of revision 2024-11-05: one event stream that stays open, and POSTs to
//! the address that its first event names.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;
use url::Url;

use super::events::{SseStream, SseStreamEnd};
use super::exchanges::{ArrivalReceiver, ExchangeStage, HttpExchange};
use super::post::{PostResponse, headers_timeout_error};
use super::sse::{SseEvent, SseItem};
use super::target::HttpTarget;
use super::{HttpShared, closed_error, headers};
use crate::mcp::message::Incoming;
use crate::mcp::wire::{Arrival, FrameKind, OutgoingFrame, Wire};
use crate::model::{Era, Error};
use crate::net::address::display_url;
use crate::net::response::{OriginResponse, content_type, lossy, server_message, truncate};
use crate::util::lock::lock;

/// The longest address an `endpoint` event may name, in bytes.
const MAX_ENDPOINT_LEN: usize = 4096;
const USUAL_PATH_HINT: &str = "the event stream of this transport is usually at /sse";

pub struct SseWire {
    shared: Arc<SseShared>,
    arrival_receiver: tokio::sync::Mutex<ArrivalReceiver>,
}

struct SseShared {
    shared: Arc<HttpShared>,
    state: watch::Sender<SseState>,
    has_started: AtomicBool,
}

#[derive(Clone)]
enum SseState {
    /// Its first event has not come.
    Opening,
    /// Messages are posted to this address.
    Open(Url),
    /// The event stream has ended, and why.
    Gone(Error),
}

impl SseWire {
    /// A wire to the stream at `target`. Nothing is sent before the first message.
    pub fn connect(target: HttpTarget) -> Result<Self, Error> {
        let (shared, inbox, warning) = HttpShared::new(target)?;
        shared.warn_of_address(warning);
        let (state, _) = watch::channel(SseState::Opening);
        let begun = AtomicBool::new(false);
        let line = Arc::new(SseShared { shared: Arc::new(shared), state, has_started: begun });
        Ok(Self { shared: line, arrival_receiver: tokio::sync::Mutex::new(inbox) })
    }
}

impl SseShared {
    async fn listen(self: Arc<Self>) {
        let ended = self.shared.closed.run_until_cancelled(self.read()).await;
        let error = self.shared.redactor.redact_error(ended.unwrap_or_else(closed_error));
        self.shared.head_tracer.tracer.closed(error.message());
        self.state.send_replace(SseState::Gone(error));
    }

    async fn read(&self) -> Error {
        let limit = self.shared.limits.control;
        let (mut stream, url) = match self.open().await {
            Ok(opened) => opened,
            Err(error) => return error,
        };
        let silent =
            || Err(Error::timeout("the event stream names no endpoint").with_hint(USUAL_PATH_HINT));
        let first = timeout(limit, self.endpoint_event(&mut stream, &url)).await;
        match first.unwrap_or_else(|_| silent()) {
            Ok(endpoint) => self.state.send_replace(SseState::Open(endpoint)),
            Err(error) => return error,
        };
        loop {
            let event = match self.event(&mut stream).await {
                Ok(event) => event,
                Err(error) => return error,
            };
            if event.kind.as_deref() == Some("endpoint") {
                self.shared.try_warn("a second endpoint event; the first one counts");
                continue;
            }
            let Some(bytes) = event.message() else { continue };
            let incoming = Incoming::read(bytes);
            self.shared.head_tracer.tracer.received(&incoming, None);
            for (id, _) in incoming.answers() {
                self.shared.exchanges.cancel(id);
            }
            self.shared.push(Arrival::Message { incoming, stream_of: None }).await;
        }
    }

    async fn open(&self) -> Result<(SseStream, Url), Error> {
        let shared = &self.shared;
        let url = lock(&shared.url).clone();
        let headers = headers::get(&lock(&shared.session));
        let response = shared.send_with_credentials(Method::GET, &url, headers, None, None).await?;
        let OriginResponse { status, headers, url, mut body } = response;
        let kind = content_type(&headers);
        if status.is_success() && kind == "text/event-stream" {
            return Ok((shared.stream(body), url));
        }
        let body = shared.read_beginning(&mut body).await;
        let error = if status.is_success() {
            let kind = if kind.is_empty() { "no content type" } else { &kind };
            let what = format!("{} is not an event stream: {kind}", display_url(&url));
            let error = Error::protocol(what).with_details(server_message(&body));
            shared.with_socket(error.with_data(json!({ "http_status": status.as_u16() })))
        } else {
            shared.refusal(status, &headers, &body, &url)
        };
        Err(if matches!(status.as_u16(), 401 | 403) {
            error
        } else {
            error.with_hint(USUAL_PATH_HINT)
        })
    }

    async fn endpoint_event(&self, stream: &mut SseStream, url: &Url) -> Result<Url, Error> {
        loop {
            let event = self.event(stream).await?;
            if event.kind.as_deref() == Some("endpoint") {
                return endpoint(&event.data, url);
            }
            if event.message().is_some() {
                let what = "the event stream does not start with an endpoint event";
                return Err(Error::protocol(what).with_hint("is it a server of the transport sse?"));
            }
        }
    }

    async fn event(&self, stream: &mut SseStream) -> Result<SseEvent, Error> {
        loop {
            let item = stream.items.pop_front();
            if let Some(item) = &item {
                self.shared.trace(item, None);
            }
            match item {
                Some(SseItem::Event(event)) => return Ok(event),
                // This wire never reconnects, so neither changes anything.
                Some(SseItem::Retry(_) | SseItem::Comment(_)) => {}
                None => match self.shared.read_more(stream).await {
                    Ok(_) => {}
                    Err(SseStreamEnd::Broken(error)) => return Err(error),
                    Err(SseStreamEnd::Disconnected(reason)) => {
                        return Err(Error::unreachable(reason));
                    }
                    Err(SseStreamEnd::Answered) => return Err(closed_error()),
                },
            }
        }
    }

    async fn wait_for_endpoint(&self) -> Result<Url, Error> {
        let mut states = self.state.subscribe();
        // The reader has a limit of time for this.
        let state = states.wait_for(|state| !matches!(state, SseState::Opening)).await;
        match state.map(|state| state.clone()) {
            Ok(SseState::Open(url)) => Ok(url),
            Ok(SseState::Gone(error)) => Err(error),
            Ok(SseState::Opening) | Err(_) => Err(closed_error()),
        }
    }

    async fn post(
        &self,
        frame: &OutgoingFrame,
        exchange: Option<&Arc<HttpExchange>>,
    ) -> Result<(), Error> {
        let shared = &self.shared;
        let url = self.wait_for_endpoint().await?;
        let (what, limit) = match &exchange {
            Some(_) => ("the request", shared.limits.exchange),
            None => ("a notification or a response", shared.limits.control),
        };
        let posted = timeout(limit, shared.post_to(&url, frame, exchange)).await;
        match posted.unwrap_or_else(|_| Err(headers_timeout_error(what, limit)))? {
            PostResponse::Success(response) => {
                if let Some(exchange) = exchange {
                    let (status, kind) = (response.status.as_u16(), "text/event-stream".into());
                    exchange.set_stage(ExchangeStage::Answering { status, kind });
                }
                Ok(())
            }
            PostResponse::Error(_, error) => Err(error),
        }
    }
}

/// What an `endpoint` event names, when messages may be posted there.
fn endpoint(data: &[u8], stream: &Url) -> Result<Url, Error> {
    if data.len() > MAX_ENDPOINT_LEN {
        let what = format!("the endpoint event names a URL of {} bytes", data.len());
        return Err(Error::protocol(what).with_detail(format!("limit: {MAX_ENDPOINT_LEN} bytes")));
    }
    let text = lossy(data);
    let named = stream.join(text.trim()).map_err(|why| {
        Error::protocol(format!("the endpoint event names no valid URL: {why}"))
            .with_detail(truncate(&text))
    })?;
    let own = named.username().is_empty() && named.password().is_none();
    if named.origin() != stream.origin() || !own {
        return Err(Error::denied(format!(
            "the event stream of {} asks for messages to be sent to {}, which is not allowed",
            display_url(stream),
            truncate(&display_url(&named))
        ))
        .with_hint("an endpoint must have the scheme, host and port of the stream"));
    }
    Ok(named)
}

#[async_trait]
impl Wire for SseWire {
    async fn send(&self, frame: OutgoingFrame) -> Result<(), Error> {
        let shared = &self.shared.shared;
        if !self.shared.has_started.swap(true, Ordering::Relaxed) {
            tokio::spawn(Box::pin(Arc::clone(&self.shared).listen()));
        }
        let exchange = match &frame.kind {
            FrameKind::Request { id, .. } => Some(shared.exchanges.begin(id, &shared.closed)),
            _ => None,
        };
        if let FrameKind::Notification { cancels: Some(id), .. } = &frame.kind {
            shared.exchanges.cancel(id);
        }
        let work = self.shared.post(&frame, exchange.as_ref());
        let sent = shared.closed.run_until_cancelled(work).await;
        let sent = sent.unwrap_or_else(|| Err(closed_error()));
        if let (Err(_), FrameKind::Request { id, .. }, Some(exchange)) =
            (&sent, &frame.kind, &exchange)
        {
            shared.exchanges.end(id, exchange);
        }
        sent.map_err(|error| shared.redactor.redact_error(error))
    }

    async fn receive(&self) -> Arrival {
        let mut inbox = self.arrival_receiver.lock().await;
        let mut states = self.shared.state.subscribe();
        tokio::select! {
            biased;
            () = self.shared.shared.closed.cancelled() => Arrival::Closed(closed_error()),
            // What came before the end is not lost.
            Some(next) = inbox.next() => next,
            state = states.wait_for(|state| matches!(state, SseState::Gone(_))) => {
                match state.as_deref() {
                    Ok(SseState::Gone(error)) => Arrival::Closed(error.clone()),
                    _ => Arrival::Closed(closed_error()),
                }
            }
        }
    }

    fn set_agreement(&self, era: Era, version: &str) {
        lock(&self.shared.shared.session).set_agreement(era, version);
    }

    fn delimits_messages(&self) -> bool {
        true
    }

    fn waiting_for(&self, id: &Value) -> Option<String> {
        self.shared.shared.exchanges.waiting_for(id)
    }

    async fn close(&self) {
        self.shared.shared.head_tracer.tracer.closed("ended by toolhost");
        self.shared.shared.closed.cancel();
    }
}

impl Drop for SseWire {
    /// Ends the reader of a wire that was dropped without `close`.
    fn drop(&mut self) {
        self.shared.shared.closed.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ErrorKind;

    fn named(data: &str) -> Result<String, ErrorKind> {
        let stream = "http://127.0.0.1:8001/api/sse?key=1".parse().unwrap();
        endpoint(data.as_bytes(), &stream).map(|url| url.to_string()).map_err(|error| error.kind())
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
            assert_eq!(named(elsewhere), Err(ErrorKind::Denied), "{elsewhere}");
        }
        assert_eq!(named("http://[broken"), Err(ErrorKind::Protocol));
        assert_eq!(named(&"x".repeat(5000)), Err(ErrorKind::Protocol));
    }
}
