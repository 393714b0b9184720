//! Posting one message to the server, and interpreting its HTTP response.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode};
use serde_json::Value;
use tokio::time::timeout;
use url::Url;

use super::answer_match::{AnswerMatch, is_error, match_answer};
use super::exchanges::{ExchangeStage, HttpExchange, LargeMessagePermit};
use super::status::session_lost;
use super::{HttpShared, headers};
use crate::mcp::message::Incoming;
use crate::mcp::wire::{Arrival, FrameKind, OutgoingFrame};
use crate::model::{CallId, Era, Error, ErrorKind};
use crate::net::address::display_url;
use crate::net::posted_body::{DepartureListener, PostedBody};
use crate::net::redirect::{self, redirect, too_many_redirects};
use crate::net::response::{
    OriginResponse, ResponseBody, check_headers, content_type, server_message, too_large,
};
use crate::util::lock::lock;
use crate::util::units::show_duration;

pub(super) enum PostResponse {
    Success(Box<OriginResponse>),
    /// A JSON-RPC error, and what its status says.
    Error(Incoming, Error),
}

enum AcceptedBody {
    Json(ResponseBody, Bytes),
    Events(ResponseBody),
    Error(Incoming, Error),
}

impl HttpShared {
    /// Posts a request. What answers it is pushed by a task that may wait for room.
    pub(super) async fn request(
        self: Arc<Self>,
        frame: &OutgoingFrame,
        id: &Value,
        exchange: &Arc<HttpExchange>,
    ) -> Result<(), Error> {
        let accepted = exchange.stop.run_until_cancelled(self.accept(frame, exchange)).await;
        let accepted = accepted.unwrap_or_else(|| Err(self.stop_error()));
        let accepted = accepted.inspect_err(|_| self.exchanges.end(id, exchange))?;
        let resumable = !is_method(frame, "server/discover");
        let (id, exchange) = (id.clone(), Arc::clone(exchange));
        tokio::spawn(Box::pin(self.push_ending(accepted, id, resumable, exchange)));
        Ok(())
    }

    async fn push_ending(
        self: Arc<Self>,
        accepted: AcceptedBody,
        id: Value,
        resumable: bool,
        exchange: Arc<HttpExchange>,
    ) {
        let work = async {
            if let Err(error) = self.read(accepted, &id, resumable, &exchange).await {
                self.push(Arrival::Failed { id: id.clone(), error }).await;
            }
        };
        exchange.stop.run_until_cancelled(work).await;
        self.exchanges.end(&id, &exchange);
    }

