//! What servers ask, answered in the console and seen on the side of the server.

use serde_json::{Value, json};

use super::room_with_server;
use crate::support::{Fixture, Place, Pty, Sandbox, log_events};

/// A room with servers that ask a person.
fn house(names: &[&str]) -> (Sandbox, Vec<Fixture>) {
    let room = Sandbox::new();
    let fixtures = names.iter().map(|name| {
        let fixture = Fixture::fault(Place::Stdio, "asks-a-person", "legacy", &room.log(name));
        room.server(name, &fixture);
        fixture
    });
    let fixtures = fixtures.collect();
    (room, fixtures)
}

/// Opens the console and calls a tool that asks this.
fn asked(room: &Sandbox, server: &str, what: &str) -> Pty {
    let mut pty = Pty::console(room, &["--mcp", "mcp.yaml"], 40, 120);
    pty.expect_shown(server);
    ask(&mut pty, server, what);
    pty
}

fn ask(pty: &mut Pty, server: &str, what: &str) {
    pty.type_keys(&format!("/\u{15}{server}-ask")).expect_shown(&format!("❯ {server}-ask"));
    pty.type_keys("\r").expect_shown(&format!("Arguments  {server}-ask"));
    pty.type_keys(&format!("\u{15}{what}"));
    pty.expect_shown(&format!(r#"sends {{"what":"{what}"}}"#));
    // The first of them opens at once; here all of them wait in the inbox.
    pty.type_keys("\u{1b}[15~").expect_shown("Esc later");
    if what == "many" {
        pty.expect_shown("8 Inbox(50)");
    }
    pty.type_keys("\u{1b}").expect_gone("Esc later").type_keys("\u{1b}").expect_gone("Arguments");
}

/// What the server was answered, in order.
fn answers(room: &Sandbox, server: &str) -> Vec<Value> {
    let messages = log_events(&room.log(server), "message").into_iter();
    let asked =
        messages.filter(|message| message["id"].as_str().is_some_and(|id| id.starts_with("ask-")));
    asked.map(|mut message| message["result"].take()).collect()
}

fn leave(mut pty: Pty) {
    pty.type_keys("q");
    let (code, screen) = pty.finish();
    assert_eq!(code, Some(0), "{screen}");
}

#[test]
fn a_question_is_answered_in_its_form() {
    let (room, _fixtures) = house(&["srv"]);
    let mut pty = asked(&room, "srv", "form");
    pty.expect_shown("8 Inbox(1)");
    pty.type_keys("8").expect_shown("| Who are you?").type_keys("\r").expect_shown("^D decline");
    pty.type_keys("A\u{1b}[15~").expect_shown("! must have at least 2 characters");
    pty.type_keys("da\t").expect_shown(r#"sends {"name":"Ada","colour":"g"}"#);
    pty.type_keys("\u{1b}[C").expect_shown("< Red >").type_keys("\u{1b}[15~");
    pty.expect_shown("answered srv").type_keys("1").expect_shown(" OK ");
    leave(pty);
    let content = json!({ "name": "Ada", "colour": "r" });
    assert_eq!(answers(&room, "srv"), [json!({ "action": "accept", "content": content })]);
}

#[test]
fn declining_and_turning_away_are_different_answers() {
    for (key, action) in [("d", "decline"), ("x", "cancel")] {
        let (room, _fixtures) = house(&["srv"]);
        let mut pty = asked(&room, "srv", "form");
        pty.expect_shown("8 Inbox(1)").type_keys("8").expect_shown("| Who are you?");
        // After the last answer one is where one was.
        pty.type_keys(key).expect_shown(" OK ");
        leave(pty);
        assert_eq!(answers(&room, "srv"), [json!({ "action": action })]);
    }
}

#[test]
fn two_servers_ask_at_once_and_each_gets_its_own_answer() {
    let (room, _fixtures) = house(&["one", "two"]);
    let mut pty = asked(&room, "one", "form");
    pty.expect_shown("8 Inbox(1)");
    ask(&mut pty, "two", "sample");
    pty.expect_shown("8 Inbox(2)").type_keys("8").expect_shown("one asks");
    pty.type_keys("j").expect_shown("two asks").expect_shown("| Say something");
    pty.type_keys("\rhello\rthere\u{1b}[15~").expect_shown("answered two");
    pty.expect_shown("8 Inbox(1)").type_keys("d").expect_shown("declined the question from one");
    pty.expect_shown("Tools ").type_keys("/\u{15}one-ask\u{1b}");
    pty.expect_shown("one-ask").expect_shown(" OK ");
    leave(pty);
    assert_eq!(answers(&room, "one"), [json!({ "action": "decline" })]);
    let told = answers(&room, "two");
    assert_eq!(told[0]["content"], json!({ "type": "text", "text": "hello\nthere" }));
}

#[test]
fn fifty_questions_at_once_stay_usable() {
    let (room, _fixtures) = house(&["srv"]);
    let mut pty = asked(&room, "srv", "many");
    pty.expect_shown("8 Inbox(50)").type_keys("8").expect_shown("Inbox 50");
    pty.type_keys("G\rAda\u{1b}[15~").expect_shown("answered srv").expect_shown("Inbox 49");
    pty.type_keys(&"d".repeat(49)).expect_shown(" OK ");
    leave(pty);
    let mut actions: Vec<Value> =
        answers(&room, "srv").iter().map(|told| told["action"].clone()).collect();
    actions.sort_by_key(Value::to_string);
    assert_eq!(actions.len(), 50);
    assert_eq!((&actions[0], &actions[1]), (&json!("accept"), &json!("decline")));
}

#[test]
fn a_question_goes_with_the_call_that_it_belongs_to() {
    let (room, _fixtures) = house(&["srv"]);
    let mut pty = asked(&room, "srv", "form");
    pty.expect_shown("8 Inbox(1)").type_keys("8").expect_shown("| Who are you?");
    pty.type_keys("\r").expect_shown("^D decline").type_keys("\u{3}");
    pty.expect_shown("srv is no longer waiting for an answer");
    pty.expect_shown("1 Tools]").expect_shown("CANCELLED");
    leave(pty);
}

#[test]
fn an_address_is_shown_with_its_tricks_and_a_secret_is_not_shown() {
    let (room, _fixtures) = house(&["srv"]);
    let mut pty = asked(&room, "srv", "url");
    pty.expect_shown("8 Inbox(1)").type_keys("8\r").expect_shown("the part before the @");
    pty.expect_shown("Not opened automatically").type_keys("\u{1b}[15~");
    pty.expect_shown("answered srv").expect_shown(" OK ");
    ask(&mut pty, "srv", "secret");
    pty.expect_shown("8 Inbox(1)").type_keys("8\r").expect_shown("It seems to ask for a secret");
    pty.type_keys("hunter2-x").expect_shown("*********").expect_shown("‹secret›");
    assert!(!pty.screen().contains("hunter2"), "{}", pty.screen());
    pty.type_keys("\u{1b}[15~").expect_shown("answered srv").expect_shown(" OK ");
    leave(pty);
    let told = answers(&room, "srv");
    assert_eq!(told[0]["action"], json!("accept"));
    assert_eq!(told[1]["content"], json!({ "password": "hunter2-x" }));
}

#[test]
fn a_yes_for_the_session_is_not_asked_again() {
    let (room, _fixture) = room_with_server();
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 40, 120);
    pty.expect_shown("wipe").type_keys("/srvwipe").expect_shown("Tools 1/");
    pty.type_keys("\r").expect_shown("Arguments  srv-wipe").type_keys("\u{1b}[15~");
    pty.expect_shown("Approval needed").expect_shown("    s allow these arguments").type_keys("v");
    pty.expect_shown("definition, as the server describes it")
        .type_keys("s")
        .expect_shown("everything is gone");
    pty.type_keys("\u{1b}[15~").expect_shown("with these arguments for this session");
    pty.expect_shown(" OK ").type_keys("\u{1b}");
    pty.expect_shown("/ filter");
    leave(pty);
    let messages = log_events(&room.log("srv"), "message");
    let calls = messages.iter().filter(|message| message["method"] == "tools/call");
    assert_eq!(calls.count(), 2);
}
