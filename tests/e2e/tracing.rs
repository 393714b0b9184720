//! What crosses the wires: shown, saved, recorded and replayed.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Fixture, Place, Pty, Sandbox};

const ECHO: [&str; 3] = ["call", "srv-echo", "message=hello"];

/// A room with a misbehaving server `srv`.
fn room(place: Place, fault: &str, era: &str, more: &str) -> (Sandbox, Fixture) {
    let room = Sandbox::new();
    let fixture = Fixture::fault(place, fault, era, &room.log("srv"));
    room.server_with("srv", &fixture, more);
    (room, fixture)
}

fn rows(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Waits until a file holds some words.
fn until(path: &Path, words: &str) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !std::fs::read_to_string(path).unwrap_or_default().contains(words) {
        assert!(Instant::now() < deadline, "{words} never came");
        std::thread::yield_now();
    }
}

#[test]
fn a_call_shows_its_wire_beside_its_result() {
    for place in [Place::Stdio, Place::Http] {
        let (room, _fixture) = room(place, "none", "both", "");
        let run = room.with_servers(ECHO.iter().copied().chain(["--trace"])).check();
        run.exits(0).says(&["→ server/discover #", "→ tools/call #", "← result #", "\"hello\""]);
        assert_eq!(run.out(), "hello\n");
        if place == Place::Http {
            run.says(&["→ POST http://127.0.0.1:", "← 200 OK"]);
            assert!(!run.err().contains("mcp-method"), "{run}");
            let run = room.with_servers(ECHO.iter().copied().chain(["--trace", "-v"])).check();
            run.exits(0).says(&["mcp-method: tools/call", "  call "]);
        }
        let run = room.with_servers(ECHO.iter().copied().chain(["--trace=tools/c*"])).check();
        run.exits(0).says(&["→ tools/call #"]);
        assert!(!run.err().contains("discover"), "{run}");
    }
}

#[test]
fn a_trace_for_programs_is_json_lines_with_the_call_in_them() {
    let (room, _fixture) = room(Place::Stdio, "none", "legacy", "");
    let run = room.with_servers(ECHO.iter().copied().chain(["--trace", "--json"])).check();
    let call = run.exits(0).json()["metadata"]["call_id"].clone();
    let err = run.err();
    let lines: Vec<Value> = err.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_call: Vec<&Value> = lines.iter().filter(|row| row["call"] == call).collect();
    assert_eq!(of_call.len(), 2, "{err}");
    assert_eq!((&of_call[0]["way"], &of_call[1]["way"]), (&"sent".into(), &"received".into()));
    assert_eq!(of_call[1]["method"], "tools/call");
    assert!(of_call[1]["latency_ms"].as_f64().unwrap() > 0.0);
    let numbers: Vec<u64> = lines.iter().map(|row| row["n"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=lines.len() as u64).collect::<Vec<_>>());
}

#[test]
fn the_trace_of_a_server_that_fails_shows_why() {
    for (place, fault, code, shown, said) in [
        (
            Place::Stdio,
            "exit-at-once",
            4,
            "!! stderr: fatal: cannot open the flux",
            "exited with 7",
        ),
        (Place::Stdio, "content-length", 10, "Content-Length: ", "LSP"),
        (Place::Stdio, "init-error", 3, "← error #", "no licence"),
        (Place::Stdio, "tools-not-a-list", 10, "\"tools\": \"echo\"", "not a tool list"),
        (Place::Http, "http-401", 5, "← 401 Unauthorized", "requires credentials"),
        (Place::Http, "http-html", 10, ".. <html>Log in", "not an MCP endpoint"),
        (Place::Http, "http-500", 4, "← 500 Internal", "500"),
    ] {
        let (room, _fixture) = room(place, fault, "legacy", "");
        let run = room.with_servers(["trace", "srv"]).check();
        run.exits(code).says(&["error: ", said]);
        assert!(run.out().contains(shown), "{fault}: {run}");
    }
}

