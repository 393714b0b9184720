//! One promise of the interface each, end to end.

use std::fmt::Write as _;
use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Finished, Fixture, Place, Run, Sandbox, log_events};

/// A room with one server called `srv`.
struct House {
    room: Sandbox,
    // Held because a server over HTTP ends with it.
    _fixture: Fixture,
}

impl House {
    fn new(fault: &str) -> Self {
        Self::over(Place::Stdio, fault, "")
    }

    fn over(place: Place, fault: &str, more: &str) -> Self {
        let room = Sandbox::new();
        let fixture = Fixture::fault(place, fault, "both", &room.log("srv"));
        room.server_with("srv", &fixture, more);
        Self { room, _fixture: fixture }
    }

    fn run<'a>(&'a self, arguments: impl IntoIterator<Item = &'a str>) -> Run<'a> {
        self.room.with_servers(arguments)
    }

    /// The methods the server was asked for.
    fn methods(&self) -> Vec<String> {
        methods(&self.room.log("srv"))
    }

    fn was_called(&self) -> bool {
        self.methods().iter().any(|method| method == "tools/call")
    }
}

fn methods(log: &Path) -> Vec<String> {
    let messages = log_events(log, "message");
    messages.iter().filter_map(|m| Some(m["method"].as_str()?.to_owned())).collect()
}

/// Waits until the server has seen a method; the run under test cannot go on before that.
#[track_caller]
fn await_method(log: &Path, method: &str) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !methods(log).iter().any(|seen| seen == method) {
        assert!(std::time::Instant::now() < deadline, "{method} never arrived");
        std::thread::yield_now();
    }
}

