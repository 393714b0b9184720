//! Tests of certificates and TLS handshakes.

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use url::Url;

use super::super::HttpWire;
use super::{call, target, wire_to};
use crate::model::ErrorKind;
use crate::net::test_server::{TestResponse, TestServer, answer, head};

pub(in crate::mcp::transport::http) fn tls_server(certificate: &'static [u8]) -> Url {
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("../testdata/key.pem")).unwrap();
    let certificate = CertificateDer::from_pem_slice(certificate).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/mcp", listener.local_addr().unwrap()).parse().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let session = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = rustls::StreamOwned::new(session, socket.unwrap());
            let mut buffer = [0; 8192];
            // The client refuses the certificate in most tests.
            if stream.read(&mut buffer).is_ok_and(|n| n > 0) {
                let body = answer(&json!(1));
                let length = format!("Content-Length: {}", body.len());
                let mut bytes = head("200 OK", &["Content-Type: application/json", &length]);
                bytes.extend_from_slice(body.as_bytes());
                stream.write_all(&bytes).ok();
                stream.flush().ok();
            }
        }
    });
    url
}

#[tokio::test]
async fn a_bad_certificate_is_refused_with_its_reason() {
    let url = tls_server(include_bytes!("../testdata/expired.pem"));
    call(&wire_to(url), 1, "initialize")
        .await
        .error(ErrorKind::Unreachable, "certificate has expired");
    let url = tls_server(include_bytes!("../testdata/authority.pem"));
    call(&wire_to(url), 1, "initialize").await.error(ErrorKind::Unreachable, "self-signed");
    let url = tls_server(include_bytes!("../testdata/selfsigned.pem"));
    let outcome = call(&wire_to(url.clone()), 1, "initialize").await;
    let error = outcome.error(ErrorKind::Unreachable, "self-signed");
    assert!(error.hint().unwrap().contains("--insecure"));
    let mut insecure = target(url);
    insecure.insecure = true;
    let outcome = call(&HttpWire::connect(insecure).unwrap(), 1, "initialize").await;
    assert_eq!(outcome.messages.len(), 1);
    assert!(outcome.warnings[0].contains("not checked"));
}

#[tokio::test]
async fn a_server_without_tls_is_recognised() {
    let peer = TestServer::start(|_, _| TestResponse::accepted()).await;
    // Not HTTP either, but the first bytes come before a request could be understood.
    let mut url = peer.url("/mcp");
    url.set_scheme("https").unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    url.set_port(Some(listener.local_addr().unwrap().port())).unwrap();
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        let mut buffer = [0; 8192];
        while socket.read(&mut buffer).is_ok_and(|n| n > 0) {}
    });
    call(&wire_to(url), 1, "initialize").await.error(ErrorKind::Unreachable, "does not speak TLS");
}

#[tokio::test]
async fn a_tls_handshake_that_never_starts_ends_at_the_connect_deadline() {
    let peer = TestServer::start(|_, _| TestResponse::Hang(Vec::new())).await;
    let mut url = peer.url("/mcp");
    url.set_scheme("https").unwrap();
    let mut target = target(url);
    target.limits.connect = Duration::from_millis(50);
    let outcome = call(&HttpWire::connect(target).unwrap(), 1, "initialize").await;
    outcome.error(ErrorKind::Timeout, "no TLS connection");
}
