//! What may happen to a background host, and what its clients make of it.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{await_hold, call, count, hosts, is_alive, kill, pid_of, pipes, release_hold, trusted};
use crate::support::{Running, Sandbox};

/// How often a host is killed in the midst of calls.
const KILLS: usize = 25;
/// How many calls are made meanwhile.
const CALLS: usize = 4;

/// Waits until a process has ended.
pub(super) fn ended(pid: u64) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while is_alive(pid) {
        assert!(Instant::now() < deadline, "{pid} still runs");
        std::thread::yield_now();
    }
}

/// The file in the directory of sockets that ends like this.
pub(super) fn of_host(room: &Sandbox, extension: &str) -> std::path::PathBuf {
    let entries = std::fs::read_dir(room.path("state/toolhost/run")).unwrap();
    let mut paths = entries.map(|entry| entry.unwrap().path());
    paths.find(|path| path.extension().is_some_and(|end| end == extension)).unwrap()
}

#[test]
fn a_host_that_is_killed_under_load_leaves_no_call_without_an_end_and_no_server() {
    let Some(room) = trusted() else { return };
    let mut good = Vec::new();
    for _ in 0..KILLS {
        room.toolhost(["up"]).go().exits(0);
        let (server, ..) = count(&room, &[]);
        let host = pid_of(&hosts(&room)[0]);
        let words = ["call", "counter-count", "--json"];
        let mut calls: Vec<_> = (0..CALLS).map(|_| room.toolhost(words).start()).collect();
        // The others are on their way, each at a place of its own.
        let first = calls.remove(0).finish();
        kill(host);
        for finished in std::iter::once(first).chain(calls.into_iter().map(Running::finish)) {
            finished.exits_one_of(&[0, 4]);
            match finished.code {
                Some(0) => good.push(finished.json()["metadata"]["call_id"].clone()),
                _ => drop(finished.says(&["background host", "not known", "--fresh"])),
            }
        }
        ended(host);
        ended(server);
    }
    let all = room.toolhost(["audit", "--json", "--limit", "10000"]).go().json();
    let all = all.as_array().unwrap();
    for id in &good {
        let record = all.iter().find(|record| record["call"] == *id).unwrap();
        assert_eq!(record["result"], "ok", "{record}");
    }
    assert!(good.len() >= KILLS, "{}", good.len());
    // One whose answer was lost may have ended; one that was cut off says that its end is not known.
    for record in all {
        assert!(record["result"] == "ok" || record["result"].is_null(), "{record}");
    }
    assert!(hosts(&room).is_empty());
}

#[test]
fn a_lock_and_a_socket_that_a_dead_host_left_are_taken_over() {
    let Some(room) = trusted() else { return };
    room.toolhost(["up"]).go().exits(0);
    let host = pid_of(&hosts(&room)[0]);
    kill(host);
    ended(host);
    assert!(of_host(&room, "lock").exists() && of_host(&room, "sock").exists());
    assert_eq!(count(&room, &[]).2, None, "a socket without a host is no host");
    room.toolhost(["down"]).check().exits(0).says(&["no background host is running"]);
    let started = room.toolhost(["up", "--json"]).go().json();
    assert_eq!(started["started"], true);
    assert_eq!(count(&room, &[]).2, Some(pid_of(&started["host"])));
    room.toolhost(["down"]).check().exits(0);
}

#[test]
fn a_project_that_changes_ends_no_call_and_gets_no_other() {
    let Some(room) = trusted() else { return };
    room.toolhost(["up"]).go().exits(0);
    let (server, ..) = count(&room, &[]);
    let at = room.path("run/hold");
    pipes(&at);
    let word = format!("at={}", at.display());
    let held = room.toolhost(["call", "counter-hold", &word, "--json"]).start();
    await_hold(&at);
    room.file("server.py", &super::SERVER.replace("\"version\": \"1\"", "\"version\": \"2\""));
    // It is another project now, and nobody said that it may start.
    call(&room, &["counter-count"]).exits(6);
    release_hold(&at);
    let finished = held.finish();
    finished.exits(0);
    assert_eq!(finished.json()["structured"]["pid"], server, "it went on with what was trusted");
    room.toolhost(["trust", "--yes"]).go().exits(0);
    let (own, calls, used) = count(&room, &[]);
    assert!(own != server && calls == 1 && used.is_none(), "{own} {calls} {used:?}");
    room.toolhost(["down", "--all"]).check().exits(0);
}

