//! One message to the server, and what its HTTP response says about it.
//!
//! Owns: the life of a POST — redirects, the one guess at `/mcp`, acceptance by status and content
//! type, the JSON answer — and ending a session. Never does: read event streams (see `events`).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::HeaderMap;
use reqwest::{Method, Response, StatusCode};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::timeout;
use url::Url;

use super::Shared;
use super::answer::{Glance, glance, is_error};
use super::body::whole;
use super::departing::{Departing, guess};
use super::headers;
use super::running::{Exchange, Stage, locked};
use super::status::{Refusal, session_lost};
use crate::mcp::wire::{Arrival, Frame, FrameKind};
use crate::model::{CallId, Era, Fault};
use crate::net::address::show;
use crate::net::redirect::{self, Asking, circle, redirect};
use crate::net::response::{Body, check_headers, content_type};
use crate::net::words::words;
use crate::util::clock::{Clock as _, SystemClock};
use crate::util::units::show_duration;

/// What came back for a POST.
pub(super) enum Posted {
    /// A success status.
    Good(Response),
    /// An error status whose body is a JSON-RPC error.
    Error(Bytes, Fault),
    /// An error status.
    Refused(StatusCode, Fault),
}

/// A response that is read after `send` returned.
enum Accepted {
    /// A JSON body, the beginning of which may have been read.
    Json(Body, Bytes),
    /// An event stream.
    Events(Body),
    /// An error message, and what its status means.
    Error(Bytes, Fault),
}

impl Shared {
    /// Posts a request, reports its acceptance, and reads until its ending was pushed.
    pub(super) async fn request(
        self: Arc<Self>,
        frame: Frame,
        id: Value,
        exchange: Arc<Exchange>,
        accepted: oneshot::Sender<Result<(), Fault>>,
    ) {
        let work = async {
            match self.accept(&frame, &exchange).await {
                Ok(answer) => {
                    accepted.send(Ok(())).ok();
                    let resumable = !is_method(&frame, "server/discover");
                    if let Err(fault) = self.read(answer, &id, resumable, &exchange).await {
                        self.push(Arrival::Failed { id: id.clone(), fault }).await;
                    }
                }
                Err(fault) => drop(accepted.send(Err(fault))),
            }
        };
        exchange.stop.run_until_cancelled(work).await;
        self.running.end(&id, &exchange);
    }

    /// Posts a notification or an answer; its response has nothing to read.
    pub(super) async fn control(self: Arc<Self>, frame: Frame) -> Result<(), Fault> {
        let what = match &frame.kind {
            FrameKind::Notification { method, .. } => method.as_str(),
            _ => "an answer",
        };
        let limit = self.limits.control;
        match timeout(limit, self.post(&frame, None)).await {
            Ok(Ok(Posted::Good(_))) => {}
            Ok(Ok(Posted::Error(_, fault) | Posted::Refused(_, fault)) | Err(fault)) => {
                return Err(fault);
            }
            Err(_) => return Err(no_headers(what, limit)),
        }
        let modern = locked(&self.session).era() == Some(Era::Modern);
        if !modern
            && is_method(&frame, "notifications/initialized")
            && !self.listening.swap(true, Ordering::Relaxed)
        {
            tokio::spawn(Box::pin(self.listen()));
        }
        Ok(())
    }

    /// Gives a request up. The legacy era tells the server; in the modern one the closed stream
    /// does, and before an agreement nothing may be cancelled.
    pub(super) async fn cancel(self: Arc<Self>, frame: Frame, id: &Value) -> Result<(), Fault> {
        let shared = Arc::clone(&self);
        // Also when this future is dropped half way.
        let stop = StopOnDrop { shared: &shared, id };
        let told = match locked(&self.session).era() {
            Some(Era::Legacy) => true,
            Some(Era::Modern) | None => false,
        };
        let result = if told { self.control(frame).await } else { Ok(()) };
        drop(stop);
        result
    }