/// The names of the listed tools.
fn tool_names(listing: &Value) -> Vec<&str> {
    listing["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect()
}

#[test]
fn a_tool_that_says_no_exits_3_and_its_words_are_shown() {
    let house = House::new("tool-error");
    let finished = house.run(["call", "srv-echo", "message=hi"]).check();
    finished.exits(3);
    let shown = finished.out() + &finished.err();
    assert!(shown.contains("the tool says no"), "{finished}");
    let answer = house.run(["--json", "call", "srv-echo", "message=hi"]).check();
    answer.exits(3);
    assert_eq!(answer.json()["success"], false, "{answer}");
    assert_eq!(answer.json()["error"]["kind"], "tool", "{answer}");
}

#[test]
fn arguments_are_checked_before_anything_is_sent() {
    let house = House::new("none");
    let finished = house.run(["call", "srv-echo", "mesage=hi", "times=often"]).check();
    // All problems at once: a missing key, a key that is nearly right, a wrong type.
    finished.exits(2).says(&["message", "mesage", "times"]);
    assert!(!house.was_called(), "{:?}", house.methods());
}

#[test]
fn an_unknown_tool_suggests_the_one_that_was_meant() {
    let house = House::new("none");
    house.run(["call", "srv-ecko", "message=hi"]).check().exits(2).says(&["srv-echo"]);
    assert!(!house.was_called());
}

#[test]
fn a_number_stays_text_where_the_schema_says_text() {
    let house = House::new("none");
    let finished = house.run(["call", "srv-echo", "message=12"]).check();
    finished.exits(0);
    assert_eq!(finished.out().trim_end(), "12");
    let messages = log_events(&house.room.log("srv"), "message");
    let call = messages.iter().find(|m| m["method"] == "tools/call").unwrap();
    assert_eq!(call["params"]["arguments"], json!({ "message": "12" }));
}

#[test]
fn output_that_breaks_its_schema_is_shown_and_exits_10() {
    let house = House::new("output-mismatch");
    let finished = house.run(["call", "srv-add", "a=1", "b=2"]).check();
    finished.exits(10).says(&["sum"]);
    let shown = finished.out() + &finished.err();
    assert!(shown.contains("rather a lot"), "{finished}");
}

#[test]
fn no_text_of_a_server_steers_the_terminal() {
    for place in [Place::Stdio, Place::Http] {
        let house = House::over(place, "ansi-everywhere", "");
        let commands: [&[&str]; 4] = [
            &["list"],
            &["inspect", "srv-echo"],
            &["inspect", "srv"],
            &["call", "srv-echo", "message=hi"],
        ];
        for command in commands {
            // `check` looks for every character that must not be there.
            house.run(command.iter().copied()).check().exits(0);
            let as_json = house.run(command.iter().copied().chain(["--json"])).check();
            as_json.exits(0).json();
        }
        // Escaped, not stripped: what was there can be seen.
        let text = house.run(["call", "srv-echo", "message=hi"]).check();
        assert!(text.out().contains('␛') && text.out().contains("⟨U+202E⟩"), "{text}");
        let exact = house.run(["call", "srv-echo", "message=hi", "--json"]).check();
        assert!(exact.out().contains("\\u001b") && exact.out().contains("\\u202e"), "{exact}");
    }
}

#[test]
fn a_server_that_is_silent_for_too_long_is_given_up_with_the_option_that_said_so() {
    let house = House::new("never-answers-call");
    let words = ["call", "srv-echo", "message=hi", "--idle-timeout", "300ms"];
    let finished = house.run(words).check();
    finished.exits(7).says(&["no progress for 300 ms (timeout or --idle-timeout)"]);
}

#[test]
fn errors_and_stderr_of_a_server_do_not_steer_the_terminal_either() {
    for fault in ["init-error", "rpc-error", "stderr-ansi", "ansi-banner", "log-ansi"] {
        let house = House::new(fault);
        house.run(["call", "srv-echo", "message=hi", "-v"]).check();
        house.run(["list", "-v"]).check();
    }
}

#[test]
fn noise_between_messages_is_a_warning_over_every_transport() {
    let said = |place, fault: &str| {
        let house = House::over(place, fault, "");
        let finished = house.run(["call", "srv-echo", "message=hi", "-v"]).check();
        finished.exits(0);
        assert!(finished.out().contains("hi"), "{finished}");
        finished.err()
    };
    for (place, fault, warning) in [
        (Place::Stdio, "banner", "non-protocol line on stdout: [debug] working on it"),
        (Place::Http, "banner", "an event is not JSON: [debug] working on it"),
        (Place::Stdio, "broken-braces", "non-protocol line on stdout: {info: starting up}"),
        (Place::Http, "broken-braces", "an event is not JSON: {info: starting up}"),
        (Place::Stdio, "nul-bytes", "raw NUL bytes between messages"),
        (Place::Http, "nul-bytes", "raw NUL bytes between messages"),
        (Place::Stdio, "nul-separated", "raw NUL bytes between messages"),
    ] {
        let text = said(place, fault);
        assert!(text.contains(warning), "{fault}: {text}");
        assert!(
            place == Place::Stdio || !text.contains("stdout") && !text.contains("stdio"),
            "{fault}: {text}"
        );
    }
    // The second event of each answer is the beginning of a message that goes on nowhere.
    assert!(said(Place::Http, "broken-braces").contains("{\"jsonrpc\": \"2.0\", \"id\""));
}

#[test]
fn nul_bytes_that_take_the_place_of_an_answer_end_the_call_with_their_cause() {
    for (fault, cause) in [
        ("nul-inside", "a message contains a raw NUL byte"),
        ("nul-flood", "limit: more than 64 KiB of raw NUL bytes came between two messages"),
    ] {
        let house = House::new(fault);
        house.run(["call", "srv-echo", "message=hi"]).check().exits(10).says(&[cause]);
    }
}

#[test]
fn a_destructive_tool_needs_a_person_or_yes() {
    let house = House::new("none");
    house.run(["call", "srv-wipe"]).check().exits(6).says(&["srv-wipe", "--yes"]);
    assert!(!house.was_called());
    // What is piped in is no person.
    house.run(["call", "srv-wipe"]).stdin("y\nyes\n").check().exits(6);
    assert!(!house.was_called());
    house.run(["call", "srv-wipe", "--yes"]).check().exits(0);
    assert!(house.was_called());
}

#[test]
fn a_command_that_is_missing_is_named() {
    let room = Sandbox::new();
    room.file("mcp.yaml", "mcp_servers:\n  srv:\n    command: no-such-program-anywhere\n");
    let finished = room.with_servers(["call", "srv-echo", "message=hi"]).check();
    finished.exits(4).says(&["srv", "no-such-program-anywhere"]);
    room.with_servers(["list"]).check().exits(4).says(&["no-such-program-anywhere"]);
}

#[test]
fn a_server_that_dies_at_the_start_says_why() {
    let house = House::new("exit-at-once");
    let finished = house.run(["call", "srv-echo", "message=hi"]).check();
    finished.exits(4).says(&["srv", "7", "cannot open the flux capacitor"]);
    let as_json = house.run(["--json", "call", "srv-echo", "message=hi"]).check();
    as_json.exits(4);
    let line = as_json.err().lines().last().map(str::to_owned).unwrap_or_default();
    let error: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}\n{as_json}"));
    assert_eq!(error["error"]["kind"], "unreachable", "{as_json}");
    assert_eq!(error["error"]["exit"], 4, "{as_json}");
    assert_eq!(error["error"]["server"], "srv", "{as_json}");
}

