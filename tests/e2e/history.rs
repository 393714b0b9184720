//! `toolhost history`: calls are kept, shown, made again and compared.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::support::{Pty, Sandbox, forbidden};

const TOOLS: &str = "\
tools:
  - { name: calculator, module: builtin.calculator, function: calculate }
  - { name: uuid, module: builtin.uuid, function: generate }
  - name: login
    module: builtin.echo
    function: echo
    parameters_schema:
      type: object
      properties:
        user: { type: string }
        code: { type: string, format: password }
";

fn room() -> Sandbox {
    let room = Sandbox::new();
    room.file("tools.yaml", TOOLS);
    room
}

fn listed(room: &Sandbox, words: &[&str]) -> Vec<Value> {
    let finished = room.toolhost([&["history", "--json"], words].concat()).check();
    finished.exits(0);
    finished.json().as_array().unwrap().clone()
}

#[test]
fn calls_are_listed_and_shown() {
    let room = room();
    room.toolhost(["call", "calculator", "expression=6*7"]).check().exits(0);
    room.toolhost(["call", "calculator", "expression=1/0"]).check().exits(3);
    room.toolhost(["call", "calculator", "expresion=1"]).check().exits(2);
    let all = listed(&room, &[]);
    assert_eq!(all.len(), 2, "what was not dispatched is no call: {all:?}");
    assert_eq!(all[0]["error"]["kind"], "tool");
    assert_eq!(all[1]["arguments"]["expression"], "6*7");
    assert_eq!(listed(&room, &["--failed"]), all[..1]);
    assert_eq!(listed(&room, &["-n", "1", "--tool", "calc*", "--since", "1h"]), all[..1]);
    let id = all[1]["id"].as_str().unwrap();
    let shown = room.toolhost(["history", "show", id, "--json"]).check();
    assert_eq!(shown.json()["output"], "42");
    let shown = room.toolhost(["history", "show", &id[..id.len() - 1]]).check();
    assert!(shown.out().contains("6*7") && shown.out().contains("42"), "{shown}");
    let table = room.toolhost(["history"]).check();
    assert!(table.out().contains(&id[..13]) && table.out().contains("expression=6*7"), "{table}");
    room.toolhost(["history", "show", "0"]).check().exits(2).says(&["several"]);
    room.toolhost(["history", "show", "zz"]).check().exits(2).says(&["no call 'zz'"]);
    let file = room.path("state/toolhost/history.jsonl");
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_call_is_made_again_and_compared() {
    let room = room();
    room.toolhost(["call", "calculator", "expression=6*7"]).check().exits(0);
    let again = room.toolhost(["history", "rerun", "last"]).check();
    again.exits(0);
    assert_eq!(again.out(), "42\n");
    let other = room.toolhost(["history", "rerun", "last", "expression=2+2"]).check();
    assert_eq!(other.out(), "4\n");
    let dry = room.toolhost(["history", "rerun", "last", "--dry-run"]).check();
    assert!(dry.out().contains("2+2"), "{dry}");
    let all = listed(&room, &[]);
    let ids: Vec<&str> = all.iter().map(|call| call["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 3, "a dry run is no call");
    room.toolhost(["history", "diff", ids[1], ids[2]]).check().exits(0).says(&["same"]);
    let differ = room.toolhost(["history", "diff", ids[2], ids[0]]).check();
    differ.exits(8);
    assert!(differ.out().contains("-42\n+4\n"), "{differ}");
    let differ = room.toolhost(["history", "diff", ids[2], ids[0], "--json"]).check();
    assert_eq!(differ.json()["equal"], false);
    room.toolhost(["history", "diff", ids[2], "--replay"]).check().exits(0);
    room.toolhost(["history", "diff", ids[2]])
        .check()
        .exits(2)
        .says(&["no call to compare", "--rerun"]);
    room.toolhost(["call", "uuid"]).check().exits(0);
    room.toolhost(["history", "diff", "last", "--replay"]).check().exits(8);
}

#[test]
fn a_changed_definition_is_pointed_out_and_rules_hold() {
    let room = room();
    room.toolhost(["call", "calculator", "expression=6*7"]).check().exits(0);
    room.file("tools.yaml", &TOOLS.replace("calculate }", "calculate, description: New words }"));
    let again = room.toolhost(["history", "rerun", "last"]).check();
    again.exits(0).says(&["definition of 'calculator' changed"]);
    room.file("tools.yaml", &format!("{TOOLS}policy: [{{ match: calc*, action: deny }}]\n"));
    room.toolhost(["history", "rerun", "last"]).check().exits(6).says(&["'calc*: deny'"]);
}

#[test]
fn secrets_are_not_kept_and_asked_for() {
    let room = room();
    room.toolhost(["call", "login", "user=ada", "code=hunter2-secret"]).check().exits(0);
    let kept = std::fs::read_to_string(room.path("state/toolhost/history.jsonl")).unwrap();
    let row: Value = serde_json::from_str(kept.lines().next().unwrap()).unwrap();
    assert_eq!(row["arguments"]["code"], "‹secret›");
    let refused = room.toolhost(["history", "rerun", "last"]).check();
    refused.exits(6).says(&["code", "code=…"]);
    let given = room.toolhost(["history", "rerun", "last", "code=other", "--json"]).check();
    assert_eq!(given.json()["structured"]["code"], "other", "{given}");

    let mut pty = Pty::toolhost(&room, &["history", "rerun", "last", "--json"]);
    pty.expect("(secret):").type_keys("typed-secret\r");
    let (status, screen) = pty.finish();
    assert_eq!(status, Some(0), "{screen}");
    let (before, after) = screen.split_once("(secret):").unwrap();
    assert!(!before.contains("typed-secret"), "{screen}");
    assert!(after.trim_start().starts_with('{') && after.contains("typed-secret"), "{screen}");

    // An interruption gives the terminal back as it was.
    if crate::support::lacks(&["grep"]) {
        return;
    }
    let script = "\"$0\" history rerun last; stty -a | tr ';' '\\n' | grep -wo -e '-echo' -e echo";
    let binary = env!("CARGO_BIN_EXE_toolhost");
    let mut pty = Pty::program(&room, "sh", &["-c", &format!("trap : INT; {script}"), binary]);
    pty.expect("(secret):").type_keys("\u{3}");
    let (_, screen) = pty.finish();
    assert!(screen.contains("\necho"), "{screen}");
}

#[test]
fn it_can_be_switched_off_and_removed() {
    let room = room();
    std::fs::write(room.path("config/toolhost/tools.yaml"), "history: { enabled: false }\n")
        .unwrap();
    room.toolhost(["call", "calculator", "expression=1"]).check().exits(0);
    assert!(!room.path("state/toolhost/history.jsonl").exists());
    std::fs::remove_file(room.path("config/toolhost/tools.yaml")).unwrap();
    room.toolhost(["call", "calculator", "expression=1"]).check().exits(0);
    room.toolhost(["history", "clear"]).check().exits(6).says(&["--yes"]);
    assert_eq!(listed(&room, &[]).len(), 1);
    room.toolhost(["history", "clear", "--yes"]).check().exits(0);
    assert!(listed(&room, &[]).is_empty());
    room.toolhost(["history", "rerun", "last"]).check().exits(2);
}

#[test]
fn hostile_lines_are_escaped_and_survived() {
    let room = room();
    room.toolhost(["call", "calculator", "expression=6*7"]).check().exits(0);
    let path = room.path("state/toolhost/history.jsonl");
    let line = std::fs::read_to_string(&path).unwrap();
    let evil = "\\u001b]0;x\\u0007\\u202e\\u009b31m";
    let forged = line.replace("6*7", evil).replace("calculator", evil).replace("allowed", evil);
    std::fs::write(&path, format!("\u{1b}[2J\n{{\"id\":\"x\n{forged}{{\"id\":\"half")).unwrap();
    for words in [&["history"][..], &["history", "show", "last"], &["history", "--json"]] {
        let finished = room.toolhost(words.iter().copied()).check();
        finished.exits(0);
        assert_eq!(forbidden(&finished.stdout), None, "{finished}");
    }
    room.toolhost(["history"]).check().says(&["3 unreadable lines"]);
}
