//! Tests of what the wire reports to a tracer.

use secrecy::SecretString;

use super::*;
use crate::mcp::credentials;
use crate::mcp::tracer::tests::captured;
use crate::model::Traffic;
use crate::model::traffic::{Direction, TrafficKind};
use crate::net::test_server::EVENTS;

/// An item in one line, without times.
fn shown(traffic: &Traffic) -> String {
    let arrow = |direction: &Direction| if *direction == Direction::Sent { "->" } else { "<-" };
    match &traffic.kind {
        TrafficKind::Message { direction, bytes, .. } => {
            format!("{} {}", arrow(direction), bytes.escape_ascii())
        }
        TrafficKind::HttpHead { direction, line, latency, .. } => {
            assert_eq!(latency.is_some(), *direction == Direction::Received);
            format!("{} head {}", arrow(direction), line.split("//").last().unwrap())
        }
        TrafficKind::NonJsonLine(text) => format!("noise {text}"),
        other => format!("{other:?}"),
    }
}

#[tokio::test]
async fn everything_that_crosses_is_told_and_no_credential() {
    let peer = TestServer::start(|_, requests| match requests.method.as_str() {
        "POST" if requests.path == "/old" => {
            TestResponse::full("307 Temporary Redirect", &["Location: /mcp?key=planted-query"], "")
        }
        "POST" => {
            let answer = r#"{"jsonrpc":"2.0", "id":1,"result":{} }"#;
            let events = format!(
                ": warming up\n\nid: 7\ndata: {answer}\n\nevent: ping\ndata: x\n\nretry: 5\n\n"
            );
            let headers = [&EVENTS[..], &["Mcp-Session-Id: s1", "Set-Cookie: planted-cookie"]];
            let mut bytes = crate::net::test_server::head("200 OK", &headers.concat());
            bytes.extend_from_slice(crate::net::test_server::chunk(&events).as_bytes());
            bytes.extend_from_slice(b"0\r\n\r\n");
            TestResponse::Raw(bytes)
        }
        _ => TestResponse::full("405 Method Not Allowed", &[], ""),
    })
    .await;
    let (tracer, traffic) = captured();
    let secret = |text: &str| SecretString::from(text.to_owned());
    let mut target = target(peer.url("/old"));
    target.headers = vec![("x-team".to_owned(), secret("planted-header"))];
    target.credentials = credentials::bearer(secret("planted-token"));
    target.tracer = tracer.clone();
    tracer.opened("there");
    let wire = HttpWire::connect(target).unwrap();
    let mut frame = request(1, "initialize");
    frame.call = Some(crate::model::CallId("c1".into()));
    let sent = frame.bytes.escape_ascii().to_string();
    wire.send(frame).await.unwrap();
    assert!(matches!(wire.receive().await, Arrival::Message { .. }));
    wire.close().await;
    let traffic = traffic.lock().unwrap();
    let all: Vec<String> = traffic.iter().map(shown).collect();
    let place = peer.url("/").to_string().replace("http://", "");
    let expected = [
        "Opened(\"there\")".to_owned(),
        format!("-> head {place}old"),
        format!("-> {sent}"),
        "<- head 307 Temporary Redirect".to_owned(),
        format!("-> head {place}mcp?key=***"),
        format!("-> {sent}"),
        "<- head 200 OK".to_owned(),
        "noise : warming up".to_owned(),
        "noise id: 7".to_owned(),
        r#"<- {\"jsonrpc\":\"2.0\", \"id\":1,\"result\":{} }"#.to_owned(),
    ];
    assert_eq!(all[..expected.len()], expected);
    assert!(all.contains(&"<- head 405 Method Not Allowed".to_owned()), "{all:?}");
    assert_eq!(all.last().unwrap(), "Closed(\"ended by toolhost\")");
    let of_call = traffic.iter().filter(|traffic| traffic.call.is_some()).count();
    assert_eq!(of_call, 9, "heads, messages, the answer and the noise before it are of the call");
    let text = format!("{traffic:?}");
    assert!(!text.contains("planted"), "{text}");
    assert!(text.contains(r#"("authorization", "***")"#) && text.contains(r#"("x-team", "***")"#));
}

#[tokio::test]
async fn a_server_that_is_not_there_and_a_page_are_told_too() {
    let (tracer, traffic) = captured();
    let peer = TestServer::start(|_, _| {
        TestResponse::full("502 Bad Gateway", &["Content-Type: text/html"], "<h1>Bad Gateway</h1>")
    })
    .await;
    let wire = HttpWire::connect(HttpTarget { tracer: tracer.clone(), ..target(peer.url("/mcp")) });
    assert!(wire.unwrap().send(request(1, "initialize")).await.is_err());
    let unused = "http://127.0.0.1:1/mcp".parse().unwrap();
    let wire = HttpWire::connect(HttpTarget { tracer, ..target(unused) });
    assert!(wire.unwrap().send(request(1, "initialize")).await.is_err());
    let traffic = traffic.lock().unwrap();
    let all: Vec<String> = traffic.iter().map(shown).collect();
    assert!(all.contains(&"noise <h1>Bad Gateway</h1>".to_owned()), "{all:?}");
    assert!(all.last().unwrap().starts_with("noise no response: "), "{all:?}");
}