#[test]
fn a_server_that_dies_in_a_call_says_why() {
    let house = House::new("exit-mid-call");
    let finished = house.run(["call", "srv-echo", "message=hi"]).check();
    finished.exits(4).says(&["srv", "3", "out of cheese"]);
    assert_eq!(house.methods().iter().filter(|m| *m == "tools/call").count(), 1, "sent twice");
}

#[test]
fn nobody_listening_is_named() {
    let room = Sandbox::new();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    room.file("mcp.yaml", &format!("mcp_servers:\n  srv:\n    url: http://{free}/mcp\n"));
    let port = free.port().to_string();
    room.with_servers(["call", "srv-echo", "message=hi"]).check().exits(4).says(&["srv", &port]);
}

#[test]
fn one_bad_server_costs_one_server() {
    let room = Sandbox::new();
    let (good, bad) = (room.log("good"), room.log("bad"));
    let fixtures = [
        Fixture::fault(Place::Stdio, "none", "legacy", &good),
        Fixture::fault(Place::Stdio, "exit-at-once", "legacy", &bad),
        Fixture::fault(Place::Http, "none", "modern", &room.log("web")),
    ];
    for (name, fixture) in ["good", "bad", "web"].into_iter().zip(&fixtures) {
        room.server(name, fixture);
    }
    let finished = room.with_servers(["list", "--json"]).check();
    finished.exits(11);
    let listing = finished.json();
    let names = tool_names(&listing);
    for name in ["good-echo", "good-add", "web-echo", "web-add"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    let servers = listing["servers"].as_array().unwrap();
    let of = |name: &str| servers.iter().find(|server| server["name"] == name).unwrap();
    assert!(of("good")["error"].is_null(), "{finished}");
    assert!(of("bad")["error"].to_string().contains("flux capacitor"), "{finished}");
    room.with_servers(["list"]).check().exits(11).says(&["bad"]);
    room.with_servers(["servers"]).check().exits(11).says(&["1 of 3 servers"]);
    room.with_servers(["servers", "bad"]).check().exits(4).says(&["flux capacitor"]);
    room.with_servers(["servers", "good", "web"]).check().exits(0);

    // A qualified name needs exactly one server, and starts no other.
    let starts = log_events(&bad, "start").len();
    let finished = room.with_servers(["call", "good-echo", "message=hi"]).check();
    assert_eq!(finished.exits(0).out().trim_end(), "hi");
    assert_eq!(log_events(&bad, "start").len(), starts);
}

#[test]
fn what_a_project_would_start_is_refused_until_it_is_allowed() {
    let room = Sandbox::new();
    let log = room.log("srv");
    let fixture = Fixture::fault(Place::Stdio, "none", "legacy", &log);
    room.server("srv", &fixture);
    let commands: [&[&str]; 5] = [
        &["call", "srv-echo", "message=hi"],
        &["list"],
        &["servers"],
        &["inspect", "srv"],
        &["inspect", "srv-echo"],
    ];
    for arguments in commands {
        let finished = room.toolhost(arguments.iter().copied()).check();
        finished.exits(6).says(&["not trusted yet", "toolhost trust"]);
    }
    assert!(room.toolhost(["servers"]).check().out().contains("untrusted"));
    assert!(log_events(&log, "start").is_empty(), "it was started");

    let call = || room.toolhost(["call", "srv-echo", "message=hi"]);
    call().env("TOOLHOST_TRUST", "1").check().exits(0);
    room.toolhost(["--trust", "call", "srv-echo", "message=hi"]).check().exits(0);
    // A consent for one run is not remembered.
    call().check().exits(6);
}

#[test]
fn an_entry_its_kind_refuses_is_out_of_service() {
    let room = Sandbox::new();
    room.file("tools.yaml", "tools:\n  - name: empty\n    command: []\n");
    room.file("mcp.yaml", "mcp_servers:\n  srv:\n    command: no-such-program-anywhere\n");
    let called = room.toolhost(["--trust", "call", "empty"]).check();
    called.exits(9).says(&["tools.yaml:3:14", "is empty"]);
    let shown = room.toolhost(["--trust", "inspect", "empty"]).check();
    assert!(
        shown.exits(0).out().contains("'empty' is out of service: 'command' is empty"),
        "{shown}"
    );
    // A list says what is wrong with both files.
    let words = ["no-such-program-anywhere", "1 entry is out of service", "tools.yaml:3:14"];
    room.toolhost(["--trust", "list"]).check().says(&words);
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_and_not_the_end() {
    let room = Sandbox::new();
    let script = format!("ulimit -f 0; exec {} \"$@\" > out", env!("CARGO_BIN_EXE_toolhost"));
    for arguments in [&["call", "echo", "message=hi"][..], &["config", "show"], &["--help"]] {
        let all = ["-c", &script, "sh"].into_iter().chain(arguments.iter().copied());
        room.program("sh", all).check().exits(1).says(&["cannot write to standard output"]);
    }
}

#[test]
fn log_lines_of_a_modern_server_are_asked_for_with_v() {
    let room = Sandbox::new();
    let call = |more: &'static str| {
        let run = room.toolhost(["call", "demo-log_lines", more]).check();
        run.exits(0);
        (run.out(), run.err())
    };
    let (out, err) = call("-v");
    assert_eq!(out, "sent 3 of 3 lines\n");
    assert!(err.contains("demo info: line 3"), "{err}");
    assert_eq!(call("-q").0, "sent 0 of 3 lines\n");
}

#[test]
fn what_was_allowed_is_asked_about_again_when_it_changes() {
    let room = Sandbox::new();
    let log = room.log("srv");
    let fixture = Fixture::fault(Place::Stdio, "none", "legacy", &log);
    room.server("srv", &fixture);
    let call = || room.toolhost(["call", "srv-echo", "message=hi"]);
    // Without a terminal the only ways to say yes are explicit.
    room.toolhost(["trust", "mcp.yaml"]).env("TOOLHOST_TRUST", "1").check().exits(0);
    call().check().exits(0);
    let text = std::fs::read_to_string(room.path("work/mcp.yaml")).unwrap();
    room.file("mcp.yaml", &text.replace("\"legacy\"", "\"both\""));
    call().check().exits(6);
    assert_eq!(log_events(&log, "start").len(), 1);
}

#[test]
fn one_bad_entry_among_ten_costs_itself() {
    let room = Sandbox::new();
    let mut text = "version: 1\ntools:\n".to_owned();
    for n in 0..10 {
        // The fifth one has a schema that is no schema.
        let schema = if n == 4 { "7" } else { "{ type: object }" };
        let source = "module: builtin.calculator, function: calculate";
        let entry = format!("name: t{n}, description: tool, {source}, parameters_schema: {schema}");
        writeln!(text, "  - {{ {entry} }}").unwrap();
    }
    room.file("tools.yaml", &text);
    let finished = room.toolhost(["--tools", "tools.yaml", "list", "--json"]).check();
    finished.exits(11);
    let listing = finished.json();
    let expected: Vec<String> = (0..10).map(|n| format!("t{n}")).collect();
    assert_eq!(tool_names(&listing), expected);
    let status = |n: usize| listing["tools"][n]["status"] == "unavailable";
    assert!((0..10).all(|n| status(n) == (n == 4)), "{finished}");
    let problem = &listing["problems"][0];
    // The spot: line 7 holds the fifth entry, and the schema stands behind the rest of it.
    assert_eq!(problem["line"], 7, "{finished}");
    assert!(problem["column"].as_u64().is_some_and(|column| column > 1), "{finished}");
    let check = room.toolhost(["--tools", "tools.yaml", "config", "check"]).check();
    check.exits(9);
    assert!(check.out().contains("tools.yaml:7:") && check.out().contains("t4"), "{check}");
}

#[test]
fn the_calculator_prints_exactly_its_result() {
    let room = Sandbox::new();
    let finished = room.toolhost(["call", "calculator", "expression=(2 + 5) * 2.0"]).check();
    assert_eq!(finished.exits(0).out(), "14.0\n", "{finished}");
}

#[test]
fn a_fresh_clone_lists_internal_tools_and_the_live_demo_server() {
    let room = Sandbox::new();
    let finished = room.toolhost(["list", "--json"]).check();
    finished.exits(0);
    let listing = finished.json();
    let tools = listing["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["source"] == "internal"), "{finished}");
    let live = |tool: &&Value| tool["source"] == "mcp" && tool["status"] == "live";
    let live: Vec<&Value> = tools.iter().filter(live).collect();
    for tool in ["echo", "add", "weather_report", "slow", "fail", "ask_name", "log_lines"] {
        assert!(live.iter().any(|t| t["tool"] == tool), "{tool}\n{finished}");
    }
}

#[test]
fn ctrl_c_ends_a_call_and_tells_the_server() {
    let house = House::new("never-answers-call");
    let log = house.room.log("srv");
    let running = house.run(["call", "srv-echo", "message=hi", "--timeout", "25s"]).start();
    await_method(&log, "tools/call");
    running.signal(Signal::INT);
    let finished = running.finish();
    finished.hold(&house.room);
    finished.exits(130);
    assert!(house.methods().iter().any(|m| m == "notifications/cancelled"), "{finished}");
}

#[test]
fn sigterm_and_sighup_end_it_in_good_order() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let house = House::new("never-answers-call");
        let running = house.run(["call", "srv-echo", "message=hi", "--timeout", "25s"]).start();
        await_method(&house.room.log("srv"), "tools/call");
        running.signal(signal);
        let finished = running.finish();
        finished.hold(&house.room);
        finished.exits(code);
    }
}