#[test]
fn the_trace_of_a_server_lists_its_tools_and_can_be_filtered() {
    let (room, _fixture) = room(Place::Stdio, "banner", "legacy", "");
    let run = room.with_servers(["trace", "srv"]).check();
    run.exits(0).says(&["srv: 3 tools, protocol 2025-11-25"]);
    for words in
        ["→ initialize #", "→ tools/list #", "← result #", ".. [info] ready", "** closed: "]
    {
        assert!(run.out().contains(words), "{words}: {run}");
    }
    let run = room.with_servers(["trace", "srv", "--filter", "tools/*", "--only", "sent"]).check();
    let out = run.exits(0).out();
    assert!(out.contains("→ tools/list") && !out.contains("initialize") && !out.contains('←'));
    let run = room.with_servers(["trace", "srv", "--one-line"]).check();
    let out = run.exits(0).out();
    assert!(out.lines().any(|line| line.contains("→ tools/list ")), "{run}");
    let result = out.lines().find(|line| line.contains(" of tools/list")).unwrap();
    assert!(result.ends_with("  tools[3]"), "{run}");
    assert!(!out.contains('{') && out.lines().all(|line| line.contains(" srv ")), "{run}");
    let both = ["trace", "srv", "--save", "a.jsonl", "--trace-save", "b.jsonl"];
    room.with_servers(both).check().exits(2);
    let run = room.with_servers(["trace", "nobody"]).check();
    run.exits(2).says(&["there is no server 'nobody'"]);
}

#[test]
fn a_followed_server_is_shown_until_somebody_stops_it() {
    let (room, _fixture) = room(Place::Stdio, "none", "legacy", "");
    let saved = room.path("work/wire.jsonl");
    let run = room.with_servers(["trace", "srv", "--follow", "--save", "wire.jsonl"]).start();
    until(&saved, "\"tools/list\",\"error\":false");
    run.signal(Signal::INT);
    let finished = run.finish();
    finished.hold(&room);
    finished.exits(130);
    assert!(finished.out().contains("** closed: ended by toolhost"), "{finished}");

    // What was saved before a sudden end is whole.
    std::fs::remove_file(&saved).unwrap();
    let run = room.with_servers(["trace", "srv", "--follow", "--save", "wire.jsonl"]).start();
    until(&saved, "\"tools/list\",\"error\":false");
    run.signal(Signal::KILL);
    assert_eq!(run.finish().signal, Some(9));
    assert!(rows(&saved).len() > 5);
}

#[test]
fn a_followed_server_of_the_newer_era_is_asked_for_its_changes() {
    let room = Sandbox::new();
    let saved = room.path("work/wire.jsonl");
    let run = room.toolhost(["trace", "demo", "--follow", "--save", "wire.jsonl"]).start();
    until(&saved, "\"subscriptions/listen\"");
    run.signal(Signal::INT);
    run.finish().exits(130);
}

#[test]
fn a_server_that_dies_while_it_is_followed_ends_the_trace() {
    let (room, fixture) = room(Place::Stdio, "none", "legacy", "");
    let saved = room.path("work/wire.jsonl");
    let run = room.with_servers(["trace", "srv", "--follow", "--save", "wire.jsonl"]).start();
    until(&saved, "\"tools/list\",\"error\":false");
    let started = crate::support::log_events(&room.log("srv"), "start");
    let pid = started.last().unwrap()["pid"].as_i64().unwrap();
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
    let finished = run.finish();
    finished.hold(&room);
    finished.exits(4).says(&["SIGKILL"]);
    drop(fixture);
}

