//! Configuration files that change while the console is open.

use crate::support::{Pty, Sandbox, script};

const ONE: &str = "tools:\n  - { name: one, command: [echo, hi] }\n";

#[test]
fn a_changed_file_is_told_and_read_when_a_person_wants_it() {
    let room = Sandbox::new();
    room.file("tools.yaml", ONE);
    let mut pty = Pty::console(&room, &["--tools", "tools.yaml"], 30, 110);
    pty.expect_shown("one");
    room.file("tools.yaml", &format!("{ONE}  - {{ name: another, command: [echo, ho] }}\n"));
    pty.expect_shown("tools.yaml changed (U reloads)");
    assert!(!pty.shown().contains("another"));
    pty.type_keys("U").expect_shown("configuration reloaded").expect_shown("another");
    pty.expect_gone("tools.yaml changed");

    // What is wrong with it then is told as at the start.
    room.file("tools.yaml", "tools:\n  - { name: one, comand: [echo] }\n");
    pty.expect_shown("tools.yaml changed").type_keys("U").expect_shown("1 error");
    room.file("tools.yaml", ONE);
    pty.expect_shown("tools.yaml changed").type_keys("U").expect_gone("1 error");
    pty.expect_shown("one").type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
}

#[test]
fn what_a_project_adds_is_asked_about_before_it_acts() {
    let room = Sandbox::new();
    room.file("tools.yaml", ONE);
    room.toolhost(["trust", "--yes"]).go().exits(0);
    let mut pty = Pty::console(&room, &[], 40, 120);
    pty.expect_shown("one");
    // A file that was not there before.
    script(&room.path("work/server"), "#!/bin/sh\ntouch started\nexec cat\n");
    room.file("mcp.yaml", "mcp_servers: { new: { command: ./server } }\n");
    pty.expect_shown("mcp.yaml changed (U reloads)").type_keys("U");
    pty.expect_shown("Trust this project? [y/N]").expect_shown("./server");
    assert!(!room.path("work/started").exists());
    pty.type_keys("n").expect_shown("not trusted").type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
    assert!(!room.path("work/started").exists());
}

#[test]
fn servers_that_are_the_same_stay_connected() {
    let room = Sandbox::new();
    let program = env!("CARGO_BIN_EXE_toolhost");
    let log = room.path("run/starts");
    let line = format!("echo $$ >> {}; exec {program} demo-server", log.display());
    room.file(
        "mcp.yaml",
        &format!("mcp_servers:\n  kept: {{ command: sh, args: [-c, '{line}'] }}\n"),
    );
    room.file("tools.yaml", ONE);
    let starts = || std::fs::read_to_string(&log).unwrap_or_default().lines().count();
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml", "--tools", "tools.yaml"], 30, 110);
    pty.expect_shown("echo");
    room.file("tools.yaml", &ONE.replace("name: one", "name: another"));
    pty.expect_shown("tools.yaml changed (U reloads)").type_keys("U");
    pty.expect_shown("configuration reloaded").expect_shown("another").expect_shown("kept");
    assert_eq!(starts(), 1, "an unchanged server was started again");

    // A changed one is another one.
    room.file(
        "mcp.yaml",
        &format!("mcp_servers:\n  kept: {{ command: sh, args: [-c, '{line}', x] }}\n"),
    );
    pty.expect_shown("mcp.yaml changed (U reloads)").type_keys("U");
    pty.expect_gone("mcp.yaml changed").expect_shown("kept").type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
    assert_eq!(starts(), 2);
    assert!(room.inhabitants().is_empty(), "{:?}", room.inhabitants());
}