#[test]
fn a_deadline_is_told_to_the_server() {
    let house = House::new("never-answers-call");
    let finished = house.run(["call", "srv-echo", "message=hi", "--timeout", "300ms"]).check();
    finished.exits(7);
    assert!(house.methods().iter().any(|m| m == "notifications/cancelled"), "{finished}");
}

#[test]
fn no_orphan_outlives_a_killed_toolhost() {
    for fault in ["never-answers-call", "ignores-eof"] {
        let house = House::new(fault);
        let mut running = house.run(["call", "srv-echo", "message=hi", "--timeout", "25s"]).start();
        await_method(&house.room.log("srv"), "tools/call");
        running.child.kill().ok();
        let finished = running.finish();
        let left: Vec<String> = finished
            .violations(&house.room)
            .into_iter()
            .filter(|violation| violation.starts_with("I6"))
            .collect();
        assert!(left.is_empty(), "{fault}: {left:?}");
    }
}

#[test]
fn a_call_leaves_its_records() {
    let house = House::new("tool-error");
    house.run(["call", "srv-echo", "message=hi"]).check().exits(3);
    let rows = |file: &str| -> Vec<Value> {
        let records = house.room.records();
        let found = records.iter().find(|(path, _)| path.ends_with(file));
        let (_, bytes) = found.unwrap_or_else(|| panic!("no {file}"));
        let text = String::from_utf8(bytes.clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let audit = rows("audit.jsonl");
    let events: Vec<&Value> = audit.iter().map(|row| &row["event"]).collect();
    assert_eq!(events, ["intent", "outcome"]);
    assert!(audit.iter().all(|row| row["tool"] == "srv-echo"), "{audit:?}");
    assert_eq!(rows("stats.spool").len(), 1);
}

#[test]
fn a_refused_call_leaves_an_outcome() {
    let house = House::new("none");
    house.run(["call", "srv-wipe"]).check().exits(6);
    let records = house.room.records();
    let (_, audit) = records.iter().find(|(path, _)| path.ends_with("audit.jsonl")).unwrap();
    let audit = String::from_utf8_lossy(audit);
    assert!(
        audit.lines().any(|line| line.contains("outcome") && line.contains("denied")),
        "{audit}"
    );
}

#[test]
fn a_server_sees_only_what_its_entry_names() {
    let secret = "hunter2-planted-in-the-environment";
    let house = House::new("secret-echo");
    let finished = house.run(["call", "srv-echo", "message=hi"]).env("ACME_TOKEN", secret).check();
    finished.exits(0);
    assert!(finished.out().contains("HOME="), "the server does not echo\n{finished}");
    assert!(!finished.out().contains("ACME_TOKEN"), "{finished}");
    assert_absent(secret, &finished, &house.room);
}

#[test]
fn a_secret_of_the_configuration_appears_nowhere() {
    let secret = "hunter2-planted-in-the-entry";
    let house = House::over(Place::Stdio, "secret-echo", "env: { ACME_TOKEN: \"${ACME_TOKEN}\" }");
    for more in [&[][..], &["--json"], &["-v"]] {
        let arguments = ["call", "srv-echo", "message=hi"].into_iter().chain(more.iter().copied());
        let finished = house.run(arguments).env("ACME_TOKEN", secret).check();
        assert!(finished.out().contains("ACME_TOKEN="), "the server does not echo\n{finished}");
        assert_absent(secret, &finished, &house.room);
    }
}

#[track_caller]
fn assert_absent(secret: &str, finished: &Finished, room: &Sandbox) {
    let everywhere = finished.out() + &finished.err();
    assert!(!everywhere.contains(secret), "{finished}");
    for (path, bytes) in room.records() {
        let found = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!found, "{} holds the secret", path.display());
    }
}

#[test]
fn a_schema_never_makes_toolhost_visit_an_address() {
    let house = House::new("remote-ref");
    house.run(["list"]).check();
    house.run(["inspect", "srv-echo"]).check();
    house.run(["call", "srv-echo", "message=hi"]).check();
    assert!(house.was_called(), "{:?}", house.methods());
    assert_eq!(log_events(&house.room.log("srv"), "canary"), [] as [Value; 0]);
}

#[test]
fn a_dry_run_shows_the_request_and_sends_nothing() {
    let house = House::new("none");
    let finished = house.run(["call", "srv-echo", "message=hi", "--dry-run"]).check();
    finished.exits(0);
    assert!(finished.out().contains("tools/call"), "{finished}");
    assert!(!house.was_called());
}

#[test]
fn the_questions_of_a_server_are_answered_without_a_person() {
    let house = House::new("asks-everything");
    house.run(["call", "srv-echo", "message=hi"]).check().exits(0);
    let messages = log_events(&house.room.log("srv"), "message");
    let reply = |id: &str| messages.iter().find(|m| m["id"] == id && m.get("method").is_none());
    assert!(reply("q1").is_some_and(|ping| ping.get("result").is_some()), "{messages:?}");
    for id in ["q2", "q3", "q4"] {
        // Each gets an answer, so that the server does not wait for ever.
        assert!(reply(id).is_some(), "{id}: {messages:?}");
    }
    assert_eq!(reply("q4").unwrap()["error"]["code"], -32601);
}

#[test]
fn a_closed_reader_ends_it_quietly() {
    if crate::support::lacks(&["bash"]) {
        return;
    }
    let house = House::new("many-tools");
    let mut running = house.run(["list"]).start();
    // The pipe of this run is read by a thread; a second run writes into one that is closed.
    running.child.wait().unwrap();
    running.finish().exits(0);
    let binary = env!("CARGO_BIN_EXE_toolhost");
    let script = format!("'{binary}' --mcp mcp.yaml list | head -n 1; echo \"${{PIPESTATUS[0]}}\"");
    let output = std::process::Command::new("bash")
        .args(["-c", &script])
        .env_clear()
        .envs(house.room.environment())
        .current_dir(house.room.path("work"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.lines().last(), Some("0"), "{text}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!stderr.contains("error:"), "{stderr}");
}
