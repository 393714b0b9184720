//! Servers that stand in for each other, die and come back, and are watched.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Fixture, Place, Pty, Sandbox, log_events};

const SPARE: &str = "{ command: \"${TOOLHOST}\", args: [demo-server], routing_weight: 0.5 }";

fn standing_in(first: &str) -> Sandbox {
    let room = Sandbox::new();
    room.file("mcp.yaml", &format!("mcp_servers:\n  first: {first}\n  spare: {SPARE}\n"));
    room
}

/// Waits for something that must come.
#[track_caller]
fn until(what: &str, mut there: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !there() {
        assert!(Instant::now() < deadline, "{what} never came");
        std::thread::yield_now();
    }
}

fn asked(log: &Path, method: &str) -> usize {
    log_events(log, "message").iter().filter(|message| message["method"] == method).count()
}

#[test]
fn a_backup_takes_the_call_of_a_primary_that_is_not_there() {
    let room = standing_in("{ url: \"http://127.0.0.1:1/mcp\", routing_weight: 1.0 }");
    let words = ["call", "echo", "message=hi"];
    let finished = room.with_servers(words).check();
    assert_eq!((finished.exits(0).out(), finished.err()), ("hi\n".into(), String::new()));
    let finished = room.with_servers([&words[..], &["-v", "--json"]].concat()).check();
    let metadata = finished.exits(0).json()["metadata"].clone();
    assert_eq!(
        (&metadata["server"], &metadata["routing"]["server"]),
        (&json!("spare"), &json!("spare"))
    );
    assert_eq!(metadata["routing"]["skipped"][0]["server"], "first");
    finished.says(&["'first' was skipped: connection refused", "the server 'spare' was chosen"]);
    // A filter leaves no choice.
    let only = [&words[..], &["--server", "first"]].concat();
    room.with_servers(only).check().exits(4);
    // Without weights nobody chooses.
    let room = standing_in("{ command: \"${TOOLHOST}\", args: [demo-server] }");
    room.with_servers(words).check().exits(2).says(&["first-echo", "spare-echo"]);
}

#[test]
fn prompts_and_resources_are_routed_as_tools_are() {
    let read = ["resources", "read", "demo://readme", "--json"];
    let get = ["prompts", "get", "greet", "name=Ada", "--json"];
    let complete = ["complete", "greet", "language", "e"];
    let alive = "{ command: \"${TOOLHOST}\", args: [demo-server], routing_weight: 1.0 }";
    let dead = "{ url: \"http://127.0.0.1:1/mcp\", routing_weight: 1.0 }";
    for (first, chosen) in [(alive, "first"), (dead, "spare")] {
        let room = standing_in(first);
        for words in [&read[..], &get] {
            let finished = room.with_servers(words.iter().copied()).check();
            let json = finished.exits(0).json();
            assert_eq!(json["server"], chosen, "{finished}");
            assert_eq!(json["routing"]["server"], chosen, "{finished}");
        }
        room.with_servers(complete).check().exits(0);
        let finished = room.with_servers([&read[..3], &["-v"]].concat()).check();
        finished.exits(0).says(&[&format!("the server '{chosen}' was chosen")]);
    }
    let room = standing_in("{ command: \"${TOOLHOST}\", args: [demo-server] }");
    room.with_servers(read).check().exits(2).says(&["offered by 2 servers", "first", "spare"]);
    room.with_servers(get).check().exits(2).says(&["first-greet", "spare-greet"]);
}

#[test]
fn weights_stand_in_the_table_of_servers() {
    let room = standing_in("{ command: \"${TOOLHOST}\", args: [demo-server], routing_weight: 2 }");
    let finished = room.with_servers(["servers"]).check();
    assert!(finished.exits(0).out().contains("WEIGHT"), "{finished}");
    let finished = room.with_servers(["servers", "--json"]).check();
    let servers = finished.exits(0).json()["servers"].clone();
    assert_eq!((&servers[0]["weight"], &servers[1]["weight"]), (&json!(2.0), &json!(0.5)));
    for server in servers.as_array().unwrap() {
        assert_eq!(server["starts"], 1);
        assert!(server["uptime_ms"].is_number() && server["last_error"].is_null(), "{server}");
    }
}

