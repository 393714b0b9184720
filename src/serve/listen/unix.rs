//! Clients on a Unix socket: one message per line, as on standard streams.
//!
//! Owns: the socket's file and that only this user may connect. Never does: replace a socket that
//! another process listens on.

use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::stream::serve_client;
use crate::model::Error;
use crate::serve::catalogue_server::{CatalogueServer, ServedIdentity};

/// How many clients may be connected at once.
const MAX_CLIENTS: usize = 1_024;

/// A socket that clients connect to. Its file is removed when it is dropped.
#[derive(Debug)]
pub struct UnixSocketListener {
    listener: UnixListener,
    path: PathBuf,
}

impl UnixSocketListener {
    /// Listens on a socket of this name. One without a listener is replaced.
    ///
    /// # Errors
    /// When the file is something else, another process listens on it, or the system refuses.
    pub fn bind(path: &Path) -> Result<Self, Error> {
        let fail = |error: &io::Error| {
            Error::config(format!("cannot listen on {}: {error}", path.display()))
        };
        match std::fs::symlink_metadata(path) {
            Ok(found) if !found.file_type().is_socket() => {
                let words = format!("{} exists and is not a socket", path.display());
                return Err(Error::config(words).with_hint("choose another path"));
            }
            Ok(_) if std::os::unix::net::UnixStream::connect(path).is_ok() => {
                let words = format!("another process listens on {}", path.display());
                return Err(Error::config(words).with_hint("end it, or choose another path"));
            }
            Ok(_) => std::fs::remove_file(path).map_err(|error| fail(&error))?,
            Err(_) => {}
        }
        let listener = UnixListener::bind(path).map_err(|error| fail(&error))?;
        let listener = Self { listener, path: path.to_owned() };
        // Between the two calls only the peer's identity protects it, which is checked as well.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
            .map_err(|error| fail(&error))?;
        Ok(listener)
    }

    /// Serves all clients that connect until `stop` fires; then connections have the time of the caller.
    pub async fn serve(&self, server: &Arc<CatalogueServer>, stop: &CancellationToken) {
        let (clients, free) = (TaskTracker::new(), Arc::new(Semaphore::new(MAX_CLIENTS)));
        loop {
            let Ok(place) = Arc::clone(&free).acquire_owned().await else { break };
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                accepted = self.listener.accept() => accepted,
            };
            let stream = match accepted {
                Ok((stream, _)) if is_own(&stream) => stream,
                Ok(_stranger) => continue,
                Err(_) => {
                    // Out of descriptors: a client that leaves makes room.
                    tokio::time::sleep(super::ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let session = format!("unix-{}", Uuid::new_v4().simple());
            let peer = stream.peer_cred().ok().and_then(|peer| u32::try_from(peer.pid()?).ok());
            let identity = ServedIdentity { session, is_alone: false };
            let (server, stop) = (Arc::clone(server), stop.clone());
            clients.spawn(async move {
                let (input, output) = stream.into_split();
                // Errors of a client are reported to the client.
                let client = server.connect(identity).of_process(peer);
                let _ended = serve_client(client, input, output, &stop).await;
                drop(place);
            });
        }
        clients.close();
        clients.wait().await;
    }
}

/// Whether the other end belongs to this user, or to root.
fn is_own(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own || peer.uid() == 0)
}

impl Drop for UnixSocketListener {
    fn drop(&mut self) {
        let _gone_already = std::fs::remove_file(&self.path);
    }
}
