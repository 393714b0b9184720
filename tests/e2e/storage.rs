//! Stores and mailboxes through the binary: names, processes at once, a full disk, trust, and a
//! component that stands for a server.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::{Fixture, Place, Run, Sandbox};

/// A run with this room's files named, which is consent to what they say.
fn named<'a>(room: &'a Sandbox, arguments: &[&'a str]) -> Run<'a> {
    room.toolhost([&["--tools", "tools.yaml"], arguments].concat())
}

fn room(entries: &str) -> Sandbox {
    let room = Sandbox::new();
    room.file("tools.yaml", &format!("components:\n{entries}"));
    room
}

const NOTES: &str = "  - { name: notes, type: storage, path: notes.db }\n";

#[test]
fn a_store_on_disk_is_the_same_in_every_run_and_under_every_spelling() {
    let room = room(NOTES);
    let written = named(&room, &["call", "notes-write", "key=list", "value:=[\"milk\"]"]).check();
    assert_eq!(written.exits(0).json(), json!({ "key": "list", "version": 1 }));
    for name in ["notes-read", "notes-get", "notes.get", "notes/read", "notes__get"] {
        let read = named(&room, &["call", name, "key=list"]).check();
        assert_eq!(read.exits(0).json(), json!(["milk"]), "{name}");
    }
    let read = named(&room, &["call", "notes-get", "key=list", "--json"]).check();
    assert_eq!(read.json()["tool"], "notes-read", "what is listed is what is said");
    named(&room, &["call", "notes-get", "key=lists"]).check().exits(3).says(&["'list'"]);
    let conflict = ["call", "notes-put", "key=list", "value=x", "if_version=7"];
    named(&room, &conflict).check().exits(3).says(&["conflict: 'list' is at version 1"]);
    // Deleting asks, and here is nobody to answer.
    named(&room, &["call", "notes-delete", "key=list"]).check().exits(6);
    let deleted = named(&room, &["call", "notes-delete", "key=list", "--yes"]).check();
    assert_eq!(deleted.exits(0).json()["existed"], true);
    let inspected = named(&room, &["inspect", "notes-write"]).check();
    assert!(inspected.exits(0).out().contains("notes.db (each write is flushed"), "{inspected}");
}

#[test]
fn what_cannot_be_a_key_or_a_value_is_refused_before_it_is_stored() {
    let room =
        room("  - { name: n, type: storage, path: n.db, max_keys: 1, max_value_bytes: 99 }\n");
    let long = format!("value={}", "x".repeat(100));
    let nul = r#"{"key":"a\u0000b","value":1}"#;
    for (wrong, unchecked) in [
        (&["key=", "value=x"][..], 2),
        (&["--args", nul], 2),
        (&["key=k", &long], 2),
        (&["key=k"], 2),
        (&["key=k", "value=x", "colour=red"], 0),
    ] {
        named(&room, &[&["call", "n-write"], wrong].concat()).check().exits(2);
        let words = [&["call", "n-write", "--no-validate"], wrong].concat();
        named(&room, &words).check().exits(unchecked);
    }
    assert_eq!(named(&room, &["call", "n-write", "key=k", "value=x"]).check().code, Some(0));
    let full = named(&room, &["call", "n-write", "key=l", "value=x"]).check();
    full.exits(3).says(&["quota: the store already has 1 keys", "max_keys"]);
}

#[test]
fn eight_processes_lose_no_update() {
    let room = room(NOTES);
    for round in 0..4 {
        // All but one of these lose the race for the key, and are told so.
        let race = format!("key=race-{round}");
        let own: Vec<String> = (0..8).map(|at| format!("key=own-{round}-{at}")).collect();
        let counted: Vec<_> = own
            .iter()
            .map(|own| {
                let race = ["call", "notes-write", &race, "value=x", "if_absent=true"];
                let own = ["call", "notes-write", own, "value=x"];
                (named(&room, &own).start(), named(&room, &race).start())
            })
            .collect();
        let mut winners = 0;
        for (own, race) in counted {
            own.finish().exits(0);
            let race = race.finish();
            race.exits_one_of(&[0, 3]);
            winners += u32::from(race.code == Some(0));
        }
        assert_eq!(winners, 1, "round {round}");
    }
    let list = named(&room, &["call", "notes-list", "limit=100"]).check().json();
    let keys = list["keys"].as_array().unwrap();
    assert_eq!(keys.len(), 4 * 9);
    let versions: BTreeSet<u64> = keys.iter().map(|key| key["version"].as_u64().unwrap()).collect();
    assert_eq!(versions.len(), 4 * 9, "no version was given twice");
}

#[test]
fn each_message_reaches_one_of_eight_receiving_processes() {
    let room = room("  - { name: crew, type: mailbox, storage_type: disk }\n");
    let texts: Vec<String> = (0..12).map(|at| format!("text=m{at}")).collect();
    let sent: Vec<_> = texts
        .iter()
        .map(|text| named(&room, &["call", "crew-send", "to=bob", text]).start())
        .collect();
    for sent in sent {
        sent.finish().exits(0);
    }
    let receive = ["call", "crew-receive", "name=bob", "limit=2", "wait=0"];
    let receiving: Vec<_> = (0..8).map(|_| named(&room, &receive).start()).collect();
    let mut got = Vec::new();
    for receiver in receiving {
        let messages = receiver.finish().exits(0).json()["messages"].clone();
        let texts = messages.as_array().unwrap().iter().map(|m| m["text"].to_string());
        got.extend(texts);
    }
    let distinct: BTreeSet<&String> = got.iter().collect();
    assert_eq!((got.len(), distinct.len()), (12, 12), "{got:?}");
    // Whoever waits hears of a message that another process sends.
    let waiting = named(&room, &["call", "crew-receive", "name=eve", "wait=20"]).start();
    named(&room, &["call", "crew-send", "to=eve", "message:={\"n\":1}"]).check().exits(0);
    let heard = waiting.finish().exits(0).json();
    assert_eq!(heard["messages"][0]["message"], json!({ "n": 1 }));
}

#[test]
fn a_full_disk_refuses_the_write_and_keeps_the_store() {
    let room = room("  - { name: n, type: storage, path: n.db }\n");
    named(&room, &["call", "n-write", "key=a", "value=kept"]).check().exits(0);
    room.file("big", &"x".repeat(900 << 10));
    // A limit on the size of files is a full disk that needs no mount.
    let script = "ulimit -f 256; exec \"$0\" \"$@\"";
    let binary = env!("CARGO_BIN_EXE_toolhost");
    let call = ["--tools", "tools.yaml", "call", "n-write", "key=b", "value=@big"];
    let full = room.program("/bin/sh", ["-c", script, binary].into_iter().chain(call)).check();
    full.exits(4).says(&["n.db"]);
    let read = named(&room, &["call", "n-read", "key=a"]).check();
    assert_eq!(read.exits(0).out(), "kept\n");
    named(&room, &["call", "n-write", "key=b", "value=@big"]).check().exits(0);
    let db = rusqlite::Connection::open(room.path("work/n.db")).unwrap();
    let check: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
}

#[test]
fn a_damaged_store_is_named_and_never_changed() {
    let room = room(NOTES);
    room.file("notes.db", "these are my own notes, not yours\n");
    let refused = named(&room, &["call", "notes-write", "key=a", "value=1"]).check();
    refused.exits(10).says(&["notes.db is damaged or not a store", ".recover"]);
    let text = std::fs::read_to_string(room.path("work/notes.db")).unwrap();
    assert_eq!(text, "these are my own notes, not yours\n");
}

#[test]
fn a_project_keeps_nothing_on_disk_unasked() {
    let room = Sandbox::new();
    let outside = room.path("home/elsewhere.db");
    let entries = format!(
        "components:\n{NOTES}  - {{ name: far, type: storage, path: {} }}\n  \
         - {{ name: up, type: mailbox, path: ../home/up.db }}\n",
        outside.display()
    );
    room.file("tools.yaml", &entries);
    let far = ["far-write", "key=a", "value=1"];
    for call in [["notes-write", "key=a", "value=1"], far, ["up-send", "to=bob", "text=x"]] {
        let refused = room.toolhost(["call"].into_iter().chain(call)).check();
        refused.exits(6).says(&["toolhost trust"]);
    }
    assert!(!outside.exists() && !room.path("work/notes.db").exists());
    room.toolhost(["--trust", "call", "far-write", "key=a", "value=1"]).check().exits(0);
    assert!(outside.exists());
}

#[test]
fn a_postgresql_component_gives_its_name_to_the_tools_of_a_server() {
    let room = Sandbox::new();
    let log = room.log("pg");
    room.server("pg", &Fixture::fault(Place::Stdio, "none", "legacy", &log));
    let run = |more: &str, arguments: &[&'static str]| {
        let entry = "type: storage, storage_type: postgresql";
        let text = format!("components:\n  - {{ name: warehouse, {entry}, {more} }}\n");
        room.file("tools.yaml", &text);
        let files = ["--tools", "tools.yaml", "--mcp", "mcp.yaml"];
        room.toolhost([&files, arguments].concat()).check()
    };
    let listed = run("mcp_server: pg", &["list", "-o", "names"]);
    let names = listed.exits(0).out();
    assert!(names.lines().any(|name| name == "warehouse-echo"), "{listed}");
    assert!(!names.lines().any(|name| name.starts_with("pg")), "{listed}");
    let called = run("mcp_server: pg", &["call", "warehouse-echo", "message=hi", "--json"]);
    assert_eq!(called.exits(0).json()["metadata"]["server"], Value::from("warehouse"));
    run("mcp_server: pq", &["call", "warehouse-echo", "message=hi"])
        .exits(9)
        .says(&["there is no MCP server 'pq'", "known servers: pg"]);
    run("access: read", &["call", "warehouse-echo"]).exits(9).says(&["mcp_server: …"]);
    let twice = "mcp_server: pg }\n  - { name: other, type: storage, storage_type: postgresql, mcp_server: pg";
    run(twice, &["call", "other-echo", "message=hi"])
        .exits(9)
        .says(&["the tools of 'pg' are already listed under 'warehouse'"]);
}

#[test]
fn the_example_works_as_it_says() {
    let room = Sandbox::new();
    room.file("tools.yaml", include_str!("../../examples/storage/tools.yaml"));
    let checked = named(&room, &["--strict", "config", "check"]).check();
    checked.exits(0);
    named(&room, &["call", "notes-write", "key=milk", "value=two litres"]).check().exits(0);
    let looked = named(&room, &["call", "notes_viewer-look_up", "key=milk"]).check();
    assert_eq!(looked.exits(0).out(), "two litres\n");
    named(&room, &["call", "cache-put", "key=a", "value=1"]).check().exits(0);
    named(&room, &["call", "cache-clear"]).check().exits(0);
    named(&room, &["call", "crew-send", "to=reviewer", "text=hello"]).check().exits(0);
    let got = named(&room, &["call", "crew-receive", "name=reviewer", "wait=5"]).check();
    assert_eq!(got.exits(0).json()["messages"][0]["text"], "hello");
}
