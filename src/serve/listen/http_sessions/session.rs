//! One session: the service that answers it, and its streams.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorData, GetExtensions, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::service::{OriginatingRequestId, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_server::session::ServerSseMessage;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{EventStream, SessionError};
use crate::serve::catalogue_server::SessionEnded;
use crate::serve::listen::bounded_stream::MAX_UNANSWERED;
use crate::serve::shared_room::SharedRoom;
use crate::util::lock::lock;

const INCOMING: usize = 8;
const HANDSHAKE: Duration = Duration::from_mins(1);
/// How long a session is kept that has no stream and is not used, also while a person is asked.
const SESSION_IDLE: Duration = Duration::from_mins(30);
/// How long the answer of a request is kept for a client whose stream broke off.
const ANSWER_KEPT: Duration = Duration::from_mins(1);
pub(super) const MAX_KEPT_ANSWERS: usize = 64;
const MAX_SPARES: usize = 8;

pub(super) struct ServedSession {
    /// What the service is sent.
    incoming: mpsc::Sender<Box<ClientJsonRpcMessage>>,
    ended: CancellationToken,
    state: Mutex<SessionState>,
    answers: SharedRoom,
    /// Held while an event is sent, so that none overtakes another.
    sending: tokio::sync::Mutex<()>,
}

struct SessionState {
    /// Whether the client introduced itself, and that was accepted.
    is_open: bool,
    last_used: Instant,
    common: EventStream,
    /// Further streams of that kind, which stay silent: a client that opens several would otherwise
    /// open the one again and again that ended for the other.
    spares: Vec<mpsc::Sender<ServerSseMessage>>,
    /// The streams of requests, oldest first.
    requests: Vec<EventStream>,
    next: u64,
}

impl ServedSession {
    /// A session whose client has sent nothing yet, and the service's end of it. What it keeps for the
    /// client counts against `answers`.
    pub(super) fn begin(answers: SharedRoom) -> (Arc<Self>, ServedSessionTransport) {
        let (sender, incoming) = mpsc::channel(INCOMING);
        let state = SessionState {
            is_open: false,
            last_used: Instant::now(),
            common: EventStream::default(),
            spares: Vec::new(),
            requests: Vec::new(),
            next: 0,
        };
        let session = Arc::new(Self {
            incoming: sender,
            ended: CancellationToken::new(),
            state: Mutex::new(state),
            answers,
            sending: tokio::sync::Mutex::default(),
        });
        (Arc::clone(&session), ServedSessionTransport { session, incoming })
    }

    fn used(&self) -> MutexGuard<'_, SessionState> {
        let mut state = lock(&self.state);
        state.last_used = Instant::now();
        state
    }

    /// Ends the service, all streams, and the calls that run.
    pub(super) fn end(&self) {
        self.ended.cancel();
        let mut state = lock(&self.state);
        state.common = EventStream::default();
        state.spares.clear();
        state.requests.clear();
    }

    /// Whether its client seems to be gone: it has no stream and asked nothing for a long time, or
    /// never introduced itself. Answers that it did not come back for are forgotten.
    pub(super) fn is_abandoned(&self) -> bool {
        let mut state = lock(&self.state);
        let is_old = |since: Instant| since.elapsed() >= ANSWER_KEPT;
        state.requests.retain(|stream| !stream.answered().is_some_and(is_old));
        let patience = if state.is_open { SESSION_IDLE } else { HANDSHAKE };
        state.requests.iter().all(|stream| stream.answered().is_some())
            && !state.common.is_read()
            && state.last_used.elapsed() >= patience
    }

    /// Hands the handshake over and waits for its answer.
    pub(super) async fn initialize(
        &self,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionError> {
        let mut events = self.request(message).await?;
        loop {
            let event = events.recv().await.ok_or(SessionError::Ended)?;
            if let Some(answer) = event.message {
                lock(&self.state).is_open = matches!(*answer, JsonRpcMessage::Response(_));
                return Ok(Arc::unwrap_or_clone(answer));
            }
        }
    }

    pub(super) async fn accept(&self, message: ClientJsonRpcMessage) -> Result<(), SessionError> {
        if let JsonRpcMessage::Notification(sent) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &sent.notification
            && let Some(id) = &cancelled.params.request_id
        {
            // Nothing follows on its stream.
            lock(&self.state).requests.retain(|stream| !stream.waits_for(id));
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
        let opened = lock(&self.state).begin_request(id.clone());
        let Some(reader) = opened else {
            let reason =
                format!("{MAX_UNANSWERED} requests of this session are waiting for responses");
            let error = ErrorData::internal_error(reason, None);
            let (refusal, reader) = mpsc::channel(1);
            let mut event = ServerSseMessage::default();
            event.message = Some(Arc::new(ServerJsonRpcMessage::error(error, id)));
            let _has_room = refusal.try_send(event);
            return Ok(reader);
        };
        self.hand_over(message).await?;
        Ok(reader)
    }

    async fn hand_over(&self, mut message: ClientJsonRpcMessage) -> Result<(), SessionError> {
        if matches!(message, JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_)) {
            message.insert_extension(SessionEnded(self.ended.clone()));
        }
        drop(self.used());
        self.incoming.send(Box::new(message)).await.map_err(|_| SessionError::Ended)
    }

    /// Opens the stream that belongs to no request.
    pub(super) fn listen(&self) -> mpsc::Receiver<ServerSseMessage> {
        // Only an event that is named can be unknown.
        self.used().read_common(None).unwrap_or_else(|_unknown| mpsc::channel(1).1)
    }

    /// Goes on with a stream after an event.
    pub(super) fn resume(
        &self,
        event: &str,
    ) -> Result<mpsc::Receiver<ServerSseMessage>, SessionError> {
        let number = |text: &str| text.parse::<u64>().map_err(|_| SessionError::UnknownEvent);
        let mut state = self.used();
        let Some((index, stream)) = event.split_once('/') else {
            return state.read_common(Some(number(event)?));
        };
        let stream = Some(number(stream)?);
        let stream = state.requests.iter_mut().find(|request| request.number == stream);
        stream.ok_or(SessionError::UnknownEvent)?.resume(Some(number(index)?))
    }

    /// Sends what the service says to the stream that it belongs to.
    async fn deliver(&self, message: ServerJsonRpcMessage) {
        let _in_order = self.sending.lock().await;
        let routed = lock(&self.state).route(message, &self.answers);
        if let Some((event, Some(client))) = routed {
            let _client_gone = client.send(event).await;
        }
    }
}