    /// Ends the session of the legacy era, if there is one.
    pub(super) async fn farewell(&self) {
        let (mut headers, session) = {
            let mut session = locked(&self.session);
            (headers::get(&session), session.end())
        };
        if session.is_some() {
            let url = locked(&self.url).clone();
            let shown = self.show("DELETE", &url, &mut headers);
            // Without credentials the server says no, and forgets the session later.
            timeout(self.limits.farewell, shown).await.ok();
            self.heads.asking(&Method::DELETE, &url, &headers, None);
            let begun = SystemClock.now();
            let request = self.client.delete(url).headers(headers).send();
            // A refusal (405: sessions cannot be ended) is as good.
            if let Ok(Ok(response)) = timeout(self.limits.farewell, request).await {
                self.heads.answered(&response, SystemClock.now().duration_since(begun), None);
            }
        }
    }

    /// Begins a session in place of one that the server forgot (legacy era), by the same words.
    ///
    /// # Errors
    /// When there was none, or the server does not begin another.
    pub(super) async fn greet_again(self: Arc<Self>) -> Result<(), Fault> {
        let Some(greeting) = locked(&self.greeting).clone() else {
            return Err(Fault::unreachable("there is no session to begin again"));
        };
        locked(&self.session).end();
        let limit = self.limits.control;
        let begun = timeout(limit, async {
            match self.post(&greeting, None).await? {
                Posted::Good(response) => {
                    self.note_session(response.headers());
                    // What it says was agreed on before; its connection is used again.
                    self.beginning(&mut Body::new(response)).await;
                    Ok(())
                }
                Posted::Error(_, fault) | Posted::Refused(_, fault) => Err(fault),
            }
        });
        begun.await.unwrap_or_else(|_| Err(no_headers("initialize", limit)))?;
        let told = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let method = "notifications/initialized".to_owned();
        let kind = FrameKind::Notification { method, cancels: None };
        self.control(Frame { bytes: Bytes::from_static(told), kind, call: None }).await
    }

    async fn accept(&self, frame: &Frame, exchange: &Arc<Exchange>) -> Result<Accepted, Fault> {
        let limit = self.limits.exchange;
        let posted = timeout(limit, self.post(frame, Some(exchange))).await;
        match posted.unwrap_or_else(|_| Err(no_headers("the request", limit)))? {
            Posted::Good(response) => {
                if is_method(frame, "initialize") {
                    self.note_session(response.headers());
                    *locked(&self.greeting) = Some(frame.clone());
                }
                self.accept_content(response, exchange, frame.call.as_ref()).await
            }
            Posted::Error(body, fault) => Ok(Accepted::Error(body, fault)),
            Posted::Refused(_, fault) => Err(fault),
        }
    }

    fn note_session(&self, headers: &HeaderMap) {
        let Some(id) = headers.get(&headers::SESSION) else { return };
        let noted = locked(&self.session).remember(id);
        if let Err(noise) = noted {
            self.note(&noise);
        }
    }

    /// Decides by content type whether this can be an answer.
    async fn accept_content(
        &self,
        response: Response,
        exchange: &Exchange,
        call: Option<&CallId>,
    ) -> Result<Accepted, Fault> {
        let status = response.status();
        let kind = content_type(response.headers());
        exchange.reach(Stage::Answering { status: status.as_u16(), kind: kind.clone() });
        if matches!(status.as_u16(), 202 | 204 | 205) {
            return Err(no_content(status));
        }
        let mut body = Body::new(response);
        match kind.as_str() {
            "application/json" if body.is_empty() => Err(empty()),
            "application/json" => Ok(Accepted::Json(body, Bytes::new())),
            "text/event-stream" => Ok(Accepted::Events(body)),
            _ => {
                let begun = self.beginning(&mut body).await;
                let shown = if kind.is_empty() { "no content type" } else { kind.as_str() };
                let first = begun.iter().find(|byte| !byte.is_ascii_whitespace());
                match first {
                    None => Err(empty()),
                    Some(b'{' | b'[') if kind != "text/html" => {
                        self.note(&format!("JSON labelled as {shown}"));
                        Ok(Accepted::Json(body, begun))
                    }
                    Some(_) => {
                        self.heads.page(&begun, call);
                        Err(no_endpoint(shown, &begun))
                    }
                }
            }
        }
    }

