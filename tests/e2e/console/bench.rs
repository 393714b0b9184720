//! The benchmark: planned, watched, stopped and kept, with what the server saw of it.

use serde_json::Value;

use super::{LEAVES, room_with_server};
use crate::support::{Pty, Sandbox, log_events};

fn calls(room: &Sandbox, tool: &str) -> usize {
    let messages = log_events(&room.log("srv"), "message");
    let is_own = |message: &&Value| {
        message["method"] == "tools/call" && message.to_string().contains(&format!("\"{tool}\""))
    };
    messages.iter().filter(is_own).count()
}

/// To the first entry of the plan, from wherever.
const FIRST: &str = "kkkkkkk";
const F5: &str = "\u{1b}[15~";

#[test]
fn two_tools_are_compared_and_the_run_is_kept() {
    let (room, _fixture) = room_with_server();
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 40, 130);
    pty.expect_shown("echo").type_keys("/sec").expect_shown("Tools 1/");
    pty.type_keys("\u{1b}")
        .expect_shown("/ filter")
        .type_keys("b")
        .expect_shown("Plan")
        .expect_shown("srv-echo");
    pty.type_keys("b").expect_shown("Choose B").type_keys("srvecho").expect_shown("find: srvecho");
    pty.type_keys("\r").expect_gone("Choose B").expect_gone("b chooses one");
    pty.type_keys(FIRST).type_keys("jjjjje").expect_shown("editing").type_keys("30\r");
    pty.expect_shown("-n 30").type_keys(F5).expect_shown("Run 1").expect_shown("Verdict 1  done");
    for shown in ["p50 ", "p90 ", " errors", "round 20 of 20", "between"] {
        pty.expect_shown(shown);
    }
    // A tenth of the calls warms each of them up.
    assert_eq!(calls(&room, "echo"), 66);
    pty.type_keys("E").expect_shown("Export to").type_keys("\u{15}run.json\r");
    pty.expect_shown("wrote ");
    let text = std::fs::read_to_string(room.path("work/run.json")).unwrap();
    let kept: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(kept["targets"][1]["requests"], 30);
    pty.type_keys("q");
    let (code, screen) = pty.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains(LEAVES));
}

#[test]
fn a_run_is_stopped_and_what_was_measured_is_kept() {
    let (room, _fixture) = room_with_server();
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 24, 80);
    pty.expect_shown("echo").type_keys("/sec").expect_shown("Tools 1/");
    pty.type_keys("\u{1b}")
        .expect_shown("/ filter")
        .type_keys("b")
        .expect_shown("Plan")
        .type_keys(FIRST)
        .type_keys("jjjje20\r");
    pty.expect_shown("--rate 20").type_keys("\r10m\u{1b}").expect_shown("--duration 10m");
    pty.type_keys("\r").expect_shown("measuring").expect_shown("of 20/s");
    // It goes on while something else is shown, and leaving asks.
    pty.type_keys("1").expect_shown("1 Tools]").type_keys("q");
    pty.expect_shown("A benchmark is running").type_keys("\u{1b}").expect_shown("filter");
    pty.type_keys("5").expect_shown("answered ").type_keys("x");
    pty.expect_shown("not complete").expect_shown("incomplete run");
    let made = calls(&room, "echo");
    assert!(made > 0);
    pty.type_keys("E").expect_shown("Export to").type_keys("\u{15}run.csv\r");
    pty.expect_shown("wrote ");
    assert!(std::fs::read_to_string(room.path("work/run.csv")).unwrap().contains("srv-echo"));
    pty.type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
    assert_eq!(calls(&room, "echo"), made, "nothing is called after the end");
}

#[test]
fn what_is_missing_or_wrong_in_a_plan_is_said_at_its_entry() {
    let (room, _fixture) = room_with_server();
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 24, 80);
    pty.expect_shown("echo").type_keys("5").expect_shown("Plan");
    pty.type_keys(FIRST).type_keys("\u{1b}[3~").expect_shown("a chooses one").type_keys("\r");
    pty.expect_shown("! tool: no tool chosen").expect_shown("press a to choose one");
    pty.type_keys("1").expect_shown("1 Tools]").type_keys("/sec");
    pty.expect_shown("Tools 1/")
        .type_keys("\u{1b}")
        .expect_shown("/ filter")
        .type_keys("b")
        .expect_shown("Plan")
        .type_keys(FIRST);
    pty.type_keys("jjjjefast").expect_shown("fast").type_keys(F5);
    pty.expect_shown("! rate: invalid value 'fast'").expect_shown("calls per second");
    assert_eq!(calls(&room, "echo"), 0);
    pty.type_keys("\u{15}20\r").expect_gone("! rate").type_keys("3").type_keys(F5);
    pty.expect_shown("Verdict 1  done");
    pty.type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
}

#[test]
fn what_changes_something_is_refused() {
    let (room, _fixture) = room_with_server();
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 16, 60);
    pty.expect_shown("wipe").type_keys("/srvwipe").expect_shown("Tools 1/");
    pty.type_keys("\u{1b}")
        .expect_shown("/ filter")
        .type_keys("b")
        .expect_shown("Plan")
        .type_keys("\r")
        .expect_shown("Run 1");
    pty.expect_shown("is not benchmarked").expect_shown("--allow-writes");
    assert_eq!(calls(&room, "wipe"), 0);
    pty.type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
}

#[test]
fn steps_of_calls_in_flight_are_a_table_that_grows() {
    let (room, _fixture) = room_with_server();
    let mut pty = Pty::console(&room, &["--mcp", "mcp.yaml"], 40, 120);
    pty.expect_shown("echo").type_keys("/sec").expect_shown("Tools 1/");
    pty.type_keys("\u{1b}")
        .expect_shown("/ filter")
        .type_keys("b")
        .expect_shown("Plan")
        .expect_shown("e.g. 1,4,16,64");
    pty.type_keys(FIRST).type_keys("jjje1,3\r").expect_shown("-c 1,3");
    pty.type_keys("\r").type_keys("12\r").expect_shown("-n 12");
    pty.type_keys(F5).expect_shown("step 2 of 2").expect_shown("Verdict 1  done");
    pty.expect_shown("in flight  calls/s").expect_shown("closed, 1, 3 in flight");
    assert_eq!(calls(&room, "echo"), 26);
    pty.type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
}
