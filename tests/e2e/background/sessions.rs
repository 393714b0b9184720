//! Servers that the clients of a background host do not share.

use serde_json::{Value, json};

use super::faults::{ended, of_host};
use super::{call, count, hosts, is_alive, project};
use crate::serve::client::{HttpSession, Lines, Served, TOKEN, Wire as _};
use crate::support::Sandbox;

/// The project with a server that is not shared, trusted, and its host.
fn unshared() -> Option<Sandbox> {
    let room = project()?;
    room.file(
        "mcp.yaml",
        "mcp_servers:\n  counter: { command: python3, args: [server.py], shared: false }\n",
    );
    room.toolhost(["trust", "--yes"]).go().exits(0);
    room.toolhost(["up"]).go().exits(0);
    Some(room)
}

fn connections(room: &Sandbox) -> Value {
    hosts(room)[0]["servers"][0]["connections"].clone()
}

#[test]
fn a_server_that_is_not_shared_is_one_for_each_client_and_ends_with_it() {
    let Some(room) = unshared() else { return };
    assert_eq!(connections(&room), 0);
    let mut served = Served::start(&room, &[]);
    let mut editor = served.streams();
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "an-editor", "version": "1" } });
    editor.ask(0, "initialize", hello);
    editor.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let of_editor = editor.call(1, "counter-count", json!({}))["structuredContent"].clone();
    assert_eq!(of_editor["calls"], 1);
    // Each command is a client of its own.
    let (first, calls, used) = count(&room, &[]);
    assert!(calls == 1 && used.is_some() && of_editor["pid"] != first);
    ended(first);
    let (second, calls, _) = count(&room, &[]);
    assert!(second != first && calls == 1);
    ended(second);
    // Unless it names its session.
    let (named, ..) = count(&room, &["--session", "mine"]);
    assert_eq!(count(&room, &["--session", "mine"]), (named, 2, used));
    assert_eq!(connections(&room), 2);
    let table = room.toolhost(["ps"]).go();
    assert!(table.out().contains("1/1 (2 own)") && !table.out().contains(" ms"), "{table}");
    let again = editor.call(2, "counter-count", json!({}))["structuredContent"].clone();
    assert_eq!((&again["pid"], &again["calls"]), (&of_editor["pid"], &2.into()));
    drop(editor);
    served.end();
    ended(of_editor["pid"].as_u64().unwrap());
    assert!(is_alive(named));
    room.toolhost(["down"]).check().exits(0);
    assert!(!is_alive(named));
}

#[test]
fn a_client_that_is_not_this_program_has_its_server_as_long_as_its_connection() {
    let Some(room) = unshared() else { return };
    let connect = || {
        let mut client = Lines::connect(of_host(&room, "sock").to_str().unwrap());
        client.initialize(json!({}));
        let answer = client.call(1, "counter-count", json!({}));
        (client, answer["structuredContent"]["pid"].as_u64().unwrap())
    };
    let (one, of_one) = connect();
    let (_other, of_other) = connect();
    assert_ne!(of_one, of_other);
    drop(one);
    ended(of_one);
    assert!(is_alive(of_other));
    room.toolhost(["down"]).check().exits(0);
    assert!(!is_alive(of_other));
}

/// Two sessions over HTTP of one `serve`, of which one ends.
fn two_sessions_over_http(room: &Sandbox) {
    let mut served = Served::start(room, &["--http", "127.0.0.1:0"]);
    let address = served.address();
    let count = |session: &HttpSession, id: u64| {
        let call = json!({ "name": "counter-count", "arguments": {} });
        let (_, messages) = session.ask(id, "tools/call", &call);
        let answer = &messages.last().unwrap()["result"]["structuredContent"];
        (answer["pid"].as_u64().unwrap(), answer["calls"].as_u64().unwrap())
    };
    let (one, other) = (HttpSession::open(&address, TOKEN), HttpSession::open(&address, TOKEN));
    let ((of_one, _), (of_other, _)) = (count(&one, 1), count(&other, 1));
    assert_ne!(of_one, of_other);
    assert_eq!(count(&one, 2), (of_one, 2));
    one.end();
    ended(of_one);
    assert_eq!(count(&other, 2), (of_other, 2));
    served.end();
    ended(of_other);
}

#[test]
fn each_session_over_http_has_its_server_with_a_host_and_without() {
    let Some(room) = unshared() else { return };
    two_sessions_over_http(&room);
    assert!(hosts(&room)[0]["calls"].as_u64().unwrap() >= 4, "the host was not used");
    room.toolhost(["down"]).check().exits(0);
    two_sessions_over_http(&room);
    assert!(room.inhabitants().is_empty());
}

#[test]
fn more_sessions_than_may_have_a_server_are_refused_and_told_why() {
    let Some(room) = unshared() else { return };
    for number in 0..16 {
        count(&room, &["--session", &format!("session-{number}")]);
    }
    let refused = call(&room, &["counter-count", "--session", "one-more"]);
    refused.exits(4).says(&["16 client sessions have their own connection", "shared: false"]);
    // Those that are there go on.
    assert_eq!(count(&room, &["--session", "session-3"]).1, 2);
    room.toolhost(["down"]).check().exits(0);
}
