//! One session: its streams, and the service that answers it.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_server::session::ServerSseMessage;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::SessionError;
use super::session_streams::SessionStreams;
use crate::serve::catalogue_server::SessionEnded;
use crate::serve::shared_room::SharedRoom;
use crate::util::lock::lock;

const INCOMING: usize = 8;
const HANDSHAKE: Duration = Duration::from_mins(1);
/// How long a session is kept that has no stream and is not used, also while a person is asked.
const SESSION_IDLE: Duration = Duration::from_mins(30);
pub(super) struct ServedSession {
    ended: CancellationToken,
    state: Mutex<SessionContents>,
    answers: SharedRoom,
    /// Held while an event is sent, so that none overtakes another.
    sending: tokio::sync::Mutex<()>,
}

pub(super) struct SessionContents {
    /// Whether the client introduced itself, and that was accepted.
    is_open: bool,
    /// What the service is sent; `None` once the session ended.
    incoming: Option<mpsc::Sender<Box<ClientJsonRpcMessage>>>,
    handshake: Option<oneshot::Sender<ServerJsonRpcMessage>>,
    pub(super) streams: SessionStreams,
    last_used: Instant,
}

impl ServedSession {
    /// A session whose client has sent nothing yet. What it keeps for it counts against `answers`.
    pub(super) fn new(answers: SharedRoom) -> Arc<Self> {
        let contents = SessionContents {
            is_open: false,
            incoming: None,
            handshake: None,
            streams: SessionStreams::default(),
            last_used: Instant::now(),
        };
        Arc::new(Self {
            ended: CancellationToken::new(),
            state: Mutex::new(contents),
            answers,
            sending: tokio::sync::Mutex::default(),
        })
    }

    pub(super) fn used(&self) -> MutexGuard<'_, SessionContents> {
        let mut state = lock(&self.state);
        state.last_used = Instant::now();
        state
    }

    /// Ends the service, all streams, and the calls that run.
    pub(super) fn end(&self) {
        self.ended.cancel();
        let mut state = lock(&self.state);
        state.incoming = None;
        state.streams = SessionStreams::default();
    }

    /// Whether its client seems to be gone: it has no stream and asked nothing for a long time, or
    /// never introduced itself.
    pub(super) fn is_abandoned(&self) -> bool {
        let mut state = lock(&self.state);
        state.streams.forget_abandoned();
        let patience = if state.is_open { SESSION_IDLE } else { HANDSHAKE };
        !state.streams.has_waiting()
            && !state.streams.is_listened_to()
            && state.last_used.elapsed() >= patience
    }

    /// Hands the handshake over and waits for its answer.
    pub(super) async fn initialize(
        &self,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionError> {
        let (handshake, answer) = oneshot::channel();
        lock(&self.state).handshake = Some(handshake);
        self.hand_over(message).await?;
        let answer = answer.await.map_err(|_| SessionError::Ended)?;
        lock(&self.state).is_open = matches!(answer, JsonRpcMessage::Response(_));
        Ok(answer)
    }

    pub(super) async fn accept(&self, message: ClientJsonRpcMessage) -> Result<(), SessionError> {
        if let JsonRpcMessage::Notification(sent) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &sent.notification
            && let Some(id) = &cancelled.params.request_id
        {
            lock(&self.state).streams.give_up(id);
        }
        self.hand_over(message).await
    }

    /// Hands a request over; what its client reads of it. One more than there may be is answered
    /// with an error.
    pub(super) async fn request(
        &self,
        message: ClientJsonRpcMessage,
    ) -> Result<mpsc::Receiver<ServerSseMessage>, SessionError> {
        let id = match &message {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let begun = lock(&self.state).streams.begin_request(id, &self.answers);
        let reader = match begun {
            Ok(reader) => reader,
            Err(refusal) => return Ok(refusal),
        };
        self.hand_over(message).await?;
        Ok(reader)
    }

    async fn hand_over(&self, mut message: ClientJsonRpcMessage) -> Result<(), SessionError> {
        if matches!(message, JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_)) {
            message.insert_extension(SessionEnded(self.ended.clone()));
        }
        let incoming = self.used().incoming.clone();
        let incoming = incoming.ok_or(SessionError::Ended)?;
        incoming.send(Box::new(message)).await.map_err(|_| SessionError::Ended)
    }

    /// Sends what the service says to the stream that it belongs to.
    async fn deliver(&self, message: ServerJsonRpcMessage) {
        let _in_order = self.sending.lock().await;
        let (event, client) = {
            let mut state = lock(&self.state);
            if let Some(handshake) = state.handshake.take() {
                // Who asked may be gone.
                let _gone = handshake.send(message);
                return;
            }
            if matches!(message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)) {
                state.last_used = Instant::now();
            }
            match state.streams.route(message, &self.answers) {
                Some(routed) => routed,
                None => return,
            }
        };
        if let Some(client) = client {
            let _client_gone = client.send(event).await;
        }
    }
}

/// The service's end of a session, as the SDK expects it.
pub struct ServedSessionTransport {
    session: Arc<ServedSession>,
    incoming: mpsc::Receiver<Box<ClientJsonRpcMessage>>,
}

impl ServedSessionTransport {
    pub(super) fn begin(session: &Arc<ServedSession>) -> Self {
        let (sender, incoming) = mpsc::channel(INCOMING);
        lock(&session.state).incoming = Some(sender);
        Self { session: Arc::clone(session), incoming }
    }
}

impl Transport<RoleServer> for ServedSessionTransport {
    type Error = SessionError;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), SessionError>> + Send + 'static {
        let session = Arc::clone(&self.session);
        async move {
            session.deliver(message).await;
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.incoming.recv().await.map(|message| *message)
    }

    async fn close(&mut self) -> Result<(), SessionError> {
        Ok(())
    }
}