#[test]
fn a_server_that_died_between_two_calls_is_started_again_for_the_second() {
    let room = Sandbox::new();
    let log = room.log("srv");
    room.server("srv", &Fixture::fault(Place::Stdio, "exit-after-call", "legacy", &log));
    let step = |id: &str| format!("{{ id: {id}, tool: srv-echo, args: {{ message: {id} }} }}");
    let wait = |id: &str| format!("{{ id: {id}, tool: wait, args: {{ seconds: 0.3 }} }}");
    let steps = [step("one"), wait("rest"), step("two"), wait("more"), step("three")].join(", ");
    room.file(
        "tools.yaml",
        &format!(
            "tools:\n  - {{ name: wait, module: builtin.wait, function: wait }}\n  \
             - {{ name: all, steps: [ {steps} ], result: '{{three.output}}' }}\n"
        ),
    );
    let files = ["--tools", "tools.yaml", "--mcp", "mcp.yaml", "call", "all"];
    let finished = room.toolhost(files).check();
    assert_eq!(finished.exits(0).out(), "three\n", "{finished}");
    assert_eq!((asked(&log, "tools/call"), log_events(&log, "start").len()), (3, 3));
}

#[test]
fn servers_that_are_watched_are_asked_until_a_signal_comes() {
    let room = Sandbox::new();
    let log = room.log("srv");
    room.server("srv", &Fixture::fault(Place::Stdio, "none", "legacy", &log));
    let words = ["servers", "--watch", "--interval", "200ms"];
    let running = room.with_servers(words).start();
    until("the third round", || asked(&log, "ping") >= 3);
    running.signal(Signal::INT);
    let finished = running.finish();
    finished.exits(130);
    let tables = finished.out();
    assert!(tables.matches("NAME").count() >= 2, "{tables}");
    assert!(!tables.contains('\u{1b}') && tables.contains("\n\n"), "{tables}");
    assert_eq!(log_events(&log, "start").len(), 1);

    let running = room.with_servers([&words[..], &["--json"]].concat()).start();
    until("two rounds more", || asked(&log, "ping") >= 6);
    running.signal(Signal::INT);
    let finished = running.finish();
    for line in finished.exits(130).out().lines() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(value["servers"][0]["status"], "ready");
    }
    room.with_servers(["servers", "--watch", "--interval", "1ms"]).check().exits(2);
    room.with_servers(["servers", "--interval", "1s"]).check().exits(2);
}

#[test]
fn a_watch_on_a_narrow_terminal_repaints_in_place() {
    let room = Sandbox::new();
    room.server("srv", &Fixture::fault(Place::Stdio, "none", "legacy", &room.log("srv")));
    let binary = env!("CARGO_BIN_EXE_toolhost");
    let watch = ["servers", "--watch", "--interval", "200ms", "--color", "never"];
    let words = [&["--mcp", "mcp.yaml"], &watch[..]].concat();
    let mut pty = Pty::sized(&room, binary, &words, 24, 60);
    pty.expect("NAME").expect("srv").expect("\u{1b}[5A\r").type_keys("\u{3}");
    let (code, screen) = pty.finish();
    assert_eq!(code, Some(130));
    let plain = |line: &str| line.replace("\u{1b}[K", "").replace("\u{1b}[J", "");
    for line in screen.lines().map(plain).filter(|line| line.contains("NAME")) {
        assert!(line.chars().count() <= 60, "{line:?}");
    }
}

#[test]
fn the_tool_of_an_entry_out_of_service_is_not_blamed_on_another_server() {
    let room = Sandbox::new();
    room.file(
        "mcp.yaml",
        "mcp_servers:\n  off: { command: x, disabled: true, provides_tools: [{ name: paint }] }\n  \
         broken: { url: \"http://${NOT_SET}/\", provides_tools: [{ name: draw }] }\n  \
         dead: { url: \"http://127.0.0.1:1/mcp\" }\n",
    );
    let finished = room.with_servers(["call", "paint"]).check();
    finished.exits(9).says(&["'off' is out of service: disabled", "it declares the tool 'paint'"]);
    let finished = room.with_servers(["call", "draw"]).check();
    finished.exits(9).says(&["'broken' is out of service", "NOT_SET"]);
    room.with_servers(["call", "sing"]).check().exits(4).says(&["dead"]);
}

