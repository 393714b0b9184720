//! Servers whose code changes while clients are connected.

use std::fs::File;
use std::io::Write as _;

use serde_json::{Value, json};

use super::client::{Served, Wire};
use crate::support::{Pty, Sandbox};

const CHANGED: &str = "notifications/tools/list_changed";
const ENTRY: &str = "{ command: sh, args: [src/server.sh], watch: [src/*.sh] }";

/// The code of a server with one tool, which waits for a line in the pipe `run/go`.
fn write_code(room: &Sandbox, tool: &str) {
    let (toolhost, go) = (env!("CARGO_BIN_EXE_toolhost"), room.path("run/go"));
    let tools = json!({ "tools": [{ "name": tool, "command": ["head", "-n1", go] }] });
    room.file(&format!("{tool}.json"), &tools.to_string());
    room.file("src/server.sh", &format!("exec {toolhost} serve --tools {tool}.json\n"));
}

fn connect(served: &mut Served) -> impl Wire + use<> {
    let mut client = served.streams();
    client.initialize(json!({}));
    client.ask(1, "logging/setLevel", json!({ "level": "debug" }));
    client
}

fn tools(client: &mut impl Wire) -> String {
    client.ask(2, "tools/list", json!({}))["result"]["tools"].to_string()
}

/// The messages up to the first with these words.
fn until(client: &mut impl Wire, words: &str) -> Vec<Value> {
    let mut messages = Vec::new();
    while let Some(message) = client.next() {
        messages.push(message);
        if messages.last().unwrap().to_string().contains(words) {
            return messages;
        }
    }
    panic!("it hung up without {words}: {messages:?}")
}

#[test]
fn changed_code_is_started_when_calls_have_ended_and_a_failure_is_repaired_by_the_next_change() {
    let room = Sandbox::new();
    let pipe = room.path("run/go");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    write_code(&room, "one");
    room.file("mcp.yaml", &format!("mcp_servers: {{ dev: {ENTRY} }}"));
    let mut served = Served::start(&room, &["--mcp", "mcp.yaml"]);
    let mut client = connect(&mut served);
    assert!(tools(&mut client).contains("dev-one"));
    let call = json!({ "name": "dev-one", "arguments": {} });
    client.send(&json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call }));
    // Opened as soon as the call reads from it.
    let mut go = File::options().write(true).open(&pipe).unwrap();

    write_code(&room, "two");
    until(&mut client, "as soon as no call is running");
    go.write_all(b"done\n").unwrap();
    let messages = until(&mut client, CHANGED);
    let answer = messages.iter().find(|message| message["id"] == 3).expect("the call was cut off");
    assert!(answer["result"].to_string().contains("done"), "{answer}");
    let listed = tools(&mut client);
    assert!(listed.contains("dev-two") && !listed.contains("dev-one"), "{listed}");

    room.file("src/server.sh", "echo it is broken >&2; exit 3\n");
    let messages = until(&mut client, "not restarted");
    let line = messages.last().unwrap();
    assert!(line["params"]["level"] == "error" && line.to_string().contains("dev"), "{line}");
    until(&mut client, CHANGED);
    let refused = client.call(4, "dev-two", json!({}));
    assert!(refused.to_string().contains("it is broken"), "{refused}");
    write_code(&room, "three");
    until(&mut client, CHANGED);
    assert!(tools(&mut client).contains("dev-three"));
    drop(client);
    assert_eq!(served.ended(), Some(0));
    assert!(room.inhabitants().is_empty(), "{:?}", room.inhabitants());
}

#[test]
fn changed_code_that_nobody_trusted_is_not_started() {
    let room = Sandbox::new();
    write_code(&room, "one");
    let entry =
        json!({ "command": "sh", "args": ["src/server.sh"], "dev": { "watch": "src/*.sh" } });
    room.file(".vscode/mcp.json", &json!({ "servers": { "dev": entry } }).to_string());
    let shown = room.toolhost(["trust"]).go();
    shown.exits(6).says(&["restarts it when src/*.sh changes"]);
    room.toolhost(["trust", "--yes"]).go().exits(0);
    let mut served = Served::start(&room, &[]);
    let mut client = connect(&mut served);
    assert!(tools(&mut client).contains("dev-one"));
    room.file("src/server.sh", "touch ran\n");
    let messages = until(&mut client, "not restarted");
    assert!(messages.last().unwrap().to_string().contains("no longer what was trusted"));
    until(&mut client, CHANGED);
    client.call(3, "dev-one", json!({}));
    assert!(!room.path("work/ran").exists());
    drop(client);
    assert_eq!(served.ended(), Some(0));
}

#[test]
fn a_server_of_the_command_line_is_watched_and_the_console_shows_new_tools() {
    let room = Sandbox::new();
    write_code(&room, "one");
    let line = ["--watch", "src/*.sh", "--as", "dev", "--", "sh", "src/server.sh"];
    let mut served = Served::start(&room, &line);
    let mut client = connect(&mut served);
    assert!(tools(&mut client).contains("dev-one"));
    write_code(&room, "two");
    until(&mut client, CHANGED);
    assert!(tools(&mut client).contains("dev-two"));
    drop(client);
    assert_eq!(served.ended(), Some(0));

    room.file("mcp.yaml", &format!("mcp_servers: {{ dev: {ENTRY} }}"));
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 30, 110);
    pty.expect_shown("two");
    write_code(&room, "three");
    pty.expect_shown("three").expect_gone("two").type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
}

#[test]
fn watching_needs_a_program_and_stays_below_its_directory() {
    let room = Sandbox::new();
    for (entry, why) in [
        ("{ command: sh, watch: ../*.py }", "must be a path below the working directory"),
        ("{ command: sh, watch: ['src/['] }", "invalid pattern"),
        ("{ url: 'https://x.test', watch: src/* }", "needs a server with a 'command'"),
    ] {
        room.file("mcp.yaml", &format!("mcp_servers:\n  dev: {entry}\n"));
        let checked = room.toolhost(["config", "check", "--mcp", "mcp.yaml"]).go();
        let shown = checked.exits(9).out();
        assert!(shown.contains(why) && shown.contains("mcp.yaml:2:"), "{shown}");
    }
}
