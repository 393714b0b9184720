//! Arguments that are filled in, written as JSON or in an editor, and what the server got.

use serde_json::{Value, json};

use super::room_with_server;
use crate::support::{Fixture, Place, Pty, Sandbox, log_events};

/// The arguments of the calls that the server got.
fn called(room: &Sandbox) -> Vec<Value> {
    let messages = log_events(&room.log("srv"), "message").into_iter();
    let calls = messages.filter(|message| message["method"] == "tools/call");
    calls.map(|mut call| call["params"]["arguments"].take()).collect()
}

fn leave(mut pty: Pty) {
    pty.type_keys("\u{1b}").expect_shown("/ filter").type_keys("q");
    let (code, screen) = pty.finish();
    assert_eq!(code, Some(0), "{screen}");
}

#[test]
fn nested_fields_lists_and_forms_are_sent_as_they_are_shown() {
    let room = Sandbox::new();
    let fixture = Fixture::fault(Place::Stdio, "asks-a-person", "legacy", &room.log("srv"));
    room.server("srv", &fixture);
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 40, 120);
    pty.expect_shown("plan").type_keys("/srv-plan").expect_shown("Tools 1/");
    pty.type_keys("\r").expect_shown("1/3 required").type_keys("a trip\r\rfar");
    // A check says what does not fit beside its field; nothing is sent.
    pty.type_keys("\u{1b}[17~").expect_shown("where.x is not a number");
    pty.type_keys("\u{15}3").expect_shown(r#"{"title":"a trip","where":{"x":3}}"#);
    pty.type_keys("\r\r+one").expect_shown("[1]  + adds an item");
    pty.expect_shown(r#""tags":["one"]"#);
    pty.type_keys("\u{1b}[B").type_keys("\u{1b}[C").expect_shown("< circle >");
    pty.type_keys("\r2.5").expect_shown(r#""shape":{"r":2.5}"#);
    pty.type_keys("\u{1b}[17~").expect_shown("valid").type_keys("\u{1b}[15~");
    pty.expect_shown("it is planned");
    leave(pty);
    let expected = json!({ "title": "a trip", "where": { "x": 3 }, "tags": ["one"],
                           "shape": { "r": 2.5 } });
    assert_eq!(called(&room), [expected]);
}

#[test]
fn all_of_it_is_written_as_json() {
    let (room, _fixture) = room_with_server();
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 24, 80);
    pty.expect_shown("echo").type_keys("/secho").expect_shown("Tools 1/");
    pty.type_keys("\r").expect_shown("Arguments  srv-echo").type_keys("\u{14}");
    pty.expect_shown("fields").type_keys("\u{1b}[C\r\"message\": \"two\\nlines\"");
    pty.expect_shown(r#"sends {"message":"two\nlines"}"#).type_keys(",\u{1b}[15~");
    pty.expect_shown("not JSON").type_keys("\u{7f}\u{1b}[15~").expect_shown(" OK ");
    leave(pty);
    assert_eq!(called(&room), [json!({ "message": "two\nlines" })]);
}

#[test]
fn pasted_lines_stay_lines_and_are_found_in_the_result() {
    let (room, _fixture) = room_with_server();
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 40, 120);
    pty.expect_shown("echo").type_keys("/secho").expect_shown("Tools 1/");
    pty.type_keys("\r").expect_shown("^G new line");
    pty.type_keys("\u{1b}[200~first\r\tsecond\rthird\u{1b}[201~").expect_shown("line 3 of 3");
    pty.type_keys("\u{7}8").expect_shown("line 4 of 4");
    pty.expect_shown(r#"sends {"message":"first\n\tsecond\nthird\n8"}"#);
    pty.type_keys("\u{1b}[15~").expect_shown(" OK ").expect_shown("calls 1  errors 0");
    // In the result a search counts, and does not filter the list.
    pty.type_keys("\u{1b}").expect_shown("/ filter").type_keys("\t\t").expect_shown("/ search");
    pty.type_keys("/seco").expect_shown("/seco 1 of 1").type_keys("\rq");
    let (code, screen) = pty.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert_eq!(called(&room), [json!({ "message": "first\n\tsecond\nthird\n8" })]);
}

#[test]
fn an_editor_of_ones_own_writes_the_arguments() {
    let (room, _fixture) = room_with_server();
    room.file("written", r#"{ "message": "long\ntext" }"#);
    room.file("editor", "cp $1 seen && cp written $1\n");
    let binary = env!("CARGO_BIN_EXE_toolhost");
    let edited = |editor: &str| {
        let editor = format!("EDITOR={editor}");
        let mut pty = Pty::sized(&room, "env", &[&editor, binary, "--mcp", "mcp.yaml"], 40, 120);
        pty.expect_shown("echo").type_keys("/\u{15}secho").expect_shown("Tools 1/");
        pty.type_keys("\r").expect_shown("Arguments  srv-echo").type_keys("\u{1b}[3~short");
        pty.expect_shown(r#"sends {"message":"short"}"#).type_keys("\u{5}");
        pty
    };
    let mut pty = edited("sh editor");
    pty.expect_shown(r#"sends {"message":"long\ntext"}"#).type_keys("\u{1b}[15~");
    pty.expect_shown(" OK ");
    leave(pty);
    assert_eq!(called(&room), [json!({ "message": "long\ntext" })]);
    let seen = std::fs::read_to_string(room.path("work/seen")).unwrap();
    assert_eq!(seen, "{\n  \"message\": \"short\"\n}");
    // One that fails changes nothing, and the terminal is back.
    let mut pty = edited("false");
    pty.expect_shown("nothing was changed").expect_shown(r#"sends {"message":"short"}"#);
    leave(pty);
}

#[test]
fn a_signal_ends_the_console_while_an_editor_is_open() {
    let (room, _fixture) = room_with_server();
    let binary = env!("CARGO_BIN_EXE_toolhost");
    let editor = "EDITOR=echo here we are; sleep 60; true";
    let mut pty = Pty::sized(&room, "env", &[editor, binary, "--mcp", "mcp.yaml"], 40, 120);
    pty.expect_shown("echo").type_keys("/secho").expect_shown("Tools 1/");
    pty.type_keys("\r").expect_shown("Arguments  srv-echo").type_keys("\u{5}");
    pty.expect("here we are");
    pty.terminate();
    assert_eq!(pty.finish().0, Some(143));
}