#[test]
fn another_build_of_the_program_uses_no_host_of_this_one() {
    let Some(room) = trusted() else { return };
    room.toolhost(["up"]).go().exits(0);
    let host = count(&room, &[]).2;
    assert!(host.is_some());
    let other = room.path("run/toolhost-of-tomorrow");
    // Another process writes it: a child of a test beside this one would hold this one's descriptor for a
    // moment, and what is open for writing cannot be started.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_toolhost")).arg(&other).status();
    assert!(copied.unwrap().success());
    let other = other.to_str().unwrap().to_owned();
    let finished = room.program(&other, ["call", "counter-count", "--json"]).go();
    finished.exits(0);
    assert!(finished.json()["metadata"].get("host").is_none(), "{finished}");
    // It sees the host, and can end it.
    let seen = room.program(&other, ["ps", "--json"]).go().json();
    assert_eq!(seen["hosts"][0]["pid"].as_u64(), host, "{seen}");
    assert_eq!(count(&room, &[]).2, host, "this one still uses it");
    room.program(&other, ["down", "--all"]).check().exits(0);
    assert!(hosts(&room).is_empty());
}

#[test]
fn a_disk_that_is_full_costs_the_host_its_records_and_no_answer() {
    let Some(room) = trusted() else { return };
    let binary = env!("CARGO_BIN_EXE_toolhost");
    // Files may not grow beyond 4 KiB, as on a disk that has no more room.
    let script = "ulimit -f 8; exec \"$0\" up";
    room.program("/bin/sh", ["-c", script, binary]).go().exits(0);
    let (server, ..) = count(&room, &[]);
    let mut warned = false;
    for _ in 0..12 {
        let finished = call(&room, &["counter-count"]);
        finished.exits(0);
        assert_eq!(finished.json()["structured"]["pid"], server);
        warned |=
            finished.err().contains("not recorded") || finished.out().contains("not recorded");
    }
    assert!(warned, "what is not recorded is said");
    // What was written before is whole.
    let records = room.toolhost(["audit", "--json"]).go();
    records.exits(0);
    assert!(!records.json().as_array().unwrap().is_empty());
    room.toolhost(["down"]).check().exits(0);
}

/// Connects until the queue of a listener is full, and says how many were taken.
const CROWD: &str = "import socket, sys\n\
    crowd = []\n\
    while True:\n    \
        one = socket.socket(socket.AF_UNIX)\n    \
        one.setblocking(False)\n    \
        try:\n        \
            one.connect(sys.argv[1])\n    \
        except BlockingIOError:\n        \
            break\n    \
        crowd.append(one)\n\
    print(len(crowd), flush=True)\n\
    sys.stdin.read()\n";

