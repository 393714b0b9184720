//! Trust in a project, asked in the console: answered, refused, changed and revoked elsewhere, and
//! seen on the side of the servers.

use std::fmt::Write as _;

use super::{LEAVES, room_with_server};
use crate::support::{Fixture, Place, Pty, Sandbox, example, log_events, script};

/// The question, once it takes an answer.
const QUESTION: &str = "Trust this project? [y/N]";
const NOTICE: &str = "This project is not trusted";

fn console(room: &Sandbox) -> Pty {
    Pty::console(room, &[], 40, 120)
}

fn starts(room: &Sandbox) -> usize {
    log_events(&room.log("srv"), "start").len()
}

fn leave(mut pty: Pty) -> String {
    pty.type_keys("q");
    let (code, screen) = pty.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains(LEAVES), "the terminal was not given back");
    screen
}

/// Runs a command in another process, while the console is open.
fn elsewhere(room: &Sandbox, words: &[&str]) {
    let finished = room.toolhost(words.iter().copied()).go();
    assert_eq!(finished.code, Some(0), "{finished}");
}

/// What lives in the room beside the console.
fn servers(room: &Sandbox) -> Vec<String> {
    let mut all = room.inhabitants();
    all.retain(|one| !one.contains("toolhost"));
    all
}

#[test]
fn an_untrusted_project_opens_at_once_and_nothing_of_it_starts() {
    let (room, _fixture) = room_with_server();
    let mut pty = console(&room);
    pty.expect_shown("misbehaving_server").expect_shown(QUESTION);
    // Leaving is no answer.
    leave(pty);
    assert_eq!(starts(&room), 0);
    assert!(!room.path("state/toolhost/trust.json").exists());
    let mut pty = console(&room);
    pty.expect_shown(QUESTION);
    leave(pty);
}

#[test]
fn a_yes_after_the_end_was_shown_starts_the_server() {
    let (room, _fixture) = room_with_server();
    let mut text = "tools:\n".to_owned();
    for number in 0..60 {
        writeln!(text, "  - {{ name: entry-{number}-, command: [echo, {number}] }}").unwrap();
    }
    room.file("tools.yaml", &text);
    let mut pty = Pty::console(&room, &[], 24, 80);
    // Too early: its end was not shown.
    pty.expect_shown("Read to the end").type_keys("y").type_keys("a").type_keys("G");
    pty.expect_shown(QUESTION);
    assert_eq!(starts(&room), 0);
    pty.type_keys("y").expect_shown("this project is trusted now");
    pty.type_keys("/srv-echo").expect_shown("❯ srv-echo");
    pty.type_keys("\r").expect_shown("Arguments  srv-echo").type_keys("hi\u{1b}[15~");
    pty.expect_shown(" OK ").type_keys("\u{1b}").expect_shown("/ filter");
    leave(pty);
    assert_eq!(starts(&room), 1);
    // It was stored: the next run asks nothing.
    room.toolhost(["call", "srv-echo", "message=hi"]).check().exits(0);
}

#[test]
fn a_no_is_remembered_and_can_be_taken_back() {
    let (room, _fixture) = room_with_server();
    let mut pty = console(&room);
    pty.expect_shown(QUESTION).type_keys("n").expect_shown(NOTICE).expect_shown("Press ! to see");
    leave(pty);
    let mut pty = console(&room);
    pty.expect_shown(NOTICE).expect_shown("not trusted: 1 entry");
    assert!(!pty.shown().contains("Trust this project?"), "{}", pty.shown());
    assert_eq!(starts(&room), 0);
    pty.type_keys("!").expect_shown(QUESTION).type_keys("y").expect_shown("srv-echo");
    pty.expect_gone(NOTICE);
    leave(pty);
    assert_eq!(starts(&room), 1);
}

#[test]
fn trust_that_another_process_gives_and_takes_is_noticed() {
    let (room, _fixture) = room_with_server();
    let mut pty = console(&room);
    pty.expect_shown(QUESTION).type_keys("n").expect_shown(NOTICE);
    elsewhere(&room, &["trust", "--yes"]);
    pty.expect_shown("this project was trusted in another terminal").expect_shown("srv-echo");
    pty.expect_gone(NOTICE);
    assert_eq!(starts(&room), 1);
    assert_ne!(servers(&room), [""; 0]);
    elsewhere(&room, &["trust", "revoke"]);
    pty.expect_shown("trust in this project was revoked in another terminal").expect_shown(NOTICE);
    // That is said after the old host has closed.
    assert_eq!(servers(&room), [""; 0]);
    leave(pty);
    assert_eq!(starts(&room), 1);
}

