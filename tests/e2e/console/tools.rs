//! Calls while they run, results, dry runs, files.

use super::room_with_server;
use crate::support::{Fixture, Place, Pty, Sandbox, log_events};

const F5: &str = "\u{1b}[15~";
const F6: &str = "\u{1b}[17~";

/// Chooses the tool that these letters find, and opens its form.
fn fill(pty: &mut Pty, letters: &str, tool: &str) {
    pty.type_keys("/").type_keys(letters).expect_shown("Tools 1/");
    pty.type_keys("\r").expect_shown(&format!("Arguments  {tool}"));
}

#[test]
fn a_slow_call_shows_how_far_it_is_and_stops_when_told_to() {
    let room = Sandbox::new();
    let entry = format!(
        "mcp_servers:\n  demo:\n    command: {}\n    args: [demo-server]\n",
        env!("CARGO_BIN_EXE_toolhost")
    );
    room.file("mcp.yaml", &entry);
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 40, 120);
    pty.expect_shown("slow");
    fill(&mut pty, "slow", "demo-slow");
    pty.type_keys("20").expect_shown(r#"{"seconds":20}"#).type_keys(F5);
    pty.expect_shown("RUNNING").expect_shown("of 20.0 s").expect_shown("%");
    pty.type_keys("\u{3}").expect_shown("CANCELLED");
    pty.type_keys("\u{3}y");
    assert_eq!(pty.finish().0, Some(0));
}

#[test]
fn one_of_two_running_calls_is_stopped() {
    let room = Sandbox::new();
    let log = room.log("srv");
    let fixture = Fixture::fault(Place::Stdio, "never-answers-call", "legacy", &log);
    let mut entry = "mcp_servers:\n  srv:\n    timeout: 60s\n".to_owned();
    for line in fixture.entry().lines() {
        entry = format!("{entry}    {line}\n");
    }
    room.file("mcp.yaml", &entry);
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 40, 120);
    pty.expect_shown("echo");
    fill(&mut pty, "sec", "srv-echo");
    pty.type_keys("older").type_keys(F5).expect_shown("1 running");
    pty.expect_shown(r#"tools/call echo {"message":"older"}"#);
    pty.type_keys("\u{15}newer").expect_shown(r#"{"message":"newer"}"#).type_keys(F5);
    pty.expect_shown(r#"tools/call echo {"message":"newer"}"#);
    pty.expect_shown("2 running").type_keys("\u{18}").expect_shown("Running 2");
    // The newest stands first.
    pty.type_keys("j\r").expect_shown("Running 1").type_keys("\u{1b}").expect_shown("dry run");
    pty.type_keys("\u{3}").expect_shown("CANCELLED").type_keys("\u{3}y");
    assert_eq!(pty.finish().0, Some(0));
    let messages = log_events(&log, "message");
    let call = |word: &str| {
        let mut calls = messages.iter().filter(|message| message["method"] == "tools/call");
        calls.find(|call| call.to_string().contains(word)).unwrap()["id"].clone()
    };
    let stopped: Vec<_> = messages
        .iter()
        .filter(|message| message["method"] == "notifications/cancelled")
        .map(|message| message["params"]["requestId"].clone())
        .collect();
    assert_eq!(stopped, [call("older"), call("newer")]);
}

#[test]
fn a_dry_run_shows_what_would_be_sent_and_sends_nothing() {
    let (room, _fixture) = room_with_server();
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 40, 120);
    pty.expect_shown("wipe");
    fill(&mut pty, "srvwipe", "srv-wipe");
    pty.type_keys(F6).expect_shown("Dry run").expect_shown("tools/call");
    pty.expect_shown("needs approval").type_keys("\u{3}y");
    assert_eq!(pty.finish().0, Some(0));
    let messages = log_events(&room.log("srv"), "message");
    assert!(messages.iter().all(|message| message["method"] != "tools/call"));
}

#[test]
fn a_result_is_a_tree_and_is_written_to_a_file() {
    let (room, _fixture) = room_with_server();
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 50, 120);
    pty.expect_shown("add");
    fill(&mut pty, "srvadd", "srv-add");
    pty.type_keys("1\r2").type_keys(F5).expect_shown(" OK ");
    pty.expect_shown("schema ok").expect_shown("call 0");
    pty.type_keys("\u{1b}").expect_shown("filter").type_keys("v").expect_shown("sum: 3");
    pty.type_keys("E").expect_shown("wrote srv-add-").type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
    let files = std::fs::read_dir(room.path("work")).unwrap();
    let mut files = files.map(|file| file.unwrap().path());
    let saved = files.find(|path| path.extension().is_some_and(|e| e == "json")).unwrap();
    let value: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(saved).unwrap()).unwrap();
    assert_eq!(value, serde_json::json!({ "sum": 3.0 }));
}

#[test]
fn a_list_of_objects_is_sorted_as_a_table_and_a_row_opens_in_the_tree() {
    for (rows, columns) in [(45, 160), (24, 80)] {
        let room = Sandbox::new();
        let list = r#"{"items":[{"name":"pear","price":3},{"name":"fig","price":11}],"total":2}"#;
        room.file("list.json", list);
        let tools = "tools:\n  - { name: shop, command: [cat, list.json] }\n  - { name: x, command: [id] }\n";
        room.file("tools.yaml", tools);
        let mut pty = Pty::console(&room, &["--tools", "tools.yaml"], rows, columns);
        pty.expect_shown("shop");
        fill(&mut pty, "shop", "shop");
        pty.type_keys(F5).expect_shown(" OK ").type_keys("\u{1b}").expect_shown("/ filter");
        // To the result, and from text over the tree to the table.
        pty.type_keys("\t\t").expect_shown("| jq").type_keys("vv").expect_shown("2 rows");
        pty.expect_shown("col 1/2").type_keys("\u{1b}[C").expect_shown("col 2/2");
        pty.type_keys("ss").expect_shown("sorted by price, descending").expect_shown("price ▼");
        let shown = pty.shown();
        assert!(shown.find("fig ").unwrap() < shown.find("pear ").unwrap(), "{shown}");
        pty.type_keys("c").expect_shown("copied path");
        assert_eq!(pty.copied().last().unwrap(), ".items[1].price");
        pty.type_keys("\r").expect_shown("price: 11").type_keys("q");
        assert_eq!(pty.finish().0, Some(0));
    }
}

#[test]
fn typing_into_a_choice_or_a_date_replaces_it() {
    let room = Sandbox::new();
    room.file(
        "tools.yaml",
        "tools:
  - { name: other, command: [id] }
  - name: book
    command: [echo, booked]
    parameters_schema:
      type: object
      properties:
        mode: { enum: [exact, float] }
        day: { type: string, format: date }
        now: { type: boolean }
",
    );
    let mut pty = Pty::console(&room, &["--tools", "tools.yaml"], 40, 120);
    pty.expect_shown("book");
    fill(&mut pty, "book", "book");
    pty.type_keys("\u{1b}[C").expect_shown(r#"{"mode":"exact"}"#);
    pty.type_keys("fl\r").expect_shown(r#"{"mode":"float"}"#);
    pty.type_keys("2026-01-01\t").type_keys("t").expect_shown(r#""day":"2026-01-01","now":true"#);
    // Back at the date, the first digit begins another one.
    pty.type_keys("f\u{1b}[A").type_keys("2027-12-31");
    pty.expect_shown(r#"sends {"mode":"float","day":"2027-12-31","now":false}"#);
    pty.type_keys("\u{3}y");
    assert_eq!(pty.finish().0, Some(0));
}