#[test]
fn a_host_whose_queue_is_full_is_done_without() {
    let Some(room) = trusted() else { return };
    room.toolhost(["up"]).go().exits(0);
    let (server, _, host) = count(&room, &[]);
    let host = Pid::from_raw(i32::try_from(host.unwrap()).unwrap()).unwrap();
    kill_process(host, Signal::STOP).unwrap();
    // More descriptors than a shell has by default, for a queue of thousands.
    let mut crowd = Command::new("sh")
        .args(["-c", "ulimit -n 20000 2>/dev/null; exec python3 -c \"$0\" \"$1\"", CROWD])
        .arg(of_host(&room, "sock"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(crowd.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.trim().parse::<u32>().unwrap() > 0, "{line}");
    let (own, calls, used) = count(&room, &[]);
    assert!(own != server && calls == 1 && used.is_none(), "{used:?}");
    drop(crowd.stdin.take());
    crowd.wait().unwrap();
    kill_process(host, Signal::CONT).unwrap();
    // The crowd has gone, and the host serves again when it has seen that.
    let deadline = Instant::now() + Duration::from_mins(1);
    while count(&room, &[]).0 != server {
        assert!(Instant::now() < deadline, "the host does not serve again");
    }
    room.toolhost(["down"]).check().exits(0);
}

#[test]
fn a_host_that_was_stopped_is_done_without_until_it_goes_on_and_down_ends_it() {
    let Some(room) = trusted() else { return };
    room.toolhost(["up"]).go().exits(0);
    let (server, _, host) = count(&room, &[]);
    let pid = host.unwrap();
    let process = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(process, Signal::STOP).unwrap();
    let alone = room.toolhost(["call", "counter-count", "--json"]).go();
    alone.exits(0).says(&["does not respond", "it was stopped", "kill -CONT"]);
    assert_eq!(alone.json()["metadata"].get("host"), None, "{alone}");
    kill_process(process, Signal::CONT).unwrap();
    let (again, calls, used) = count(&room, &[]);
    assert_eq!((again, used), (server, host), "it goes on");
    assert_eq!(calls, 2);
    kill_process(process, Signal::STOP).unwrap();
    room.toolhost(["down"]).go().exits(0).says(&["ended (pid ", ") for /"]);
    ended(pid);
    ended(server);
    room.toolhost(["down"]).go().exits(0).says(&["no background host is running"]);
}

/// Holds the lock of a host and listens as one, but answers every request with an error. Ends with its
/// input, so that nothing is left of a test that fails.
const STRANGER: &str = "import fcntl, json, os, socket, sys, threading\n\
    lock = open(sys.argv[1] + '/abcd.lock', 'w')\n\
    fcntl.flock(lock, fcntl.LOCK_EX)\n\
    listener = socket.socket(socket.AF_UNIX)\n\
    listener.bind(sys.argv[1] + '/abcd.sock')\n\
    listener.listen()\n\
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()\n\
    print(flush=True)\n\
    while True:\n    \
        one, _ = listener.accept()\n    \
        for line in one.makefile():\n        \
            error = {'code': -32601, 'message': 'no'}\n        \
            answer = {'jsonrpc': '2.0', 'id': json.loads(line)['id'], 'error': error}\n        \
            one.sendall(json.dumps(answer).encode() + b'\\n')\n";

#[test]
fn a_host_that_does_not_take_the_command_is_ended_all_the_same() {
    let Some(room) = trusted() else { return };
    // Makes the directory of the sockets.
    room.toolhost(["up"]).go().exits(0);
    room.toolhost(["down"]).go().exits(0);
    let mut stranger = Command::new("python3")
        .args(["-c", STRANGER])
        .arg(room.path("state/toolhost/run"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(stranger.stdout.take().unwrap()).read_line(&mut line).unwrap();
    room.toolhost(["ps"]).go().exits(0).says(&["another version"]);
    room.toolhost(["down", "--all"]).go().exits(0).says(&["ended (pid "]);
    // Waiting closes its input, which it must not have needed.
    let input = stranger.stdin.take();
    assert!(!stranger.wait().unwrap().success(), "a signal ended it");
    drop(input);
}

#[test]
fn a_busy_host_that_is_ended_tells_its_callers_and_leaves_nothing() {
    let Some(room) = trusted() else { return };
    room.toolhost(["up"]).go().exits(0);
    let (server, ..) = count(&room, &[]);
    let host = pid_of(&hosts(&room)[0]);
    let at = room.path("run/hold");
    pipes(&at);
    let word = format!("at={}", at.display());
    let held = room.toolhost(["call", "counter-hold", &word, "--json"]).start();
    await_hold(&at);
    room.toolhost(["down"]).go().exits(0).says(&["ended"]);
    let held = held.finish();
    held.exits(4).says(&["background host", "counter-hold"]);
    ended(host);
    ended(server);
    assert!(room.inhabitants().is_empty(), "{:?}", room.inhabitants());
    room.toolhost(["down"]).go().exits(0).says(&["no background host is running"]);
    // Its records say how the call ended.
    let records = room.toolhost(["audit", "--json"]).go().json();
    let held = records.as_array().unwrap().iter().find(|record| record["tool"] == "counter-hold");
    assert_eq!(held.unwrap()["result"], "interrupted", "{records}");
}

#[test]
fn a_client_that_floods_a_host_costs_itself() {
    let Some(room) = trusted() else { return };
    room.toolhost(["up"]).go().exits(0);
    let (server, ..) = count(&room, &[]);
    let socket = of_host(&room, "sock");
    // A line without an end, far longer than a request may be.
    let flood = Command::new("python3").args(["-c", FLOOD]).arg(&socket).output().unwrap();
    let said: Value = serde_json::from_slice(&flood.stdout).unwrap();
    assert_eq!(said["hung_up"], true, "{said}");
    assert_eq!(count(&room, &[]).0, server);
    room.toolhost(["down"]).check().exits(0);
}

/// Sends one endless line, and says whether the other side hung up.
const FLOOD: &str = "import json, socket, sys\n\
    one = socket.socket(socket.AF_UNIX)\n\
    one.connect(sys.argv[1])\n\
    one.settimeout(60)\n\
    sent = 0\n\
    try:\n    \
        while sent < 256 << 20:\n        \
            sent += one.send(b'x' * 65536)\n    \
        hung_up = False\n\
    except OSError:\n    \
        hung_up = True\n\
    print(json.dumps({'hung_up': hung_up, 'sent': sent}))\n";
