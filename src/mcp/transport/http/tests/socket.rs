//! Tests of Streamable HTTP over a Unix socket.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tokio::net::{TcpStream, UnixListener};

use super::super::{HttpTarget, HttpWire};
use super::{call, target};
use crate::mcp::credentials;
use crate::mcp::wire::Wire as _;
use crate::model::{Era, Error, ErrorKind, ErrorPhase};
use crate::net::test_server::{TestResponse, TestServer};

pub(in crate::mcp::transport::http) fn socket_to(peer: &TestServer, directory: &Path) -> PathBuf {
    let path = directory.join("mcp.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let address = peer.url("/").socket_addrs(|| None).unwrap()[0];
    // It ends with the test's runtime.
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut server = TcpStream::connect(address).await?;
                tokio::io::copy_bidirectional(&mut client, &mut server).await
            });
        }
    });
    path
}

pub(in crate::mcp::transport::http) fn over(socket: &Path) -> HttpTarget {
    HttpTarget {
        socket: Some(socket.to_path_buf()),
        ..target("http://localhost/other".parse().unwrap())
    }
}

async fn error_at(socket: &Path) -> Error {
    let wire = HttpWire::connect(over(socket)).unwrap();
    let error = call(&wire, 1, "tools/list").await.error.unwrap();
    assert_eq!((error.kind(), error.phase()), (ErrorKind::Unreachable, Some(ErrorPhase::Start)));
    assert!(error.message().contains(socket.to_str().unwrap()), "{error}");
    error
}

#[tokio::test]
async fn a_request_goes_over_the_socket_and_names_localhost() {
    let peer = TestServer::start(|_, requests| TestResponse::result(requests)).await;
    let directory = tempfile::tempdir().unwrap();
    let mut target = over(&socket_to(&peer, directory.path()));
    target.credentials = credentials::bearer("hunter2hunter2".into());
    let wire = HttpWire::connect(target).unwrap();
    wire.set_agreement(Era::Modern, "2026-07-28");
    assert!(call(&wire, 1, "tools/list").await.error.is_none());
    let requests = peer.requests();
    assert_eq!(requests[0].line(), "POST /other");
    assert_eq!(requests[0].header("host"), Some("localhost"));
    assert_eq!(requests[0].header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(requests[0].header("authorization"), Some("Bearer hunter2hunter2"));
}

#[tokio::test]
async fn a_refusal_says_over_which_socket_it_came() {
    let peer = TestServer::start(|_, _| TestResponse::full("404 Not Found", &[], "")).await;
    let directory = tempfile::tempdir().unwrap();
    let socket = socket_to(&peer, directory.path());
    let wire = HttpWire::connect(over(&socket)).unwrap();
    let error = call(&wire, 1, "tools/list").await.error.unwrap();
    let line = format!("over the socket {}", socket.display());
    assert!(error.details().contains(&line), "{error:?}");
}

#[tokio::test]
async fn a_socket_that_cannot_be_reached_is_named_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mcp.sock");
    assert!(error_at(&path).await.message().starts_with("there is no socket"));

    std::fs::write(&path, "").unwrap();
    assert!(error_at(&path).await.message().ends_with("is not a socket"));

    std::fs::remove_file(&path).unwrap();
    drop(UnixListener::bind(&path).unwrap());
    let error = error_at(&path).await;
    assert!(error.message().starts_with("nothing is listening"), "{error}");
    assert!(error.hint().is_some());

    // Root is not refused by a file's mode.
    if rustix::process::geteuid().is_root() {
        return;
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o0)).unwrap();
    assert!(error_at(&path).await.message().starts_with("permission denied"));
}
