//! Tests of HTTP+SSE against real sockets: where messages go, and what the end of the stream means.

use std::time::Duration;

use serde_json::json;

use super::super::{HttpLimits, SseWire};
use super::{initialized, notification, request, target};
use crate::mcp::credentials;
use crate::mcp::wire::{Arrival, Wire as _};
use crate::model::{Era, Error, ErrorKind};
use crate::net::test_server::{EVENTS, TestRequest, TestResponse, TestServer, answer, chunk, head};

fn wire(peer: &TestServer) -> SseWire {
    SseWire::connect(target(peer.url("/sse"))).unwrap()
}

fn stream(events: &str) -> TestResponse {
    let mut bytes = head("200 OK", &EVENTS);
    bytes.extend_from_slice(chunk(events).as_bytes());
    TestResponse::Hang(bytes)
}

/// A server whose stream says `events`, and which accepts every message.
async fn saying(events: &'static str) -> TestServer {
    TestServer::start(move |_, request| match request.method.as_str() {
        "GET" => stream(events),
        _ => TestResponse::accepted(),
    })
    .await
}

/// What becomes of a request when the stream's GET is answered like this.
async fn opening(reply: impl Fn() -> TestResponse + Send + Sync + 'static) -> Error {
    let peer = TestServer::start(move |_, _| reply()).await;
    let wire = wire(&peer);
    let error = wire.send(request(1, "initialize")).await.unwrap_err();
    // Who listens is told the same, and again.
    for _ in 0..2 {
        let Arrival::Closed(cause) = wire.receive().await else { panic!("not closed") };
        assert_eq!(cause.message(), error.message());
    }
    assert!(wire.waiting_for(&json!(1)).is_none());
    error
}

#[tokio::test]
async fn messages_are_posted_where_the_first_event_says_and_answers_come_on_the_stream() {
    let peer = TestServer::start(|_, requests| match requests.method.as_str() {
        "GET" => stream(&format!(
            ": hello\n\nevent: ping\ndata: x\n\nevent: endpoint\ndata: /messages?session=7\n\n\
             event: message\ndata: {}\n\ndata: {}\n\n",
            answer(&json!(1)),
            r#"{"jsonrpc":"2.0","method":"notifications/message"}"#
        )),
        _ => TestResponse::full("202 Accepted", &["Content-Type: text/plain"], "Accepted"),
    })
    .await;
    let mut target = target(peer.url("/sse"));
    target.credentials = credentials::bearer("hunter2hunter2".into());
    let wire = SseWire::connect(target).unwrap();
    wire.send(request(1, "initialize")).await.unwrap();
    for part in ["\"id\":1", "notifications/message"] {
        let Arrival::Message { incoming, stream_of: None } = wire.receive().await else {
            panic!("no message")
        };
        assert!(String::from_utf8_lossy(&incoming.bytes).contains(part));
    }
    wire.set_agreement(Era::Legacy, "2024-11-05");
    wire.send(initialized()).await.unwrap();
    wire.send(request(2, "tools/call")).await.unwrap();
    let waiting = wire.waiting_for(&json!(2)).unwrap();
    assert!(waiting.contains("text/event-stream"), "{waiting}");
    wire.send(notification("notifications/cancelled", Some(json!(2)))).await.unwrap();
    assert!(wire.waiting_for(&json!(2)).is_none());

    let requests = peer.requests();
    let lines: Vec<_> = requests.iter().map(TestRequest::line).collect();
    assert_eq!(lines[0], "GET /sse");
    assert!(lines[1..].iter().all(|line| line == "POST /messages?session=7"), "{lines:?}");
    assert_eq!(lines.len(), 5);
    for requests in &requests {
        assert_eq!(requests.header("authorization"), Some("Bearer hunter2hunter2"));
    }
    wire.close().await;
    peer.wait_for_hangup().await;
    assert!(matches!(wire.receive().await, Arrival::Closed(_)));
    assert!(wire.send(request(3, "ping")).await.is_err());
}

#[tokio::test]
async fn messages_are_never_sent_to_another_origin() {
    let elsewhere = TestServer::start(|_, _| TestResponse::accepted()).await;
    let named = elsewhere.url("/messages").to_string();
    let error = opening(move || stream(&format!("event: endpoint\ndata: {named}\n\n"))).await;
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn what_is_no_such_stream_is_told() {
    let error = opening(|| TestResponse::full("404 Not Found", &[], "")).await;
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(error.hint().unwrap().contains("/sse"));
    let page = || TestResponse::full("200 OK", &["Content-Type: text/html"], "<title>Hi</title>");
    let error = opening(page).await;
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert!(error.message().contains("is not an event stream: text/html"), "{error}");
    let error = opening(|| TestResponse::events("data: {}\n\n")).await;
    assert_eq!(error.kind(), ErrorKind::Protocol);
    let error = opening(|| TestResponse::events(": nothing\n\n")).await;
    assert_eq!((error.kind(), error.message()), (ErrorKind::Unreachable, "the event stream ended"));
    let error = opening(|| TestResponse::full("401 Unauthorized", &[], "")).await;
    assert_eq!(error.kind(), ErrorKind::Auth);
}

#[tokio::test]
async fn silence_and_endless_events_have_bounds() {
    let limited = |peer: &TestServer, limits: HttpLimits| {
        let mut target = target(peer.url("/sse"));
        target.limits = limits;
        SseWire::connect(target).unwrap()
    };
    let limits = || HttpLimits { control: Duration::from_millis(50), ..HttpLimits::default() };
    for silent in [stream as fn(&str) -> TestResponse, |_| TestResponse::Hang(Vec::new())] {
        let peer = TestServer::start(move |_, _| silent(": hi\n\n")).await;
        let wire = limited(&peer, limits());
        let error = wire.send(request(1, "initialize")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    }
    let peer = saying("event: endpoint\ndata: /m\n\ndata: {\"an event\": \"without an end").await;
    let wire = limited(&peer, HttpLimits { message: 32, ..HttpLimits::default() });
    wire.send(request(1, "initialize")).await.ok();
    let Arrival::Closed(error) = wire.receive().await else { panic!("not closed") };
    assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
}

#[tokio::test]
async fn a_refused_message_fails_alone_and_the_end_of_the_stream_ends_everything() {
    let peer = TestServer::start(|_, request| match request.method.as_str() {
        "GET" => stream("event: endpoint\ndata: /m\n\n"),
        _ => TestResponse::full("500 Internal Server Error", &[], "out of paper"),
    })
    .await;
    let wire = wire(&peer);
    let error = wire.send(request(1, "initialize")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert_eq!(error.details(), ["out of paper"]);
    assert!(wire.waiting_for(&json!(1)).is_none());
    assert!(wire.send(request(2, "initialize")).await.is_err());
    assert_eq!(peer.requests().iter().filter(|request| request.method == "GET").count(), 1);

    let cut = TestServer::start(|_, request| match request.method.as_str() {
        "GET" => {
            let mut bytes = head("200 OK", &EVENTS);
            bytes.extend_from_slice(chunk("event: endpoint\ndata: /m\n\n").as_bytes());
            TestResponse::Last(bytes)
        }
        _ => TestResponse::accepted(),
    })
    .await;
    let wire = self::wire(&cut);
    wire.send(request(1, "initialize")).await.ok();
    let Arrival::Closed(error) = wire.receive().await else { panic!("not closed") };
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    assert!(error.message().contains("the event stream was cut"), "{error}");
}
