//! Opening and leaving, the tools, approvals, sizes, signals.

use super::{LEAVES, room_with_server};
use crate::support::{Pty, Sandbox, log_events};

#[test]
fn a_tool_is_found_filled_in_and_called() {
    let (room, _fixture) = room_with_server();
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 40, 120);
    pty.expect_shown("echo").type_keys("/sec").expect_shown("Tools 1/");
    pty.type_keys("\r").expect_shown("Arguments  srv-echo").type_keys("milk and honey");
    pty.expect_shown(r#"sends {"message":"milk and honey"}"#).type_keys("\u{1b}[15~");
    pty.expect_shown(" OK ");
    pty.type_keys("\u{1b}").expect_shown("filter").type_keys("q");
    let (code, screen) = pty.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains(LEAVES), "the terminal was not given back");
    let messages = log_events(&room.log("srv"), "message");
    let call = messages.iter().find(|message| message["method"] == "tools/call").unwrap();
    assert!(call.to_string().contains("milk and honey"), "{call}");
}

#[test]
fn a_server_that_cannot_be_started_says_why_in_its_row() {
    let room = Sandbox::new();
    room.file("mcp.yaml", "mcp_servers: { broken: { command: /no/such/program } }\n");
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 24, 80);
    pty.expect_shown("1 failed").type_keys("2").expect_shown("broken").expect_shown("failed");
    pty.type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
}

#[test]
fn an_approval_is_asked_on_the_screen_and_enter_denies_it() {
    let (room, _fixture) = room_with_server();
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 40, 120);
    pty.expect_shown("wipe").type_keys("/srvwipe").expect_shown("Tools 1/");
    pty.type_keys("\r").expect_shown("Arguments  srv-wipe").type_keys("\u{1b}[15~");
    pty.expect_shown("Approval needed")
        .type_keys("y")
        .expect_shown("    y allow once")
        .type_keys("\r");
    pty.expect_shown("denied");
    pty.type_keys("\u{3}y");
    assert_eq!(pty.finish().0, Some(0));
    let messages = log_events(&room.log("srv"), "message");
    assert!(messages.iter().all(|message| message["method"] != "tools/call"));
}

#[test]
fn every_size_is_drawn() {
    let (room, _fixture) = room_with_server();
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 24, 80);
    pty.expect_shown("echo");
    pty.resize(4, 18).expect_shown("too small");
    pty.resize(10, 40).expect_shown("1 Tools]");
    pty.resize(200, 500).expect_shown("srv-echo");
    pty.type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
}

#[test]
fn a_signal_gives_the_terminal_back() {
    let (room, _fixture) = room_with_server();
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 24, 80);
    pty.expect_shown("echo");
    pty.terminate();
    let (code, screen) = pty.finish();
    assert_eq!(code, Some(143), "{screen}");
    assert!(screen.contains(LEAVES));
}
