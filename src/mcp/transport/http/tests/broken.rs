//! Tests of broken connections and bodies, cut event streams, silence, and cancellation.

use std::time::Duration;

use serde_json::json;

use super::super::HttpWire;
use super::{JSON, ask, call, initialized, legacy, modern, notification, request, target, wire_to};
use crate::mcp::wire::{Arrival, Wire as _};
use crate::model::{ErrorKind, ErrorPhase};
use crate::net::test_server::{EVENTS, TestResponse, TestServer, answer, chunk, head};

#[tokio::test]
async fn a_closed_port_is_a_refused_connection() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap()).parse().unwrap();
    drop(listener);
    let outcome = call(&wire_to(url), 1, "initialize").await;
    let error = outcome.error(ErrorKind::Unreachable, "connection refused");
    assert_eq!(error.phase(), Some(ErrorPhase::Start));
}

#[tokio::test]
async fn a_host_that_does_not_exist_is_named() {
    // A label this long is refused by the resolver itself, so that no network is asked.
    let host = format!("{}.invalid", "a".repeat(64));
    let url = format!("http://{host}/mcp").parse().unwrap();
    let outcome = call(&wire_to(url), 1, "initialize").await;
    outcome.error(ErrorKind::Unreachable, &format!("the host of {host}:80 cannot be found"));
}

#[tokio::test]
async fn broken_connections_have_their_causes() {
    ask(|| TestResponse::Reset(Vec::new())).await.error(ErrorKind::Unreachable, "connection");
    ask(|| TestResponse::Last(Vec::new()))
        .await
        .error(ErrorKind::Unreachable, "closed the connection");
    let outcome = ask(|| TestResponse::Last(b"SSH-2.0-OpenSSH_9.9\r\n\x1b[31m".to_vec())).await;
    outcome.error(ErrorKind::Protocol, "does not speak HTTP");
}

#[tokio::test]
async fn broken_bodies_give_no_partial_answer() {
    let body = answer(&json!(1));
    let (short, chunked) = (body.clone(), body.clone());
    let outcome = ask(move || {
        let length = format!("Content-Length: {}", short.len() + 1000);
        let mut bytes = head("200 OK", &["Content-Type: application/json", &length]);
        bytes.extend_from_slice(short.as_bytes());
        TestResponse::Last(bytes)
    })
    .await;
    outcome.error(ErrorKind::Protocol, "ended early");
    assert_eq!(outcome.messages, [] as [&str; 0]);
    let outcome = ask(move || {
        let mut bytes = head("200 OK", &JSON);
        bytes.extend_from_slice(chunk(&chunked).as_bytes());
        bytes.extend_from_slice(b"zz\r\n");
        TestResponse::Last(bytes)
    })
    .await;
    outcome.error(ErrorKind::Protocol, "HTTP body is broken");
    assert_eq!(outcome.messages, [] as [&str; 0]);
    let outcome = ask(|| {
        let headers = ["Content-Type: application/json", "Content-Encoding: gzip"];
        TestResponse::full("200 OK", &headers, b"\x1f\x8b\x08\0\0\0\0\0\0\0nonsense")
    })
    .await;
    outcome.error(ErrorKind::Protocol, "HTTP body is broken");
    let outcome = ask(move || {
        let mut bytes = head("200 OK", &["Content-Type: application/json", "Content-Length: 999"]);
        bytes.extend_from_slice(body.as_bytes());
        TestResponse::Reset(bytes)
    })
    .await;
    assert!(outcome.error.is_some() && outcome.messages.is_empty());
}

#[tokio::test]
async fn large_headers_are_refused() {
    let line = format!("X-A: {}", "v".repeat(1000));
    for (lines, size) in [(101, 10), (70, 1000), (1000, 1000)] {
        let line: String = line.chars().take(size).collect();
        let peer = TestServer::start(move |_, _| {
            let mut headers = vec![line.as_str(); lines];
            headers.push("Content-Type: application/json");
            TestResponse::full("200 OK", &headers, "{}")
        })
        .await;
        let outcome = call(&legacy(&peer), 1, "tools/list").await;
        let error = outcome.error(ErrorKind::Protocol, "response headers");
        assert!(format!("{error:?}").contains("64"), "the limit is named: {error:?}");
    }
}

#[tokio::test]
async fn bodies_and_events_without_end_stop_at_the_limit() {
    let data = vec![b'A'; 1 << 16];
    let piece = [format!("{:x}\r\n", data.len()).as_bytes(), &data[..], b"\r\n"].concat();
    let (first, again) = (head("200 OK", &JSON), piece.clone());
    let outcome = ask(move || TestResponse::Endless(first.clone(), again.clone())).await;
    outcome.error(ErrorKind::Protocol, "limit of 16.0 MiB");
    let first = [&head("200 OK", &EVENTS)[..], chunk("data: ").as_bytes()].concat();
    let outcome = ask(move || TestResponse::Endless(first.clone(), piece.clone())).await;
    outcome.error(ErrorKind::Protocol, "limit of 16.0 MiB");
    let outcome = ask(|| {
        let length = "Content-Length: 99999999999";
        TestResponse::Hang(head("200 OK", &["Content-Type: application/json", length]))
    })
    .await;
    outcome.error(ErrorKind::Protocol, "limit of 16.0 MiB");
}

