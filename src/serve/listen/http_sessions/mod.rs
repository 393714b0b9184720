//! The sessions of clients of the older era over HTTP.

mod event_stream;
mod session;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use futures_util::{Stream, stream};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::{
    ServerSseMessage, SessionId, SessionManager,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::serve::catalogue_server::{CatalogueServer, served_session};
use crate::serve::shared_room::SharedRoom;
use crate::util::lock::lock;
use session::{ServedSession, ServedSessionTransport};

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
