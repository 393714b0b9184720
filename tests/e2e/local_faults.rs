//! Local tools that misbehave: programs, Python functions and APIs that flood, hang, fork, listen
//! where nobody speaks, or answer with rubbish; and records and stores that cannot be used.

use std::collections::BTreeSet;
use std::path::Path;

use rusqlite::Connection;
use serde_json::Value;

use crate::support::{Finished, Fixture, Place, Run, Sandbox, log_events};

/// The most memory a run may take, in KiB (I2).
const MEMORY: u64 = 128 * 1024;

fn named<'a>(room: &'a Sandbox, words: &[&'a str]) -> Run<'a> {
    room.toolhost(["--tools", "tools.yaml"].into_iter().chain(words.iter().copied()))
}

/// Runs to the end, with all invariants and within the memory that every run has.
#[track_caller]
fn bounded(run: Run<'_>) -> Finished {
    let finished = run.check();
    assert!(finished.peak_rss <= MEMORY, "I2: {} KiB\n{finished}", finished.peak_rss);
    finished
}

// ---- O02: programs

const PROGRAMS: &str = r#"
tools:
  - { name: flood, command: [sh, -c, "while :; do printf '%65536s'; done"], timeout: 20s }
  - { name: noise, command: [sh, -c, "while :; do printf '%65536s\n' >&2; done"], timeout: 2s }
  - { name: stubborn, command: [sh, -c, "trap '' TERM INT HUP; while :; do sleep 600; done"], timeout: 300ms }
  - { name: orphans, command: [sh, -c, "for i in 1 2 3 4 5 6 7 8; do sleep 600 & done; setsid sleep 600 & echo done"], timeout: 20s }
  - { name: hidden, command: [sh, -c, "(trap '' TERM; setsid sh -c 'sleep 600 & sleep 600') >/dev/null 2>&1 & sleep 600"], timeout: 300ms }
  - { name: reader, command: [sh, -c, "cat; echo end"], timeout: 20s }
  - { name: tty, command: [sh, -c, "(echo hello > /dev/tty) 2>/dev/null && echo wrote || echo none"], timeout: 20s }
  - { name: events, command: [sh, -c, "while :; do printf '%65536s' >&3; done"], timeout: 2s }
"#;

#[test]
fn a_program_that_floods_its_output_is_cut_off_and_ended() {
    let room = Sandbox::new();
    room.file("tools.yaml", PROGRAMS);
    bounded(named(&room, &["call", "flood"])).exits(10).says(&["MiB"]);
    // What goes to stderr is kept at its end only, and nobody waits for it.
    bounded(named(&room, &["call", "noise"])).exits(7);
    bounded(named(&room, &["call", "events"])).exits(7);
}

#[test]
fn a_program_that_ignores_signals_is_killed_with_all_it_started() {
    let room = Sandbox::new();
    room.file("tools.yaml", PROGRAMS);
    bounded(named(&room, &["call", "stubborn"])).exits(7);
    bounded(named(&room, &["call", "hidden"])).exits(7);
}

#[test]
fn a_program_that_forks_neither_delays_its_answer_nor_leaves_anything() {
    let room = Sandbox::new();
    room.file("tools.yaml", PROGRAMS);
    assert_eq!(bounded(named(&room, &["call", "orphans"])).exits(0).out(), "done\n");
}

#[test]
fn a_program_gets_neither_the_input_nor_the_terminal_of_toolhost() {
    let room = Sandbox::new();
    room.file("tools.yaml", PROGRAMS);
    let reader = bounded(named(&room, &["call", "reader"]).stdin("for toolhost only\n"));
    assert_eq!(reader.exits(0).out(), "end\n");
    assert_eq!(bounded(named(&room, &["call", "tty"])).exits(0).out(), "none\n");
}

// ---- O02: Python functions

const FUNCTIONS: &str = r"
tools:
  - { name: flood, module: bad, function: flood, timeout: 2s }
  - { name: noise, module: bad, function: noise, timeout: 2s }
  - { name: giant, module: bad, function: giant, timeout: 20s }
  - { name: deep, module: bad, function: deep, timeout: 20s }
  - { name: odd, module: bad, function: odd, timeout: 20s }
  - { name: stubborn, module: bad, function: stubborn, timeout: 2s }
  - { name: orphans, module: bad, function: orphans, timeout: 20s }
  - { name: reader, module: bad, function: reader, timeout: 20s }
  - { name: leaves, module: bad, function: leaves, timeout: 20s }
  - { name: closes, module: bad, function: closes, timeout: 2s }
  - { name: evil, module: bad, function: evil, timeout: 20s }
  - { name: broken, module: broken, function: f, timeout: 20s }
";

const MODULE: &str = r#"
import os, subprocess, sys, time

def flood():
    while True:
        os.write(1, b"x" * 65536)

def noise():
    while True:
        os.write(2, b"x" * 65536 + b"\n")

def giant():
    return "x" * (64 << 20)

def deep():
    value = []
    for _ in range(100_000):
        value = [value]
    return value

def odd():
    return {"nan": float("nan"), "text": "\ud800", "set": {1}}

def stubborn():
    while True:
        try:
            subprocess.run(["sh", "-c", "trap '' TERM INT HUP; while :; do sleep 600; done"])
        except BaseException:
            pass

def orphans():
    for new in (False, True):
        subprocess.Popen(["sleep", "600"], start_new_session=new)
    return "done"

def reader():
    return sys.stdin.read() + "end"

def leaves():
    os._exit(3)

def closes():
    os.closerange(0, 64)
    time.sleep(600)

def evil():
    raise ValueError("\x1b[2J\u202e\u200b" + "x" * (1 << 20))
"#;

fn functions(room: &Sandbox) {
    room.file("tools.yaml", FUNCTIONS).file("bad.py", MODULE).file("broken.py", "def f(:\n");
}

#[test]
fn a_function_that_floods_its_output_is_bounded() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = Sandbox::new();
    functions(&room);
    bounded(named(&room, &["call", "flood"])).exits(7);
    bounded(named(&room, &["call", "noise"])).exits(7);
    bounded(named(&room, &["call", "giant"])).exits(10);
}

