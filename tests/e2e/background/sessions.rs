//! Servers that the clients of a background host do not share.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use super::faults::{ended, of_host};
use super::{call, count, hosts, is_alive, project};
use crate::serve::client::{Served, Wire as _};
use crate::support::Sandbox;

/// The project with a server that is not shared, trusted, and its host.
fn unshared() -> Sandbox {
    let room = project();
    room.file(
        "mcp.yaml",
        "mcp_servers:\n  counter: { command: python3, args: [server.py], shared: false }\n",
    );
    room.toolhost(["trust", "--yes"]).go().exits(0);
    room.toolhost(["up"]).go().exits(0);
    room
}

fn connections(room: &Sandbox) -> Value {
    hosts(room)[0]["servers"][0]["connections"].clone()
}

#[test]
fn a_server_that_is_not_shared_is_one_for_each_client_and_ends_with_it() {
    let room = unshared();
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
    assert!(table.out().contains("1/1 (2 own)"), "{table}");
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
    let room = unshared();
    let connect = || {
        let mut stream = UnixStream::connect(of_host(&room, "sock")).unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "another", "version": "1" } } });
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": "counter-count", "arguments": {} } });
        stream.write_all(format!("{hello}\n{ready}\n{call}\n").as_bytes()).unwrap();
        let answer = lines.find_map(|line| {
            let answer: Value = serde_json::from_str(&line.unwrap()).unwrap();
            (answer["id"] == 1).then_some(answer)
        });
        let answer = answer.unwrap()["result"]["structuredContent"].clone();
        (stream, answer["pid"].as_u64().unwrap())
    };
    let (one, of_one) = connect();
    let (_other, of_other) = connect();
    assert_ne!(of_one, of_other);
    one.shutdown(std::net::Shutdown::Both).unwrap();
    ended(of_one);
    assert!(is_alive(of_other));
    room.toolhost(["down"]).check().exits(0);
    assert!(!is_alive(of_other));
}

#[test]
fn more_sessions_than_may_have_a_server_are_refused_and_told_why() {
    let room = unshared();
    for number in 0..16 {
        count(&room, &["--session", &format!("session-{number}")]);
    }
    let refused = call(&room, &["counter-count", "--session", "one-more"]);
    refused.exits(4).says(&["16 client sessions have a connection of their own", "shared: false"]);
    // Those that are there go on.
    assert_eq!(count(&room, &["--session", "session-3"]).1, 2);
    room.toolhost(["down"]).check().exits(0);
}
