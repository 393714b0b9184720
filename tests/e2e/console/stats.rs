//! Statistics: calls of the console and of other processes.

use super::room_with_server;
use crate::support::{Pty, log_events};

#[test]
fn calls_of_the_console_and_of_others_are_counted() {
    let (room, _fixture) = room_with_server();
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 40, 120);
    pty.expect_shown("echo").type_keys("/sec").expect_shown("Tools 1/");
    pty.type_keys("\r").expect_shown("Arguments  srv-echo").type_keys("milk\u{1b}[15~");
    pty.expect_shown(" OK ").type_keys("\u{1b}").expect_shown("filter");
    pty.type_keys("4").expect_shown("Tools by calls  last 1h").expect_shown("100.0");
    pty.expect_shown("max ").expect_shown("spool   ");
    // What another process does is seen as it happens.
    room.with_servers(["call", "srv-add", "a=1", "b=2"]).go().exits(0);
    pty.expect_shown("add");
    // From now on: nothing is left of what was counted before, and counting from now on.
    pty.type_keys("0").expect_shown("counting from now on").expect_shown("No calls in this window");
    pty.type_keys("w").expect_shown("last 1m").expect_shown("srv-add");
    pty.type_keys("\r").expect_shown("1 Tools]").type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
    let messages = log_events(&room.log("srv"), "message");
    assert_eq!(messages.iter().filter(|message| message["method"] == "tools/call").count(), 2);
}

#[test]
fn a_narrow_screen_shows_one_pane() {
    let (room, _fixture) = room_with_server();
    room.with_servers(["call", "srv-echo", "message=hi"]).check().exits(0);
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 10, 40);
    pty.expect_shown("echo").type_keys("4").expect_shown("100.0");
    pty.type_keys("\t").expect_shown("Latency").expect_shown("calls").type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
}
