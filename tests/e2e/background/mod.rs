//! The background host: one that is started with `up`, used by every command, and ended.

mod breakpoints;
mod changes;
mod clock;
mod commands;
mod console;
mod faults;
mod sessions;
mod users;

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{Finished, Pty, Sandbox};

/// A server that tells its process and counts its calls. `hold` lets a test wait until it runs, and
/// then waits for the test.
const SERVER: &str = r#"
import json, os, sys

def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()

def tool(name, properties=None, **more):
    schema = {"type": "object", "properties": properties or {}}
    return {"name": name, "description": name, "inputSchema": schema, **more}

CAPABILITIES = {"tools": {}, "prompts": {}, "resources": {}, "completions": {}}
TEXT = {"type": "text", "text": "words"}
FIXED = {
    "prompts/list": {"prompts": [{"name": "greet", "arguments": [{"name": "who"}]}]},
    "prompts/get": {"messages": [{"role": "user", "content": TEXT}]},
    "resources/list": {"resources": [{"uri": "note://one", "name": "one"}]},
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "note://{n}", "name": "n"}]},
    "resources/read": {"contents": [{"uri": "note://one", "text": "first"}]},
    "completion/complete": {"completion": {"values": ["ada", "bob"]}},
}
TOOLS = [
    tool("count"),
    tool("hold", {"at": {"type": "string"}}),
    tool("refuse"),
    tool("erase", annotations={"destructiveHint": True}),
    tool("ask"),
]
calls = 0

def call(params):
    global calls
    calls += 1
    name, arguments = params["name"], params.get("arguments") or {}
    if name == "hold":
        # Opening a pipe waits for the other end.
        open(arguments["at"] + ".started", "w").close()
        open(arguments["at"] + ".go").read()
    if name == "ask":
        schema = {"type": "object", "properties": {"colour": {"type": "string"}}}
        send({"id": "q", "method": "elicitation/create",
              "params": {"message": "which colour?", "requestedSchema": schema}})
        answer = json.loads(sys.stdin.readline())
        return {"content": [{"type": "text", "text": json.dumps(answer.get("result"))}]}
    if name == "refuse":
        return {"content": [{"type": "text", "text": "no such luck"}], "isError": True}
    text = json.dumps({"pid": os.getpid(), "calls": calls})
    return {"content": [{"type": "text", "text": text}], "structuredContent": json.loads(text)}

for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        send({"id": id, "result": {"protocolVersion": "2025-06-18", "capabilities": CAPABILITIES,
              "serverInfo": {"name": "counter", "version": "1"}}})
    elif method == "tools/list":
        send({"id": id, "result": {"tools": TOOLS}})
    elif method == "tools/call":
        send({"id": id, "result": call(message["params"])})
    elif method in FIXED:
        send({"id": id, "result": FIXED[method]})
    elif method == "ping":
        send({"id": id, "result": {}})
    elif id is not None:
        send({"id": id, "error": {"code": -32601, "message": "no such method"}})
"#;

/// A room whose project has the server, and tools that are refused, or need a person; none where
/// Python, which the server is written in, is not installed.
fn project() -> Option<Sandbox> {
    project_in(Sandbox::new())
}

fn project_in(room: Sandbox) -> Option<Sandbox> {
    if crate::support::lacks(&["python3"]) {
        return None;
    }
    room.file("server.py", SERVER);
    room.file(
        "mcp.yaml",
        "mcp_servers:\n  counter: { command: python3, args: [server.py], env_keys: [FLAVOUR] }\n",
    );
    room.file(
        "tools.yaml",
        "tools:\n  - { name: sum, module: builtin.calculator, function: calculate }\n",
    );
    Some(room)
}

/// The same, trusted.
fn trusted() -> Option<Sandbox> {
    let room = project()?;
    room.toolhost(["trust", "--yes"]).go().exits(0);
    Some(room)
}

fn hosts(room: &Sandbox) -> Vec<Value> {
    let finished = room.toolhost(["ps", "--json"]).go();
    finished.exits(0);
    finished.json()["hosts"].as_array().unwrap().clone()
}

fn call(room: &Sandbox, words: &[&str]) -> Finished {
    room.toolhost(["call", "--json"].into_iter().chain(words.iter().copied())).go()
}

/// Which process answered, and how many calls it had.
fn count(room: &Sandbox, more: &[&str]) -> (u64, u64, Option<u64>) {
    let finished = call(room, &[&["counter-count"], more].concat());
    finished.exits(0);
    let value = finished.json();
    let number = |value: &Value| value.as_u64();
    let output = &value["structured"];
    let host = number(&value["metadata"]["host"]["pid"]);
    (number(&output["pid"]).unwrap(), number(&output["calls"]).unwrap(), host)
}

