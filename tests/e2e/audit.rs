//! `toolhost audit`: what was called, refused and left without an end, read back and followed.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Sandbox, forbidden};

const CALL: [&str; 3] = ["call", "calculator", "expression=6*7"];

fn log(room: &Sandbox) -> PathBuf {
    room.path("state/toolhost/audit.jsonl")
}

fn audited(room: &Sandbox, words: &[&str]) -> Vec<Value> {
    let finished = room.toolhost([&["audit", "--json"], words].concat()).check();
    finished.exits(0);
    finished.json().as_array().unwrap().clone()
}

fn intent(call: &str, unix: f64) -> String {
    format!(
        r#"{{"event":"intent","unix":{unix},"time":"","call":"{call}","pid":1,"user":null,"session":"s","tool":"t","server":null,"source":"internal","decision":"allowed","arguments":{{"n":1}}}}"#
    )
}

fn outcome(call: &str, unix: f64) -> String {
    format!(
        r#"{{"event":"outcome","unix":{unix},"time":"","call":"{call}","pid":1,"user":null,"tool":"t","server":null,"result":"ok","message":null,"duration_us":5,"attempts":1,"bytes":2}}"#
    )
}

fn write_log(room: &Sandbox, text: &str) {
    std::fs::create_dir_all(room.path("state/toolhost")).unwrap();
    std::fs::write(log(room), text).unwrap();
}

#[test]
fn calls_are_shown_with_their_ends_and_decisions() {
    let room = Sandbox::new();
    room.file(
        "tools.yaml",
        "tools:\n  - { name: calculator, module: builtin.calculator, function: calculate }\n\
         policy:\n  - { match: never, action: deny }\n",
    );
    room.toolhost(CALL).check().exits(0);
    room.toolhost(["call", "calculator", "expression=1/0", "--session", "mine"]).check().exits(3);
    let all = audited(&room, &[]);
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!((&all[0]["result"], &all[1]["result"]), (&"ok".into(), &"tool".into()));
    assert_eq!(all[0]["arguments"]["expression"], "6*7");
    assert_eq!(all[1]["session"], "mine");
    assert_eq!(audited(&room, &["--failed"]), all[1..]);
    assert_eq!(audited(&room, &["--session", "mine"]), all[1..]);
    assert_eq!(audited(&room, &["-n", "1"]), all[1..]);
    assert_eq!(audited(&room, &["--tool", "calc*", "--since", "1h"]), all);
    assert!(audited(&room, &["--tool", "other*"]).is_empty());
    assert!(audited(&room, &["--since", "2200-01-01"]).is_empty());
    let table = room.toolhost(["audit"]).check();
    table.exits(0);
    for word in ["TIME", "calculator", "allowed", "expression=6*7", "tool"] {
        assert!(table.out().contains(word), "{word}\n{table}");
    }
    room.toolhost(["audit", "--since", "soon"]).check().exits(2).says(&["7d"]);
}

#[test]
fn a_refusal_names_its_rule() {
    let room = Sandbox::new();
    room.file(
        "tools.yaml",
        "tools:\n  - { name: calculator, module: builtin.calculator, function: calculate }\n\
         policy:\n  - { match: calc*, action: deny }\n",
    );
    room.toolhost(CALL).check().exits(6);
    let refused = audited(&room, &["--decision", "refused"]);
    assert_eq!(refused.len(), 1);
    let message = refused[0]["message"].as_str().unwrap();
    assert_eq!(refused[0]["arguments"]["expression"], "6*7");
    assert_eq!(refused[0]["source"], "internal");
    assert!(message.contains("'calc*: deny'") && message.contains("tools.yaml:4"), "{message}");
}