#[test]
fn declared_tools_of_entries_out_of_service_stay_listed_with_the_reason() {
    let room = Sandbox::new();
    room.file(
        "mcp.yaml",
        "mcp_servers:\n  off: { command: x, disabled: true, provides_tools: [{ name: paint }] }\n  \
         unset: { command: sh, env: { A: \"${NOT_SET}\" }, provides_tools: [{ name: draw }] }\n  \
         both: { command: sh, url: \"http://x/\", provides_tools: [{ name: cut }] }\n  \
         missing: { command: no-such-program-x, provides_tools: [{ name: glue }] }\n",
    );
    room.file(
        "tools.yaml",
        "tools:\n  - { name: sum, module: builtin.calculator, function: calculate }\n  \
         - { name: fold, command: [x, \"${NOT_SET}\"], description: Folds }\n  \
         - { name: odd, description: Of no kind }\n",
    );
    let files = ["--tools", "tools.yaml", "--mcp", "mcp.yaml"];
    let with = |words: &[&str]| room.toolhost([&files[..], words].concat()).check();
    let finished = with(&["list", "--json"]);
    let list = finished.exits(11).json();
    let tools = list["tools"].as_array().unwrap();
    for (name, reason) in [
        ("unset-draw", "the variable NOT_SET is not set"),
        ("both-cut", "cannot be used together"),
        ("missing-glue", "'no-such-program-x' was not found in PATH"),
        ("fold", "the variable NOT_SET is not set"),
        ("odd", "the kind of this tool is missing"),
    ] {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap_or(&Value::Null);
        assert_eq!(tool["status"], "unavailable", "{name}: {finished}");
        let told = tool["unavailable"]["message"].as_str().unwrap();
        assert!(told.contains(reason), "{name}: {told}");
        let code = if name == "missing-glue" { 4 } else { 9 };
        with(&["call", name]).exits(code).says(&[reason]);
        with(&["inspect", name]).exits(0);
    }
    assert!(tools.iter().all(|tool| tool["name"] != "off-paint"), "{finished}");
    let servers: Vec<_> = list["servers"].as_array().unwrap().iter().map(|s| &s["name"]).collect();
    assert_eq!(servers, ["missing", "unset", "both"]);
    let table = with(&["list"]);
    assert!(table.exits(11).out().contains("the variable NOT_SET is not set"), "{table}");
    // A list of that server alone has nothing else to show.
    with(&["list", "--server", "unset"]).exits(9).says(&["NOT_SET is not set"]);
    with(&["list", "--declared", "--json"]).exits(11);
}

#[test]
fn a_negative_limit_is_told_with_what_is_possible() {
    let room = Sandbox::new();
    for words in [["audit", "--limit", "-1"], ["history", "--limit", "-1"]] {
        room.toolhost(words).check().exits(2).says(&["-1 is not in 0..="]);
    }
}

#[test]
fn a_list_with_a_missing_part_has_one_verdict_everywhere() {
    let room = Sandbox::new();
    let fixture = Fixture::fault(Place::Stdio, "evil-everywhere", "legacy", &room.log("srv"));
    room.server("srv", &fixture);
    for words in [&["list"][..], &["servers"], &["inspect", "srv"]] {
        let run = room.with_servers(words.iter().copied()).check();
        run.exits(11).says(&["server 'srv': part of its list is missing"]);
    }
    let shown = room.with_servers(["servers", "--json"]).check().json();
    let warnings = shown["servers"][0]["warnings"].to_string();
    assert!(warnings.contains("a tool has no name"), "{warnings}");
    room.with_servers(["trace", "srv"]).check().exits(0);
}

#[test]
fn a_file_of_servers_that_cannot_be_read_is_not_taken_for_no_servers() {
    for text in ["mcp_servers: [", "mcp_servers: 5"] {
        let room = Sandbox::new();
        room.file("mcp.yaml", text);
        for command in
            [&["servers"][..], &["resources", "list"], &["prompts", "list"], &["trace", "a"]]
        {
            let finished = room.toolhost(command.iter().copied()).go();
            finished.exits(9).says(&["mcp.yaml:1:"]);
        }
    }
    let room = Sandbox::new();
    std::os::unix::fs::symlink("moved.yaml", room.path("work/mcp.yaml")).unwrap();
    room.toolhost(["servers"]).go().exits(9).says(&["mcp.yaml"]);
}
