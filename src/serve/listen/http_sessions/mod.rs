//! The sessions of clients of the older era over HTTP.
//!
//! The events that one stream of a session carries, and those that may be requested again.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use futures_util::{Stream, stream};
use rmcp::model::{ClientJsonRpcMessage, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::{
    ServerSseMessage, SessionId, SessionManager,
};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::serve::catalogue_server::{CatalogueServer, served_session};
use crate::serve::shared_room::{SharedRoom, TakenRoom};
use crate::util::json;
use crate::util::lock::lock;
use session::{ServedSession, ServedSessionTransport};

mod session;
#[cfg(test)]
mod tests;

/// How many bytes are kept of responses that their clients did not read: for all clients of a listener, and
/// for those with one token.
pub(super) const KEPT_ANSWERS: (usize, usize) = (64 << 20, 16 << 20);
/// How many sessions the holders of one token may have.
const MAX_SESSIONS: usize = 4_096;
/// The time between two looks for idle sessions.
const SWEEP: Duration = Duration::from_secs(30);

/// Why a session cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    #[error("too many sessions are open; end one, or try again later")]
    TooMany,
    #[error("the session ended")]
    Ended,
    /// The client names an event that was not sent to it, or that is no longer kept.
    #[error("there is no such event to resume from")]
    UnknownEvent,
}

pub(super) struct HttpSessions {
    sessions: Mutex<HashMap<SessionId, Arc<ServedSession>>>,
    server: Arc<CatalogueServer>,
    /// The prefix of their names in the host.
    name: String,
    answers: SharedRoom,
}

impl HttpSessions {
    /// No sessions yet. They are looked after until `end` fires; what they keep for clients that did not
    /// read it counts against `answers`.
    pub(super) fn new(
        server: &Arc<CatalogueServer>,
        name: &str,
        answers: SharedRoom,
        end: CancellationToken,
    ) -> Arc<Self> {
        let (name, server) = (name.to_owned(), Arc::clone(server));
        let sessions = Arc::new(Self { sessions: Mutex::default(), server, name, answers });
        tokio::spawn(sweep_on(Arc::downgrade(&sessions), end));
        sessions
    }

    /// Whether another session may be opened.
    pub(super) fn has_room(&self) -> bool {
        lock(&self.sessions).len() < MAX_SESSIONS
    }

    fn session(&self, id: &str) -> Result<Arc<ServedSession>, SessionError> {
        lock(&self.sessions).get(id).cloned().ok_or(SessionError::Ended)
    }

    fn end(&self, id: &str, session: &ServedSession) {
        session.end();
        self.server.end_session(&served_session(&self.name, id));
    }

    /// Forgets sessions of clients that seem to be gone, and answers that nobody came back for.
    fn sweep(&self) {
        let mut sessions = lock(&self.sessions);
        let abandoned = sessions.extract_if(|_, session| session.is_abandoned());
        abandoned.for_each(|(id, session)| self.end(&id, &session));
    }
}

/// Sweeps until the sessions are gone or `end` fires.
async fn sweep_on(sessions: Weak<HttpSessions>, end: CancellationToken) {
    while end.run_until_cancelled(tokio::time::sleep(SWEEP)).await.is_some() {
        let Some(sessions) = sessions.upgrade() else { return };
        sessions.sweep();
    }
}

impl SessionManager for HttpSessions {
    type Error = SessionError;
    type Transport = ServedSessionTransport;