impl SessionState {
    /// Opens the stream of a request, unless as many wait as may.
    fn begin_request(&mut self, id: Option<RequestId>) -> Option<mpsc::Receiver<ServerSseMessage>> {
        // The stream of an unanswered request with the same id ends.
        self.requests.retain(|stream| id.as_ref().is_none_or(|id| !stream.waits_for(id)));
        let waiting = self.requests.iter().filter(|stream| stream.answered().is_none()).count();
        if waiting >= MAX_UNANSWERED {
            return None;
        }
        let (stream, reader) = EventStream::of_request(self.next, id);
        self.next += 1;
        self.requests.push(stream);
        Some(reader)
    }

    fn read_common(
        &mut self,
        last: Option<u64>,
    ) -> Result<mpsc::Receiver<ServerSseMessage>, SessionError> {
        if !self.common.is_read() {
            return self.common.resume(last);
        }
        let (spare, reader) = mpsc::channel(1);
        self.spares.retain(|spare| !spare.is_closed());
        if self.spares.len() >= MAX_SPARES {
            self.spares.remove(0);
        }
        self.spares.push(spare);
        Ok(reader)
    }

    /// Puts a message of the service on the stream that it belongs to; `None` when nothing of it is to be
    /// waited for: the answer to a request that its client gave up, and what belongs to no request.
    fn route(
        &mut self,
        message: ServerJsonRpcMessage,
        answers: &SharedRoom,
    ) -> Option<(ServerSseMessage, Option<mpsc::Sender<ServerSseMessage>>)> {
        let (of_request, is_answer) = match &message {
            JsonRpcMessage::Response(response) => (Some(response.id.clone()), true),
            JsonRpcMessage::Error(error) => (error.id.clone(), true),
            JsonRpcMessage::Request(request) => (origin(&request.request), false),
            JsonRpcMessage::Notification(sent) => (origin(&sent.notification), false),
        };
        if is_answer {
            self.last_used = Instant::now();
        }
        let waits =
            |stream: &EventStream| of_request.as_ref().is_some_and(|id| stream.waits_for(id));
        let Some(place) = self.requests.iter().position(waits) else {
            if !is_answer && let (event, Some(client)) = self.common.push(message, answers) {
                // A client that does not read misses it.
                let _slow_client = client.try_send(event);
            }
            return None;
        };
        let stream = self.requests.get_mut(place)?;
        let pushed = stream.push(message, answers);
        if is_answer && stream.finish() {
            self.requests.remove(place);
        }
        let mut kept = self.requests.iter().enumerate().filter(|(_, s)| s.answered().is_some());
        if let (Some((oldest, _)), Some(_)) = (kept.next(), kept.nth(MAX_KEPT_ANSWERS - 1)) {
            self.requests.remove(oldest);
        }
        Some(pushed)
    }
}

fn origin(message: &impl GetExtensions) -> Option<RequestId> {
    message.extensions().get::<OriginatingRequestId>().map(|origin| origin.0.clone())
}

/// The service's end of a session, as the SDK expects it.
pub struct ServedSessionTransport {
    session: Arc<ServedSession>,
    incoming: mpsc::Receiver<Box<ClientJsonRpcMessage>>,
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
        let message = self.session.ended.run_until_cancelled(self.incoming.recv()).await??;
        Some(*message)
    }

    async fn close(&mut self) -> Result<(), SessionError> {
        Ok(())
    }
}
