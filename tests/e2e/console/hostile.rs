//! Servers that do everything wrong, on the screen: none stops a key from being heard, none reaches
//! the terminal, and the terminal is always given back.

use std::sync::Mutex;

use super::LEAVES;
use crate::support::{Fixture, Place, Pty, Sandbox};
use crate::{faults, hostile};

/// How many consoles are open at once.
const AT_ONCE: usize = 2;

/// What only somebody else than the console would send to a terminal: commands to the system
/// (titles, clipboards, links), device and application strings, the bell, controls of the upper half.
const FOREIGN: [&str; 7] =
    ["\u{1b}]", "\u{1b}P", "\u{1b}_", "\u{1b}^", "\u{7}", "\u{9b}", "\u{9d}"];

#[test]
fn no_server_holds_the_console_up_or_speaks_to_the_terminal() {
    let over_pipes = |(name, place): (String, String)| (place != "http").then_some(name);
    let names: Vec<String> = faults::expectations().into_iter().filter_map(over_pipes).collect();
    assert!(names.len() > 50, "{names:?}");
    let left = Mutex::new(names);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = left.lock().unwrap().pop();
                    let Some(fault) = next else { break };
                    // A thread of that name, so that a failure says which fault it was.
                    let named = std::thread::Builder::new().name(fault.clone());
                    let job = named.spawn_scoped(scope, move || bear_with(&fault)).unwrap();
                    job.join().unwrap();
                }
            });
        }
    });
}

/// Opens the console on such a server, calls a tool if it lists any, looks around, and leaves.
fn bear_with(fault: &str) {
    let room = Sandbox::new();
    let fixture = Fixture::fault(Place::Stdio, fault, "legacy", &room.log("srv"));
    room.server("srv", &fixture);
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 30, 100);
    pty.expect_shown("1 Tools]");
    if faults::listed().contains(fault) {
        // The name of the fault, in the trace, may hold the tool's.
        pty.type_keys("/srvecho").expect_shown("srv-echo");
        pty.type_keys("\r").expect_shown("Arguments");
        // Two keys in one piece would be another key.
        pty.type_keys("hi\u{1b}[15~").type_keys("\u{1b}").expect_gone("Arguments");
    }
    pty.type_keys("2").expect_shown("2 Servers]").type_keys("?").expect_shown("Help");
    pty.type_keys("q").expect_gone("Help").type_keys("qy");
    is_given_back(pty, fault);
}

fn is_given_back(pty: Pty, fault: &str) {
    let (code, screen) = pty.finish();
    assert_eq!(code, Some(0), "{fault}: {}", tail(&screen));
    assert!(screen.contains(LEAVES), "{fault}: the terminal was not given back");
    for foreign in FOREIGN {
        assert!(!screen.contains(foreign), "{fault}: {foreign:?} reached the terminal");
    }
}

/// The hostile server from outside of this repository (see `tests/e2e/hostile.rs`): each of its
/// faults is started, listed, and looked at on the wire.
#[test]
#[ignore = "needs TOOLHOST_HOSTILE, a server outside of this repository"]
fn every_fault_of_the_hostile_server_is_borne_on_the_screen() {
    let Some(script) = std::env::var_os("TOOLHOST_HOSTILE") else {
        crate::support::left_out("TOOLHOST_HOSTILE names no hostile server");
        return;
    };
    let script = script.into_string().unwrap();
    let mut jobs = hostile::jobs(&script);
    jobs.retain(|(_, place)| matches!(place, Place::Stdio));
    let left = Mutex::new(jobs);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = left.lock().unwrap().pop();
                    let Some((fault, place)) = next else { break };
                    let (room, _fixture) = hostile::stage(&script, &fault, place);
                    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 30, 100);
                    pty.expect_shown("1 Tools]").type_keys("2").expect_shown("2 Servers]");
                    pty.expect_one_of(&["ready", "failed"]);
                    pty.type_keys("3").expect_shown("3 Trace]").type_keys("1");
                    pty.expect_shown("1 Tools]").type_keys("q");
                    is_given_back(pty, &fault.name);
                }
            });
        }
    });
}

fn tail(screen: &str) -> String {
    screen.chars().rev().take(400).collect::<Vec<_>>().into_iter().rev().collect()
}
