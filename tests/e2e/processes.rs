//! Life and death of what was started: nothing is left, whoever ends how.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::{Fixture, Place, Sandbox, log_events};

/// A room with one server called `srv`, over stdio.
fn room(fault: &str) -> Sandbox {
    let room = Sandbox::new();
    room.server("srv", &Fixture::fault(Place::Stdio, fault, "legacy", &room.log("srv")));
    room
}

const CALL: [&str; 5] = ["call", "srv-echo", "message=hi", "--timeout", "25s"];

/// Waits for something that must come.
#[track_caller]
fn until(what: &str, mut there: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !there() {
        assert!(Instant::now() < deadline, "{what} never came");
        std::thread::yield_now();
    }
}

fn logged(log: &Path, event: &str) -> usize {
    log_events(log, event).len()
}

fn asked(log: &Path, method: &str) -> bool {
    log_events(log, "message").iter().any(|message| message["method"] == method)
}

#[test]
fn who_left_the_group_and_the_session_is_ended_with_the_rest() {
    for ending in ["end", "second signal"] {
        let room = room("grandchild-escapes");
        let log = room.log("srv");
        if ending == "end" {
            room.with_servers(CALL).check().exits(0);
        } else {
            let running = room.with_servers(["list"]).start();
            // Its stdin is closed, so the farewell has begun; the signal cuts it short.
            until("the farewell", || logged(&log, "eof") > 0);
            running.signal(Signal::INT);
            running.finish().hold(&room);
        }
        assert!(logged(&log, "escaped") > 0, "nothing had escaped");
    }
}

#[test]
fn a_signal_during_the_start_ends_it_in_good_order() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let room = room("silent");
        let running = room.with_servers(CALL).start();
        until("the start", || logged(&room.log("srv"), "start") > 0);
        running.signal(signal);
        let finished = running.finish();
        finished.hold(&room);
        finished.exits(code);
    }
}

#[test]
fn a_signal_while_many_start_leaves_none_of_them() {
    let room = Sandbox::new();
    let logs: Vec<_> = (0..8).map(|n| room.log(&format!("s{n}"))).collect();
    for (n, log) in logs.iter().enumerate() {
        let fault = ["silent", "ignores-term", "grandchild", "discover-hang"][n % 4];
        room.server(&format!("s{n}"), &Fixture::fault(Place::Stdio, fault, "legacy", log));
    }
    let running = room.with_servers(["list"]).start();
    until("the start of all", || logs.iter().all(|log| logged(log, "start") > 0));
    running.signal(Signal::INT);
    let finished = running.finish();
    finished.hold(&room);
    finished.exits(130);
}

#[test]
fn stubborn_servers_are_ended_together() {
    let room = Sandbox::new();
    let logs: Vec<_> = (0..10).map(|n| room.log(&format!("s{n}"))).collect();
    for (n, log) in logs.iter().enumerate() {
        room.server(&format!("s{n}"), &Fixture::fault(Place::Stdio, "ignores-term", "legacy", log));
    }
    // One after the other they would take forty seconds.
    let finished = room.with_servers(["list"]).limit(Duration::from_secs(25)).check();
    finished.exits(0);
    for log in &logs {
        assert_eq!(logged(log, "eof"), 1, "each is first asked to end");
    }
}

#[test]
fn a_second_signal_waits_for_nobody() {
    let room = room("ignores-term");
    let log = room.log("srv");
    let running = room.with_servers(["list"]).start();
    until("the farewell", || logged(&log, "eof") > 0);
    running.signal(Signal::INT);
    // An orderly farewell of this server takes four seconds; ours was cut short.
    let finished = running.finish();
    finished.hold(&room);
    finished.exits(130);

    let room = self::room("never-answers-call");
    let log = room.log("srv");
    let running = room.with_servers(CALL).start();
    until("the call", || asked(&log, "tools/call"));
    running.signal(Signal::INT);
    until("the cancellation", || asked(&log, "notifications/cancelled"));
    // It may be gone by now, which is fine too.
    rustix::process::kill_process(rustix::process::Pid::from_child(&running.child), Signal::INT)
        .ok();
    let finished = running.finish();
    finished.hold(&room);
    finished.exits(130);
}

#[test]
fn the_dead_do_not_gather_during_a_long_call() {
    let room = room("forgets-children");
    let running = room.with_servers(CALL).start();
    let pid = running.child.id();
    until("the call", || logged(&room.log("srv"), "forgotten") > 0);
    until("the end of the last zombie", || zombies(pid).is_empty());
    running.signal(Signal::INT);
    running.finish().exits(130);
}

/// The children of a process that have ended and were not collected.
fn zombies(parent: u32) -> Vec<String> {
    let read = |path: String| std::fs::read_to_string(path).unwrap_or_default();
    let children = read(format!("/proc/{parent}/task/{parent}/children"));
    children
        .split_whitespace()
        .filter(|pid| read(format!("/proc/{pid}/status")).contains("State:\tZ"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_killed_toolhost_takes_its_server_along() {
    for fault in ["ignores-term", "stderr-flood", "never-answers-call"] {
        let room = room(fault);
        let log = room.log("srv");
        let mut running = room.with_servers(CALL).start();
        until("the call", || asked(&log, "tools/list"));
        running.child.kill().unwrap();
        running.finish();
        let own = log_events(&log, "start")[0]["pid"].to_string();
        until("the end of the server", || {
            !room.inhabitants().iter().any(|line| line.split(' ').next() == Some(own.as_str()))
        });
    }
}