    /// Reads an accepted response to its ending.
    async fn read(
        &self,
        answer: Accepted,
        id: &Value,
        resumable: bool,
        exchange: &Exchange,
    ) -> Result<(), Fault> {
        match answer {
            Accepted::Events(body) => self.follow(body, id, resumable, exchange).await,
            Accepted::Error(body, fault) => self.deliver(body, id, Some(fault)).await,
            Accepted::Json(mut body, begun) => {
                let (limits, mut bulk) = (&self.limits, self.outbox.bulk());
                let whole = whole(&mut body, begun, limits.message, &mut bulk, exchange);
                let whole = timeout(limits.exchange, whole).await.unwrap_or_else(|_| {
                    let limit = show_duration(limits.exchange);
                    Err(Fault::timeout(format!("the answer was not complete within {limit}")))
                })?;
                self.deliver(whole, id, None).await
            }
        }
    }

    /// Pushes a body that should be the answer; `meaning` is what its status says otherwise.
    async fn deliver(&self, body: Bytes, id: &Value, meaning: Option<Fault>) -> Result<(), Fault> {
        if body.iter().all(u8::is_ascii_whitespace) {
            return Err(empty());
        }
        let seen = glance(&body, id);
        self.heads.tracer.received(&body, Some(id));
        self.push(Arrival::Message { bytes: body, stream_of: Some(id.clone()) }).await;
        match seen {
            Glance::Answer => Ok(()),
            other => Err(meaning.unwrap_or_else(|| not_the_answer(&other, id))),
        }
    }

    /// Posts to the endpoint; the very first POST to a bare URL may find it at `/mcp`.
    async fn post(&self, frame: &Frame, exchange: Option<&Arc<Exchange>>) -> Result<Posted, Fault> {
        let url = locked(&self.url).clone();
        let may_guess = self.may_guess.swap(false, Ordering::Relaxed);
        let posted = self.post_to(&url, frame, exchange).await?;
        let (Posted::Refused(StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED, _), true) =
            (&posted, may_guess)
        else {
            return Ok(posted);
        };
        let Some(guess) = guess(&url) else { return Ok(posted) };
        let second = self.post_to(&guess, frame, exchange).await;
        match (posted, second) {
            (Posted::Refused(status, fault), Err(_) | Ok(Posted::Refused(..))) => {
                let tried = format!("{} was tried as well", show(&guess));
                Ok(Posted::Refused(status, fault.detail(tried)))
            }
            (_, second) => {
                let noise = format!(
                    "nothing at {}, but at {}: write that into the entry's url",
                    show(&url),
                    show(&guess)
                );
                *locked(&self.url) = guess;
                self.note(&noise);
                second
            }
        }
    }

    pub(super) async fn post_to(
        &self,
        url: &Url,
        frame: &Frame,
        exchange: Option<&Arc<Exchange>>,
    ) -> Result<Posted, Fault> {
        let headers = headers::post(frame, &locked(&self.session))?;
        let in_session = headers.contains_key(&headers::SESSION);
        let response = self.exchange(Method::POST, url, headers, Some(frame), exchange).await?;
        let status = response.status();
        if status.is_success() {
            return Ok(Posted::Good(response));
        }
        let (url, headers) = (response.url().clone(), response.headers().clone());
        let body = self.beginning(&mut Body::new(response)).await;
        let authorized = self.gate.authorized();
        let told = matches!(status.as_u16(), 401 | 403 | 404 | 429) || !is_error(&body);
        if told {
            self.heads.page(&body, frame.call.as_ref());
        }
        let fault =
            Refusal { status, headers: &headers, body: &body, url: &url, authorized }.fault();
        let fault = self.placed(fault);
        Ok(match status.as_u16() {
            404 if in_session => Posted::Refused(status, session_lost(status)),
            401 | 403 | 429 => Posted::Refused(status, fault),
            400..=499 if is_error(&body) => Posted::Error(body, fault),
            _ => Posted::Refused(status, fault),
        })
    }

