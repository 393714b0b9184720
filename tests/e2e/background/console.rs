//! The console that is attached to a background host: what others call, and what becomes of it when the
//! host ends.

use serde_json::{Value, json};

use super::{await_hold, call, count, hosts, is_alive, kill, pid_of, pipes, release_hold, trusted};
use crate::serve::client::{Served, Wire as _};
use crate::support::{Pty, Sandbox};

const F5: &str = "\u{1b}[15~";

fn console(room: &Sandbox) -> Pty {
    let mut pty = Pty::console(room, &[], 45, 160);
    pty.expect_shown("count");
    pty
}

/// Finds the tool and runs it without arguments.
fn run(pty: &mut Pty, tool: &str) {
    pty.type_keys("1").type_keys(&format!("/\u{15}{tool}")).expect_shown(&format!("❯ {tool}"));
    pty.type_keys("\r").expect_shown(&format!("Arguments  {tool}")).type_keys(F5);
}

#[test]
fn what_others_call_appears_live_and_says_who_called() {
    let Some(room) = trusted() else { return };
    room.toolhost(["up"]).go().exits(0);
    let (server, ..) = count(&room, &[]);
    let host = pid_of(&hosts(&room)[0]);
    let mut pty = console(&room);
    pty.expect_shown(&format!("attached to the background host (pid {host})"));
    pty.expect_shown(&format!("  host {host}"));
    pty.type_keys("/\u{15}counter-count").expect_shown("❯ counter-count").type_keys("\u{1b}");
    assert_eq!(count(&room, &[]).0, server);
    // The strip below the result.
    pty.expect_shown("[toolhost call] 1");
    assert_eq!(count(&room, &[]).0, server);
    pty.expect_shown("[toolhost call] 2");
    // An editor, whose server is `toolhost serve`.
    let mut served = Served::start(&room, &[]);
    let mut editor = served.streams();
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "an-editor", "version": "1" } });
    editor.ask(0, "initialize", hello);
    editor.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let answer = editor.call(1, "counter-count", json!({}));
    assert_eq!(answer["structuredContent"]["pid"], server, "{answer}");
    pty.expect_shown("[an-editor] 1");
    // On the wire, with whose call it is.
    pty.type_keys("3").expect_shown("[an-editor] #").expect_shown("tools/call count");
    pty.type_keys("/client:editor\r").expect_gone("[toolhost call]").expect_shown("[an-editor]");
    // In the statistics and in the history.
    pty.type_keys("4").expect_shown("clients an-editor 1  toolhost call 2");
    pty.type_keys("6")
        .expect_shown(" CLIENT")
        .expect_shown(" an-editor ")
        .expect_shown(" toolhost call ");
    // Its own call goes the same way, and needs no mark.
    run(&mut pty, "counter-count");
    pty.expect_shown(" OK ").expect_shown(&format!("\"pid\": {server}"));
    pty.type_keys("\u{1b}").expect_gone("Arguments");
    let records = room.toolhost(["audit", "--json"]).go().json();
    let clients: Vec<&Value> =
        records.as_array().unwrap().iter().map(|record| &record["caller"]["client"]).collect();
    assert!(clients.contains(&&json!("an-editor")), "{clients:?}");
    assert!(clients.contains(&&json!("toolhost console")), "{clients:?}");
    pty.type_keys("q");
    let (code, screen) = pty.finish();
    assert_eq!(code, Some(0), "{screen}");
    // It left the host as it was, and started nothing itself.
    assert_eq!(pid_of(&hosts(&room)[0]), host);
    assert!(is_alive(server));
    drop(editor);
    served.end();
    room.toolhost(["down"]).check().exits(0);
}

