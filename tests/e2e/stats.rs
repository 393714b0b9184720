//! `toolhost stats`: every call is counted once, whatever happens to whom.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::support::{Finished, Pty, Sandbox};

const TOOLS: &str = "\
tools:
  - { name: calculator, module: builtin.calculator, function: calculate }
  - { name: never, module: builtin.uuid, function: generate }
";

const CALL: [&str; 3] = ["call", "calculator", "expression=6*7"];

fn room() -> Sandbox {
    let room = Sandbox::new();
    room.file("tools.yaml", TOOLS);
    room
}

fn spool(room: &Sandbox) -> PathBuf {
    room.path("state/toolhost/stats.spool")
}

fn spooled(room: &Sandbox) -> usize {
    std::fs::read_to_string(spool(room)).map_or(0, |text| text.lines().count())
}

/// Calls that were counted: what a fresh reader says.
#[track_caller]
fn counted(room: &Sandbox) -> u64 {
    let finished = room.toolhost(["stats", "--json"]).check();
    finished.exits(0);
    calls(&finished)
}

#[track_caller]
fn calls(finished: &Finished) -> u64 {
    finished.json()["total"]["calls"].as_u64().unwrap_or(0)
}

#[test]
fn calls_are_counted_and_shown() {
    let room = room();
    room.toolhost(["stats"]).check().exits(0).says(&["no calls recorded yet"]);
    assert!(!spool(&room).exists(), "nothing is made for nothing");
    for _ in 0..3 {
        room.toolhost(CALL).check().exits(0);
    }
    room.toolhost(["call", "calculator", "expression=1/0"]).check().exits(3);
    let all = room.toolhost(["stats", "--json"]).check();
    let tool = &all.json()["tools"][0];
    for (key, expected) in [("calls", 4), ("ok", 3), ("tool_errors", 1), ("errors", 0)] {
        assert_eq!(tool[key], expected, "{key}\n{all}");
    }
    assert!(tool["p50_ms"].as_f64().is_some_and(|ms| ms > 0.0 && ms < 10_000.0), "{all}");
    let table = room.toolhost(["stats"]).check();
    assert!(table.out().contains("calculator") && table.out().contains("75.0"), "{table}");
    let detail = room.toolhost(["stats", "calculator", "--ascii"]).check();
    assert!(detail.out().contains("4, 75.0% ok") && detail.out().contains('#'), "{detail}");
    let detail = room.toolhost(["stats", "calculator", "--json"]).check();
    let histogram = detail.json()["tools"][0]["histogram"].as_array().unwrap().clone();
    let in_bars: Option<u64> = histogram.iter().map(|bar| bar["calls"].as_u64()).sum();
    assert_eq!(in_bars, Some(3), "the times of failures are none of it: {detail}");
    let inspected = room.toolhost(["inspect", "calculator"]).check();
    assert!(inspected.out().contains("4 calls, 75.0% ok"), "{inspected}");
    assert_eq!(room.toolhost(["inspect", "calculator", "--json"]).check().json()["stats"]["ok"], 3);
    assert_eq!(calls(&room.toolhost(["stats", "--since", "1h", "--json"]).check()), 4);
    assert_eq!(calls(&room.toolhost(["stats", "--since", "2200-01-01", "--json"]).check()), 0);
    let unknown = room.toolhost(["stats", "calculater"]).check();
    unknown.exits(2).says(&["did you mean 'calculator'?"]);
    room.toolhost(["stats", "never"]).check().exits(0).says(&["no calls of 'never'"]);
    assert_eq!(std::fs::metadata(spool(&room)).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn many_processes_and_readers_lose_no_call() {
    let room = room();
    let script = "i=0; while [ $i -lt 25 ]; do \"$0\" call calculator expression=6*7 || exit 1; \
                  i=$((i+1)); done";
    let binary = env!("CARGO_BIN_EXE_toolhost");
    let limit = Duration::from_secs(50);
    let caller = || room.program("/bin/sh", ["-c", script, binary]).limit(limit).start();
    let mut callers: Vec<_> = (0..8).map(|_| caller()).collect();
    // Readers read all the while, several at a time.
    let mut read = 0;
    while callers.iter_mut().any(|caller| caller.child.try_wait().unwrap().is_none()) {
        let readers: Vec<_> = (0..2).map(|_| room.toolhost(["stats", "--json"]).start()).collect();
        for reader in readers {
            let reader = reader.finish();
            reader.exits(0);
            assert!(reader.err().is_empty(), "{reader}");
            let now = calls(&reader);
            assert!(now <= 200, "{reader}");
            read += 1;
        }
    }
    for caller in callers {
        let caller = caller.finish();
        caller.exits(0);
        assert!(caller.err().is_empty(), "{caller}");
    }
    assert!(read > 2);
    assert_eq!(counted(&room), 200);
    assert_eq!(spooled(&room), 200);
}

#[test]
fn kill_9_of_readers_and_callers_counts_every_line_once() {
    let room = room();
    for round in 0..25 {
        room.toolhost(CALL).check().exits(0);
        let mut reader = room.toolhost(["stats", "--json"]).start();
        let mut caller = room.toolhost(CALL).start();
        // Somewhere else each time: the work of a reader takes some hundred of these.
        for _ in 0..round * 20 {
            std::thread::yield_now();
            if reader.child.try_wait().unwrap().is_some() {
                break;
            }
        }
        reader.child.kill().ok();
        caller.child.kill().ok();
        reader.finish();
        caller.finish();
    }
    let lines = spooled(&room) as u64;
    assert!(lines >= 25);
    assert_eq!(counted(&room), lines);
}

#[test]
fn what_somebody_put_there_is_refused_and_an_older_store_is_told() {
    let room = room();
    room.toolhost(CALL).check().exits(0);
    let store = room.path("state/toolhost/stats.db");
    std::fs::write(&store, "counted before").unwrap();
    room.toolhost(["stats"]).check().exits(0).says(&["stats.db", "is not read any more"]);
    std::fs::remove_file(&store).unwrap();
    assert!(room.toolhost(["stats", "--json"]).check().err().is_empty());
    std::fs::rename(spool(&room), room.path("home/spool")).unwrap();
    symlink(room.path("home/spool"), spool(&room)).unwrap();
    room.toolhost(["stats"]).check().exits(6).says(&["stats.spool is a symbolic link"]);
    room.toolhost(["inspect", "calculator"]).check().exits(0);
}

#[test]
fn the_switch_and_the_path_are_heeded() {
    let room = Sandbox::new();
    room.file("tools.yaml", TOOLS);
    let settings = room.path("config/toolhost/tools.yaml");
    std::fs::write(&settings, "stats: { enabled: false }\n").unwrap();
    room.toolhost(CALL).check().exits(0);
    assert!(!spool(&room).exists());
    room.toolhost(["stats"]).check().exits(0).says(&["switched off"]);
    std::fs::write(
        &settings,
        format!("stats: {{ path: {}/mine/calls.db }}\n", room.path("home").display()),
    )
    .unwrap();
    room.toolhost(CALL).check().exits(0);
    assert_eq!(counted(&room), 1);
    assert!(room.path("home/mine/calls.spool").exists() && !spool(&room).exists());
}

/// Two tools that take a little more than a second; one of them declares to be at once.
const SLOW: &str = "\
tools:
  - { name: hasty, command: [sleep, '1.05'], speed: instant, timeout: 20s }
  - { name: honest, command: [sleep, '1.05'], speed: fast }
";

#[test]
fn a_tool_that_is_slower_than_it_declares_is_marked() {
    let room = Sandbox::new();
    room.file("tools.yaml", SLOW);
    let run = |words: &[&'static str]| {
        let words: Vec<&str> = ["--tools", "tools.yaml"].iter().chain(words).copied().collect();
        room.toolhost(words).check()
    };
    let marks = || {
        let listed = run(&["list", "--json"]).json();
        let tools = listed["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["slower_than_declared"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(marks(), [Value::Null, Value::Null], "nothing was measured yet");
    for name in ["hasty", "honest"] {
        let call = ["--tools", "tools.yaml", "call", name];
        let calls: Vec<_> = (0..5).map(|_| room.toolhost(call).start()).collect();
        for call in calls {
            call.finish().exits(0);
        }
    }
    let marks = marks();
    let (mark, honest) = (&marks[0], &marks[1]);
    assert!(honest.is_null(), "{honest}");
    assert_eq!((&mark["speed"], &mark["limit_ms"]), (&"instant".into(), &1000.0.into()));
    assert!(mark["p95_ms"].as_f64().unwrap() > 1000.0, "{mark}");
    let listed = run(&["list"]).out();
    assert!(listed.contains("s  hasty") && !listed.contains("s  honest"), "{listed}");
    assert!(listed.contains("s slower than declared"), "{listed}");
    assert_eq!(run(&["inspect", "hasty", "--json"]).json()["slower_than_declared"], *mark);
    let shown = run(&["inspect", "hasty"]).out();
    assert!(shown.contains("slower than declared: p95 1."), "{shown}");
    assert!(shown.contains("instant is up to 1 s"), "{shown}");
    assert!(!run(&["inspect", "honest"]).out().contains("slower"));

    let mut pty = Pty::console(&room, &["--tools", "tools.yaml"], 30, 120);
    pty.expect_shown("! slower than declared: p95 1.").type_keys("j");
    pty.expect_gone("! slower than declared").type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
}

/// What was not allowed says nothing about the tool.
#[test]
fn a_refused_call_is_no_failure_of_its_tool() {
    let room = Sandbox::new();
    room.file(
        "tools.yaml",
        "tools:
  - { name: calculator, module: builtin.calculator, function: calculate, requires_approval: true }
  - { name: program, command: [echo, hi] }\n",
    );
    room.toolhost(CALL).check().exits(6);
    room.toolhost(["call", "program"]).check().exits(6);
    room.toolhost(CALL.into_iter().chain(["--yes"])).check().exits(0);
    let all = room.toolhost(["stats", "--json"]).check().json();
    let rows = all["tools"].as_array().unwrap();
    assert_eq!(rows.len(), 1, "{all}");
    assert_eq!(
        (&rows[0]["calls"], &rows[0]["errors"]),
        (&Value::from(1), &Value::from(0)),
        "{all}"
    );
    // The audit log keeps every attempt.
    let audited = room.toolhost(["audit", "--json"]).check().json();
    assert_eq!(audited.as_array().unwrap().len(), 3, "{audited}");
}

/// A tool has one row, however it was named.
#[test]
fn a_server_that_is_down_gets_no_row_for_each_spelling() {
    let room = Sandbox::new();
    room.file("mcp.yaml", "mcp_servers: { srv: { command: ./nothing } }\n");
    for name in ["srv-extra", "extra", "srv.extra"] {
        room.with_servers(["call", name]).check().exits(4);
    }
    let all = room.toolhost(["stats", "--all-projects", "--json"]).check().json();
    let rows = all["tools"].as_array().unwrap();
    let names: Vec<_> = rows.iter().map(|row| (&row["name"], &row["calls"])).collect();
    assert_eq!(names, [(&Value::from("srv-extra"), &Value::from(3))], "{all}");
}

/// Two records in one file would destroy each other.
#[test]
fn one_path_for_two_records_is_refused() {
    let pairs = [
        ("stats: record", "audit: record"),
        ("audit: record", "history: record"),
        ("history: record", "stats: record"),
        ("stats: record.db", "audit: record.spool"),
    ];
    for (one, other) in pairs {
        let room = Sandbox::new();
        let keys = [one, other].map(|pair| {
            let (key, file) = pair.split_once(": ").unwrap();
            format!("{key}: {{ path: '{}' }}\n", room.path("data").join(file).display())
        });
        let text = format!("{}{TOOLS}", keys.concat());
        std::fs::write(room.path("config/toolhost/tools.yaml"), text).unwrap();
        for words in [&CALL[..], &["list"], &["config", "check"]] {
            let refused = room.toolhost(words.iter().copied()).check();
            refused.exits(9);
            let said = refused.out() + &refused.err();
            assert!(said.contains("same file") && said.contains("tools.yaml"), "{refused}");
        }
        for file in ["record", "record.spool"] {
            assert!(!room.path("data").join(file).exists(), "{one} {other}");
        }
    }
}

/// What a project's file may not say is not ignored in silence where it matters.
#[test]
fn statistics_that_a_project_would_move_or_disable_say_so() {
    let room = room();
    room.file("tools.yaml", &format!("stats: {{ enabled: false, path: ./s.db }}\n{TOOLS}"));
    room.toolhost(CALL).check().exits(0);
    let shown = room.toolhost(["stats"]).check();
    shown.exits(0).says(&["'enabled' is ignored", "'path' is ignored", "tools.yaml:1"]);
    assert!(!room.path("work/s.db").exists());
}