    async fn create_session(&self) -> Result<(SessionId, ServedSessionTransport), SessionError> {
        if !self.has_room() {
            return Err(SessionError::TooMany);
        }
        let id: SessionId = Uuid::new_v4().to_string().into();
        let (session, transport) = ServedSession::begin(self.answers.clone());
        lock(&self.sessions).insert(Arc::clone(&id), session);
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionError> {
        self.session(id)?.initialize(message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionError> {
        Ok(self.session(id).is_ok())
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), SessionError> {
        let session = lock(&self.sessions).remove(id);
        if let Some(session) = session {
            self.end(id, &session);
        }
        Ok(())
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        self.session(id)?.request(message).await.map(events)
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), SessionError> {
        self.session(id)?.accept(message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        Ok(events(self.session(id)?.listen()))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        self.session(id)?.resume(&last_event_id).map(events)
    }
}

/// What a client reads of a stream.
fn events(
    mut reader: mpsc::Receiver<ServerSseMessage>,
) -> impl Stream<Item = ServerSseMessage> + Send + Sync + 'static {
    stream::poll_fn(move |context| reader.poll_recv(context))
}

/// How many events wait for a client that is slow to read.
const QUEUE: usize = 16;
/// How many of the last events a client may ask for again.
const KEPT: usize = 16;
const RETRY: Duration = Duration::from_secs(3);

#[derive(Default)]
struct EventStream {
    /// The number that its events carry; the stream that belongs to no request has none.
    number: Option<u64>,
    request: Option<RequestId>,
    client: Option<mpsc::Sender<ServerSseMessage>>,
    kept: VecDeque<KeptEvent>,
    next: u64,
    /// The first event that no client was there for.
    unread: u64,
    answered: Option<Instant>,
}

struct KeptEvent {
    index: u64,
    event: ServerSseMessage,
    bytes: Option<TakenRoom>,
}

impl EventStream {
    fn of_request(
        number: u64,
        request: Option<RequestId>,
    ) -> (Self, mpsc::Receiver<ServerSseMessage>) {
        let mut stream = Self { number: Some(number), request, ..Self::default() };
        let reader = stream.open();
        let id = stream.event_id(0);
        stream.next = 1;
        let begin = ServerSseMessage::priming(id, RETRY);
        // The queue is empty.
        let _queued = stream.client.as_ref().map(|client| client.try_send(begin));
        (stream, reader)
    }

    fn open(&mut self) -> mpsc::Receiver<ServerSseMessage> {
        let (client, reader) = mpsc::channel(QUEUE);
        self.client = Some(client);
        reader
    }

    fn event_id(&self, index: u64) -> String {
        match self.number {
            Some(number) => format!("{index}/{number}"),
            None => index.to_string(),
        }
    }

    fn is_read(&self) -> bool {
        self.client.as_ref().is_some_and(|client| !client.is_closed())
    }

    /// Adds an event: what is to be sent, and where. Where its client does not read, events are kept as
    /// far as `answers` has room.
    fn push(
        &mut self,
        message: ServerJsonRpcMessage,
        answers: &SharedRoom,
    ) -> (ServerSseMessage, Option<mpsc::Sender<ServerSseMessage>>) {
        let event = self.keep(self.next, message);
        self.next += 1;
        if self.is_read() {
            self.unread = self.next;
        } else {
            self.kept.retain_mut(|event| {
                if let (None, Some(message)) = (&event.bytes, &event.event.message) {
                    let size = usize::try_from(json::size(message)).unwrap_or(usize::MAX);
                    event.bytes = answers.try_take(size);
                }
                event.bytes.is_some()
            });
        }
        (event, self.client.clone())
    }

    fn keep(&mut self, index: u64, message: ServerJsonRpcMessage) -> ServerSseMessage {
        let mut event = ServerSseMessage::default();
        event.event_id = Some(self.event_id(index));
        event.message = Some(Arc::new(message));
        if self.kept.len() >= KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(KeptEvent { index, event: event.clone(), bytes: None });
        event
    }

    /// Ends it with the event that was added last, the answer. Whether it may be forgotten: its client
    /// reads it.
    fn finish(&mut self) -> bool {
        self.answered = Some(Instant::now());
        let is_read = self.is_read();
        self.client = None;
        let last = self.next.saturating_sub(1);
        if !is_read && self.kept.back().is_none_or(|event| event.index < last) {
            let message = "the response was dropped: the connection ended before it was read, and too \
                         much is waiting for other clients";
            let error = ErrorData::internal_error(message, None);
            self.keep(last, ServerJsonRpcMessage::error(error, self.request.clone()));
        }
        is_read
    }

    fn waits_for(&self, request: &RequestId) -> bool {
        self.answered.is_none() && self.request.as_ref() == Some(request)
    }

    /// Since when the answer is there for a client that did not come back for it.
    fn answered(&self) -> Option<Instant> {
        self.answered
    }

    /// Reads on after the event with this index; `None` begins with what is kept and no client read.
    fn resume(
        &mut self,
        last: Option<u64>,
    ) -> Result<mpsc::Receiver<ServerSseMessage>, SessionError> {
        if last.is_some_and(|last| last >= self.next.max(1)) {
            return Err(SessionError::UnknownEvent);
        }
        let reader = self.open();
        if let Some(client) = &self.client {
            let first = last.map_or(self.unread, |last| last + 1);
            for event in self.kept.iter().filter(|event| event.index >= first) {
                // No more are kept than the queue takes.
                let _queued = client.try_send(event.event.clone());
            }
        }
        self.unread = self.next;
        if self.answered.is_some() {
            self.client = None;
        }
        Ok(reader)
    }
}
