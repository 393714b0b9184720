//! Client certificates, and an authority for one server.

use std::io::{BufReader, Write as _};
use std::net::TcpListener;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use crate::support::Sandbox;

/// Certificates that last until 2125, of one authority: `openssl req -x509 …`, `openssl x509 -req …`.
fn pem(name: &str) -> String {
    let place = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/tls/");
    std::fs::read_to_string(format!("{place}{name}")).unwrap()
}

fn certificate(name: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem(name).as_bytes()).unwrap()
}

/// An MCP server that talks only to clients with a certificate of its authority; gives its port.
fn serve() -> u16 {
    let provider = Arc::new(ring::default_provider());
    let mut authorities = RootCertStore::empty();
    authorities.add(certificate("ca.pem")).unwrap();
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(authorities), Arc::clone(&provider));
    let key = PrivateKeyDer::from_pem_slice(pem("server.key").as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(vec![certificate("server.pem")], key)
        .unwrap();
    let (config, listener) = (Arc::new(config), TcpListener::bind("127.0.0.1:0").unwrap());
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            std::thread::spawn(move || {
                let mut stream = BufReader::new(StreamOwned::new(connection, stream));
                while let Some(response) = read_request(&mut stream) {
                    stream.get_mut().write_all(response.as_bytes()).unwrap();
                    stream.get_mut().flush().unwrap();
                }
            });
        }
    });
    port
}

/// The response to the next request; `None` when the client is gone or was turned away.
fn read_request(stream: &mut impl std::io::BufRead) -> Option<String> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let result = match request["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "private", "version": "1" },
        }),
        Some("tools/list") => json!({
            "tools": [{ "name": "whisper", "inputSchema": { "type": "object" } }],
        }),
        Some("ping") => json!({}),
        Some("tools/call") => json!({ "content": [{ "type": "text", "text": "psst" }] }),
        Some(_) => return Some("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".to_owned()),
        None => {
            return Some("HTTP/1.1 405 Not Allowed\r\nContent-Length: 0\r\n\r\n".to_owned());
        }
    };
    let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }).to_string();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length:";
    Some(format!("{head} {}\r\n\r\n{answer}", answer.len()))
}

fn room(port: u16, tls: &str) -> Sandbox {
    let room = Sandbox::new();
    for name in ["ca.pem", "client.pem", "client.key", "server.key"] {
        room.file(&format!("certs/{name}"), &pem(name));
    }
    room.file(
        "mcp.yaml",
        &format!(
            "mcp_servers:\n  p:\n    url: https://localhost:{port}/mcp\n    protocol: legacy\n    tls: {tls}\n"
        ),
    );
    room
}

const BOTH: &str = "{ cert: certs/client.pem, key: certs/client.key, ca: certs/ca.pem }";
const CALL: [&str; 4] = ["call", "p-whisper", "--mcp", "mcp.yaml"];

#[test]
fn a_server_that_demands_a_certificate_gets_it_and_is_known_by_its_own_authority() {
    let port = serve();
    let called = room(port, BOTH).toolhost(CALL).check();
    assert_eq!(called.exits(0).out(), "psst\n");
    for tls in ["{ cert: certs/client.pem, key: certs/client.key }", "{ ca: certs/ca.pem }"] {
        room(port, tls).toolhost(CALL).check().exits(4);
    }
}

#[test]
fn a_wrong_file_is_an_error_at_its_key() {
    for (tls, words) in [
        ("{ ca: certs/none.pem }", "in 'tls.ca': cannot read the file"),
        ("{ ca: certs/client.key }", "in 'tls.ca': no PEM certificate"),
        ("{ cert: certs/client.pem }", "'tls.cert' needs 'key'"),
        ("{ key: certs/client.key }", "'tls.key' needs 'cert'"),
        ("{ cert: certs/client.pem, key: certs/ca.pem }", "in 'tls.key': no unencrypted PEM"),
        ("{ cert: certs/client.pem, key: certs/server.key }", "in 'tls.key': it does not fit"),
    ] {
        let checked = room(1, tls).toolhost(["config", "check", "--mcp", "mcp.yaml"]).check();
        let shown = checked.exits(9).out();
        assert!(shown.contains(words) && shown.contains("mcp.yaml:5:"), "{shown}");
    }
    let plain = Sandbox::new();
    plain.file("mcp.yaml", "mcp_servers:\n  p: { url: 'http://localhost/', tls: { ca: x } }\n");
    let checked = plain.toolhost(["config", "check", "--mcp", "mcp.yaml"]).check();
    assert!(checked.exits(9).out().contains("'tls' needs an https or wss URL"), "{checked}");
}

#[test]
fn the_files_are_a_part_of_what_is_trusted_and_the_key_is_shown_nowhere() {
    let room = room(serve(), BOTH);
    room.toolhost(["trust"]).check().exits(6).says(&["reads certs/client.key"]);
    room.toolhost(CALL[..2].iter().copied()).check().exits(6);
    room.toolhost(["trust", "--yes"]).check().exits(0);
    let secret = pem("client.key").lines().nth(1).unwrap().to_owned();
    for words in [&CALL[..2], &["inspect", "p", "--json"], &["config", "show"]] {
        let shown = room.toolhost(words.iter().copied()).check().exits(0).out();
        assert!(!shown.contains(&secret), "{shown}");
    }
}
