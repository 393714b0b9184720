//! Commands beside calls and lists that use a background host.

use serde_json::Value;

use super::{count, hosts, is_alive, kill, pid_of, project, trusted};
use crate::support::{Pty, Sandbox};

/// What a shell would offer for the last of these words.
fn offered(room: &Sandbox, words: &[&str]) -> Vec<String> {
    let line = ["--", "toolhost"].iter().chain(words).copied();
    let finished = room.toolhost(line).env("COMPLETE", "fish").go();
    finished.exits(0);
    finished.out().lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

#[test]
fn a_followed_trace_shows_what_every_client_of_the_host_calls() {
    let Some(room) = trusted() else { return };
    room.toolhost(["up"]).go().exits(0);
    let mut pty = Pty::toolhost(&room, &["trace", "counter", "--follow"]);
    // It connects the server of the host, and is there from the first message on.
    pty.expect("** opened: ").expect("initialize").expect("5 tools");
    let (server, calls, used) = count(&room, &[]);
    assert!(calls == 1 && used.is_some());
    pty.expect("tools/call");
    pty.type_keys("\u{3}");
    let (_, screen) = pty.finish();
    assert!(screen.contains(&server.to_string()), "{screen}");
    assert!(is_alive(server), "it is the server of the host");
    // One that is followed when the host ends says so.
    let mut pty = Pty::toolhost(&room, &["trace", "counter", "--follow"]);
    pty.expect("5 tools");
    kill(pid_of(&hosts(&room)[0]));
    pty.expect("the background host");
    assert_eq!(pty.finish().0, Some(4));
}

#[test]
fn completion_knows_what_the_host_has_connected() {
    let Some(room) = trusted() else { return };
    room.toolhost(["up"]).go().exits(0);
    // No server was asked yet, and completion starts none.
    assert!(offered(&room, &["call", "counter-"]).is_empty());
    assert_eq!(hosts(&room)[0]["servers"][0]["status"], "idle");
    count(&room, &[]);
    let tools = offered(&room, &["call", "counter-"]);
    assert!(tools.contains(&"counter-hold".to_owned()), "{tools:?}");
    assert_eq!(offered(&room, &["call", "counter-hold", ""])[0], "at=");
    assert!(offered(&room, &["--fresh", "call", "counter-"]).is_empty());
    room.toolhost(["down"]).check().exits(0);
}

#[test]
fn a_call_of_the_past_is_made_again_by_the_host() {
    let Some(room) = trusted() else { return };
    room.toolhost(["up"]).go().exits(0);
    let (server, ..) = count(&room, &[]);
    let again = room.toolhost(["history", "rerun", "last", "--json"]).go();
    again.exits(0);
    let again: Value = again.json();
    assert_eq!(
        (&again["structured"]["pid"], &again["structured"]["calls"]),
        (&server.into(), &2.into())
    );
    room.toolhost(["down"]).check().exits(0);
}

#[test]
fn a_benchmark_has_servers_of_its_own_and_says_so() {
    let Some(room) = trusted() else { return };
    room.toolhost(["up"]).go().exits(0);
    let (_, _, host) = count(&room, &[]);
    let bench = ["bench", "counter-count", "-n", "5", "--json"];
    let measured = room.toolhost(bench).go();
    let said = format!("not through the background host (pid {})", host.unwrap());
    measured.exits(0).says(&[&said]);
    assert_eq!(count(&room, &[]).1, 2, "the server of the host was measured");
    let fresh = room.toolhost(["--fresh"].into_iter().chain(bench)).go();
    assert!(!fresh.exits(0).err().contains("background host"));
    room.toolhost(["down"]).check().exits(0);
    assert!(!room.toolhost(bench).go().exits(0).err().contains("background host"));
}

#[test]
fn up_says_what_the_host_will_not_serve_and_how_long_one_stays_that_runs() {
    let Some(room) = project() else { return };
    let up = room.toolhost(["up"]).go();
    up.exits(0).says(&["this project is not trusted", "toolhost trust"]);
    room.toolhost(["down"]).check().exits(0);
    room.toolhost(["trust", "--yes"]).go().exits(0);
    let up = room.toolhost(["up", "--idle", "10m"]).go();
    assert!(!up.exits(0).err().contains("warning"), "{up}");
    let again = room.toolhost(["up", "--idle", "2h"]).go();
    again.exits(0).says(&["already running", "it stops after 10 min without a call"]);
    assert_eq!(hosts(&room)[0]["idle_limit_s"], 600.0);
    room.toolhost(["down"]).check().exits(0);
    room.toolhost(["up", "--idle", "0s"])
        .go()
        .exits(2)
        .says(&["the idle time must be greater than zero"]);
    // A file that cannot be read leaves its servers out.
    room.file("mcp.yaml", "mcp_servers: [broken\n");
    room.toolhost(["up"]).go().exits(0).says(&["out of service", "config check"]);
    room.toolhost(["down"]).check().exits(0);
}
