//! Negotiating a protocol version with a server, over one wire or two.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::lifecycle::{
    Agreement, HandshakeAction, HandshakeEvent, HandshakeRequest, Lifecycle, MODERN,
};
use super::message::RequestOutcome;
use super::responder::QuestionResponder;
use super::session::{McpSession, OwnedSession, SentRequest};
use super::wire::{OutgoingFrame, Wire};
use crate::config::spec::ProtocolChoice;
use crate::model::{Era, Error, EventSink, JsonObject, QuestionAbilities, QuestionHandler, Root};

/// Ids of the handshake, far from those of a session, which count up from 0.
pub(super) const DISCOVER_ID: i64 = 2_147_483_001;
pub(super) const INITIALIZE_ID: i64 = 2_147_483_002;
/// How long a stdio server may be silent after `server/discover` before it gets `initialize` too.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Opens a fresh wire; called again when the handshake needs a fresh start.
pub type WireOpener = Arc<dyn Fn() -> Result<Arc<dyn Wire>, Error> + Send + Sync>;

#[derive(Clone)]
pub struct ConnectOptions {
    pub server: String,
    /// Which lifecycle to speak, as the entry says.
    pub protocol: ProtocolChoice,
    pub cached_era: Option<Era>,
    /// Bound on opening and agreeing, restarts included.
    pub start_timeout: Duration,
    /// Whether silence after `server/discover` brings `initialize` on the same wire.
    pub falls_back_on_silence: bool,
    pub roots: Vec<Root>,
    pub events: EventSink,
    /// Who answers what the server asks.
    pub inbox: Arc<dyn QuestionHandler>,
}

impl ConnectOptions {
    fn respondent(&self) -> QuestionResponder {
        QuestionResponder {
            server: self.server.clone(),
            roots: self.roots.clone(),
            events: self.events.clone(),
            inbox: Arc::clone(&self.inbox),
        }
    }
}

pub(super) struct Handshake<'a> {
    options: &'a ConnectOptions,
    lifecycle: Lifecycle,
    /// The newest session; the one of the agreement, when there is one.
    pub(super) session: Option<OwnedSession>,
    started: Instant,
}

impl<'a> Handshake<'a> {
    pub(super) fn new(options: &'a ConnectOptions, started: Instant) -> Self {
        Self {
            options,
            lifecycle: Lifecycle::new(options.protocol, options.cached_era),
            session: None,
            started,
        }
    }

    pub(super) async fn run(&mut self, open: &WireOpener) -> Result<Agreement, Error> {
        let deadline = self.started + self.options.start_timeout;
        loop {
            let wire = open()?;
            let warnings = self.session.as_ref().map(|owned| owned.0.take_warnings());
            let owned =
                McpSession::begin(wire, self.options.respondent(), warnings.unwrap_or_default());
            let session = Arc::clone(&owned.0);
            self.session = Some(owned);
            match tokio::time::timeout_at(deadline, self.negotiate(&session)).await {
                Err(_) => return Err(self.timeout_error(&session)),
                Ok(ended) => {
                    if let Some(agreement) = ended? {
                        return Ok(*agreement);
                    }
                }
            }
            tracing::debug!(server = self.options.server, "handshake starts over");
            session.end().await;
        }
    }

    fn timeout_error(&self, session: &McpSession) -> Error {
        let limit = self.options.start_timeout.as_secs_f64();
        let waiting = [DISCOVER_ID, INITIALIZE_ID]
            .into_iter()
            .find_map(|id| session.wire().waiting_for(&json!(id)))
            .map(|w| format!(", waiting for {w}"))
            .unwrap_or_default();
        let error =
            Error::timeout(format!("no response within {limit} s (start timeout){waiting}"))
                .with_hint("if it is only slow, set a longer start_timeout in its entry");
        let tail = session.process_info().stderr_tail;
        if tail.is_empty() && session.protocol_warnings().is_empty() {
            error.with_detail("it sent nothing")
        } else {
            let skip = tail.len().saturating_sub(5);
            error.with_details(tail.into_iter().skip(skip).map(|line| format!("stderr: {line}")))
        }
    }

