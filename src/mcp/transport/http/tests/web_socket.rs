//! The handshake of a WebSocket.

use super::*;
use crate::mcp::transport::http::web_socket::connect;
use crate::net::test_server::head;

async fn error_of(limits: HttpLimits, response: Vec<u8>) -> Error {
    let peer = TestServer::start(move |_, _| TestResponse::Hang(response.clone())).await;
    let wire = connect(HttpTarget { limits, ..target(peer.url("/mcp")) }).unwrap();
    wire.send(request(1, "tools/list")).await.unwrap_err()
}

#[tokio::test]
async fn only_an_answer_to_this_handshake_opens_the_connection() {
    let of_another = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
    let cases: [(&[&str], &str); 3] = [
        (&["Connection: Upgrade", "Upgrade: h2c", of_another], "switched to another protocol"),
        (&["Connection: Upgrade", "Upgrade: websocket"], "does not answer the key"),
        (&["Connection: Upgrade", "Upgrade: websocket", of_another], "does not answer the key"),
    ];
    for (headers, message) in cases {
        let response = head("101 Switching Protocols", headers);
        let error = error_of(HttpLimits::default(), response).await;
        assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
        assert!(error.message().contains(message), "{error}");
    }
}

#[tokio::test]
async fn a_refusal_is_reported_although_its_body_never_comes() {
    let limits = HttpLimits { control: Duration::from_millis(20), ..HttpLimits::default() };
    let error = error_of(limits, head("400 Bad Request", &["Content-Length: 10"])).await;
    assert_eq!(error.http_status(), Some(400), "{error}");
}

#[tokio::test]
async fn headers_that_are_too_large_are_refused() {
    let limits = HttpLimits { headers: 100, ..HttpLimits::default() };
    let large = format!("X: {}", "x".repeat(200));
    let error = error_of(limits, head("400 Bad Request", &[&large])).await;
    assert!(error.message().contains("response headers"), "{error}");
}

#[tokio::test]
async fn a_connection_that_others_can_read_is_warned_about() {
    let url = Url::parse("http://server.example/mcp").unwrap();
    let wire = connect(target(url)).unwrap();
    let Arrival::Warning(warning) = wire.receive().await else { panic!("no warning") };
    assert!(warning.contains("plain http"), "{warning}");
}