#[test]
fn a_function_that_ignores_its_end_is_killed_with_all_it_started() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = Sandbox::new();
    functions(&room);
    bounded(named(&room, &["call", "stubborn"])).exits(7);
    assert_eq!(bounded(named(&room, &["call", "orphans"])).exits(0).out(), "done\n");
    bounded(named(&room, &["call", "closes"])).exits(4);
    bounded(named(&room, &["call", "leaves"])).exits(4);
}

#[test]
fn a_function_gets_no_input_of_toolhost() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = Sandbox::new();
    functions(&room);
    let reader = bounded(named(&room, &["call", "reader"]).stdin("for toolhost only\n"));
    assert_eq!(reader.exits(0).out(), "end\n");
}

#[test]
fn what_a_function_returns_or_raises_is_judged_and_shown_clean() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = Sandbox::new();
    functions(&room);
    // What is cut is said.
    bounded(named(&room, &["call", "deep"])).exits(0).says(&["deeper than 100 levels"]);
    bounded(named(&room, &["call", "odd"])).exits(0).says(&["nan became null"]);
    let raised = bounded(named(&room, &["call", "evil"]));
    raised.exits(3).says(&["ValueError"]);
    assert!(raised.stderr.len() < 64 << 10, "{} bytes of an error", raised.stderr.len());
    bounded(named(&room, &["call", "broken"])).exits(4).says(&["broken.py"]);
}

// ---- O07: APIs

#[test]
fn what_goes_wrong_in_http_has_its_code_for_an_api_tool() {
    for (fault, code, words) in [
        ("none", 0, ""),
        ("http-500", 3, "500"),
        ("http-html", 0, ""),
        ("http-401", 5, "401"),
        ("http-202", 0, ""),
        ("http-redirect-file", 6, "not followed"),
        ("http-short-body", 10, ""),
        ("http-endless-body", 0, "the response was truncated"),
        ("http-not-http", 10, "does not speak HTTP"),
        ("giant-message", 0, "the response was truncated"),
        ("many-values", 0, "the response was truncated"),
        ("deep-json", 10, "not the JSON"),
        ("never-answers-call", 7, "no response had arrived"),
        ("ansi-everywhere", 0, ""),
        ("evil-everywhere", 0, ""),
    ] {
        let room = Sandbox::new();
        let log = room.log("srv");
        let server = Fixture::fault(Place::Http, fault, "legacy", &log);
        let url = server.url().unwrap();
        let message = r#"{ jsonrpc: "2.0", id: 1, method: tools/call, params: { name: echo, arguments: { message: hi } } }"#;
        room.file(
            "tools.yaml",
            &format!(
                "tools: [{{ name: t, kind: http, method: POST, endpoint_url: '{url}', body: {message}, timeout: 4s }}]\n"
            ),
        );
        let finished = bounded(named(&room, &["call", "t"]));
        assert_eq!(finished.code, Some(code), "{fault}\n{finished}");
        assert!(finished.err().contains(words), "{fault}\n{finished}");
        let requests = log_events(&log, "http").len();
        assert_eq!(requests, 1, "{fault}: sent {requests} times");
    }
}

// ---- M: records and stores