    /// Talks in one session until the lifecycle has decided; `None` asks for a fresh one.
    async fn negotiate(
        &mut self,
        session: &Arc<McpSession>,
    ) -> Result<Option<Box<Agreement>>, Error> {
        let (mut discover, mut initialize) = (None, None);
        let mut action = HandshakeAction::Send(self.lifecycle.start());
        let mut probe = Instant::now() + PROBE_TIMEOUT;
        loop {
            match action {
                HandshakeAction::Send(step) => {
                    let request = self.send(session, step).await;
                    match step {
                        HandshakeRequest::Discover => discover = Some(request),
                        HandshakeRequest::Initialize(_) => initialize = Some(request),
                    }
                }
                HandshakeAction::Ready(agreement) => {
                    Self::acknowledge(session, &agreement).await?;
                    return Ok(Some(agreement));
                }
                HandshakeAction::Fail(error) => return Err(error),
                HandshakeAction::Restart => return Ok(None),
                HandshakeAction::Wait => {}
            }
            let event = tokio::select! {
                biased;
                answer = answer_to(&mut discover) => answer.map(HandshakeEvent::Discover),
                answer = answer_to(&mut initialize) => answer.map(HandshakeEvent::Initialize),
                () = tokio::time::sleep_until(probe), if self.options.falls_back_on_silence => {
                    probe += Duration::from_hours(24);
                    Ok(HandshakeEvent::Silence)
                }
            };
            let event = match event {
                Ok(event) => event,
                // Prefer what the other side has to say about it.
                Err(error) if session.wire().explains_failed_sends() => {
                    HandshakeEvent::WireClosed(session.explain(error).await)
                }
                Err(error) => HandshakeEvent::WireClosed(error),
            };
            action = self.lifecycle.handle(event);
        }
    }

    async fn acknowledge(session: &McpSession, agreement: &Agreement) -> Result<(), Error> {
        if agreement.era == Era::Legacy {
            let wire = session.wire();
            wire.set_agreement(agreement.era, &agreement.version);
            let frame = OutgoingFrame::notification("notifications/initialized", None);
            wire.send(frame).await?;
        }
        Ok(())
    }

    async fn send(&self, session: &Arc<McpSession>, step: HandshakeRequest) -> SentRequest {
        let questions = session.respondent.abilities();
        let (id, method, params) = match step {
            HandshakeRequest::Discover => {
                let meta = Value::Object(request_meta(MODERN, questions));
                (DISCOVER_ID, "server/discover", vec![("_meta", meta)])
            }
            HandshakeRequest::Initialize(version) => {
                let params = vec![
                    ("protocolVersion", version.into()),
                    ("capabilities", capabilities(Era::Legacy, questions)),
                    ("clientInfo", client_info()),
                ];
                (INITIALIZE_ID, "initialize", params)
            }
        };
        tracing::debug!(server = self.options.server, method, "handshake request sent");
        let frame = OutgoingFrame::request(id, method, &object(params));
        session.send_frame(id, frame, None).await
    }
}

/// Waits for the answer to a step that was sent; it is given once.
async fn answer_to(step: &mut Option<SentRequest>) -> Result<RequestOutcome, Error> {
    let Some(request) = step else { return pending().await };
    let answer = request.answer_or_failure().await;
    *step = None;
    answer
}

/// What every request of the modern era says about us, in its `_meta`.
pub(super) fn request_meta(version: &str, questions: QuestionAbilities) -> JsonObject {
    object([
        ("io.modelcontextprotocol/protocolVersion", version.into()),
        ("io.modelcontextprotocol/clientInfo", client_info()),
        ("io.modelcontextprotocol/clientCapabilities", capabilities(Era::Modern, questions)),
    ])
}

/// What we declare to be able to do.
fn capabilities(era: Era, questions: QuestionAbilities) -> Value {
    let QuestionAbilities { forms, urls, sampling, roots } = questions;
    let declared = |abilities: [(&'static str, bool); 2]| {
        object(
            abilities
                .into_iter()
                .filter(|(_, is_declared)| *is_declared)
                .map(|(name, _)| (name, json!({}))),
        )
    };
    let mut capabilities = declared([("sampling", sampling), ("roots", roots)]);
    if forms || urls {
        let modes = declared([("form", forms), ("url", urls)]);
        capabilities.insert("elicitation".to_owned(), modes.into());
    }
    // A server may answer a call with a task (SEP-2663). Legacy tasks need no word of ours, and that
    // era knows no extensions.
    if era == Era::Modern {
        let extensions = json!({ "io.modelcontextprotocol/tasks": {} });
        capabilities.insert("extensions".to_owned(), extensions);
    }
    capabilities.into()
}

fn object<'a>(members: impl IntoIterator<Item = (&'a str, Value)>) -> JsonObject {
    members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn client_info() -> Value {
    json!({ "name": "toolhost", "version": env!("CARGO_PKG_VERSION") })
}