#[test]
fn a_project_that_changes_while_the_question_stands_is_not_trusted() {
    let (room, _fixture) = room_with_server();
    let mut pty = console(&room);
    pty.expect_shown(QUESTION);
    let other = Fixture::fault(Place::Stdio, "none", "legacy", &room.log("other"));
    room.server("other", &other);
    pty.type_keys("y").expect_shown("changed while the question was open");
    pty.expect_shown("The project changed").expect_shown("other.jsonl").expect_shown(QUESTION);
    assert_eq!(starts(&room), 0);
    pty.type_keys("y").expect_shown("● 2 servers").expect_shown("this project is trusted now");
    leave(pty);
    assert_eq!((starts(&room), log_events(&room.log("other"), "start").len()), (1, 1));
}

#[test]
fn a_call_of_code_that_changed_offers_the_difference() {
    let room = Sandbox::new();
    script(&room.path("work/code.sh"), "#!/bin/sh\necho first\n");
    room.file("tools.yaml", "tools: [{ name: scripted, command: [./code.sh] }]\n");
    elsewhere(&room, &["trust", "--yes"]);
    let mut pty = console(&room);
    pty.expect_shown("scripted").type_keys("\r").expect_shown("Arguments  scripted");
    pty.type_keys("\u{1b}[15~").expect_shown(" OK ").expect_shown("first");
    script(&room.path("work/code.sh"), "#!/bin/sh\necho second\n");
    pty.type_keys("\u{1b}[15~").expect_shown("changed code: code.sh").expect_shown(QUESTION);
    pty.type_keys("y").expect_shown("this project is trusted now");
    pty.type_keys("\u{1b}[15~").expect_shown("second");
    pty.type_keys("\u{1b}").expect_shown("/ filter");
    leave(pty);
}

#[test]
fn a_server_whose_script_changed_is_not_started_again_before_it_was_shown() {
    let room = Sandbox::new();
    let (server, log) = (example("misbehaving_server"), room.log("srv"));
    let write = |word: &str| {
        let (server, log) = (server.display(), log.display());
        let options = format!("--fault none --era legacy --event-log '{log}'");
        let text = format!("#!/bin/sh\n# {word}\nexec '{server}' {options}\n");
        script(&room.path("work/serve.sh"), &text);
    };
    write("first");
    room.file("mcp.yaml", "mcp_servers: { srv: { command: ./serve.sh, start_timeout: 8s } }\n");
    elsewhere(&room, &["trust", "--yes"]);
    let mut pty = console(&room);
    pty.expect_shown("echo");
    write("second");
    pty.type_keys("2").expect_shown("srv").type_keys("R").expect_shown("changed code: serve.sh");
    pty.expect_shown(QUESTION);
    assert_eq!(starts(&room), 1);
    pty.type_keys("y").expect_shown("this project is trusted now").expect_shown("● 1 server");
    leave(pty);
    assert_eq!(starts(&room), 2);
}

#[test]
fn a_call_that_runs_ends_when_trust_is_revoked() {
    let room = Sandbox::new();
    room.file("tools.yaml", "tools: [{ name: wait, command: [sleep, '3600'] }]\n");
    elsewhere(&room, &["trust", "--yes"]);
    let mut pty = console(&room);
    pty.expect_shown("wait").type_keys("\r").expect_shown("Arguments  wait");
    pty.type_keys("\u{1b}[15~").expect_shown("RUNNING");
    elsewhere(&room, &["trust", "revoke"]);
    pty.expect_shown("trust in this project was revoked in another terminal");
    pty.expect_gone("RUNNING");
    assert_eq!(servers(&room), [""; 0]);
    // With nothing under way it leaves at once.
    pty.type_keys("\u{1b}").expect_shown("/ filter");
    leave(pty);
}

#[test]
fn the_notice_is_read_on_a_small_screen() {
    let (room, _fixture) = room_with_server();
    let mut pty = Pty::console(&room, &[], 10, 40);
    pty.expect_shown("Trust this project?").type_keys("G").expect_shown(QUESTION);
    pty.type_keys("n").expect_shown("1 entry").expect_shown("Press !");
    leave(pty);
    assert_eq!(starts(&room), 0);
}
