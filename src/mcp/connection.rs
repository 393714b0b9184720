//! One connection to one server after the handshake: requests with time limits.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::handshake::Handshake;
use super::lifecycle::Agreement;
use super::message::RawJson;
use super::session::{McpSession, OwnedSession, SentRequest};
use crate::model::{CallId, Error, ErrorPhase, JsonObject, QuestionAbilities};
use crate::util::units::show_duration;

pub use super::handshake::{ConnectOptions, WireOpener};
pub use super::session::ProgressListener;

/// How long after an unmatched response the right one may still come.
const UNMATCHED_RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub struct RequestOptions {
    /// Ends the request after this much silence; progress resets it, and it is paused while the
    /// server waits for a person's answer.
    pub idle_timeout: Duration,
    pub total_timeout: Duration,
    pub cancel: CancellationToken,
    /// Receives the progress of the request; without one, none is requested from the server.
    pub progress: Option<ProgressListener>,
    pub headers: Vec<(String, String)>,
    /// The minimum level of log lines to request from a server of the modern era; without one it
    /// sends none.
    pub log_level: Option<&'static str>,
    /// What the client behind the request can be asked; `None` means what toolhost can be asked. A
    /// server of the legacy era was told in the handshake, once for all.
    pub questions: Option<QuestionAbilities>,
    /// Further members of `_meta` to send with the call.
    pub meta: Option<JsonObject>,
    pub phase: ErrorPhase,
    pub call: Option<CallId>,
}

