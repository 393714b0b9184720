//! Accepting connections, whatever they carry.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The pause after a connection that could not be accepted, for want of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) trait Listener: Sync {
    type Stream: Send;

    fn next(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn next(&self) -> io::Result<TcpStream> {
        let (stream, _) = self.accept().await?;
        let _as_it_was = stream.set_nodelay(true);
        Ok(stream)
    }
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    async fn next(&self) -> io::Result<UnixStream> {
        Ok(self.accept().await?.0)
    }
}

/// Serves each client that connects by `serve`, `most` at once, until `stop` fires; those that are left.
pub(super) async fn serve_each<L: Listener, F>(
    listener: &L,
    most: usize,
    stop: &CancellationToken,
    serve: impl Fn(L::Stream) -> F,
) -> TaskTracker
where
    F: Future<Output = ()> + Send + 'static,
{
    let (clients, free) = (TaskTracker::new(), Arc::new(Semaphore::new(most)));
    while let Ok(place) = Arc::clone(&free).acquire_owned().await {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.next() => accepted,
        };
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
