//! One connection, from its first message to its last.

use rmcp::service::{QuitReason, ServerInitializeError, Service};
use rmcp::{RoleServer, ServiceExt as _};
use tokio_util::sync::CancellationToken;

use super::text_transport::TextTransport;
use crate::model::Error;
use crate::serve::catalogue_server::{DRAIN, ServedClient};

/// Serves one client until it leaves, or until `stop` fires and its calls have ended.
pub(super) async fn serve(
    client: ServedClient,
    transport: TextTransport,
    stop: &CancellationToken,
) -> Result<(), Error> {
    let (disconnected, calls) = (client.gone.clone(), client.calls.clone());
    let _session_ends = client.session_guard();
    let draining = async {
        stop.cancelled().await;
        calls.close();
        let _cut_off = tokio::time::timeout(DRAIN, calls.wait()).await;
        disconnected.cancel();
        std::future::pending().await
    };
    tokio::select! {
        served = answer(client, transport, disconnected.clone()) => served,
        ended = draining => ended,
    }
}

/// Answers one client by `service` until it leaves, or `disconnected` fires.
pub(in crate::serve) async fn answer(
    service: impl Service<RoleServer>,
    transport: TextTransport,
    disconnected: CancellationToken,
) -> Result<(), Error> {
    // Boxed: it holds a request of each kind.
    let running = match Box::pin(service.serve_with_ct(transport, disconnected)).await {
        Ok(running) => running,
        // A client that disconnects before its first message, or after a probe, is not a failure.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            return Ok(());
        }
        Err(error) => {
            return Err(Error::protocol(format!(
                "the client did not complete the handshake: {error}"
            )));
        }
    };
    match running.waiting().await {
        Ok(QuitReason::JoinError(error)) | Err(error) => {
            Err(Error::internal(format!("a connection failed: {error}")))
        }
        Ok(_) => Ok(()),
    }
}