#[test]
fn hostile_and_broken_lines_are_escaped_counted_and_survived() {
    let room = Sandbox::new();
    let evil = serde_json::to_string("\u{1b}]0;x\u{7}\u{202e}\u{9b}31m\r\ntool").unwrap();
    let mut text = String::from("\u{1b}[2J not json\n{\"event\":\"intent\",\"un\n[1]\n");
    text.push_str(
        &intent("id", 5.0)
            .replace("\"t\"", &evil)
            .replace("{\"n\":1}", &format!("{{{evil}:{evil}}}")),
    );
    text.push('\n');
    text.push_str(&outcome("id", 6.0).replace("\"t\"", &evil));
    text.push_str("\n{\"event\":\"outcome\"");
    write_log(&room, &text);
    std::fs::OpenOptions::new()
        .append(true)
        .open(log(&room))
        .unwrap()
        .write_all(b"\xff\xfe\0")
        .unwrap();
    for format in ["text", "json", "yaml"] {
        let finished = room.toolhost(["audit", "-o", format]).check();
        finished.exits(0).says(&["4 unreadable lines"]);
        assert_eq!(forbidden(&finished.stdout), None);
    }
    assert_eq!(audited(&room, &[]).len(), 1);
}

#[test]
fn the_newest_of_very_many_are_found_at_the_end_and_in_older_files() {
    let room = Sandbox::new();
    let mut text = String::new();
    for call in 0..20_000 {
        let unix = 1_700_000_000.0 + f64::from(call);
        writeln!(
            text,
            "{}\n{}",
            intent(&format!("{call:06}"), unix),
            outcome(&format!("{call:06}"), unix)
        )
        .unwrap();
    }
    write_log(&room, &text);
    let old = room.path("state/toolhost/audit-20231114T221320Z.jsonl");
    std::fs::rename(log(&room), old).unwrap();
    // An end whose beginning stands in the older file.
    write_log(
        &room,
        &format!("{}\n{}\n", intent("last", 1_800_000_000.0), outcome("other", 1_800_000_001.0)),
    );
    let found = audited(&room, &["-n", "3"]);
    let calls: Vec<_> = found.iter().map(|call| call["call"].as_str().unwrap()).collect();
    assert_eq!(calls, ["019999", "last", "other"]);
    let table = room.toolhost(["audit", "-n", "2"]).check();
    assert!(table.out().contains("no outcome"), "{table}");
}

#[test]
fn what_is_followed_comes_as_json_lines_until_an_interruption() {
    let room = Sandbox::new();
    room.toolhost(CALL).check().exits(0);
    let mut child = Command::new(env!("CARGO_BIN_EXE_toolhost"))
        .args(["audit", "--follow", "--json"])
        .env_clear()
        .envs(room.environment())
        .current_dir(room.path("work"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(next()["result"], "ok");
    // The file is set aside in between.
    std::fs::rename(log(&room), room.path("state/toolhost/audit-20261121T000000Z.jsonl")).unwrap();
    room.toolhost(["call", "calculator", "expression=1/0"]).go().exits(3);
    let second = next();
    assert_eq!((&second["result"], &second["decision"]), (&"tool".into(), &"allowed".into()));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn following_ends_with_its_reader() {
    if crate::support::lacks(&["bash"]) {
        return;
    }
    let room = Sandbox::new();
    room.toolhost(CALL).check().exits(0);
    let script = "set -o pipefail; \"$0\" audit --follow --json | head -n 1";
    let finished = room.program("bash", ["-c", script, env!("CARGO_BIN_EXE_toolhost")]).check();
    finished.exits(0);
    assert_eq!(finished.json()["tool"], "calculator");
}

#[test]
fn a_log_that_is_not_there_or_not_ours_is_said() {
    let room = Sandbox::new();
    let finished = room.toolhost(["audit"]).check();
    finished.exits(0).says(&["no such call", "audit.jsonl"]);
    assert_eq!(audited(&room, &[]), [Value::Null; 0]);
    let target = room.path("home/secret");
    std::fs::write(&target, "x").unwrap();
    std::fs::create_dir_all(room.path("state/toolhost")).unwrap();
    std::os::unix::fs::symlink(&target, log(&room)).unwrap();
    room.toolhost(["audit"]).check().exits(6).says(&["symbolic link"]);
}