#[tokio::test]
async fn a_compressed_answer_is_unpacked_within_the_limit() {
    // gzip of {"id":1,"result":{}} and of 64 KiB of blanks, the latter against a small limit.
    let peer = TestServer::start(|_, request| {
        assert_eq!(request.header("accept-encoding"), Some("gzip"));
        let headers = ["Content-Type: application/json", "Content-Encoding: gzip"];
        TestResponse::full("200 OK", &headers, stored_gzip(&answer(&request.id())))
    })
    .await;
    assert_eq!(call(&legacy(&peer), 1, "tools/list").await.messages, [answer(&json!(1))]);
    let mut small = target(peer.url("/mcp"));
    small.limits.message = 10;
    let wire = HttpWire::connect(small).unwrap();
    call(&wire, 1, "tools/list").await.error(ErrorKind::Protocol, "limit of 10 B");
}

/// A gzip member with one stored block (RFC 1951, 3.2.4), so that no compressor is needed.
fn stored_gzip(text: &str) -> Vec<u8> {
    let data = text.as_bytes();
    let length = u16::try_from(data.len()).unwrap();
    let crc = !data.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg())
        })
    });
    let mut out = b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x01".to_vec();
    out.extend(length.to_le_bytes());
    out.extend((!length).to_le_bytes());
    out.extend_from_slice(data);
    out.extend(crc.to_le_bytes());
    out.extend(u32::from(length).to_le_bytes());
    out
}

#[tokio::test]
async fn a_cut_stream_without_ids_fails_at_once() {
    let peer = TestServer::start(|_, _| {
        let mut bytes = head("200 OK", &EVENTS);
        bytes.extend_from_slice(chunk("data: {\"id\":1,\"res").as_bytes());
        TestResponse::Last(bytes)
    })
    .await;
    let outcome = call(&legacy(&peer), 1, "tools/call").await;
    outcome.error(ErrorKind::Unreachable, "the event stream was cut before the response arrived");
    assert_eq!(outcome.messages, [] as [&str; 0]);
    assert_eq!(peer.requests().len(), 1);
}

#[tokio::test]
async fn a_legacy_stream_with_ids_is_continued_where_it_was() {
    let peer = TestServer::start(|n, _| match n {
        0 => TestResponse::events("id: a\nretry: 0\ndata:\n\n"),
        1 => TestResponse::events("id: b\ndata: {\"method\":\"notifications/x\"}\n\n"),
        2 => TestResponse::full("503 Service Unavailable", &[], ""),
        _ => TestResponse::events(&format!("id: c\ndata: {}\n\n", answer(&json!(1)))),
    })
    .await;
    let outcome = call(&legacy(&peer), 1, "tools/call").await;
    assert_eq!((outcome.messages.len(), outcome.error.is_none()), (2, true));
    let requests = peer.requests();
    let fetches: Vec<_> =
        requests.iter().map(|h| (h.method.as_str(), h.header("last-event-id"))).collect();
    assert_eq!(
        fetches,
        [("POST", None), ("GET", Some("a")), ("GET", Some("b")), ("GET", Some("b"))]
    );
}

#[tokio::test]
async fn continuing_ends_after_five_connections_or_a_refusal() {
    let peer = TestServer::start(|_, _| TestResponse::events("id: a\nretry: 0\ndata:\n\n")).await;
    let outcome = call(&legacy(&peer), 1, "tools/call").await;
    outcome.error(ErrorKind::Protocol, "ended 6 times");
    assert_eq!(peer.requests().len(), 6);
    let peer = TestServer::start(|n, _| match n {
        0 => TestResponse::events("id: a\ndata:\n\n"),
        _ => TestResponse::full("405 Method Not Allowed", &[], ""),
    })
    .await;
    let outcome = call(&legacy(&peer), 1, "tools/call").await;
    outcome.error(ErrorKind::Unreachable, "405");
    assert_eq!(peer.requests().len(), 2);
}

#[tokio::test]
async fn a_modern_stream_is_never_continued() {
    let peer = TestServer::start(|_, _| TestResponse::events("id: a\nretry: 0\ndata:\n\n")).await;
    call(&modern(&peer), 1, "tools/call")
        .await
        .error(ErrorKind::Unreachable, "before the response");
    assert_eq!(peer.requests().len(), 1);
}