#[test]
fn a_call_of_another_client_is_seen_while_it_runs() {
    let Some(room) = trusted() else { return };
    room.toolhost(["up"]).go().exits(0);
    let at = room.path("run/hold");
    pipes(&at);
    let word = format!("at={}", at.display());
    let held = room.toolhost(["call", "counter-hold", &word]).start();
    // The tool opens the other end: it runs.
    await_hold(&at);
    // It began before the console was there.
    let mut pty = console(&room);
    pty.expect_shown("1 running").type_keys("\u{18}").expect_shown("[toolhost call]");
    pty.expect_shown("hold").type_keys("\u{1b}");
    release_hold(&at);
    held.finish().exits(0);
    pty.expect_gone("1 running").type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
    room.toolhost(["down"]).check().exits(0);
}

#[test]
fn who_calls_is_asked_and_nobody_else() {
    let Some(room) = trusted() else { return };
    room.toolhost(["up"]).go().exits(0);
    let mut pty = console(&room);
    let mut other = Pty::toolhost(&room, &["call", "counter-erase"]);
    other.expect("may destroy").expect("[y/N");
    // What the console shows next comes after the question, and the question is not on it.
    assert!(count(&room, &[]).2.is_some());
    pty.type_keys("/\u{15}counter-count\u{1b}").expect_shown("[toolhost call] 1");
    assert!(!pty.shown().contains("to approve"), "{}", pty.shown());
    other.type_keys("y\r");
    assert_eq!(other.finish().0, Some(0));
    run(&mut pty, "counter-erase");
    // Keys that come too soon were typed for something else.
    pty.expect_shown("Approval needed").type_keys("y").expect_shown("    y allow once");
    pty.type_keys("\r").expect_shown("denied").expect_gone("Approval needed");
    pty.type_keys("\u{1b}").expect_gone("Arguments").type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
    room.toolhost(["down"]).check().exits(0);
}

#[test]
fn a_host_that_dies_is_said_and_the_console_goes_on_and_attaches_again() {
    let Some(room) = trusted() else { return };
    room.toolhost(["up"]).go().exits(0);
    let (server, ..) = count(&room, &[]);
    let host = pid_of(&hosts(&room)[0]);
    let mut pty = console(&room);
    pty.expect_shown(&format!("attached to the background host (pid {host})"));
    kill(host);
    pty.expect_shown(&format!("the background host (pid {host}) ended"));
    run(&mut pty, "counter-count");
    pty.expect_shown(" OK ").expect_shown("\"calls\": 1");
    pty.type_keys("\u{1b}").expect_gone("Arguments");
    // Without one, asking for it says what to do.
    pty.type_keys("2").type_keys("A").expect_shown("'toolhost up' starts one");
    room.toolhost(["up"]).go().exits(0);
    let (server_of_next, ..) = count(&room, &[]);
    assert_ne!(server, server_of_next);
    let next = pid_of(&hosts(&room)[0]);
    pty.type_keys("A").expect_shown(&format!("attached to the background host (pid {next})"));
    run(&mut pty, "counter-count");
    pty.expect_shown(&format!("\"pid\": {server_of_next}")).type_keys("\u{1b}");
    pty.expect_gone("Arguments").type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
    room.toolhost(["down"]).check().exits(0);
}

#[test]
fn a_console_that_is_to_be_fresh_is_its_own_host() {
    let Some(room) = trusted() else { return };
    room.toolhost(["up"]).go().exits(0);
    let (server, ..) = count(&room, &[]);
    let mut pty = Pty::console(&room, &["--fresh"], 45, 160);
    pty.expect_shown("count");
    run(&mut pty, "counter-count");
    pty.expect_shown("\"calls\": 1").type_keys("\u{1b}").expect_gone("Arguments").type_keys("q");
    let (code, screen) = pty.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(!screen.contains("attached to") && !screen.contains(&format!("\"pid\": {server}")));
    let of_host = call(&room, &["counter-count"]).json();
    assert_eq!(of_host["structured"]["calls"], 2, "the console used the server of the host");
    room.toolhost(["down"]).check().exits(0);
}
