//! The log of toolhost's own doings: what is in it, where it goes, and what never is.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;

use crate::support::{Finished, Fixture, Place, Pty, Sandbox};

const SECRET: &str = "log-canary-7f3a";

/// A room with a server whose environment holds a secret, and tools that print it and fail.
fn room() -> (Sandbox, Fixture) {
    let room = Sandbox::new();
    let fixture = Fixture::fault(Place::Stdio, "none", "both", &room.log("srv"));
    room.server_with("srv", &fixture, "env: { SRV_TOKEN: '${LOG_CANARY:-none}' }");
    room.file(
        "tools.yaml",
        "tools:
  - { name: leak, command: [sh, -c, 'echo $P_TOKEN; echo $P_TOKEN >&2; exit 3'], env: { P_TOKEN: '${LOG_CANARY}' } }
  - { name: guarded, command: [echo, x], requires_approval: true }
",
    );
    (room, fixture)
}

const BOTH: [&str; 4] = ["--tools", "tools.yaml", "--mcp", "mcp.yaml"];

fn run(room: &Sandbox, words: &[&str]) -> Finished {
    let words = BOTH.iter().chain(words).copied();
    room.toolhost(words).env("LOG_CANARY", SECRET).check()
}

fn rows(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn without_being_asked_for_there_is_no_log() {
    let (room, _fixture) = room();
    let run = run(&room, &["call", "srv-echo", "message=hello"]);
    assert_eq!((run.exits(0).out().as_str(), run.err().as_str()), ("hello\n", ""));
    assert!(room.records().iter().all(|(path, _)| !path.ends_with("toolhost.log")));
}

#[test]
fn a_log_tells_the_life_of_a_call() {
    let (room, _fixture) = room();
    let call = ["call", "srv-echo", "message=hello", "--log-filter", "debug"];
    let file = ["--log-file", "logs/own.jsonl", "--log-format", "json"];
    let told = run(&room, &[&call[..], &file, &["--json"]].concat());
    assert_eq!(told.exits(0).err(), "", "the log stands in its file alone");
    let id = told.json()["metadata"]["call_id"].clone();
    let path = room.path("work/logs/own.jsonl");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let rows = rows(&path);
    let find = |message: &str| {
        let row = rows.iter().find(|row| row["message"] == message);
        row.unwrap_or_else(|| panic!("no '{message}' in {rows:#?}"))
    };
    for row in &rows {
        assert!(row["timestamp"].is_string() && row["level"].is_string(), "{row}");
        assert!(row["target"].as_str().unwrap().starts_with("toolhost::"), "{row}");
    }
    assert_eq!(find("configuration read")["servers"], 1);
    let connected = find("server connected");
    assert_eq!((&connected["server"], &connected["level"]), (&"srv".into(), &"INFO".into()));
    assert_eq!(connected["protocol"], "2026-07-28");
    assert!(connected["pid"].is_u64() && connected["connect_ms"].is_f64(), "{connected}");
    let answered = rows.iter().find(|row| row["message"] == "request ended" && row["call"] == id);
    let answered = answered.unwrap();
    assert_eq!((&answered["method"], &answered["outcome"]), (&"tools/call".into(), &"ok".into()));
    assert!(answered["latency_ms"].as_f64().unwrap() > 0.0);
    let ended = find("call ended");
    assert_eq!((&ended["call"], &ended["tool"]), (&id, &"srv-echo".into()));
    assert_eq!((&ended["outcome"], &ended["attempts"]), (&"ok".into(), &1.into()));
    assert_eq!(find("process ended")["pid"], connected["pid"]);
    find("server connection closed");

    // A second run appends; levels and parts choose.
    let more = ["call", "srv-echo", "message=hello", "--log-filter", "off,host=info"];
    run(&room, &[&more[..], &file].concat()).exits(0);
    let after = self::rows(&path);
    let new: Vec<&Value> = after[rows.len()..].iter().map(|row| &row["message"]).collect();
    assert_eq!(new, ["call ended"]);
}

#[test]
fn the_log_of_a_command_without_a_file_stands_on_standard_error() {
    let (room, _fixture) = room();
    let told = run(&room, &["call", "leak", "--log-filter", "info"]);
    told.exits(3).says(&[" INFO toolhost::", "call ended", "tool=\"leak\"", "outcome=\"tool\""]);
    let words = BOTH.iter().chain(&["call", "leak"]).copied();
    let told = room.toolhost(words).env("TOOLHOST_LOG", "host=info").env("LOG_CANARY", SECRET);
    told.check().exits(3).says(&["call ended"]);
    // The option beats the variable, and an empty variable says nothing.
    let words = BOTH.iter().chain(&["call", "leak", "--log-filter", "off"]).copied();
    let quiet = room.toolhost(words).env("TOOLHOST_LOG", "trace").env("LOG_CANARY", SECRET);
    assert!(!quiet.check().err().contains("call ended"));
    let words = BOTH.iter().chain(&["call", "leak"]).copied();
    let quiet = room.toolhost(words).env("TOOLHOST_LOG", "").env("LOG_CANARY", SECRET);
    assert!(!quiet.check().err().contains("call ended"));
}

#[test]
fn a_refusal_and_a_server_that_does_not_start_are_logged_with_their_kind() {
    let (room, _fixture) = room();
    run(&room, &["call", "guarded", "--log-file", "a.log"]).exits(6);
    let text = std::fs::read_to_string(room.path("work/a.log")).unwrap();
    for words in ["approval asked", "answer=Unavailable", "call refused", "outcome=\"denied\""] {
        assert!(text.contains(words), "{words}: {text}");
    }
    room.file("mcp.yaml", "mcp_servers:\n  gone: { command: 'false' }\n");
    run(&room, &["call", "gone-x", "--log-file", "b.log"]).exits(4);
    let text = std::fs::read_to_string(room.path("work/b.log")).unwrap();
    assert!(text.contains(" WARN ") && text.contains("server not connected"), "{text}");
    assert!(text.contains("kind=\"unreachable\""), "{text}");
}

#[test]
fn no_secret_and_no_argument_is_logged_at_any_level() {
    let (room, _fixture) = room();
    // A directory whose name a variable holds, so that even a path could tell.
    room.file(
        &format!("{SECRET}/tools.yaml"),
        "tools: [{ name: t, command: [echo, '${LOG_CANARY}'] }]",
    );
    let path = room.path(&format!("work/{SECRET}/tools.yaml"));
    let path = path.to_str().unwrap();
    let argument = "an-argument-nobody-logs";
    let echo = format!("message={argument}");
    for (at, words) in [
        &["call", "leak"][..],
        &["call", "srv-echo", &echo],
        &["call", "srv-echo", &echo, "nonsense=1"],
        &["list"],
        &["servers"],
        &["inspect", "leak"],
        &["list", "--tools", path],
    ]
    .iter()
    .enumerate()
    {
        for format in ["text", "json"] {
            let file = format!("{at}-{format}.log");
            let log = ["--log-filter", "trace", "--log-format", format, "--log-file", &file];
            run(&room, &[words, &log[..]].concat());
            let text = std::fs::read_to_string(room.path("work").join(&file)).unwrap();
            assert!(text.contains("configuration read"), "{words:?}: {text}");
            for secret in [SECRET, argument] {
                assert!(!text.contains(secret), "{words:?}: {text}");
            }
        }
    }
}

#[test]
fn directives_that_cannot_be_read_are_refused_with_their_place() {
    let (room, _fixture) = room();
    let bad = run(&room, &["list", "--declared", "--log-filter", "info,mpc=debug"]);
    bad.exits(2).says(&[
        "error: --log-filter, character 6: 'mpc' is not a part of toolhost",
        "did you mean 'mcp'? the parts are assembly, config, host, mcp, providers, run, util",
    ]);
    let bad = room.toolhost(["list", "--declared", "--json"]).env("TOOLHOST_LOG", "info,host=loud");
    let bad = bad.check();
    let line: Value = serde_json::from_str(bad.exits(2).err().trim()).unwrap();
    assert_eq!(line["error"]["message"], "TOOLHOST_LOG, character 11: 'loud' is not a level");
    assert_eq!(bad.out(), "");
}

#[test]
fn a_log_is_written_to_no_file_that_is_not_ours() {
    let (room, _fixture) = room();
    std::os::unix::fs::symlink("precious", room.path("work/link.log")).unwrap();
    room.file("precious", "x");
    let refused = run(&room, &["call", "srv-echo", "message=a", "--log-file", "link.log"]);
    refused.exits(6).says(&["cannot write the log", "is a symbolic link"]);
    assert_eq!(std::fs::read_to_string(room.path("work/precious")).unwrap(), "x");
    assert_eq!(refused.out(), "", "nothing was called");
    run(&room, &["list", "--log-file", "/dev/null"]).exits(6).says(&["is not a regular file"]);
}

/// The terminal is the console's: not a line of the log comes between its pictures.
#[test]
fn the_console_logs_to_its_own_file() {
    let (room, _fixture) = room();
    let log = [("TOOLHOST_LOG".to_owned(), "debug".to_owned())];
    let mut console = Pty::console_with(&room, &log, 40, 120);
    console.expect_shown("Tools").type_keys("q");
    let (code, screen) = console.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(!screen.contains("configuration read"), "{screen}");
    let path = room.path("state/toolhost/toolhost.log");
    assert!(std::fs::read_to_string(&path).unwrap().contains("configuration read"));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}