#[tokio::test]
async fn the_servers_own_stream_is_read_and_continued() {
    let peer = TestServer::start(|n, request| match (request.method.as_str(), n) {
        ("POST", _) => TestResponse::accepted(),
        (_, 1) => TestResponse::events(
            "id: 7\ndata: {\"method\":\"notifications/tools/list_changed\"}\n\n",
        ),
        _ => {
            let mut bytes = head("200 OK", &EVENTS);
            bytes.extend_from_slice(chunk("data: {\"id\":5,\"method\":\"ping\"}\n\n").as_bytes());
            TestResponse::Hang(bytes)
        }
    })
    .await;
    let wire = legacy(&peer);
    wire.send(initialized()).await.unwrap();
    for part in ["list_changed", "ping"] {
        match wire.receive().await {
            Arrival::Message { incoming, stream_of: None } => {
                assert!(String::from_utf8_lossy(&incoming.bytes).contains(part));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(peer.requests()[2].header("last-event-id"), Some("7"));
}

#[tokio::test]
async fn a_request_says_what_it_waits_for() {
    let peer = TestServer::start(|n, _| {
        if n == 0 {
            TestResponse::Hang(Vec::new())
        } else {
            let mut bytes = head("200 OK", &EVENTS);
            bytes.extend_from_slice(chunk(": alive\n\n").as_bytes());
            TestResponse::Hang(bytes)
        }
    })
    .await;
    let wire = legacy(&peer);
    let waits = async |id: u64, text: &str| {
        while wire.waiting_for(&json!(id)).as_deref() != Some(text) {
            tokio::task::yield_now().await;
        }
    };
    let first = Box::pin(wire.send(request(1, "tools/call")));
    tokio::select! {
        biased;
        sent = first => panic!("{sent:?}"),
        () = waits(1, "response headers") => {}
    }
    // An abandoned `send` can still say it.
    assert!(wire.waiting_for(&json!(1)).is_some());
    wire.send(request(2, "tools/call")).await.unwrap();
    waits(2, "the response (status 200, text/event-stream, 9 B so far)").await;
    wire.close().await;
}

#[tokio::test]
async fn a_cancelled_request_ends_its_send_and_its_connection() {
    let length = "Content-Length: 99";
    for begun in [Vec::new(), head("200 OK", &["Content-Type: application/json", length])] {
        let is_silent = begun.is_empty();
        let peer = TestServer::start(move |_, _| TestResponse::Hang(begun.clone())).await;
        let wire = modern(&peer);
        let cancel = async {
            peer.wait_for_requests(1).await;
            wire.send(notification("notifications/cancelled", Some(json!(1)))).await
        };
        let (sent, cancelled) = tokio::join!(wire.send(request(1, "tools/call")), cancel);
        match sent {
            // It was accepted before: what is cut is its response.
            Ok(()) => assert!(!is_silent),
            Err(error) => assert!(error.message().contains("cancelled"), "{error}"),
        }
        cancelled.unwrap();
        peer.wait_for_hangup().await;
        assert_eq!((wire.waiting_for(&json!(1)), peer.requests().len()), (None, 1));
    }
}

#[tokio::test]
async fn a_modern_cancellation_closes_the_stream_and_posts_nothing() {
    let peer = TestServer::start(|_, _| TestResponse::Hang(head("200 OK", &EVENTS))).await;
    let wire = modern(&peer);
    wire.send(request(1, "tools/call")).await.unwrap();
    wire.send(notification("notifications/cancelled", Some(json!(1)))).await.unwrap();
    assert_eq!(wire.waiting_for(&json!(1)), None);
    peer.wait_for_hangup().await;
    assert_eq!(peer.requests().len(), 1);
}

#[tokio::test]
async fn a_legacy_cancellation_is_posted_and_a_late_answer_is_not_read() {
    let peer = TestServer::start(|_, request| {
        if request.body.contains("cancelled") {
            TestResponse::accepted()
        } else {
            TestResponse::Hang(head("200 OK", &EVENTS))
        }
    })
    .await;
    let wire = legacy(&peer);
    wire.send(request(1, "tools/call")).await.unwrap();
    wire.send(notification("notifications/cancelled", Some(json!(1)))).await.unwrap();
    assert_eq!(wire.waiting_for(&json!(1)), None);
    peer.wait_for_hangup().await;
    assert!(peer.requests()[1].body.contains("cancelled"));
}

#[tokio::test]
async fn a_silent_server_ends_at_the_wires_own_deadlines() {
    let peer = TestServer::start(|_, _| TestResponse::Hang(Vec::new())).await;
    let mut target = target(peer.url("/mcp"));
    target.limits.exchange = Duration::from_millis(20);
    target.limits.control = Duration::from_millis(20);
    let wire = HttpWire::connect(target).unwrap();
    call(&wire, 1, "tools/call").await.error(ErrorKind::Timeout, "no response headers");
    let error = wire.send(initialized()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.message().contains("notifications/initialized"));
}

#[tokio::test]
async fn a_refused_notification_is_an_error() {
    let peer =
        TestServer::start(|_, _| TestResponse::full("400 Bad Request", &[], "no session")).await;
    let error = legacy(&peer).send(initialized()).await.unwrap_err();
    assert_eq!(error.details(), ["no session"]);
}
