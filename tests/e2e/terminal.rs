//! What needs a real terminal: questions to a person.

use crate::support::{Fixture, Place, Pty, Sandbox, log_events};

fn room_with_server() -> (Sandbox, Fixture) {
    let room = Sandbox::new();
    let fixture = Fixture::fault(Place::Stdio, "none", "legacy", &room.log("srv"));
    room.server("srv", &fixture);
    (room, fixture)
}

fn calls(room: &Sandbox) -> usize {
    let messages = log_events(&room.log("srv"), "message");
    messages.iter().filter(|message| message["method"] == "tools/call").count()
}

#[test]
fn a_destructive_tool_asks_and_takes_no_for_an_answer() {
    for (answer, code, expected) in
        [("yes\r", 0, 1), ("y\r", 0, 1), ("n\r", 6, 0), ("\r", 6, 0), ("\u{4}", 6, 0)]
    {
        let (room, _fixture) = room_with_server();
        let mut pty = Pty::toolhost(&room, &["--mcp", "mcp.yaml", "call", "srv-wipe"]);
        pty.expect("srv-wipe").expect("[y/N] ").type_keys(answer);
        let (status, screen) = pty.finish();
        assert_eq!(status, Some(code), "{answer:?}\n{screen}");
        assert_eq!(calls(&room), expected, "{answer:?}\n{screen}");
    }
}

#[test]
fn a_project_is_asked_about_once() {
    let (room, _fixture) = room_with_server();
    let arguments = ["call", "srv-echo", "message=hi"];
    let mut pty = Pty::toolhost(&room, &arguments);
    // The whole command is on the screen before the answer is read.
    pty.expect("misbehaving_server").expect("event-log").expect("[y/N] ").type_keys("n\r");
    let (status, screen) = pty.finish();
    assert_eq!(status, Some(6), "{screen}");
    assert!(log_events(&room.log("srv"), "start").is_empty());

    // The no holds for this content, until somebody asks for the question.
    let (status, screen) = Pty::toolhost(&room, &arguments).finish();
    assert_eq!(status, Some(6), "{screen}");
    let mut pty = Pty::toolhost(&room, &["trust"]);
    pty.expect("[y/N] ").type_keys("yes\r");
    let (status, screen) = pty.finish();
    assert_eq!(status, Some(0), "{screen}");
    room.toolhost(arguments).check().exits(0);
    assert_eq!(calls(&room), 1);

    // It is remembered, and now holds without a terminal too.
    room.toolhost(arguments).check().exits(0);
    assert_eq!(calls(&room), 2);
}

#[test]
fn an_interruption_is_no_answer() {
    let room = Sandbox::new();
    let fixtures = ["one", "two"].map(|name| {
        let fixture = Fixture::fault(Place::Stdio, "none", "legacy", &room.log(name));
        room.server(name, &fixture);
        fixture
    });
    let mut pty = Pty::toolhost(&room, &["servers"]);
    // One question for both.
    pty.expect("one.jsonl").expect("two.jsonl").expect("[y/N] ").type_keys("\u{3}");
    let (status, screen) = pty.finish();
    assert_eq!(status, Some(130), "{screen}");
    for name in ["one", "two"] {
        room.toolhost(["servers", name]).check().exits(6);
    }
    let mut pty = Pty::toolhost(&room, &["servers"]);
    pty.expect("[y/N] ").type_keys("yes\r");
    assert_eq!(pty.finish().0, Some(0), "it is asked again, and answers for both");
    drop(fixtures);
}

#[test]
fn ctrl_c_at_a_question_is_an_interruption() {
    let (room, _fixture) = room_with_server();
    let mut pty = Pty::toolhost(&room, &["--mcp", "mcp.yaml", "call", "srv-wipe"]);
    pty.expect("[y/N] ").type_keys("\u{3}");
    let (status, screen) = pty.finish();
    assert_eq!(status, Some(130), "{screen}");
    assert_eq!(calls(&room), 0);
}

#[test]
fn the_pseudo_terminal_is_a_controlling_one() {
    let room = Sandbox::new();
    let script = "printf 'name? ' >/dev/tty; read name </dev/tty; echo \"hello $name\"; exit 5";
    let mut pty = Pty::program(&room, "sh", &["-c", script]);
    pty.expect("name? ").type_keys("Ada\r");
    let (status, screen) = pty.finish();
    assert_eq!(status, Some(5), "{screen}");
    assert!(screen.contains("hello Ada"), "{screen}");
}
