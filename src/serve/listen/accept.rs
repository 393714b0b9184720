//! Where a network transport may listen, accepting connections, and each from its first message to its last.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rmcp::service::{QuitReason, ServerInitializeError, Service};
use rmcp::{RoleServer, ServiceExt as _};
use tokio::net::{TcpListener, lookup_host};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::text_transport::TextTransport;
use crate::model::Error;
use crate::serve::catalogue_server::{DRAIN, ServedClient};

/// The pause after a connection that could not be accepted, for want of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves each client that `next` accepts by `serve`, `most` at once, until `stop` fires; those that are
/// left.
pub(super) async fn serve_each<S, F>(
    next: impl Fn(&mut Context<'_>) -> Poll<io::Result<S>>,
    most: usize,
    stop: &CancellationToken,
    serve: impl Fn(S) -> F,
) -> TaskTracker
where
    F: Future<Output = ()> + Send + 'static,
{
    let (clients, free) = (TaskTracker::new(), Arc::new(Semaphore::new(most)));
    while let Some(Ok(place)) = stop.run_until_cancelled(Arc::clone(&free).acquire_owned()).await {
        let Some(accepted) = stop.run_until_cancelled(poll_fn(&next)).await else { break };
        if let Ok(stream) = accepted {
            let serving = serve(stream);
            clients.spawn(async move {
                serving.await;
                drop(place);
            });
        } else {
            // Out of descriptors: a client that leaves makes room.
            tokio::time::sleep(PAUSE).await;
        }
    }
    clients.close();
    clients
}

/// The option that allows other addresses than this machine's own.
const OPTION: &str = "--dangerously-bind";

/// Listens on `HOST:PORT`, `:PORT` or `PORT`; without a host, on 127.0.0.1.
pub async fn listen(text: &str, is_dangerous: bool) -> Result<TcpListener, Error> {
    let address_text = match text.strip_prefix(':').unwrap_or(text).parse::<u16>() {
        Ok(port) => format!("127.0.0.1:{port}"),
        Err(_) => text.to_owned(),
    };
    let resolved: Vec<SocketAddr> = lookup_host(&address_text)
        .await
        .map_err(|error| {
            Error::usage(format!("'{text}' is not an address to listen on: {error}"))
                .with_hint("such as 127.0.0.1:8080, [::1]:8080 or 8080")
        })?
        .collect();
    let is_reachable = |address: &SocketAddr| !address.ip().to_canonical().is_loopback();
    if !is_dangerous && let Some(address) = resolved.iter().find(|address| is_reachable(address)) {
        let message = format!("{} can be reached from other machines", address.ip());
        let hint = format!("listen on 127.0.0.1 or [::1], or pass {OPTION}");
        return Err(Error::usage(message).with_hint(hint));
    }
    TcpListener::bind(resolved.as_slice())
        .await
        .map_err(|error| Error::config(format!("cannot listen on {address_text}: {error}")))
}

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