#[test]
fn what_was_saved_can_be_replayed() {
    for (place, era) in [
        (Place::Stdio, "legacy"),
        (Place::Stdio, "modern"),
        (Place::Http, "modern"),
        (Place::Http, "legacy"),
    ] {
        let (room, _fixture) = room(place, "none", era, "");
        let saved = ["--trace-save", "wire.jsonl", "--json"];
        let first = room.with_servers(ECHO.iter().copied().chain(saved)).check();
        first.exits(0);
        let play = Fixture::new(
            Place::Stdio,
            [env!("CARGO_BIN_EXE_toolhost"), "replay", "wire.jsonl"].map(str::to_owned).into(),
        );
        let other = Sandbox::new();
        std::fs::copy(room.path("work/wire.jsonl"), other.path("work/wire.jsonl")).unwrap();
        other.server("srv", &play);
        let again = other.with_servers(ECHO.iter().copied().chain(["--json"])).check();
        let (first, again) = (first.exits(0).json(), again.exits(0).json());
        for key in ["output", "content", "success", "tool"] {
            assert_eq!(first[key], again[key], "{place:?} {era}");
        }
        assert_eq!(first["metadata"]["protocol"], again["metadata"]["protocol"]);
        let run = other.with_servers(["call", "srv-echo", "message=other"]).check();
        run.exits(3).says(&["no such tools/call was recorded", "hello"]);
    }
}

#[test]
fn another_client_is_recorded_without_noticing() {
    let (room, fixture) = room(Place::Stdio, "none", "legacy", "");
    let server = fixture.command();
    let mut words = vec![env!("CARGO_BIN_EXE_toolhost"), "record", "--save", "rec.jsonl", "--"];
    words.push(server.get_program().to_str().unwrap());
    words.extend(server.get_args().map(|word| word.to_str().unwrap()));
    let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    room.server("recorded", &Fixture::new(Place::Stdio, words));
    let named = ["--mcp", "mcp.yaml", "record", "srv", "--save", "named.jsonl"].map(str::to_owned);
    let program = [env!("CARGO_BIN_EXE_toolhost").to_owned()];
    room.server("named", &Fixture::new(Place::Stdio, [&program[..], &named].concat()));
    for (name, file) in [("recorded", "rec.jsonl"), ("named", "named.jsonl")] {
        let tool = format!("{name}-echo");
        let run = room.with_servers(["call", &tool, "message=hello"]).check();
        assert_eq!(run.exits(0).out(), "hello\n");
        let rows = rows(&room.path("work").join(file));
        let calls: Vec<&Value> = rows.iter().filter(|row| row["method"] == "tools/call").collect();
        assert_eq!(calls.len(), 2, "{rows:?}");
        assert!(calls[1]["latency_ms"].is_number());
        let closed = rows.iter().find(|row| row["what"] == "closed").unwrap();
        assert!(closed["text"].as_str().unwrap().contains("exited with 0"), "{closed}");
        let input = "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{\"message\":\"hello\"}}}\n";
        let played = room.toolhost(["replay", file]).stdin(input).check();
        assert_eq!(played.exits(0).json()["id"], 9);
    }
}

#[test]
fn record_ends_with_its_server_and_says_what_it_cannot_do() {
    let room = Sandbox::new();
    let words = ["record", "--save", "r.jsonl", "--", "sh", "-c", "echo hi; echo no >&2; exit 3"];
    let run = room.toolhost(words).check();
    run.exits(4).says(&["no\n", "error: the process exited with 3"]);
    assert_eq!(run.out(), "hi\n");
    room.toolhost(["record", "--save", "r.jsonl", "--", "/missing"]).check().exits(4);
    room.toolhost(["record", "--save", "r.jsonl"]).check().exits(2);
    room.toolhost(["replay", "mcp.yaml"]).check().exits(9);
    room.file("notes", "my notes\n");
    let run = room.toolhost(["record", "--save", "notes", "--", "true"]).check();
    run.exits(2).says(&["exists and is not a trace"]);
}

