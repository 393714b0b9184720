//! The palette, keys of one's own, what is remembered, and a terminal that is always given back.

use super::{LEAVES, room_with_server};
use crate::support::{Pty, Sandbox, log_events};

const F5: &str = "\u{1b}[15~";
/// What begins every frame.
const FRAME: &str = "\u{1b}[?2026h";

fn settings(room: &Sandbox, text: &str) {
    std::fs::write(room.path("config/toolhost/console.yaml"), text).unwrap();
}

#[test]
fn the_palette_does_what_is_chosen() {
    let (room, _fixture) = room_with_server();
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 24, 80);
    pty.expect_shown("echo").type_keys(":").expect_shown("Commands (");
    pty.type_keys("view-serv").expect_shown("Commands (1)").type_keys("\r");
    pty.expect_shown("Servers 1").type_keys("\u{10}").expect_shown("Commands (");
    pty.type_keys("quit\r");
    assert_eq!(pty.finish().0, Some(0));
}

#[test]
fn a_key_that_comes_with_a_change_of_size_is_heard() {
    let (room, _fixture) = room_with_server();
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 24, 80);
    pty.expect_shown("echo");
    for step in 0..60 {
        pty.resize(24 + step % 2, 80 + step % 3).type_keys("?").expect_shown("Esc close");
        pty.type_keys("\u{1b}").expect_gone("Esc close");
    }
    pty.type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
}

#[test]
fn a_key_of_ones_own_works_and_is_shown() {
    let (room, _fixture) = room_with_server();
    settings(&room, "keys:\n  tools: { c: fill }\ntheme: pink\n");
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 24, 80);
    pty.expect_shown("console.yaml:3:8: unknown theme 'pink'").expect_shown("c call");
    pty.expect_shown("echo").type_keys("/sec").expect_shown("Tools 1/");
    pty.type_keys("\u{1b}")
        .expect_shown("/ filter")
        .type_keys("c")
        .expect_shown("Arguments  srv-echo")
        .type_keys("own key")
        .type_keys(F5);
    pty.expect_shown(" OK ").type_keys("\u{3}y");
    assert_eq!(pty.finish().0, Some(0));
    let messages = log_events(&room.log("srv"), "message");
    assert!(
        messages.iter().any(|m| m["method"] == "tools/call" && m.to_string().contains("own key"))
    );
}

#[test]
fn what_is_wrong_with_the_settings_is_found_without_the_console() {
    let room = Sandbox::new();
    room.file("tools.yaml", "tools: [{ name: one, command: [echo, hi] }]\n");
    let check = || room.toolhost(["config", "check", "--tools", "tools.yaml"]).go();
    check().exits(0);
    settings(&room, "theme: pink\nkeys: { tools: { c: dance } }\n");
    let finished = check();
    let said = format!("{}", finished.exits(9));
    assert!(said.contains("console.yaml:1:8: error: unknown theme"), "{said}");
    assert!(said.contains("console.yaml:2:21: error: unknown action"), "{said}");
    let schema = room.toolhost(["config", "schema", "console"]).check().json();
    assert_eq!(schema["properties"]["theme"]["default"], "default");
}

#[test]
fn the_last_arguments_are_there_in_the_next_run() {
    let (room, _fixture) = room_with_server();
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 24, 80);
    pty.expect_shown("echo").type_keys("/sec").expect_shown("Tools 1/");
    pty.type_keys("\r").expect_shown("Arguments  srv-echo").type_keys("milk and honey");
    pty.type_keys(F5).expect_shown(" OK ").type_keys("\u{3}y");
    assert_eq!(pty.finish().0, Some(0));

    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 24, 80);
    pty.expect_shown("echo").type_keys("/sec").expect_shown("Tools 1/").type_keys("\r");
    pty.expect_shown(r#"sends {"message":"milk and honey"}"#).type_keys("\u{3}y");
    assert_eq!(pty.finish().0, Some(0));
}

#[test]
fn a_shell_gets_its_terminal_while_the_console_waits() {
    let (room, _fixture) = room_with_server();
    let line = format!(
        "set -m; {} --mcp mcp.yaml; echo SHELL IS BACK; read line; fg; echo CONSOLE ENDED",
        env!("CARGO_BIN_EXE_toolhost")
    );
    let mut pty = Pty::sized(&room, "sh", &["-c", &line], 24, 80);
    pty.expect_shown("echo").type_keys("\u{1a}").expect("SHELL IS BACK");
    assert!(pty.screen().contains(LEAVES));
    // Drawn anew: what was typed for the shell was taken by the shell.
    pty.cleared().type_keys("\r").expect("srv-echo").expect_shown("quit").type_keys("q");
    pty.expect("CONSOLE ENDED");
    assert_eq!(pty.finish().0, Some(0));
}

#[test]
fn a_hang_up_ends_it() {
    let (room, _fixture) = room_with_server();
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 24, 80);
    pty.expect_shown("echo");
    pty.hang_up();
    let (code, screen) = pty.finish();
    assert_eq!(code, Some(129), "{screen}");
    assert!(screen.contains(LEAVES));
}

#[test]
fn a_storm_of_sizes_ends_in_the_last_one() {
    let (room, _fixture) = room_with_server();
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 24, 80);
    pty.expect_shown("echo");
    for step in 0..60 {
        pty.resize(1 + step % 50, 1 + (step * 37) % 200);
    }
    // Only that size says so: everything before it is over when it is seen.
    pty.resize(4, 43).expect_shown("(43x4)");
    pty.resize(40, 120)
        .expect_shown("8 Inbox")
        .type_keys("?")
        .expect_shown("Help")
        .expect_shown("fill in the arguments and call");
    pty.type_keys("qq");
    assert_eq!(pty.finish().0, Some(0));
}

#[test]
fn nothing_is_written_when_nothing_changed() {
    let (room, _fixture) = room_with_server();
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 24, 80);
    pty.expect_shown("● 1 server").expect_shown("srv-echo").cleared();
    // Keys that nothing is bound to, then one that is.
    pty.type_keys("\u{7}\u{7}\u{7}\u{7}?").expect_shown("Help");
    assert_eq!(pty.screen().matches(FRAME).count(), 1, "{:?}", pty.screen());
    pty.type_keys("qq");
    assert_eq!(pty.finish().0, Some(0));
}
