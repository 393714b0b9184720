//! The service's end of a session, as the SDK expects it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::RoleServer;
use rmcp::model::ClientJsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::mpsc;

use super::SessionError;
use super::session::ServedSession;

/// The service's end of a session.
pub struct ServedSessionTransport {
    session: Arc<ServedSession>,
    incoming: mpsc::Receiver<Box<ClientJsonRpcMessage>>,
    _counted: RunningService,
}

impl ServedSessionTransport {
    /// The end of a service that begins now, which counts as one of those `running`.
    pub(super) fn begin(session: &Arc<ServedSession>, running: &Arc<AtomicUsize>) -> Self {
        let incoming = session.start_service();
        let counted = RunningService::begin(running);
        Self { session: Arc::clone(session), incoming, _counted: counted }
    }
}

/// Counts as a service that runs until it is dropped.
struct RunningService(Arc<AtomicUsize>);

impl RunningService {
    fn begin(running: &Arc<AtomicUsize>) -> Self {
        running.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(running))
    }
}

impl Drop for RunningService {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
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