const MANY: &str = "
tools:
  - { name: calculator, module: builtin.calculator, function: calculate }
  - name: many
    parameters_schema: { type: object, properties: { items: { type: array } }, required: [items] }
    steps: [{ id: one, tool: calculator, each: '{items}', args: { expression: '{item}*2' } }]
";

/// The rows of a record: whole lines, each of them JSON. An empty one is where a writer found the
/// line of another under way, and made sure that it ends.
#[track_caller]
fn rows(room: &Sandbox, file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(room.path("state/toolhost").join(file)).unwrap();
    assert!(text.ends_with('\n'), "the last line of {file} is torn");
    text.lines()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line:?}")))
        .collect()
}

/// M01: a process of a pipeline makes its 200 calls itself, which is quicker than 1,600 processes
/// and takes the same ways.
#[test]
fn eight_processes_with_200_calls_each_lose_no_line_of_any_record() {
    let room = Sandbox::new();
    let items: Vec<String> = (0..200).map(|n| n.to_string()).collect();
    room.file("tools.yaml", MANY)
        .file("items.json", &format!("{{\"items\":[{}]}}", items.join(",")));
    let call = ["call", "many", "--args", "@items.json"];
    let together: Vec<_> = (0..8).map(|_| named(&room, &call).start()).collect();
    for running in together {
        running.finish().exits(0);
    }
    let (audit, history) = (rows(&room, "audit.jsonl"), rows(&room, "history.jsonl"));
    let calls = 8 * 201;
    let distinct = |rows: &[Value], key: &str, event: Option<&str>| {
        let rows = rows.iter().filter(|row| event.is_none_or(|event| row["event"] == event));
        let ids: Vec<&str> = rows.map(|row| row[key].as_str().unwrap()).collect();
        (ids.len(), ids.iter().collect::<BTreeSet<_>>().len())
    };
    assert_eq!(distinct(&audit, "call", Some("intent")), (calls, calls));
    assert_eq!(distinct(&audit, "call", Some("outcome")), (calls, calls));
    assert_eq!(rows(&room, "stats.spool").len(), calls);
    assert_eq!(distinct(&history, "id", None), (calls, calls));
}

const CALL: [&str; 3] = ["call", "calculator", "expression=6*7"];

/// M03: the disk is full for the history only, which is the largest of the records.
#[test]
fn a_history_that_cannot_grow_costs_its_line_and_nothing_else() {
    let room = Sandbox::new();
    for _ in 0..3 {
        room.toolhost(CALL).check().exits(0);
    }
    let state = room.path("state/toolhost");
    let before = std::fs::read(state.join("history.jsonl")).unwrap();
    // More lines of the same, until the file is far larger than the others.
    let mut large = before.clone();
    while large.len() < 64 * 1024 {
        large.extend_from_slice(&before);
    }
    std::fs::write(state.join("history.jsonl"), &large).unwrap();
    let script = "ulimit -f 64; exec \"$0\" \"$@\"";
    let binary = env!("CARGO_BIN_EXE_toolhost");
    let full = room.program("/bin/sh", ["-c", script, binary].into_iter().chain(CALL)).check();
    assert_eq!(full.exits(0).out(), "42\n");
    full.says(&["history", "not recorded"]);
    let after = std::fs::read(state.join("history.jsonl")).unwrap();
    assert!(after.starts_with(&large), "what was kept has changed");
    assert_eq!(rows(&room, "audit.jsonl").len(), 8, "the audit log has room");
    // With room again the next line is whole, and the listing goes on.
    room.toolhost(CALL).check().exits(0);
    let listed = room.toolhost(["history", "--json"]).check();
    listed.exits(0);
}

/// M06: whatever stands in the place of the history, calls are answered and the listing says what
/// it left out.
#[test]
fn a_damaged_history_costs_what_is_damaged() {
    let room = Sandbox::new();
    room.toolhost(CALL).check().exits(0);
    let path = room.path("state/toolhost/history.jsonl");
    let good = std::fs::read(&path).unwrap();
    let mut flipped = good.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0x80;
    let cases: [(&str, Vec<u8>); 5] = [
        ("empty", Vec::new()),
        ("cut in a line", good[..good.len() / 2].to_vec()),
        ("a flipped bit", flipped),
        ("not text at all", (0..=255).cycle().take(100_000).collect()),
        ("a database", b"SQLite format 3\0".iter().copied().chain([0; 4096]).collect()),
    ];
    for (what, bytes) in cases {
        std::fs::write(&path, bytes).unwrap();
        let listed = room.toolhost(["history"]).check();
        assert_eq!(listed.code, Some(0), "{what}\n{listed}");
        let called = room.toolhost(CALL).check();
        assert_eq!((called.code, called.out()), (Some(0), "42\n".to_owned()), "{what}\n{called}");
        let listed = room.toolhost(["history", "--json"]).check();
        assert_eq!(listed.code, Some(0), "{what}\n{listed}");
        assert!(listed.out().contains("calculator"), "{what}: the new line is lost\n{listed}");
    }
}