fn is_alive(pid: u64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // Of a zombie nothing is left but its number.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

fn pid_of(host: &Value) -> u64 {
    host["pid"].as_u64().unwrap()
}

/// Kills a process and everything in it, as an accident would.
fn kill(pid: u64) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

#[test]
fn processes_share_one_server_until_the_host_is_ended() {
    let Some(room) = trusted() else { return };
    let started = room.toolhost(["up", "--json"]).go();
    started.exits(0);
    let started = started.json();
    assert_eq!(started["started"], true);
    let host = pid_of(&started["host"]);
    assert_eq!(started["host"]["servers"][0]["status"], "idle", "up starts no server by itself");
    let (first, calls, used) = count(&room, &[]);
    assert_eq!((calls, used), (1, Some(host)));
    assert_eq!(count(&room, &[]), (first, 2, Some(host)), "one server for both");
    let (own, calls, used) = count(&room, &["--fresh"]);
    assert!(own != first && calls == 1 && used.is_none());
    let shown = room.toolhost(["call", "counter-count", "-v"]).go();
    shown.exits(0).says(&[&format!("using the background host (pid {host})")]);
    let listed = hosts(&room);
    assert_eq!(listed.len(), 1);
    assert_eq!((pid_of(&listed[0]), &listed[0]["calls"]), (host, &3.into()), "{listed:?}");
    assert_eq!(listed[0]["servers"][0]["status"], "ready");
    assert_eq!(room.toolhost(["up", "--json"]).go().json()["started"], false);
    let ended = room.toolhost(["down", "--json"]).check();
    assert_eq!(pid_of(&ended.exits(0).json()["ended"][0]), host);
    assert!(!is_alive(first) && !is_alive(host));
    assert!(hosts(&room).is_empty());
    room.toolhost(["down"]).check().exits(0).says(&["no background host is running"]);
}

/// What a run printed without what differs from call to call.
fn comparable(finished: &Finished) -> (Option<i32>, String, String) {
    fn settle(value: &mut Value) {
        match value {
            Value::Object(object) => {
                let of_one_run = |key: &str| {
                    key.ends_with("_ms") || matches!(key, "call_id" | "host" | "pid" | "calls")
                };
                object.retain(|key, _| !of_one_run(key));
                object.values_mut().for_each(settle);
            }
            Value::Array(values) => values.iter_mut().for_each(settle),
            Value::String(text) if text.contains("\"pid\"") => text.clear(),
            _ => {}
        }
    }
    let out = finished.out();
    let out = serde_json::from_str::<Value>(&out).map_or(out, |mut value| {
        settle(&mut value);
        value.to_string()
    });
    (finished.code, out, finished.err())
}

#[test]
fn every_line_gives_the_same_with_a_host_and_without() {
    let Some(room) = trusted() else { return };
    room.toolhost(["up"]).go().exits(0);
    let lines: &[&[&str]] = &[
        &["list", "--json"],
        &["list"],
        &["list", "--declared", "-o", "names"],
        &["inspect", "counter-count"],
        &["inspect", "counter-count", "--json"],
        &["inspect", "sum", "--json"],
        &["export", "--format", "openai"],
        &["servers", "-o", "names"],
        &["prompts", "list"],
        &["prompts", "get", "counter-greet", "who=ada", "--json"],
        &["prompts", "get", "counter-nobody"],
        &["resources", "list", "--json"],
        &["resources", "list", "--templates"],
        &["resources", "read", "note://one"],
        &["resources", "read", "other://one"],
        &["complete", "counter-greet", "who", "a"],
        &["call", "counter-count", "--json"],
        &["call", "sum", "expression=6*7", "--json"],
        &["call", "sum", "expression=6*7"],
        &["call", "sum", "expresion=1"],
        &["call", "sum", "expression=1/0", "--json"],
        &["call", "counter-refuse", "--json"],
        &["call", "counter-refuse"],
        &["call", "counter-refuse", "--ignore-tool-error"],
        &["call", "counter-erase"],
        &["call", "counter-erase", "--json"],
        &["call", "counter-ask", "--json"],
        &["call", "counter-nothing"],
        &["call", "nothing", "--json"],
        &["call", "counter-count", "--query", ".pid | type"],
    ];
    for line in lines {
        let run = |more: &[&str]| {
            let words = line.iter().chain(more).copied();
            comparable(&room.toolhost(words).go())
        };
        // The first list tells completion what there is, and statistics grow: twice the same way.
        let (fresh, attached) = (run(&["--fresh"]), run(&[]));
        assert_eq!(attached, fresh, "{line:?}");
    }
    assert!(hosts(&room)[0]["calls"].as_u64().unwrap() >= 15, "the host was not used");
    room.toolhost(["down"]).check().exits(0);
}

#[test]
fn a_call_is_recorded_once_with_who_made_it() {
    let Some(room) = trusted() else { return };
    room.toolhost(["up"]).go().exits(0);
    let arguments = ["counter-count", "--session", "mine", "--context", "user_id=ada"];
    let called = call(&room, &arguments);
    called.exits(0);
    let id = called.json()["metadata"]["call_id"].clone();
    let records = room.toolhost(["audit", "--json"]).go().json();
    let records = records.as_array().unwrap();
    assert_eq!(records.len(), 1, "{records:?}");
    let record = &records[0];
    assert_eq!((&record["call"], &record["session"]), (&id, &"mine".into()), "{record}");
    assert_eq!(record["caller"]["client"], "toolhost call", "{record}");
    assert_eq!(record["caller"]["user_id"], "ada");
    let work = room.path("work").canonicalize().unwrap();
    assert_eq!(record["caller"]["cwd"], work.to_str().unwrap());
    let stats = room.toolhost(["stats", "--json"]).go().json();
    assert_eq!(stats["tools"][0]["calls"], 1, "{stats}");
    room.toolhost(["down"]).check().exits(0);
}

#[test]
fn several_starts_at_once_give_one_host() {
    let Some(room) = trusted() else { return };
    let starts: Vec<_> = (0..4).map(|_| room.toolhost(["up", "--json"]).start()).collect();
    let started: Vec<Value> = starts.into_iter().map(|run| run.finish().json()).collect();
    let new = started.iter().filter(|value| value["started"] == true).count();
    let mut pids: Vec<u64> = started.iter().map(|value| pid_of(&value["host"])).collect();
    pids.dedup();
    assert_eq!((new, pids.len(), hosts(&room).len()), (1, 1, 1), "{started:?}");
    room.toolhost(["down", "--all"]).check().exits(0);
}

/// Makes the pipes by which a test and the tool `hold` wait for each other.
fn pipes(at: &Path) {
    for end in ["started", "go"] {
        let path = at.with_extension(end);
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }
}

/// Waits until the tool `hold` runs: it opens the other end of the first pipe.
#[track_caller]
fn await_hold(at: &Path) {
    open_pipe(File::options().read(true), at.with_extension("started"));
}

/// Lets the tool `hold` go on, which waits for the second pipe.
#[track_caller]
fn release_hold(at: &Path) {
    open_pipe(File::options().write(true), at.with_extension("go"));
}

/// Opens an end of a pipe and closes it. Opening waits for the other end: for a minute at most, so
/// that a server that never started fails a test and does not stop all of them.
#[track_caller]
fn open_pipe(options: &OpenOptions, path: PathBuf) {
    let (opened, end) = mpsc::channel();
    let options = options.clone();
    std::thread::spawn(move || opened.send(options.open(path).map(drop)));
    end.recv_timeout(Duration::from_mins(1)).expect("nothing opens the other end").unwrap();
}

#[test]
fn a_host_that_is_killed_during_a_call_is_noticed_and_done_without_afterwards() {
    let Some(room) = trusted() else { return };
    room.toolhost(["up"]).go().exits(0);
    let (server, ..) = count(&room, &[]);
    let host = pid_of(&hosts(&room)[0]);
    let at = room.path("run/hold");
    pipes(&at);
    let word = format!("at={}", at.display());
    let held = room.toolhost(["call", "counter-hold", &word, "--json"]).start();
    // The tool opens the other end: it runs.
    await_hold(&at);
    kill(host);
    let finished = held.finish();
    finished.exits(4).says(&["background host", "ended while 'counter-hold' ran", "--fresh"]);
    // The server's input ended with its host; it still waits for the pipe.
    if is_alive(server) {
        kill(server);
    }
    // The socket is still there, and nobody listens.
    let (own, calls, used) = count(&room, &[]);
    assert!(own != server && calls == 1 && used.is_none(), "{used:?}");
    assert!(hosts(&room).is_empty());
    // What was begun and not ended is told by the records.
    let records = room.toolhost(["audit", "--json"]).go().json();
    let of_held = |record: &&Value| record["tool"] == "counter-hold";
    let open: Vec<&Value> = records.as_array().unwrap().iter().filter(of_held).collect();
    assert_eq!(open.len(), 1, "{records}");
    // A new host takes the place of the old one.
    assert_eq!(room.toolhost(["up", "--json"]).go().json()["started"], true);
    assert!(count(&room, &[]).2.is_some());
    room.toolhost(["down"]).check().exits(0);
}

#[test]
fn a_client_that_is_killed_takes_its_call_along_and_leaves_the_host() {
    let Some(room) = trusted() else { return };
    room.toolhost(["up"]).go().exits(0);
    let at = room.path("run/hold");
    pipes(&at);
    let word = format!("at={}", at.display());
    let held = room.toolhost(["call", "counter-hold", &word]).start();
    await_hold(&at);
    held.signal(Signal::KILL);
    held.finish();
    release_hold(&at);
    assert!(count(&room, &[]).2.is_some(), "the host serves others");
    room.toolhost(["down"]).check().exits(0);
}

#[test]
fn nothing_of_an_untrusted_project_is_started_and_what_is_no_longer_trusted_ends() {
    let Some(room) = project() else { return };
    room.toolhost(["up"]).go().exits(0);
    let refused = call(&room, &["counter-count"]);
    refused.exits(6);
    assert!(room.inhabitants().iter().all(|line| !line.contains("python")));
    room.toolhost(["trust", "--yes"]).go().exits(0);
    assert!(hosts(&room).is_empty(), "it was started for what was not trusted");
    room.toolhost(["up"]).go().exits(0);
    let (server, _, used) = count(&room, &[]);
    let host = used.unwrap();
    let at = room.path("run/hold");
    pipes(&at);
    let word = format!("at={}", at.display());
    let held = room.toolhost(["call", "counter-hold", &word]).start();
    await_hold(&at);
    room.toolhost(["trust", "revoke"]).go().exits(0);
    assert_ne!(held.finish().code, Some(0), "the call went on");
    // `down` waits for a host that is ending.
    room.toolhost(["down", "--all"]).go().exits(0);
    call(&room, &["counter-count"]).exits(6);
    faults::ended(server);
    faults::ended(host);
}

#[test]
fn another_variable_another_file_or_another_option_is_another_host() {
    let Some(room) = trusted() else { return };
    room.toolhost(["up"]).go().exits(0);
    assert!(count(&room, &[]).2.is_some());
    // A variable that the server is given, and one that it is not.
    let other = room.toolhost(["call", "--json", "counter-count"]).env("FLAVOUR", "plum").go();
    assert!(other.exits(0).json()["metadata"].get("host").is_none());
    let same = room.toolhost(["call", "--json", "counter-count"]).env("UNUSED", "plum").go();
    assert!(same.exits(0).json()["metadata"].get("host").is_some());
    for option in ["--trace", "--log-level=debug", "--ask-all"] {
        let own = room.toolhost(["list", "--json", "-v", option]).go();
        assert!(!own.err().contains("using the background host"), "{option}");
    }
    room.file(
        "tools.yaml",
        "tools:\n  - { name: total, module: builtin.calculator, function: calculate }\n",
    );
    room.toolhost(["trust", "--yes"]).go().exits(0);
    assert!(count(&room, &[]).2.is_none());
    room.toolhost(["down", "--all"]).check().exits(0);
}

#[test]
fn each_call_reaches_its_own_host_whichever_was_used_last() {
    let Some(room) = trusted() else { return };
    let host = |flavour: &str, words: &[&str]| {
        let done = room.toolhost(words.iter().copied()).env("FLAVOUR", flavour).go();
        done.exits(0).json()
    };
    let pids = ["pear", "plum"].map(|flavour| {
        let started = host(flavour, &["up", "--json"]);
        (flavour, started["host"]["pid"].as_u64().unwrap())
    });
    assert_ne!(pids[0].1, pids[1].1);
    for _ in 0..3 {
        for (flavour, pid) in pids {
            let called = host(flavour, &["call", "--json", "counter-count"]);
            assert_eq!(called["metadata"]["host"]["pid"], pid, "{flavour}");
        }
    }
    // What was used last has gone, too.
    room.toolhost(["down"]).go().exits(0);
    for (flavour, _) in pids {
        let called = host(flavour, &["call", "--json", "counter-count"]);
        assert!(called["metadata"].get("host").is_none(), "{flavour}");
    }
}

#[test]
fn an_entry_that_is_kept_starts_a_host_with_its_first_call() {
    let Some(room) = project() else { return };
    room.file(
        "mcp.yaml",
        "mcp_servers:\n  counter: { command: python3, args: [server.py], keep: 10m }\n  \
         other: { command: python3, args: [server.py] }\n",
    );
    // Before it is trusted nothing is kept.
    call(&room, &["counter-count"]).exits(6);
    assert!(room.inhabitants().is_empty());
    room.toolhost(["trust", "--yes"]).go().exits(0);
    call(&room, &["other-count"]).exits(0);
    call(&room, &["counter-count", "--fresh"]).exits(0);
    room.toolhost(["call", "counter-count", "--dry-run"]).check().exits(0);
    assert!(hosts(&room).is_empty(), "nothing asked for a host");
    let (first, _, used) = count(&room, &[]);
    assert!(used.is_some());
    assert_eq!(count(&room, &[]), (first, 2, used));
    let left = hosts(&room)[0]["idle_left_s"].as_f64().unwrap();
    assert!((500.0..=600.0).contains(&left), "{left}");
    room.toolhost(["down"]).check().exits(0);
}

#[test]
fn what_a_file_keeps_by_default_an_entry_may_not_keep() {
    let Some(room) = project() else { return };
    room.file(
        "mcp.yaml",
        "defaults: { keep: 10m }\nmcp_servers:\n  counter: { command: python3, args: [server.py] }\n  \
         other: { command: python3, args: [server.py], keep: 0s }\n",
    );
    room.toolhost(["trust", "--yes"]).go().exits(0);
    room.toolhost(["config", "check", "--strict"]).check().exits(0);
    call(&room, &["other-count"]).exits(0);
    assert!(hosts(&room).is_empty(), "it is not to be kept");
    assert!(count(&room, &[]).2.is_some());
    assert_eq!(hosts(&room).len(), 1);
    room.toolhost(["down"]).check().exits(0);
}

#[test]
fn the_person_who_calls_is_asked() {
    let Some(room) = trusted() else { return };
    room.toolhost(["up"]).go().exits(0);
    let mut pty = Pty::toolhost(&room, &["call", "counter-erase"]);
    pty.expect("may destroy").expect("[y/N").type_keys("n\r");
    let (status, screen) = pty.finish();
    assert_eq!(status, Some(6), "{screen}");
    let mut pty = Pty::toolhost(&room, &["call", "counter-erase"]);
    pty.expect("[y/N").type_keys("y\r");
    let (status, screen) = pty.finish();
    assert_eq!(status, Some(0), "{screen}");
    room.file("answers.yaml", "- { message: 'which*', content: { colour: red } }\n");
    let answered = call(&room, &["counter-ask", "--answers", "answers.yaml"]);
    assert!(answered.exits(0).out().contains("red"), "{answered}");
    assert!(answered.json()["metadata"]["host"]["pid"].is_u64(), "{answered}");
    let records = room.toolhost(["audit", "--json"]).go().json();
    let decisions: Vec<&Value> =
        records.as_array().unwrap().iter().map(|record| &record["decision"]).collect();
    assert!(decisions.iter().any(|d| d.as_str().is_some_and(|d| d.contains("by a person"))));
    room.toolhost(["down"]).check().exits(0);
}

/// Listens on a socket as another user: the kernel tells whose process listens.
const STRANGER: &str = "import os, socket, sys\n\
    listener = socket.socket(socket.AF_UNIX)\n\
    listener.bind(sys.argv[1])\n\
    os.setuid(65534)\n\
    listener.listen()\n\
    print('listening', flush=True)\n\
    sys.stdin.read()\n";

#[test]
fn the_socket_of_another_user_is_not_used() {
    if !rustix::process::geteuid().is_root() {
        return crate::support::left_out("only root can make a process of another user");
    }
    let Some(room) = trusted() else { return };
    room.toolhost(["up"]).go().exits(0);
    let directory = room.path("state/toolhost/run");
    let is_socket = |path: &std::path::PathBuf| path.extension().is_some_and(|e| e == "sock");
    let entries = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
    let socket = entries.into_iter().find(is_socket).unwrap();
    room.toolhost(["down"]).check().exits(0);
    assert!(!socket.exists());
    let mut stranger = Command::new("python3")
        .args(["-c", STRANGER])
        .arg(&socket)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(stranger.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "listening\n");
    assert_eq!(count(&room, &[]).2, None);
    assert!(hosts(&room).is_empty());
    drop(stranger.stdin.take());
    stranger.wait().unwrap();
}
