//! Clients on a Unix socket: Streamable HTTP, or one message per line as on standard streams.

use std::io::{self, Cursor};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::Context;

use tokio::io::AsyncReadExt as _;
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::accept;
use super::access::AccessRules;
use super::http::HttpListener;
use super::stream::serve_stream;
use crate::model::Error;
use crate::serve::catalogue_server::{CatalogueServer, ServedIdentity};

const MAX_CLIENTS: usize = 1_024;

/// A socket that clients connect to. Its file is removed when it is dropped.
#[derive(Debug)]
pub struct UnixSocketListener {
    listener: UnixListener,
    path: PathBuf,
}

impl UnixSocketListener {
    pub fn bind(path: &Path) -> Result<Self, Error> {
        let fail = |error: &io::Error| {
            Error::config(format!("cannot listen on {}: {error}", path.display()))
        };
        match std::fs::symlink_metadata(path) {
            Ok(metadata) if !metadata.file_type().is_socket() => {
                let message = format!("{} exists and is not a socket", path.display());
                return Err(Error::config(message).with_hint("choose another path"));
            }
            Ok(_) if std::os::unix::net::UnixStream::connect(path).is_ok() => {
                let message = format!("another process listens on {}", path.display());
                return Err(Error::config(message).with_hint("end it, or choose another path"));
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
        // A background host has front ends of this program, which do not speak HTTP.
        let http = (!server.is_background()).then(|| {
            let rules = Arc::new(AccessRules::new(Vec::new(), Vec::new()));
            Arc::new(HttpListener::new(server, rules, None))
        });
        let next = |context: &mut Context<'_>| self.listener.poll_accept(context);
        let clients = accept::serve_each(next, MAX_CLIENTS, stop, |(stream, _)| {
            let (server, http, stop) = (Arc::clone(server), http.clone(), stop.clone());
            async move {
                if is_own(&stream) {
                    serve_client(stream, &server, http.as_ref(), &stop).await;
                }
            }
        })
        .await;
        if let Some(http) = http {
            http.drain(&clients).await;
        }
        clients.wait().await;
    }
}

/// Serves a client: its first byte shows whether it speaks HTTP. Any other has a session of its own.
async fn serve_client(
    mut stream: UnixStream,
    server: &Arc<CatalogueServer>,
    http: Option<&Arc<HttpListener>>,
    stop: &CancellationToken,
) {
    let Some(Ok(first)) = stop.run_until_cancelled(stream.read_u8()).await else { return };
    let (input, output) = stream.into_split();
    let input = Cursor::new([first]).chain(input);
    // A method of HTTP begins with a capital letter, and no JSON does.
    if let Some(http) = http.filter(|_| first.is_ascii_uppercase()) {
        let stream = tokio::io::join(input, output);
        return Box::pin(http.serve_connection(stream, stop)).await;
    }
    let session = format!("unix-{}", Uuid::new_v4().simple());
    let identity = ServedIdentity { session, is_alone: false };
    // Errors of a client are reported to the client.
    let _ended = Box::pin(serve_stream(server, identity, input, output, stop)).await;
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
