//! Clients on a Unix socket: Streamable HTTP, or one message per line as on standard streams.

use std::io::{self, Cursor};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::io::AsyncReadExt as _;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::MAX_MESSAGE;
use super::http::HttpListener;
use super::line_stream::LineSource;
use super::stream::serve_lines;
use crate::model::Error;
use crate::serve::background::connection::LineConnection;
use crate::serve::catalogue_server::{CatalogueServer, ServedIdentity};
use crate::serve::front_ends::request::FrontEndRequest;
use crate::serve::front_ends::service::FrontEndService;

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
    /// Front ends of this program are answered by `front_ends`, if the server is a background host.
    pub async fn serve(
        &self,
        server: &Arc<CatalogueServer>,
        front_ends: Option<&Arc<FrontEndService>>,
        stop: &CancellationToken,
    ) {
        let (clients, free) = (TaskTracker::new(), Arc::new(Semaphore::new(MAX_CLIENTS)));
        // The clients of a background host are this program.
        let http = front_ends.is_none().then(|| Arc::new(HttpListener::for_own_user(server)));
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
            let (server, stop) = (Arc::clone(server), stop.clone());
            let (front_ends, http) = (front_ends.map(Arc::clone), http.clone());
            clients.spawn(async move {
                let (front_ends, http) = (front_ends.as_deref(), http.as_ref());
                serve_client(stream, &server, front_ends, http, &stop).await;
                drop(place);
            });
        }
        clients.close();
        if let Some(http) = http {
            http.drain(&clients).await;
        }
        clients.wait().await;
    }
}

/// Serves a client: its first line shows whether it speaks HTTP or is a front end of this program.
/// Any other has a session of its own.
async fn serve_client(
    stream: UnixStream,
    server: &Arc<CatalogueServer>,
    front_ends: Option<&FrontEndService>,
    http: Option<&Arc<HttpListener>>,
    stop: &CancellationToken,
) {
    let process = stream.peer_cred().ok().and_then(|peer| u32::try_from(peer.pid()?).ok());
    let mut lines = LineConnection::new(stream, MAX_MESSAGE);
    let Some(Some(first)) = stop.run_until_cancelled(lines.next()).await else { return };
    if let (Some(front_ends), Ok(line)) = (front_ends, &first)
        && let Some(request) = FrontEndRequest::read(line)
    {
        return front_ends.serve(request, lines, process, stop).await;
    }
    if let (Some(http), Ok(line)) = (http, &first)
        && is_request_line(line)
    {
        let LineConnection { input, output } = lines;
        let read = [line.as_bytes(), b"\r\n", input.read_buffer()].concat();
        let stream = tokio::io::join(Cursor::new(read).chain(input.into_inner()), output);
        return Box::pin(http.serve_connection(stream, stop)).await;
    }
    let session = format!("unix-{}", Uuid::new_v4().simple());
    let client = server.connect(ServedIdentity { session, is_alone: false });
    let LineConnection { input, output } = lines;
    let serving = serve_lines(client, LineSource::after(first, input), output, stop);
    // Boxed: a front end's request has no room for it. Errors of a client are reported to the client.
    let _ended = Box::pin(serving).await;
}

/// Whether this begins a request of HTTP; no JSON ends like this.
fn is_request_line(line: &str) -> bool {
    line.ends_with(" HTTP/1.1") || line.ends_with(" HTTP/1.0")
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
