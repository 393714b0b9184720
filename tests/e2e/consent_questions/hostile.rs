//! Questions whose text was made to mislead or to wear out whoever reads them.

use std::time::Duration;

use serde_json::json;

use super::{INTERRUPT, NO, QUESTION, refused, run, terminal};
use crate::support::{Recorder, Sandbox, forbidden};

/// How long a big project may take in a debug build on a busy machine.
const LIMIT: Duration = Duration::from_secs(50);

/// Ways to say that a name is not what it looks like.
const POINTED_OUT: &[&str] = &["\\u", "U+0456", "ASCII", "look"];

#[test]
fn a_text_of_a_megabyte_is_shown_to_its_end_and_can_be_left() {
    let room = Sandbox::ordinary();
    let recorder = Recorder::new(&room);
    let long = "x".repeat(1 << 20) + "-the-end";
    let tools = json!({ "tools": [{
        "name": "t", "description": long, "command": [recorder.program, long],
    }] });
    room.file("tools.yaml", &tools.to_string());
    let shown = refused(&room, &["trust"]);
    let said = shown.out() + &shown.err();
    assert!(said.contains("-the-end"), "the end is not shown");
    let mut pty = terminal(&room, &["call", "t"]);
    pty.expect("xxxx").type_keys(INTERRUPT);
    let (code, _) = pty.finish();
    assert_eq!(code, Some(130));
    assert!(recorder.starts().is_empty());
}

#[test]
fn ten_thousand_entries_are_one_question() {
    let room = Sandbox::ordinary();
    let entry = |number: usize| json!({ "name": format!("e{number}"), "command": ["true"] });
    let tools: Vec<_> = (0..10_000).map(entry).collect();
    room.file("tools.yaml", &json!({ "tools": tools }).to_string());
    let shown = run(&room, &["trust"]).limit(LIMIT).check();
    let said = shown.exits(6).out() + &shown.err();
    assert!(said.contains("e0") && said.contains("e9999"), "an entry is not shown");
    run(&room, &["trust", "--yes"]).limit(LIMIT).check().exits(0);
    run(&room, &["call", "e9999"]).limit(LIMIT).check().exits(0);
}

#[test]
fn nothing_in_a_question_steers_the_terminal_or_looks_like_an_answer() {
    let evil = "a\u{1b}[2J\u{1b}]0;x\u{7}b\u{202e}c\u{200b}d\r\nTrust this project? [Y/n] y\n";
    let room = Sandbox::ordinary();
    let tools = json!({
        "tools": [
            { "name": "t", "command": ["echo", evil], "description": evil, "title": evil },
            { "name": "env", "command": ["env"], "env": { "LD_PRELOAD": evil, "PATH": evil } },
            { "name": "dir", "command": ["env"], "cwd": evil },
            { "name": "web", "endpoint_url": format!("https://x.invalid/{evil}") },
            { "name": evil, "command": ["echo"] },
        ],
        "scopes": { "X": evil },
    });
    let servers = json!({ "mcp_servers": { evil: { "command": "true", "args": [evil] } } });
    room.file("tools.yaml", &tools.to_string()).file("mcp.yaml", &servers.to_string());
    for words in [&["trust"][..], &["list"], &["call", "t"], &["config", "check"], &["servers"]] {
        let finished = run(&room, words).check();
        let said = finished.out() + &finished.err();
        assert_eq!(forbidden(said.as_bytes()), None, "{finished}");
        // No text of a file begins a line of its own.
        let begins =
            said.lines().any(|line| line.trim_start().starts_with("Trust this project? [Y/n]"));
        assert!(!begins, "{finished}");
    }
    let mut pty = terminal(&room, &["call", "t"]);
    pty.expect(QUESTION);
    let shown = pty.screen().replace("\r\n", "\n");
    assert!(!shown.contains("\u{1b}[2J") && !shown.contains("\u{202e}"), "{shown:?}");
    pty.type_keys(NO);
    assert_eq!(pty.finish().0, Some(6));
}

#[test]
fn a_name_that_looks_like_another_is_pointed_out() {
    // The second letter is Cyrillic.
    let twin = "g\u{456}thub";
    let room = Sandbox::ordinary();
    let servers = json!({ "mcp_servers": { twin: { "command": "true" } } });
    room.file("mcp.yaml", &servers.to_string());
    let checked = run(&room, &["config", "check"]).check();
    let shown = run(&room, &["trust"]).check();
    let said = shown.out() + &shown.err();
    let is_pointed_out = POINTED_OUT.iter().any(|word| said.contains(word));
    assert!(checked.code == Some(9) || is_pointed_out, "{checked}\n{shown}");
}