    /// Sends one HTTP request, follows the redirects that may be followed, and checks the size of
    /// the headers that come back.
    pub(super) async fn attempt(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        frame: Option<&Frame>,
        exchange: Option<&Arc<Exchange>>,
    ) -> Result<Response, Fault> {
        let mut url = url.clone();
        let call = frame.and_then(|frame| frame.call.as_ref());
        for _ in 0..=redirect::MOST {
            let mut request =
                self.client.request(method.clone(), url.clone()).headers(headers.clone());
            self.heads.asking(&method, &url, &headers, call);
            let begun = SystemClock.now();
            if let Some(frame) = frame {
                self.heads.tracer.sent(&frame.bytes, call);
                let exchange = exchange.cloned();
                request = request.body(Departing::body(frame.bytes.clone(), move || {
                    if let Some(exchange) = exchange {
                        exchange.reach(Stage::Sent);
                    }
                }));
            }
            let response = request.send().await.map_err(|error| {
                let fault = self.no_response(&error, &url);
                self.heads.page(format!("no response: {}", fault.message()).as_bytes(), call);
                fault
            })?;
            self.heads.answered(&response, SystemClock.now().duration_since(begun), call);
            check_headers(response.headers(), self.limits.headers)?;
            match redirect(response.status(), response.headers(), &url, Asking::Act)? {
                Some(next) => url = next,
                None => return Ok(response),
            }
        }
        Err(circle(&url))
    }

    /// The beginning of a body that is shown, not used.
    pub(super) async fn beginning(&self, body: &mut Body) -> Bytes {
        let reading = body.beginning(self.limits.error_body);
        timeout(self.limits.control, reading).await.unwrap_or_default()
    }
}

/// Stops a request when dropped.
struct StopOnDrop<'a> {
    shared: &'a Shared,
    id: &'a Value,
}

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.shared.running.cancel(self.id);
    }
}

/// The fault for something that came where the answer to `id` belongs.
pub(super) fn not_the_answer(seen: &Glance, id: &Value) -> Fault {
    match seen {
        Glance::Other(other) => Fault::protocol(format!("answer to unknown id {other}"))
            .detail(format!("the request has the id {id}")),
        Glance::Unreadable(why) => Fault::protocol(format!("the answer is not JSON: {why}")),
        Glance::Answer | Glance::NoAnswer => {
            Fault::protocol("the server sent a message of its own instead of the answer")
        }
    }
}

fn is_method(frame: &Frame, name: &str) -> bool {
    match &frame.kind {
        FrameKind::Request { method, .. } | FrameKind::Notification { method, .. } => {
            method == name
        }
        FrameKind::Response => false,
    }
}

/// The fault for a success that has nothing to read.
pub(super) fn no_content(status: StatusCode) -> Fault {
    Fault::protocol(format!("the server answered a request with {status}"))
        .detail("a request is answered by JSON or an event stream")
}

/// The fault for a body of a type that no answer has.
pub(super) fn no_endpoint(kind: &str, begun: &[u8]) -> Fault {
    Fault::protocol(format!("not an MCP endpoint: {kind}"))
        .details(words(begun))
        .hint("check the url, in a browser too")
}

pub(super) fn empty() -> Fault {
    Fault::protocol("the server answered a request with an empty body")
}

pub(super) fn no_headers(what: &str, limit: Duration) -> Fault {
    let limit = show_duration(limit);
    Fault::timeout(format!("no response headers to {what} within {limit}"))
}
