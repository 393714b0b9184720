//! Accepting connections, whatever they carry.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

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
