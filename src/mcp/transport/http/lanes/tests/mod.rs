//! Tests of lanes against real sockets: they send and report what an ordinary call would.

mod connections;
mod errors;
mod renewals;

use std::future::poll_fn;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::HttpWire;
use super::super::tests::{legacy, modern};
use super::{CallCompletion, LaneAnswer, LanePool, LanePoolEvent, param_header_lines};
use crate::mcp::call_template::{FIRST_ID, ToolCallTemplate};
use crate::mcp::wire::{Arrival, CallLanes as _, FrameKind, OutgoingFrame, Wire as _};
use crate::model::{Error, ErrorKind, JsonObject};
use crate::net::test_server::{EVENTS, TestRequest, TestResponse, TestServer, chunk, head};
use crate::util::clock::{Clock as _, SystemClock};

const LIMIT: Duration = Duration::from_hours(1);

async fn lanes_of(wire: &HttpWire, count: usize) -> LanePool {
    let request = ToolCallTemplate::new("echo", &JsonObject::new());
    wire.lane_pool("echo", request, count, LIMIT).await.unwrap().unwrap()
}

fn result(request: &TestRequest) -> TestResponse {
    let id = request.id();
    TestResponse::json(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#))
}

async fn ended(lanes: &mut LanePool) -> CallCompletion {
    loop {
        match poll_fn(|cx| lanes.poll(cx)).await {
            LanePoolEvent::Completed(ended) => return ended,
            LanePoolEvent::Free => {}
            LanePoolEvent::Closed(error) => panic!("over: {error}"),
        }
    }
}

async fn send(lanes: &mut LanePool, ticket: u64) {
    while !lanes.has_idle() || !lanes.send(ticket, "{}", b"", SystemClock.now()) {
        match poll_fn(|cx| lanes.poll(cx)).await {
            LanePoolEvent::Free => {}
            other => panic!("{other:?}"),
        }
    }
}

async fn call(lanes: &mut LanePool, ticket: u64) -> Result<LaneAnswer, Error> {
    send(lanes, ticket).await;
    let ended = ended(lanes).await;
    assert_eq!(ended.ticket, ticket);
    ended.answer
}

#[tokio::test]
async fn each_lane_has_one_connection_for_all_its_calls() {
    let peer = TestServer::start(|_, requests| result(requests)).await;
    let mut lanes = lanes_of(&legacy(&peer), 3).await;
    for round in 0..4 {
        for lane in 0..3 {
            assert!(lanes.send(round * 3 + lane, r#"{"a":1}"#, b"", SystemClock.now()));
        }
        assert!(!lanes.has_idle() && lanes.is_busy());
        for _ in 0..3 {
            let ended = ended(&mut lanes).await;
            let came = ended.answer.unwrap();
            assert!(came.is_plain && ended.bytes_out > 100 && ended.bytes_in > 50);
            let answer: Value = serde_json::from_slice(lanes.answer(came)).unwrap();
            assert_eq!(answer["result"], json!({ "content": [] }));
        }
    }
    let requests = peer.requests();
    let mut connections: Vec<_> = requests.iter().map(|requests| requests.connection).collect();
    connections.sort_unstable();
    assert_eq!(connections, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
    assert_eq!(requests[0].id(), json!(FIRST_ID));
    let body: Value = serde_json::from_str(&requests[5].body).unwrap();
    assert_eq!(body["params"], json!({ "name": "echo", "arguments": { "a": 1 } }));
    assert_eq!(lanes.protocol_warnings(), [] as [&str; 0]);
}

async fn ordinary(wire: &HttpWire, headers: Vec<(String, String)>) {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {} });
    let kind = FrameKind::Request {
        id: json!(1),
        method: "tools/call".to_owned(),
        name: Some("echo".to_owned()),
        headers,
    };
    let frame = OutgoingFrame { bytes: body.to_string().into(), call: None, kind };
    wire.send(frame).await.unwrap();
}

#[tokio::test]
async fn the_headers_are_those_of_an_ordinary_call() {
    let own = vec![("Mcp-Param-City".to_owned(), "Zürich".to_owned())];
    for era in [legacy as fn(&TestServer) -> HttpWire, modern] {
        let peer = TestServer::start(|_, requests| result(requests)).await;
        let wire = era(&peer);
        ordinary(&wire, own.clone()).await;
        let mut lanes = lanes_of(&wire, 1).await;
        let is_modern = peer.requests()[0].header("mcp-method").is_some();
        let lines = param_header_lines(&own).unwrap();
        let lines = if is_modern { &lines[..] } else { b"" };
        assert!(lanes.send(0, "{}", lines, SystemClock.now()));
        ended(&mut lanes).await.answer.unwrap();
        let requests = peer.requests();
        let [mut expected, mut sent] = [requests[0].headers.clone(), requests[1].headers.clone()];
        // An answer that has to be unpacked is none of this transport's business.
        assert_eq!(expected.remove("accept-encoding").as_deref(), Some("gzip"));
        assert!(expected.remove("content-length").is_some());
        assert!(sent.remove("content-length").is_some());
        assert_eq!(sent, expected);
        assert_eq!(requests[1].line(), requests[0].line());
    }
}

#[tokio::test]
async fn an_answer_among_events_is_found_and_the_rest_goes_to_the_session() {
    let peer = TestServer::start(|_, request| {
        let id = request.id();
        TestResponse::events(&format!(
            ": hello\n\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}}\n\n\
             data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n\n\
             data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[]}}}}\n\n\
             data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/after\"}}\n\n"
        ))
    })
    .await;
    let wire = legacy(&peer);
    let mut lanes = lanes_of(&wire, 1).await;
    for ticket in 0..2 {
        let came = call(&mut lanes, ticket).await.unwrap();
        assert!(came.is_plain);
        for method in ["notifications/message", "ping", "notifications/after"] {
            match wire.receive().await {
                Arrival::Message { bytes, .. } => {
                    assert!(String::from_utf8_lossy(&bytes).contains(method));
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(peer.requests().iter().all(|request| request.connection == 0));
    assert_eq!(lanes.protocol_warnings(), [] as [&str; 0]);
}

#[tokio::test]
async fn a_stream_that_goes_on_after_its_answer_costs_its_connection() {
    let peer = TestServer::start(|n, request| {
        if n > 0 {
            return result(request);
        }
        let id = request.id();
        let answer = format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n\n");
        TestResponse::Hang([head("200 OK", &EVENTS), chunk(&answer).into_bytes()].concat())
    })
    .await;
    let mut lanes = lanes_of(&legacy(&peer), 1).await;
    assert!(call(&mut lanes, 0).await.unwrap().is_plain);
    assert!(!lanes.has_idle());
    assert!(lanes.expire(lanes.next_deadline().unwrap()).is_none());
    assert!(call(&mut lanes, 1).await.unwrap().is_plain);
    assert_eq!(peer.requests()[1].connection, 1);
    assert!(
        lanes.protocol_warnings()[0].contains("event streams that stayed open"),
        "{:?}",
        lanes.protocol_warnings()
    );
}

#[tokio::test]
async fn what_is_no_plain_answer_is_left_to_be_read() {
    let peer = TestServer::start(|n, request| {
        let id = request.id();
        TestResponse::json(match n {
            0 => format!("{{\n \"jsonrpc\": \"2.0\",\n \"id\": {id}, \"result\": {{}} }}"),
            1 => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"isError":true}}}}"#),
            _ => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":1,"message":"no"}}}}"#),
        })
    })
    .await;
    let mut lanes = lanes_of(&legacy(&peer), 1).await;
    for (ticket, part) in ["result", "isError", "error"].iter().enumerate() {
        let came = call(&mut lanes, ticket as u64).await.unwrap();
        assert!(!came.is_plain);
        assert!(String::from_utf8_lossy(lanes.answer(came)).contains(part));
    }
}

#[tokio::test]
async fn a_call_that_was_abandoned_is_told_once() {
    let peer = TestServer::start(|_, _| TestResponse::Hang(Vec::new())).await;
    let mut lanes = lanes_of(&legacy(&peer), 2).await;
    send(&mut lanes, 7).await;
    let tickets: Vec<_> = lanes.abandon().into_iter().map(|(ticket, _)| ticket).collect();
    assert_eq!((tickets, lanes.is_busy()), (vec![7], false));
}

#[track_caller]
fn is_error(came: Result<LaneAnswer, Error>, kind: ErrorKind, part: &str) -> Error {
    let error = came.unwrap_err();
    assert_eq!(error.kind(), kind, "{error:?}");
    let text = format!("{} {:?}", error.message(), error.details());
    assert!(text.contains(part), "'{part}' is not in: {text}");
    error
}
