//! The trace: what a person sees of the wire, keeps of it, and is not hurt by.

use std::path::PathBuf;

use serde_json::Value;

use super::room_with_server;
use crate::support::{Fixture, Place, Pty, Sandbox};

const CONSOLE: [&str; 2] = ["--mcp", "mcp.yaml"];

/// A room with a server `srv` that misbehaves.
fn room_with(fault: &str, more: &str) -> (Sandbox, Fixture) {
    let room = Sandbox::new();
    let fixture = Fixture::fault(Place::Stdio, fault, "legacy", &room.log("srv"));
    room.server_with("srv", &fixture, more);
    (room, fixture)
}

/// Calls `srv-echo` with these words, and shows what crossed the wires.
fn call(pty: &mut Pty, words: &str) {
    pty.expect_shown("echo").type_keys("/sec").expect_shown("Tools 1/");
    pty.type_keys("\r").expect_shown("Arguments  srv-echo").type_keys(words);
    pty.expect_shown(&format!("sends {{\"message\":\"{words}\"}}")).type_keys("\u{1b}[15~");
    pty.expect_shown(" OK ");
    pty.type_keys("\u{1b}").expect_shown("filter").type_keys("3");
}

/// The trace that was written.
fn exported(room: &Sandbox) -> PathBuf {
    let entries = std::fs::read_dir(room.path("work")).unwrap();
    let mut found = entries.map(|entry| entry.unwrap().path()).filter(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with("trace-")
    });
    let path = found.next().unwrap();
    assert!(found.next().is_none());
    path
}

#[test]
fn a_call_is_seen_on_the_wire_with_its_answer_and_what_is_exported_replays() {
    let (room, _fixture) = room_with_server();
    let mut pty = Pty::console(&room, &CONSOLE, 40, 120);
    call(&mut pty, "milk and honey");
    pty.expect_shown("tools/call echo").expect_shown("content[1] milk and honey");
    pty.type_keys("/method:tools/call").expect_shown("Trace 3/").type_keys("\u{1b}[A\r");
    pty.expect_shown("request  response [both]").expect_shown("\"message\": \"milk and honey\"");
    pty.type_keys("t").expect_shown("[request]").type_keys("t").expect_shown("[response]");
    pty.expect_shown("\"content\": [");
    // Back in the list, and all lines again.
    pty.type_keys("\t\u{1b}f").expect_shown("following");
    pty.type_keys("E").expect_shown("for replay").type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
    let path = exported(&room);
    let text = std::fs::read_to_string(&path).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let calls: Vec<&Value> = rows.iter().filter(|row| row["method"] == "tools/call").collect();
    assert_eq!((&calls[0]["way"], &calls[1]["way"]), (&"sent".into(), &"received".into()));
    let asked = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"echo","arguments":{"message":"milk and honey"}}}"#;
    let words = ["replay", path.to_str().unwrap()];
    let played = room.toolhost(words).stdin(format!("{asked}\n")).check();
    assert_eq!(played.exits(0).json()["result"]["content"][0]["text"], "milk and honey");
}

#[test]
fn what_comes_while_it_is_paused_is_shown_afterwards() {
    let (room, _fixture) = room_with_server();
    let mut pty = Pty::console(&room, &CONSOLE, 40, 120);
    pty.expect_shown("echo").type_keys("3").expect_shown("tools/list").type_keys(" ");
    pty.expect_shown("PAUSED, 0 new").type_keys("2").expect_shown("ready").type_keys("c");
    pty.expect_shown("connecting to srv")
        .type_keys("3")
        .expect_shown("PAUSED, 2 new")
        .type_keys(" ");
    pty.expect_shown("2 new lines").expect_shown(" ping").type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
}

#[test]
fn secrets_never_stand_on_the_screen_or_in_the_file() {
    for (place, more) in [
        (Place::Stdio, "env: { API_TOKEN: planted-secret }\n"),
        (Place::Http, "headers: { X-Api-Key: planted-secret }\n"),
    ] {
        let room = Sandbox::new();
        let fixture = Fixture::fault(place, "secret-echo", "legacy", &room.log("srv"));
        room.server_with("srv", &fixture, more);
        let mut pty = Pty::console(&room, &CONSOLE, 40, 120);
        call(&mut pty, "hello");
        pty.expect_shown("tools/call echo");
        if place == Place::Stdio {
            pty.type_keys("/API_TOKEN\r").expect_shown("Trace 1/");
            pty.expect_shown("API_TOKEN=");
        } else {
            pty.type_keys("/x-api-key way:sent\r").expect_shown("x-api-key: ***");
        }
        pty.type_keys("E").expect_shown("for replay").type_keys("q");
        let (code, screen) = pty.finish();
        assert_eq!(code, Some(0));
        let text = std::fs::read_to_string(exported(&room)).unwrap();
        let shown = if place == Place::Stdio { "API_TOKEN=" } else { "***" };
        assert!(text.contains(shown) && !text.contains("planted"), "{text}");
        assert!(!screen.contains("planted"));
    }
}

#[test]
fn hostile_bytes_are_shown_escaped() {
    for (fault, shown) in [
        ("stderr-ansi", "stderr | ␛]52;c;b3duZWQ="),
        ("ansi-banner", "not JSON | ␛]0;owned"),
        ("init-error", "no licence"),
    ] {
        let (room, _fixture) = room_with(fault, "");
        let mut pty = Pty::console(&room, &CONSOLE, 40, 120);
        pty.expect_shown("1 Tools]").type_keys("3").expect_shown(shown).type_keys("q");
        let (code, screen) = pty.finish();
        assert_eq!(code, Some(0), "{fault}");
        for evil in ["\u{1b}]52;", "\u{1b}]0;", "\u{9b}", "\u{202e}"] {
            assert!(!screen.contains(evil), "{fault}: {evil:?}");
        }
    }
}

#[test]
fn a_flood_keeps_no_key_waiting() {
    let (room, _fixture) = room_with("stderr-flood", "");
    let mut pty = Pty::console(&room, &CONSOLE, 40, 120);
    // While it writes lines by the ten thousand, everything else works.
    pty.type_keys("3")
        .expect_shown("stderr | ")
        .type_keys("?")
        .expect_shown("follow the newest line");
    pty.type_keys("q/srv:s").expect_shown("/ srv:s");
    pty.type_keys("\r").expect_shown("following").type_keys(" ").expect_shown("PAUSED");
    pty.type_keys("1").expect_shown("srv-echo").type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
}
