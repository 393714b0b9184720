//! The servers: how they are, and what a person does with them.

use rustix::process::{Pid, Signal, kill_process};

use super::room_with_server;
use crate::support::{Pty, Sandbox, log_events};

const CONSOLE: [&str; 2] = ["--mcp", "mcp.yaml"];

/// The processes of the server, the oldest first.
fn processes(room: &Sandbox) -> Vec<i32> {
    let starts = log_events(&room.log("srv"), "start");
    let pid = |start: &serde_json::Value| start["pid"].as_i64().unwrap().try_into().unwrap();
    starts.iter().map(pid).collect()
}

fn asked(room: &Sandbox, method: &str) -> usize {
    let messages = log_events(&room.log("srv"), "message");
    messages.iter().filter(|message| message["method"] == method).count()
}

#[test]
fn a_server_that_is_killed_behind_its_back_says_so_and_is_started_again() {
    let (room, _fixture) = room_with_server();
    let mut pty = Pty::console(&room, &CONSOLE, 40, 120);
    pty.expect_shown("echo").type_keys("2").expect_shown("ready since");
    let first = processes(&room)[0];
    pty.expect_shown(&first.to_string()).expect_shown("** opened:");
    kill_process(Pid::from_raw(first).unwrap(), Signal::KILL).unwrap();
    pty.expect_shown("failed").expect_shown("unreachable: ").expect_shown("** closed:");
    pty.type_keys("R").expect_shown("ready since").expect_shown("restarts     1");
    pty.type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
    let all = processes(&room);
    assert_eq!((all.len(), asked(&room, "initialize")), (2, 2));
    assert_ne!(all[0], all[1]);
    // What it offers was asked for anew.
    assert_eq!(asked(&room, "tools/list"), 2);
}

#[test]
fn a_server_is_asked_told_what_to_log_and_ended() {
    let (room, _fixture) = room_with_server();
    let mut pty = Pty::console(&room, &CONSOLE, 40, 120);
    pty.expect_shown("echo").type_keys("2").expect_shown("ready since");
    pty.type_keys("P").expect_shown("p50").type_keys("L").expect_shown("requested log level debug");
    pty.expect_shown("log level debug").type_keys("d").expect_shown("No tools declared");
    pty.type_keys("\u{1b}").expect_shown("health").type_keys("x").expect_shown("closed");
    pty.type_keys("T").expect_shown("/ srv:=srv").expect_shown("logging/setLevel");
    pty.type_keys("2").expect_shown("health").type_keys("t").expect_shown("/ src:srv");
    pty.type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
    assert_eq!((asked(&room, "ping"), asked(&room, "logging/setLevel")), (1, 1));
    assert_eq!(processes(&room).len(), 1);
    // It was ended while the console was still open, and in good order.
    assert_eq!(log_events(&room.log("srv"), "eof").len(), 1);
}

#[test]
fn declared_tools_stand_against_advertised_ones_and_broken_entries_say_why() {
    let room = Sandbox::new();
    room.file(
        "mcp.yaml",
        "mcp_servers:\n  srv:\n    command: ${TOOLHOST}\n    args: [demo-server]\n    provides_tools:\n      - { name: echo, description: Sends a message back unchanged }\n      - { name: add, description: Subtracts }\n      - { name: gone, description: Left }\n  bad:\n    command: sh\n    env: { T: \"${NOT_SET_ANYWHERE}\" }\n    provides_tools: [{ name: two, description: The second one }]\n",
    );
    let mut pty = Pty::console(&room, &CONSOLE, 40, 120);
    pty.expect_shown("echo").expect_shown("two").type_keys("2").expect_shown("ready since");
    pty.type_keys("d").expect_shown("- gone  (declared, not advertised)");
    pty.expect_shown("~ add  differs in description").expect_shown("+ slow  (not declared)");
    pty.expect_shown("= echo");
    pty.type_keys("\u{1b}").expect_shown("health").type_keys("j");
    pty.expect_shown("out of service: in 'env.T': the variable NOT_SET_ANYWHERE is not set");
    pty.type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
}

#[test]
fn a_server_that_could_not_be_started_is_started_at_once_when_a_person_wants_it() {
    let room = Sandbox::new();
    let ready = room.path("work/ready");
    let script = format!("test -e {} || exit 3; exec ${{TOOLHOST}} demo-server", ready.display());
    room.file(
        "mcp.yaml",
        &format!("mcp_servers: {{ srv: {{ command: sh, args: [-c, \"{script}\"] }} }}\n"),
    );
    let mut pty = Pty::console(&room, &CONSOLE, 24, 80);
    pty.expect_shown("1 failed").type_keys("2").expect_shown("exited with 3");
    std::fs::write(&ready, "").unwrap();
    // To ask again is answered with the same failure for a while.
    pty.type_keys("R").expect_shown("● 1 server").expect_shown("ready").type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
}