const STORE: &str = "components: [{ name: s, type: storage, path: s.db, timeout: 20s }]\n";

/// M04, M06: a store that cannot be used is named, and whatever stands there stays.
/// What is done to a file.
type Damage<'a> = &'a dyn Fn(&Path);

#[test]
fn a_store_that_cannot_be_used_is_named_and_left_alone() {
    let write = ["call", "s-write", "key=a", "value=1"];
    let damage: [(&str, Damage<'_>); 4] = [
        ("a directory", &|path| {
            std::fs::remove_file(path).unwrap();
            std::fs::create_dir(path).unwrap();
        }),
        ("cut in the middle", &|path| {
            let bytes = std::fs::read(path).unwrap();
            std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
        }),
        ("without content", &|path| std::fs::write(path, "").unwrap()),
        ("flipped", &|path| {
            let mut bytes = std::fs::read(path).unwrap();
            for byte in &mut bytes[100..] {
                *byte ^= 0xff;
            }
            std::fs::write(path, bytes).unwrap();
        }),
    ];
    for (what, damage) in damage {
        let room = Sandbox::new();
        room.file("tools.yaml", STORE);
        named(&room, &write).check().exits(0);
        let path = room.path("work/s.db");
        // The log of the database would repair what is damaged here.
        for more in ["s.db-wal", "s.db-shm"] {
            std::fs::remove_file(room.path("work").join(more)).ok();
        }
        damage(&path);
        let before = std::fs::read(&path).unwrap_or_default();
        let refused = named(&room, &write).check();
        assert!(matches!(refused.code, Some(4 | 6 | 10)), "{what}\n{refused}");
        assert!(refused.err().contains("s.db"), "{what}\n{refused}");
        assert_eq!(std::fs::read(&path).unwrap_or_default(), before, "{what}: it was changed");
    }
    // A directory that nothing can be made in, whoever one is.
    let room = Sandbox::new();
    room.file("tools.yaml", &STORE.replace("s.db", "/proc/nowhere/s.db"));
    named(&room, &write).check().exits(4).says(&["/proc/nowhere"]);
}

/// M05: somebody else writes for a long time.
#[test]
fn a_store_that_stays_locked_is_given_up_and_named() {
    let room = Sandbox::new();
    room.file("tools.yaml", STORE);
    let write = ["call", "s-write", "key=a", "value=1"];
    named(&room, &write).check().exits(0);
    let other = Connection::open(room.path("work/s.db")).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    named(&room, &write).check().exits(4).says(&["s.db"]);
    // The log of calls is another file, and works.
    assert_eq!(rows(&room, "audit.jsonl").len(), 4);
    other.execute_batch("ROLLBACK").unwrap();
    named(&room, &write).check().exits(0);
}

/// M02: what was acknowledged is there after any number of kill -9. Each write of the key adds one
/// to its version, so the version counts the writes.
#[test]
fn kill_9_loses_no_acknowledged_write_of_a_store() {
    let room = Sandbox::new();
    let writes = "tools:
  - name: many
    parameters_schema: { type: object, properties: { items: { type: array } }, required: [items] }
    steps: [{ id: one, tool: s-write, each: '{items}', args: { key: a, value: '{item}' } }]
";
    room.file("tools.yaml", &format!("{STORE}{writes}"));
    let items: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    room.file("items.json", &format!("{{\"items\":[{}]}}", items.join(",")));
    let events = |kind: &str| {
        // The last line may be under way.
        let text = std::fs::read_to_string(room.path("state/toolhost/audit.jsonl"));
        let rows = text.unwrap_or_default();
        let rows = rows.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        rows.filter(|row| row["event"] == kind && row["tool"] == "s-write").count()
    };
    for round in 0..6 {
        let mut running = named(&room, &["call", "many", "--args", "@items.json"]).start();
        let wanted = events("outcome") + 1 + round * 5;
        while events("outcome") < wanted && running.child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        running.child.kill().unwrap();
        running.finish();
    }
    let (begun, acknowledged) = (events("intent"), events("outcome"));
    assert!(acknowledged >= 6, "only {acknowledged} writes");
    let written = named(&room, &["call", "s-write", "key=a", "value=1"]).check();
    let version = written.exits(0).json()["version"].as_u64().unwrap();
    let there = usize::try_from(version).unwrap() - 1;
    assert!((acknowledged..=begun).contains(&there), "{acknowledged} <= {there} <= {begun}");
    let db = Connection::open(room.path("work/s.db")).unwrap();
    let state: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(state, "ok");
}
