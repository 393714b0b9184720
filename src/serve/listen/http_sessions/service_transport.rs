//! The service's end of a session, as the SDK expects it.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::ClientJsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::mpsc;

use super::SessionError;
use super::session::ServedSession;

pub struct ServedSessionTransport {
    session: Arc<ServedSession>,
    incoming: mpsc::Receiver<Box<ClientJsonRpcMessage>>,
}

impl ServedSessionTransport {
    pub(super) fn begin(session: &Arc<ServedSession>) -> Self {
        let incoming = session.start_service();
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
