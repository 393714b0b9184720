//! Tests of connections that are refused, closed, encrypted, or go to a socket.

use super::super::super::tests::socket::{over, socket_to};
use super::super::super::tests::tls::tls_server;
use super::super::super::tests::{target, wire_to};
use super::*;
use crate::model::ErrorPhase;

async fn lanes_or_error(wire: &HttpWire) -> Result<Option<LanePool>, Error> {
    wire.lane_pool("echo", ToolCallTemplate::new("echo", &JsonObject::new()), 2, LIMIT).await
}

#[tokio::test]
async fn a_closed_port_is_an_error_before_anything_is_sent() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap()).parse().unwrap();
    drop(listener);
    let error = lanes_or_error(&wire_to(url)).await.err().unwrap();
    assert_eq!((error.kind(), error.phase()), (ErrorKind::Unreachable, Some(ErrorPhase::Start)));
    assert!(error.message().contains("connection refused"), "{error}");
}

#[tokio::test]
async fn a_server_that_closes_after_each_answer_works_and_is_told_of() {
    let peer = TestServer::start(|_, request| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, request.id());
        let length = format!("Content-Length: {}", body.len());
        let lines = ["Content-Type: application/json", "Connection: close", length.as_str()];
        TestResponse::Last([head("200 OK", &lines), body.into_bytes()].concat())
    })
    .await;
    let mut lanes = lanes_of(&legacy(&peer), 1).await;
    for ticket in 0..20 {
        assert!(call(&mut lanes, ticket).await.unwrap().is_plain);
    }
    let connections: Vec<_> = peer.requests().iter().map(|request| request.connection).collect();
    assert_eq!(connections, (0..20).collect::<Vec<_>>());
    let warnings = lanes.protocol_warnings();
    assert!(warnings[0].starts_with("20 responses after which the server closed"), "{warnings:?}");
}

#[tokio::test]
async fn an_answer_may_end_with_its_connection() {
    let peer = TestServer::start(|_, request| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, request.id());
        let head = head("200 OK", &["Content-Type: application/json"]);
        TestResponse::Last([head, body.into_bytes()].concat())
    })
    .await;
    let mut lanes = lanes_of(&legacy(&peer), 1).await;
    for ticket in 0..3 {
        assert!(call(&mut lanes, ticket).await.unwrap().is_plain);
    }
}

#[tokio::test]
async fn a_connection_that_ended_while_it_was_idle_costs_no_call() {
    let peer = TestServer::start(|n, request| match (n, result(request)) {
        // Without a word about it.
        (0, TestResponse::Raw(bytes)) => TestResponse::Last(bytes),
        (_, other) => other,
    })
    .await;
    let mut lanes = lanes_of(&legacy(&peer), 1).await;
    assert!(call(&mut lanes, 0).await.unwrap().is_plain);
    // The end of the connection is news that the lane hears of by itself.
    assert!(matches!(poll_fn(|cx| lanes.poll(cx)).await, LanePoolEvent::Free));
    assert!(call(&mut lanes, 1).await.unwrap().is_plain);
    assert_eq!(peer.requests()[1].connection, 1);
    assert!(
        lanes.protocol_warnings()[0].contains("idle connections"),
        "{:?}",
        lanes.protocol_warnings()
    );
}

#[tokio::test]
async fn when_the_server_is_gone_the_run_is_over() {
    let peer = TestServer::start(|_, _| TestResponse::Last(Vec::new())).await;
    let mut lanes = lanes_of(&legacy(&peer), 1).await;
    send(&mut lanes, 0).await;
    peer.wait_for_requests(1).await;
    drop(peer);
    let mut errors = Vec::new();
    let over = loop {
        match poll_fn(|cx| lanes.poll(cx)).await {
            LanePoolEvent::Completed(ended) => errors.push(ended.answer.unwrap_err()),
            LanePoolEvent::Free => {}
            LanePoolEvent::Closed(error) => break error,
        }
    };
    assert_eq!(errors.len(), 1);
    assert!(over.message().contains("connection refused"), "{over}");
}

#[tokio::test]
async fn certificates_are_checked_unless_a_person_said_not_to() {
    let url = tls_server(include_bytes!("../../testdata/selfsigned.pem"));
    let error = lanes_or_error(&wire_to(url.clone())).await.err().unwrap();
    assert!(error.message().contains("self-signed"), "{error}");
    assert!(error.hint().unwrap().contains("--insecure"));
    let mut insecure = target(url);
    insecure.insecure = true;
    let wire = HttpWire::connect(insecure).unwrap();
    let mut lanes = lanes_of(&wire, 1).await;
    // The server there answers to the id 1, whatever is asked.
    is_error(call(&mut lanes, 0).await, ErrorKind::Protocol, "response to unknown id 1");
}

#[tokio::test]
async fn calls_go_over_a_socket_in_place_of_the_host() {
    let peer = TestServer::start(|_, request| result(request)).await;
    let directory = tempfile::tempdir().unwrap();
    let path = socket_to(&peer, directory.path());
    let wire = HttpWire::connect(over(&path)).unwrap();
    let mut lanes = lanes_of(&wire, 2).await;
    assert!(call(&mut lanes, 0).await.unwrap().is_plain);
    assert_eq!(peer.requests()[0].line(), "POST /other");
    assert_eq!(peer.requests()[0].header("host"), Some("localhost"));
    let nowhere = HttpWire::connect(over(&directory.path().join("none"))).unwrap();
    let error = lanes_or_error(&nowhere).await.err().unwrap();
    assert!(error.message().starts_with("there is no socket"), "{error}");
}