    /// Posts a notification or a response; its response has nothing to read.
    pub(super) async fn send_control(self: Arc<Self>, frame: OutgoingFrame) -> Result<(), Error> {
        let what = match &frame.kind {
            FrameKind::Notification { method, .. } => method.as_str(),
            _ => "a response",
        };
        let limit = self.limits.control;
        let posted = timeout(limit, self.post(&frame, None)).await;
        match posted.unwrap_or_else(|_| Err(headers_timeout_error(what, limit)))? {
            PostResponse::Success(_) => {}
            PostResponse::Error(_, error) => return Err(error),
        }
        let modern = lock(&self.session).era() == Some(Era::Modern);
        if !modern
            && is_method(&frame, "notifications/initialized")
            && !self.is_listening.swap(true, Ordering::Relaxed)
        {
            tokio::spawn(Box::pin(self.listen()));
            // It begins before anything is asked: what a server says meanwhile may come on that stream.
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Cancels a request. In the legacy era the server is notified; in the modern one the closed
    /// stream does that, and before a version is agreed nothing may be cancelled.
    pub(super) async fn cancel(
        self: Arc<Self>,
        frame: OutgoingFrame,
        id: &Value,
    ) -> Result<(), Error> {
        self.exchanges.cancel(id);
        let era = lock(&self.session).era();
        match era {
            Some(Era::Legacy) => self.send_control(frame).await,
            Some(Era::Modern) | None => Ok(()),
        }
    }

    pub(super) async fn end_session(&self) {
        let (mut headers, session) = {
            let mut session = lock(&self.session);
            (headers::get(&session), session.take_id())
        };
        if session.is_some() {
            let url = lock(&self.url).clone();
            let shown = self.add_credentials(&mut headers);
            // Without credentials the server says no, and forgets the session later.
            timeout(self.limits.shutdown, shown).await.ok();
            // A refusal (405: sessions cannot be ended) is as good.
            let sending = self.client.send(Method::DELETE, &url, &headers, None);
            let heads = &self.head_tracer;
            let ending = heads.trace_exchange(&Method::DELETE, &url, &headers, None, sending);
            let _late = timeout(self.limits.shutdown, ending).await;
        }
    }

    async fn accept(
        &self,
        frame: &OutgoingFrame,
        exchange: &Arc<HttpExchange>,
    ) -> Result<AcceptedBody, Error> {
        let limit = self.limits.exchange;
        // Large: on its own, it is not moved through everything that waits for it.
        let posted = timeout(limit, Box::pin(self.post(frame, Some(exchange)))).await;
        match posted.unwrap_or_else(|_| Err(headers_timeout_error("the request", limit)))? {
            PostResponse::Success(response) => {
                if is_method(frame, "initialize") {
                    self.note_session(&response.headers);
                }
                self.accept_content(*response, exchange, frame.call.as_ref()).await
            }
            PostResponse::Error(body, error) => Ok(AcceptedBody::Error(body, error)),
        }
    }

    fn note_session(&self, headers: &HeaderMap) {
        let Some(id) = headers.get(&headers::SESSION) else { return };
        let unusable = lock(&self.session).set_id(id);
        if let Some(warning) = unusable {
            self.try_warn(&warning);
        }
    }

    async fn accept_content(
        &self,
        response: OriginResponse,
        exchange: &HttpExchange,
        call: Option<&CallId>,
    ) -> Result<AcceptedBody, Error> {
        let OriginResponse { status, headers, mut body, .. } = response;
        let kind = content_type(&headers);
        exchange
            .set_stage(ExchangeStage::Answering { status: status.as_u16(), kind: kind.clone() });
        if matches!(status.as_u16(), 202 | 204 | 205) {
            return Err(no_content_error(status));
        }
        match kind.as_str() {
            "application/json" if body.is_empty() => Err(empty_body_error()),
            "application/json" => Ok(AcceptedBody::Json(body, Bytes::new())),
            "text/event-stream" => Ok(AcceptedBody::Events(body)),
            _ => {
                let begun = self.read_beginning(&mut body).await;
                let shown = if kind.is_empty() { "no content type" } else { kind.as_str() };
                let first = begun.iter().find(|byte| !byte.is_ascii_whitespace());
                match first {
                    None => Err(empty_body_error()),
                    Some(b'{' | b'[') if kind != "text/html" => {
                        self.try_warn(&format!("JSON labelled as {shown}"));
                        Ok(AcceptedBody::Json(body, begun))
                    }
                    Some(_) => {
                        self.head_tracer.trace_non_message(&begun, call);
                        Err(not_an_endpoint_error(shown, &begun))
                    }
                }
            }
        }
    }

    async fn read(
        &self,
        answer: AcceptedBody,
        id: &Value,
        resumable: bool,
        exchange: &HttpExchange,
    ) -> Result<(), Error> {
        match answer {
            AcceptedBody::Events(body) => self.follow(body, id, resumable, exchange).await,
            AcceptedBody::Error(body, error) => self.push_answer(body, id, Some(error)).await,
            AcceptedBody::Json(body, begun) => {
                // Held until the body was handed over.
                let mut permit = self.arrival_sender.large_message_permit();
                let whole = self.read_json(body, begun, &mut permit, exchange).await?;
                if whole.iter().all(u8::is_ascii_whitespace) {
                    return Err(empty_body_error());
                }
                self.push_answer(Incoming::read(whole), id, None).await
            }
        }
    }

    /// Reads a JSON body to its end; `begun` of it was read before.
    async fn read_json(
        &self,
        mut body: ResponseBody,
        begun: Bytes,
        permit: &mut LargeMessagePermit,
        exchange: &HttpExchange,
    ) -> Result<Bytes, Error> {
        let limit = self.limits.message;
        let read = async {
            if body.content_length.is_some_and(|length| length > limit as u64) {
                return Err(too_large(limit));
            }
            let mut whole = BytesMut::from(begun);
            loop {
                let chunk = match body.next().await {
                    Ok(Some(chunk)) => chunk,
                    Ok(None) => return Ok(whole.freeze()),
                    Err(cut) => return Err(body.broken(cut, whole.len())),
                };
                if whole.len() + chunk.len() > limit {
                    return Err(too_large(limit));
                }
                exchange.add_bytes_read(chunk.len());
                permit.reserve(whole.len() + chunk.len()).await;
                whole.extend_from_slice(&chunk);
            }
        };
        timeout(self.limits.exchange, read).await.unwrap_or_else(|_| {
            let limit = show_duration(self.limits.exchange);
            Err(Error::timeout(format!("the response was not complete within {limit}")))
        })
    }

    /// Pushes a body that should be the answer; `meaning` is what its status says otherwise.
    async fn push_answer(
        &self,
        incoming: Incoming,
        id: &Value,
        meaning: Option<Error>,
    ) -> Result<(), Error> {
        let verdict = match_answer(&incoming, id);
        self.head_tracer.tracer.received(&incoming, Some(id));
        self.push(Arrival::Message { incoming, stream_of: Some(id.clone()) }).await;
        match verdict {
            AnswerMatch::Answer => Ok(()),
            other => Err(meaning.unwrap_or_else(|| unexpected_answer(&other, id))),
        }
    }

    /// Posts to the endpoint; the very first POST to a bare URL may find it at `/mcp`.
    async fn post(
        &self,
        frame: &OutgoingFrame,
        exchange: Option<&Arc<HttpExchange>>,
    ) -> Result<PostResponse, Error> {
        let url = lock(&self.url).clone();
        let may_guess = self.may_guess_path.swap(false, Ordering::Relaxed);
        let error = match self.post_to(&url, frame, exchange).await {
            Err(error) if may_guess && matches!(error.http_status(), Some(404 | 405)) => error,
            other => return other,
        };
        let Some(guess) = mcp_path_guess(&url) else { return Err(error) };
        let (configured, address) = (display_url(&url), display_url(&guess));
        match self.post_to(&guess, frame, exchange).await {
            // Where credentials are asked for, there is a server.
            Err(second) if second.kind() != ErrorKind::Auth => {
                Err(error.with_detail(format!("{address} was tried as well")))
            }
            second => {
                *lock(&self.url) = guess;
                self.try_warn(&format!(
                    "nothing at {configured}, but at {address}: use that as the entry's url"
                ));
                second
            }
        }
    }

    pub(super) async fn post_to(
        &self,
        url: &Url,
        frame: &OutgoingFrame,
        exchange: Option<&Arc<HttpExchange>>,
    ) -> Result<PostResponse, Error> {
        let headers = headers::post(frame, &lock(&self.session))?;
        let in_session = headers.contains_key(&headers::SESSION);
        let response =
            self.send_with_credentials(Method::POST, url, headers, Some(frame), exchange).await?;
        if response.status.is_success() {
            return Ok(PostResponse::Success(Box::new(response)));
        }
        let OriginResponse { status, headers, url, mut body } = response;
        let body = self.read_beginning(&mut body).await;
        let incoming = Incoming::read(body);
        let is_error = is_error(&incoming);
        if matches!(status.as_u16(), 401 | 403 | 404 | 429) || !is_error {
            self.head_tracer.trace_non_message(&incoming.bytes, frame.call.as_ref());
        }
        let error = self.refusal(status, &headers, &incoming.bytes, &url);
        if let Some(lost) = session_lost(status, in_session) {
            return Err(lost);
        }
        let is_about_the_call =
            status.is_client_error() && !matches!(status.as_u16(), 401 | 403 | 429);
        if is_about_the_call && is_error {
            return Ok(PostResponse::Error(incoming, error));
        }
        Err(error)
    }

    /// Sends one HTTP request, follows the redirects that may be followed, and checks the size of
    /// the headers that come back.
    pub(super) async fn send_following_redirects(
        &self,
        method: Method,
        url: &Url,
        headers: &HeaderMap,
        frame: Option<&OutgoingFrame>,
        exchange: Option<&Arc<HttpExchange>>,
    ) -> Result<OriginResponse, Error> {
        let mut url = url.clone();
        let call = frame.and_then(|frame| frame.call.as_ref());
        for _ in 0..=redirect::MAX_REDIRECTS {
            let sending = async {
                let body = frame.map(|frame| {
                    self.head_tracer.tracer.sent(frame);
                    let departed = exchange.map(|exchange| -> DepartureListener {
                        let exchange = Arc::clone(exchange);
                        Box::new(move || exchange.set_stage(ExchangeStage::Sent))
                    });
                    PostedBody::new(frame.bytes.clone(), departed)
                });
                let sent = self.client.send(method.clone(), &url, headers, body);
                if frame.is_some() {
                    return sent.await;
                }
                // It opens a stream. What is done for its credentials has limits of its own.
                let limit = self.limits.control;
                let late = |_| Err(headers_timeout_error(method.as_str(), limit));
                timeout(limit, sent).await.unwrap_or_else(late)
            };
            let heads = &self.head_tracer;
            let response = heads.trace_exchange(&method, &url, headers, call, sending).await?;
            let OriginResponse { status, headers, url: request, .. } = &response;
            check_headers(headers, self.limits.headers)?;
            match redirect(*status, headers, request, &method)? {
                Some(next) => url = next,
                None => return Ok(response),
            }
        }
        Err(too_many_redirects(&url))
    }

    pub(super) async fn read_beginning(&self, body: &mut ResponseBody) -> Bytes {
        let reading = body.beginning(self.limits.error_body);
        timeout(self.limits.control, reading).await.unwrap_or_default()
    }
}

pub(super) fn unexpected_answer(verdict: &AnswerMatch, id: &Value) -> Error {
    match verdict {
        AnswerMatch::OtherAnswer(other) => {
            Error::protocol(format!("response to unknown id {other}"))
                .with_detail(format!("the request has the id {id}"))
        }
        AnswerMatch::Unreadable(text) => {
            Error::protocol(format!("the response is not JSON: {text}"))
        }
        AnswerMatch::Answer | AnswerMatch::NotAnAnswer => {
            Error::protocol("the server sent another message instead of the response")
        }
    }
}

fn is_method(frame: &OutgoingFrame, name: &str) -> bool {
    match &frame.kind {
        FrameKind::Request { method, .. } | FrameKind::Notification { method, .. } => {
            method == name
        }
        FrameKind::Response { .. } | FrameKind::Other => false,
    }
}

pub(super) fn no_content_error(status: StatusCode) -> Error {
    Error::protocol(format!("the server answered a request with {status}"))
        .with_detail("a request must be answered with JSON or an event stream")
}

pub(super) fn not_an_endpoint_error(kind: &str, begun: &[u8]) -> Error {
    Error::protocol(format!("not an MCP endpoint: {kind}"))
        .with_details(server_message(begun))
        .with_hint("check the url, for example in a browser")
}

pub(super) fn empty_body_error() -> Error {
    Error::protocol("the server answered a request with an empty body")
}

pub(super) fn headers_timeout_error(what: &str, limit: Duration) -> Error {
    let limit = show_duration(limit);
    Error::timeout(format!("no response headers to {what} within {limit}"))
}

/// Where a server without a path in its URL may be found as well.
fn mcp_path_guess(url: &Url) -> Option<Url> {
    let bare = matches!(url.path(), "" | "/") && url.query().is_none();
    bare.then(|| {
        let mut guess = url.clone();
        guess.set_path("/mcp");
        guess
    })
}

#[cfg(test)]
mod tests {
    use super::mcp_path_guess;

    #[test]
    fn only_a_url_without_a_path_is_guessed_at() {
        let guess = |url: &str| mcp_path_guess(&url.parse().unwrap()).map(|url| url.to_string());
        assert_eq!(guess("http://localhost:8001"), Some("http://localhost:8001/mcp".to_owned()));
        assert_eq!(guess("http://localhost:8001/"), Some("http://localhost:8001/mcp".to_owned()));
        assert_eq!(guess("http://localhost:8001/api"), None);
        assert_eq!(guess("http://localhost:8001/?key=1"), None);
    }
}
