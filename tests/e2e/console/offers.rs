//! Resources and prompts: read, filled in with suggestions, watched, written to files; hostile ones.

use serde_json::Value;

use crate::support::{Fixture, Place, Pty, Sandbox, log_events};

fn room(fault: &str, era: &str) -> (Sandbox, Fixture) {
    let room = Sandbox::new();
    let fixture = Fixture::fault(Place::Stdio, fault, era, &room.log("srv"));
    room.server("srv", &fixture);
    (room, fixture)
}

/// The messages with this method that the server got.
fn got(room: &Sandbox, method: &str) -> Vec<Value> {
    let messages = log_events(&room.log("srv"), "message");
    messages.into_iter().filter(|message| message["method"] == method).collect()
}

#[test]
fn a_resource_is_read_written_to_a_file_and_watched() {
    for era in ["legacy", "modern"] {
        let (room, _fixture) = room("offers", era);
        let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 40, 120);
        pty.expect_shown("echo")
            .type_keys("7")
            .expect_shown("memo://one")
            .expect_shown("srv-greet");
        pty.type_keys("/memo://one").expect_shown("Press Enter to read it.").type_keys("\r");
        pty.expect_shown("first memo").type_keys("E").expect_shown("wrote ");
        pty.type_keys("Y").expect_shown("copied command");
        assert_eq!(pty.copied(), ["toolhost resources read --server srv memo://one"]);
        // The server tells of a change at once, and what is open is read again.
        pty.type_keys("S").expect_shown("memo://one changed").expect_shown("S   memo://one");
        pty.type_keys("/\u{15}memo://data").expect_shown("memo://data").type_keys("\r");
        pty.expect_shown("\"a\": [").type_keys("q");
        let (code, screen) = pty.finish();
        assert_eq!(code, Some(0), "{screen}");
        let files = std::fs::read_dir(room.path("work")).unwrap().flatten();
        let written = files
            .map(|file| file.path())
            .find(|path| path.file_name().unwrap().to_str().unwrap().starts_with("resource-"));
        assert_eq!(std::fs::read_to_string(written.unwrap()).unwrap(), "first memo\n");
        let read: Vec<Value> = got(&room, "resources/read")
            .into_iter()
            .map(|message| message["params"]["uri"].clone())
            .collect();
        assert_eq!(read, ["memo://one", "memo://one", "memo://data"]);
        let asked = if era == "legacy" { "resources/subscribe" } else { "subscriptions/listen" };
        assert!(got(&room, asked)[0].to_string().contains("memo://one"));
    }
}

#[test]
fn a_prompt_and_a_template_are_filled_in_with_what_the_server_suggests() {
    let (room, _fixture) = room("offers", "legacy");
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 24, 80);
    pty.expect_shown("echo").type_keys("7").expect_shown("srv-greet");
    pty.type_keys("/greet").expect_shown("Greets somebody").type_keys("\r");
    pty.expect_shown("Arguments  srv-greet").expect_shown("ada").expect_shown("alan");
    pty.type_keys("al\u{1b}[C").expect_shown(r#"{"name":"alan"}"#).type_keys("\u{1b}[15~");
    pty.expect_shown("Greet alan.").type_keys("Y").expect_shown("copied command");
    assert_eq!(pty.copied(), ["toolhost prompts get srv-greet name=alan"]);
    pty.type_keys("/\u{15}notes").expect_shown("Press Enter to fill it in.").type_keys("\r");
    pty.expect_shown("reads")
        .type_keys("milk & honey")
        .expect_shown("memo://notes/milk%20%26%20honey");
    pty.type_keys("\u{1b}[15~").expect_shown("note milk%20%26%20honey").type_keys("q");
    let (code, screen) = pty.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert_eq!(got(&room, "prompts/get")[0]["params"]["arguments"]["name"], "alan");
    assert_eq!(got(&room, "completion/complete")[0]["params"]["argument"]["name"], "name");
}

#[test]
fn what_a_hostile_server_offers_steers_nothing() {
    let (room, _fixture) = room("offers-evil", "legacy");
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 40, 120);
    pty.expect_shown("echo").type_keys("7").expect_shown("memo://one").type_keys("jj");
    pty.expect_shown("]0;owned").type_keys("\r").expect_shown("[text]");
    pty.expect_shown("]0;owned").resize(16, 60);
    // Where there is little room views are numbers.
    pty.expect_gone("1 Tools").expect_shown("Content").type_keys("q");
    let (code, screen) = pty.finish();
    assert_eq!(code, Some(0), "{screen}");
    for sign in ["\u{1b}]0;", "\u{1b}]8;", "\u{1b}]52;", "\u{202e}", "\u{9b}"] {
        assert!(!screen.contains(sign), "{sign:?} reached the terminal");
    }
}
