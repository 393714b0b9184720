//! Clients that harm only themselves: those that vanish, say nothing, or say too much.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Lines, Served, TOKEN, Wire, post};
use crate::support::Sandbox;

const WAIT: &str = r#"{"name":"wait","arguments":{"seconds":600}}"#;

fn call(id: u64, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

fn wait() -> Value {
    serde_json::from_str(WAIT).unwrap()
}

/// The head of a POST of this length with the token.
fn head(address: &str, length: usize, more: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Length: {length}\r\n{more}\r\n"
    )
}

#[test]
fn the_calls_of_a_client_that_vanishes_are_cancelled() {
    let room = Sandbox::new();
    let socket = room.path("run/s").display().to_string();
    let mut served = Served::start(&room, &["--unix", &socket, "--http", "127.0.0.1:0"]);
    served.address();
    let http = served.address();
    let mut client = Lines::connect(&socket);
    client.initialize(json!({}));
    client.send(&call(1, &wait()));
    // A later answer says that the call was taken.
    client.ask(2, "ping", json!({}));
    drop(client);
    let params = json!({
        "name": "demo-slow", "arguments": { "seconds": 30 },
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "progressToken": "p",
        },
    });
    let body = call(1, &params).to_string();
    let more =
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: demo-slow\r\n";
    let mut stream = TcpStream::connect(&http).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(stream, "{}{body}", head(&http, body.len(), more)).unwrap();
    // Its stream begins with the first progress: the call runs.
    stream.read_exact(&mut [0; 12]).unwrap();
    drop(stream);
    let ended = |_: &u32| {
        let audit = room.toolhost(["audit", "--json"]).go();
        audit.out().matches("interrupted").count() >= 2
    };
    assert!((0..200).any(|try_| ended(&try_)), "{}", room.toolhost(["audit", "--json"]).go().out());
    assert_eq!(served.end(), Some(143));
}

#[test]
fn clients_that_say_nothing_keep_no_one_out() {
    let room = Sandbox::new();
    let socket = room.path("run/s").display().to_string();
    let mut served = Served::start(&room, &["--unix", &socket, "--http", "127.0.0.1:0"]);
    served.address();
    let http = served.address();
    let silent: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(&http).unwrap()).collect();
    let mute: Vec<_> = (0..100).map(|_| Lines::connect(&socket)).collect();
    let mut client = Lines::connect(&socket);
    client.initialize(json!({}));
    let sum = client.call(1, "calculator", json!({ "expression": "1+1" }));
    assert_eq!(sum["content"][0]["text"], "2");
    assert_eq!(post(&http, "/mcp", "", "{}").0, 401);
    drop((silent, mute, client));
    assert_eq!(served.end(), Some(143));
}

#[test]
fn a_message_that_says_it_has_a_gigabyte_is_refused_before_it_comes() {
    let room = Sandbox::new();
    let mut served = Served::start(&room, &["--http", "127.0.0.1:0"]);
    let http = served.address();
    let mut stream = TcpStream::connect(&http).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(stream, "{}{{", head(&http, 1 << 30, "")).unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 413");
    assert_eq!(served.end(), Some(143));
}

#[test]
fn the_ids_of_one_client_mean_nothing_for_another() {
    let room = Sandbox::new();
    let socket = room.path("run/s").display().to_string();
    let mut served = Served::start(&room, &["--unix", &socket]);
    served.address();
    let (mut first, mut second) = (Lines::connect(&socket), Lines::connect(&socket));
    first.initialize(json!({}));
    second.initialize(json!({}));
    let slow = json!({ "name": "demo-slow", "arguments": { "seconds": 1 } });
    first.send(&call(7, &slow));
    first.ask(8, "ping", json!({}));
    let cancelled = json!({ "requestId": 7, "reason": "not mine" });
    second.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled }),
    );
    let sum = second.call(7, "calculator", json!({ "expression": "6*7" }));
    assert_eq!(sum["content"][0]["text"], "42");
    let waited = first.response(7);
    assert_eq!(waited["result"]["content"][0]["text"], "waited 1 s", "{waited}");
    drop((first, second));
    assert_eq!(served.end(), Some(143));
}

#[test]
fn sessions_over_http_are_bounded_and_stateless_requests_go_on() {
    let room = Sandbox::new();
    let mut served = Served::start(&room, &["--http", "127.0.0.1:0"]);
    let http = served.address();
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "flood", "version": "1" },
    });
    let open = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let (open, token) = (open.to_string(), format!("Authorization: Bearer {TOKEN}\r\n"));
    let opened = (0..1_100).find_map(|count| match post(&http, "/mcp", &token, &open).0 {
        200 => None,
        status => Some((count, status)),
    });
    assert_eq!(opened, Some((1_024, 503)));
    let sum = super::ask_stateless(
        &http,
        "tools/call",
        json!({ "name": "calculator", "arguments": { "expression": "1+1" } }),
    );
    assert_eq!(sum["content"][0]["text"], "2", "{sum}");
    assert_eq!(served.end(), Some(143));
}