#[test]
fn a_server_behind_a_url_is_recorded_by_its_name_and_by_its_address() {
    for era in ["legacy", "both"] {
        let (room, fixture) =
            room(Place::Http, "none", era, "headers: { X-Api-Key: planted-secret }\n");
        let url = fixture.url().unwrap();
        let program = env!("CARGO_BIN_EXE_toolhost");
        for (name, words) in [
            ("named", vec!["--mcp", "mcp.yaml", "record", "srv", "--save", "named.jsonl"]),
            ("typed", vec!["record", url, "--save", "typed.jsonl"]),
        ] {
            let words = [program].into_iter().chain(words).map(str::to_owned).collect();
            room.server(name, &Fixture::new(Place::Stdio, words));
            let tool = format!("{name}-echo");
            let run = room.with_servers(["call", &tool, "message=hello"]).check();
            assert_eq!(run.exits(0).out(), "hello\n");
            let file = format!("{name}.jsonl");
            let rows = rows(&room.path("work").join(&file));
            let calls = rows.iter().filter(|row| row["method"] == "tools/call").count();
            assert_eq!(calls, 2, "{rows:?}");
            assert!(!format!("{rows:?}").contains("planted-secret"));
            let input = "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{\"message\":\"hello\"}}}\n";
            let played = room.toolhost(["replay", &file]).stdin(input).check();
            assert_eq!(played.exits(0).json()["id"], 9);
        }
        // What does not answer is an answer to whoever asked.
        let ask = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
        let dead = room.toolhost(["record", "http://127.0.0.1:9/mcp", "--save", "d.jsonl"]);
        let run = dead.stdin(ask).check();
        assert_eq!(run.json()["error"]["code"], -32603, "{run}");
    }
}

#[test]
fn secrets_are_in_no_trace() {
    let mut said = String::new();
    for (place, more) in [
        (Place::Stdio, "env: { API_TOKEN: planted-secret }\n"),
        (
            Place::Http,
            "headers: { X-Team: planted-header, X-Api-Key: planted-secret }\nauth: { type: bearer, token_env_var: MY_TOKEN }\n",
        ),
    ] {
        let (room, fixture) = room(place, "secret-echo", "both", more);
        for words in [&["--trace", "-v"][..], &["--trace", "--json"], &["--trace-save", "w.jsonl"]]
        {
            let run = room.with_servers(ECHO.iter().copied().chain(words.iter().copied()));
            let run = run.env("MY_TOKEN", "planted-token").check();
            said += &run.exits(0).to_string();
        }
        let run = room.with_servers(["trace", "srv", "-v"]).env("MY_TOKEN", "planted-token");
        said += &run.check().exits(0).to_string();
        said += &std::fs::read_to_string(room.path("work/w.jsonl")).unwrap();
        if place == Place::Http {
            assert!(said.contains("authorization: ***") && said.contains("x-team: ***"), "{said}");
        } else {
            assert!(said.contains("API_TOKEN=\u{2039}secret"), "{said}");
        }
        drop(fixture);
    }
    assert!(!said.contains("planted"), "{said}");
}

#[test]
fn hostile_bytes_are_shown_as_what_they_are_and_kept_exactly() {
    let (room, _fixture) = room(Place::Stdio, "evil-everywhere", "legacy", "");
    for more in [&[][..], &["-v"], &["--json"]] {
        let words = ECHO.iter().copied().chain(["--trace", "--trace-save", "w.jsonl"]);
        room.with_servers(words.chain(more.iter().copied())).check();
        room.with_servers(["trace", "srv"].into_iter().chain(more.iter().copied())).check();
    }
    let text = std::fs::read_to_string(room.path("work/w.jsonl")).unwrap();
    assert_eq!(crate::support::forbidden(text.as_bytes()), None);
    let (room, _fixture) = self::room(Place::Stdio, "invalid-utf8", "legacy", "");
    let words = ECHO.iter().copied().chain(["--trace", "--trace-save", "w.jsonl"]);
    room.with_servers(words).check().exits(0);
    let rows = rows(&room.path("work/w.jsonl"));
    assert!(rows.iter().any(|row| row["base64"].is_string()), "{rows:?}");
}

#[test]
fn what_is_passed_on_untouched_is_not_passed_to_a_terminal() {
    let room = Sandbox::new();
    for command in [
        &["record", "--save", "r.jsonl", "--", "/bin/sh", "-c", "printf '\\033]0;owned\\007'"][..],
        &["replay", "r.jsonl"],
    ] {
        let (code, screen) = Pty::toolhost(&room, command).finish();
        assert_eq!(code, Some(2), "{screen}");
        assert!(screen.contains("stdout is a terminal"), "{screen}");
    }
    assert!(!room.path("work/r.jsonl").exists(), "nothing was started");
}
