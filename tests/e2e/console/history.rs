//! The calls of the past: made again, edited, compared, copied, written to a file; secrets.

use serde_json::Value;

use super::room_with_server;
use crate::support::{Pty, Sandbox, log_events};

/// The lines of the history on disk, the oldest first.
fn kept(room: &Sandbox) -> Vec<Value> {
    let text = std::fs::read_to_string(room.path("state/toolhost/history.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_call_is_made_again_edited_compared_and_copied() {
    let (room, _fixture) = room_with_server();
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 40, 120);
    pty.expect_shown("echo").type_keys("/srvecho").expect_shown("Tools 1/");
    pty.type_keys("\r").expect_shown("Arguments  srv-echo").type_keys("it's one\u{1b}[15~");
    pty.expect_shown(" OK ").type_keys("\u{1b}").expect_shown("/ filter");
    pty.type_keys("h").expect_shown("History 1 ").expect_shown("unchanged");
    pty.expect_shown("\"message\": \"it's one\"");
    pty.type_keys("r").expect_shown("[1 Tools]").type_keys("6").expect_shown("History 2 ");
    pty.type_keys("R").expect_shown("Arguments  srv-echo").type_keys(" and more");
    pty.expect_shown("it's one and more").type_keys("\u{1b}[15~").expect_shown(" OK ");
    pty.type_keys("\u{1b}").expect_shown("/ filter").type_keys("6").expect_shown("History 3 ");
    pty.expect_shown("\"message\": \"it's one and more\"");

    pty.cleared().type_keys("Y").expect_shown("copied command");
    let command = r"toolhost call srv-echo 'message=it'\''s one and more'";
    assert_eq!(pty.copied(), [command]);

    pty.type_keys("d").expect_shown("Diff  (").expect_shown("-  \"message\": \"it's one\"");
    pty.expect_shown("+  \"message\": \"it's one and more\"");
    pty.type_keys("\u{1b}").expect_shown("[text]").type_keys("E").expect_shown("wrote ");
    pty.type_keys("q");
    let (code, screen) = pty.finish();
    assert_eq!(code, Some(0), "{screen}");

    let messages = log_events(&room.log("srv"), "message");
    let calls: Vec<&Value> = messages
        .iter()
        .filter(|message| message["method"] == "tools/call")
        .map(|message| &message["params"]["arguments"]["message"])
        .collect();
    assert_eq!(calls, ["it's one", "it's one", "it's one and more"]);
    let files = std::fs::read_dir(room.path("work")).unwrap().flatten();
    let written = files
        .map(|file| file.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    let text = std::fs::read_to_string(written.unwrap()).unwrap();
    let ids: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone())
        .collect();
    let newest_first: Vec<Value> =
        kept(&room).iter().rev().map(|call| call["id"].clone()).collect();
    assert_eq!(ids, newest_first);
}

const LOGIN: &str = "\
tools:
  - name: login
    module: builtin.echo
    function: echo
    parameters_schema:
      type: object
      properties:
        user: { type: string }
        code: { type: string, format: password }
";

#[test]
fn a_secret_that_was_not_kept_is_asked_for_and_its_mask_never_sent() {
    let room = Sandbox::new();
    room.file("tools.yaml", LOGIN);
    room.toolhost(["call", "login", "user=ada", "code=hunter2-secret"]).check().exits(0);
    let mut pty = Pty::console(&room, &[], 40, 120);
    pty.expect_shown("login").type_keys("6").expect_shown("History 1 ").expect_shown("user=ada");
    pty.expect_shown("unchanged").type_keys("r").expect_shown("Arguments  login");
    pty.expect_shown("fill in: code").type_keys("\tanother-code\u{1b}[15~");
    pty.expect_shown(" OK ").type_keys("\u{1b}").expect_shown("/ filter").type_keys("q");
    let (code, screen) = pty.finish();
    assert_eq!(code, Some(0), "{screen}");
    let kept = kept(&room);
    assert_eq!(kept.len(), 2);
    // The tool gives back what it got.
    let got = &kept[1]["result"]["output"];
    assert_eq!((&got["user"], &got["code"]), (&"ada".into(), &"another-code".into()), "{got}");
}

#[test]
fn a_history_that_is_switched_off_says_so() {
    let room = Sandbox::new();
    room.file("tools.yaml", LOGIN);
    room.toolhost(["call", "login", "user=ada"]).check().exits(0);
    let off = "history: { enabled: false }\n";
    std::fs::write(room.path("config/toolhost/tools.yaml"), off).unwrap();
    let mut pty = Pty::console(&room, &[], 24, 80);
    pty.expect_shown("login")
        .type_keys("6")
        .expect_shown("Recording is off.")
        .expect_shown("user=ada");
    pty.resize(10, 40).expect_shown("History 1").type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
}