impl RequestOptions {
    /// A request with these limits, without progress, headers or a call.
    pub fn with_timeouts(idle: Duration, total: Duration, phase: ErrorPhase) -> Self {
        Self {
            idle_timeout: idle,
            total_timeout: total,
            cancel: CancellationToken::new(),
            progress: None,
            headers: Vec::new(),
            log_level: None,
            questions: None,
            meta: None,
            phase,
            call: None,
        }
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

pub struct Connection {
    /// The version and capabilities that were agreed on.
    pub agreement: Agreement,
    /// How long opening and the handshake took.
    pub connect_time: Duration,
    session: OwnedSession,
}

impl Deref for Connection {
    type Target = Arc<McpSession>;

    fn deref(&self) -> &Arc<McpSession> {
        &self.session.0
    }
}

impl Connection {
    pub async fn open(open: &WireOpener, options: ConnectOptions) -> Result<Self, Error> {
        let started = Instant::now();
        let mut handshake = Handshake::new(&options, started);
        let result = handshake.run(open).await;
        let named = |error: Error| match error.phase() {
            Some(_) => error.with_server(&options.server),
            None => error.with_server(&options.server).with_phase(ErrorPhase::Handshake),
        };
        match (result, handshake.session) {
            (Ok(agreement), Some(session)) => {
                let connect_time = started.elapsed();
                tracing::info!(
                    server = options.server,
                    protocol = agreement.version,
                    era = ?agreement.era,
                    connect_ms = millis(connect_time),
                    pid = session.0.process_info().pid,
                    "server connected"
                );
                session.0.begin_requests(&agreement);
                Ok(Self { agreement, connect_time, session })
            }
            (result, session) => {
                let mut error = result.err().unwrap_or_else(|| Error::internal("no session"));
                tracing::warn!(
                    server = options.server,
                    kind = error.kind().as_str(),
                    phase = error.phase().unwrap_or(ErrorPhase::Handshake).as_str(),
                    after_ms = millis(started.elapsed()),
                    "server not connected"
                );
                if let Some(OwnedSession(session)) = &session {
                    session.end().await;
                    error = error.with_details(session.protocol_warnings());
                }
                Err(named(error))
            }
        }
    }

    /// Sends a request and waits for its answer, within limits.
    pub async fn request(
        &self,
        method: &str,
        params: Value,
        options: &RequestOptions,
    ) -> Result<RawJson, Error> {
        let params = match params {
            Value::Object(params) => params,
            _ => JsonObject::new(),
        };
        self.request_held(method, &params, options).await.map(|(answer, _)| answer)
    }

    /// The same, with the request: its progress is heard until that is dropped.
    pub(super) async fn request_held(
        &self,
        method: &str,
        params: &JsonObject,
        options: &RequestOptions,
    ) -> Result<(RawJson, SentRequest), Error> {
        // A wire that could not connect says so: nothing was sent then.
        let named = |error: Error| match error.phase() {
            Some(ErrorPhase::Start) => error.with_server(&self.server),
            _ => error.with_server(&self.server).with_phase(options.phase),
        };
        if let Some(error) = self.close_reason() {
            return Err(named(error));
        }
        let sent = Instant::now();
        let mut request = self.send_request(method, params, options).await;
        let call = options.call.as_ref().map(|call| &*call.0);
        tracing::debug!(server = self.server, id = request.id, method, call, "request sent");
        let verdict = self.wait(&mut request, method, options).await;
        let outcome = verdict.as_ref().err().map_or("ok", |error| error.kind().as_str());
        tracing::debug!(
            server = self.server,
            id = request.id,
            method,
            call,
            outcome,
            latency_ms = millis(sent.elapsed()),
            "request ended"
        );
        if let Err(error) = &verdict {
            Box::pin(request.cancel(error.message())).await;
        }
        verdict.map(|answer| (answer, request)).map_err(named)
    }

    async fn wait(
        &self,
        request: &mut SentRequest,
        method: &str,
        options: &RequestOptions,
    ) -> Result<RawJson, Error> {
        let start = Instant::now();
        let last = start + options.total_timeout;
        let mut idle = (start + options.idle_timeout).min(last);
        let mut unmatched_deadline: Option<Instant> = None;
        let mut asking = false;
        loop {
            // A server that waits for a person is not silent.
            let silence = if asking { last } else { idle };
            let until = unmatched_deadline.map_or(silence, |s| s.min(silence));
            tokio::select! {
                biased;
                outcome = request.outcome_or_news() => {
                    if let Some(outcome) = outcome {
                        return self.explain_outcome(outcome).await;
                    }
                    let (news, now) = (request.news(), Instant::now());
                    if news.unmatched_response.is_some() {
                        unmatched_deadline.get_or_insert(now + UNMATCHED_RESPONSE_TIMEOUT);
                    }
                    let was_asking = std::mem::replace(&mut asking, news.waits_for_person);
                    if news.has_progressed || (was_asking && !asking) {
                        idle = (now + options.idle_timeout).min(last);
                    }
                }
                () = options.cancel.cancelled() => {
                    return Err(Error::interrupted(format!("{method} was abandoned")));
                }
                () = tokio::time::sleep_until(until) => {
                    return Err(self.timeout_error(request, method, options, Instant::now() >= last));
                }
            }
        }
    }

    fn timeout_error(
        &self,
        request: &SentRequest,
        method: &str,
        options: &RequestOptions,
        total: bool,
    ) -> Error {
        if let Some(unmatched) = request.news().unmatched_response {
            return Error::protocol(format!("{unmatched}, but none to {method}"));
        }
        let waiting = self.wire().waiting_for(&request.id.into());
        let waiting = waiting.map(|w| format!(", waiting for {w}")).unwrap_or_default();
        let message = if total {
            let limit = show_duration(options.total_timeout);
            format!("no response to {method} within {limit} in total (max_total){waiting}")
        } else {
            let limit = show_duration(options.idle_timeout);
            let keys = if options.call.is_some() { "timeout or --idle-timeout" } else { "timeout" };
            format!("no response to {method} and no progress for {limit} ({keys}){waiting}")
        };
        Error::timeout(message).with_details(self.protocol_warnings())
    }

    pub(super) fn in_context(&self, error: Error, phase: ErrorPhase) -> Error {
        error.with_server(&self.server).with_phase(phase)
    }

    pub fn declares(&self, capability: &str) -> bool {
        let declared = &self.agreement.capabilities;
        declared.get(capability).or_else(|| declared.get("extensions")?.get(capability)).is_some()
    }

    /// Ends the connection and everything that was started for it. Idempotent.
    pub async fn close(&self) {
        tracing::info!(server = self.server, "server connection closed");
        self.end().await;
    }
}
