//! The way of somebody who opens the console for the first time: nothing is known but what the footer
//! says.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::support::{Fixture, Place, Pty, Sandbox, log_events};

const F5: &str = "\u{1b}[15~";

/// What a server was told of this method, in order.
fn told(room: &Sandbox, server: &str, method: &str) -> Vec<Value> {
    let messages = log_events(&room.log(server), "message").into_iter();
    messages.filter(|message| message["method"] == method).collect()
}

/// Finds the tool and opens its form.
fn fill(pty: &mut Pty, letters: &str, tool: &str) {
    pty.type_keys(&format!("/\u{15}{letters}")).expect_shown(&format!("❯ {tool}"));
    pty.type_keys("\r").expect_shown(&format!("Arguments  {tool}"));
}

#[test]
fn a_newcomer_finds_runs_watches_stops_answers_measures_and_replays() {
    let room = Sandbox::new();
    let servers = [("srv", "none"), ("who", "asks-a-person"), ("slow", "never-answers-call")];
    let mut entries = "mcp_servers:\n".to_owned();
    for (name, fault) in servers {
        let fixture = Fixture::fault(Place::Stdio, fault, "legacy", &room.log(name));
        // Nothing ends by itself: it is the person who stops it.
        writeln!(entries, "  {name}:\n    timeout: 5m").unwrap();
        fixture.entry().lines().for_each(|line| writeln!(entries, "    {line}").unwrap());
    }
    room.file("mcp.yaml", &entries);
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 40, 120);
    pty.expect_shown("echo").expect_shown("who").expect_shown("slow");

    // Three letters, a form, a result.
    fill(&mut pty, "sec", "srv-echo");
    pty.type_keys("milk").type_keys("\r\r").expect_shown(" OK ").type_keys("\u{1b}");
    pty.expect_shown("/ filter");

    // On the wire.
    pty.type_keys("3").expect_shown("tools/call echo").type_keys("1").expect_shown("/ filter");

    // One that does not end is stopped.
    fill(&mut pty, "slow-echo", "slow-echo");
    pty.type_keys("x").type_keys(F5).expect_shown(r#"tools/call echo {"message":"x"}"#);
    pty.type_keys("\u{3}").expect_shown("CANCELLED").type_keys("\u{1b}").expect_shown("/ filter");

    // A question of a server.
    fill(&mut pty, "who-ask", "who-ask");
    pty.type_keys("\u{15}form").type_keys(F5).expect_shown("Enter answer   Esc later");
    pty.type_keys("\r").expect_shown("^D decline").type_keys("Ada").type_keys(F5);
    pty.expect_shown("answered who").expect_shown(" OK ").type_keys("\u{1b}");
    pty.expect_shown("/ filter");

    // Two tools against each other.
    pty.type_keys("1")
        .type_keys("/\u{15}srv-echo")
        .expect_shown("❯ srv-echo")
        .type_keys("\u{1b}")
        .expect_shown("/ filter")
        .type_keys("b");
    pty.expect_shown("Plan").type_keys("b").expect_shown("Choose B").type_keys("srvecho");
    pty.expect_shown("1 found").type_keys("\r").expect_gone("Choose B").type_keys(F5);
    pty.expect_shown("Verdict 1").expect_shown("between");

    // A call of the past, edited.
    pty.type_keys("1")
        .type_keys("/\u{15}srv-echo")
        .expect_shown("❯ srv-echo")
        .type_keys("\u{1b}")
        .expect_shown("/ filter")
        .type_keys("h");
    pty.expect_shown("History").expect_shown("\"message\": \"milk\"").type_keys("R");
    pty.expect_shown("Arguments  srv-echo").type_keys(" and honey").type_keys(F5);
    // What is in the history has ended.
    pty.expect_shown("content[1] milk and honey").type_keys("\u{1b}");
    pty.expect_gone("Arguments  srv-echo").type_keys("6");
    pty.expect_shown("message=\"milk and honey\"").type_keys("q");
    let (code, screen) = pty.finish();
    assert_eq!(code, Some(0), "{screen}");

    let calls = told(&room, "srv", "tools/call");
    let said: Vec<&Value> =
        calls.iter().map(|call| &call["params"]["arguments"]["message"]).collect();
    assert_eq!(said.first(), Some(&&json!("milk")));
    assert_eq!(said.last(), Some(&&json!("milk and honey")));
    assert!(calls.len() > 100, "it was measured");
    assert_eq!(told(&room, "slow", "notifications/cancelled").len(), 1);
    let answers = log_events(&room.log("who"), "message");
    let answer = answers.iter().find(|message| message["result"]["action"] == "accept").unwrap();
    assert_eq!(answer["result"]["content"]["name"], "Ada");
}
