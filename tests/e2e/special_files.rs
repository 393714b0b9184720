//! Files that are none, and files that cannot be read: each is refused at once, by its name.

use std::path::Path;

use serde_json::Value;

use crate::support::{Finished, Fixture, Place, Sandbox};

fn fifo(path: &Path) {
    let status = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(status.success());
}

/// A room in which a file of the project stands in the place of `what`: a pipe nobody writes to, a
/// terminal, an endless device, a directory, a socket.
fn special(room: &Sandbox) -> Vec<(&'static str, &'static str)> {
    fifo(&room.path("work/pipe"));
    std::fs::create_dir(room.path("work/directory")).unwrap();
    drop(std::os::unix::net::UnixListener::bind(room.path("work/socket")).unwrap());
    vec![
        ("./pipe", "a named pipe"),
        ("/dev/tty", "a device"),
        ("/dev/zero", "a device"),
        ("./directory", "a directory"),
        ("./socket", "a socket"),
    ]
}

/// Whether a run said this, wherever.
#[track_caller]
fn tells(finished: &Finished, words: &str) {
    let said = finished.out().contains(words) || finished.err().contains(words);
    assert!(said, "{words}: {finished}");
}

#[test]
fn documents_that_are_no_files_are_refused_at_once() {
    let room = Sandbox::new();
    for (path, what) in special(&room) {
        for entry in [
            format!("tools:\n  - {{ name: x, kind: openapi, openapi: \"{path}\" }}\n"),
            format!(
                "tools:\n  - name: x\n    command: [echo]\n    input_schema: {{ $ref: \"{path}\" }}\n"
            ),
            format!(
                "tools:\n  - name: x\n    command: [echo]\n    env: {{ A: \"${{file:{path}}}\" }}\n"
            ),
        ] {
            // Schemas refer to files beside the configuration only.
            if entry.contains("$ref") && path.starts_with('/') {
                continue;
            }
            room.file("tools.yaml", &entry);
            let finished = room.toolhost(["--tools", "tools.yaml", "config", "check"]).check();
            finished.exits(9);
            tells(&finished, what);
            tells(&room.toolhost(["--tools", "tools.yaml", "list"]).check(), what);
        }
    }
}

#[test]
fn configuration_that_is_no_file_is_refused_at_once() {
    let room = Sandbox::new();
    let kinds = special(&room);
    // Found by itself, in the project and in a directory of tools.
    fifo(&room.path("work/tools.yaml"));
    let finished = room.toolhost(["config", "check"]).check();
    tells(finished.exits(9), "tools.yaml is a named pipe");
    std::fs::remove_file(room.path("work/tools.yaml")).unwrap();
    std::fs::create_dir(room.path("work/tools.d")).unwrap();
    fifo(&room.path("work/tools.d/one.yaml"));
    room.file("tools.yaml", "discover: ./tools.d\ntools: []\n");
    let finished = room.toolhost(["--tools", "tools.yaml", "config", "check"]).check();
    tells(finished.exits(9), "one.yaml is a pipe without a writer");
    // Named by a person: a pipe is read, if somebody writes to it.
    for (path, what) in kinds {
        let what = if path == "./pipe" { "a pipe without a writer" } else { what };
        room.toolhost(["--tools", path, "list"]).check().exits(9).says(&[what]);
    }
    if crate::support::lacks(&["bash"]) {
        return;
    }
    let script = "exec \"$0\" --tools <(sleep 0; echo 'tools: []') list";
    let bash = room.program("bash", ["-c", script, env!("CARGO_BIN_EXE_toolhost")]);
    bash.check().exits(0);
}

#[test]
fn a_named_file_that_cannot_be_read_is_named_without_a_position() {
    let room = Sandbox::new();
    room.file("good.yaml", "tools: []\n");
    for flag in ["--mcp", "--tools"] {
        for command in
            [&["list"][..], &["servers"], &["call", "x"], &["inspect", "x"], &["bench", "x"]]
        {
            let words = || [flag, "nope.yaml"].into_iter().chain(command.iter().copied());
            let finished = room.toolhost(words()).check();
            finished.exits(9).says(&["nope.yaml", "no such file or directory"]);
            assert!(!finished.err().contains(":0"), "{finished}");
            let finished = room.toolhost(words().chain(["--json"])).check();
            let error: Value = serde_json::from_str(&finished.err()).unwrap();
            assert_eq!(error["error"]["exit"], 9, "{finished}");
            assert_eq!(error["error"].get("line"), None, "{finished}");
        }
    }
    let check = room.toolhost(["--mcp", "nope.yaml", "config", "check"]).check();
    tells(check.exits(9), "nope.yaml: error: cannot read");
}

fn servers(finished: &Finished) -> Vec<(String, String, Option<String>)> {
    let value: Value = serde_json::from_str(&finished.out()).unwrap();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let row = |server: &Value| {
        let kind = text(&server["error"]["kind"]);
        (text(&server["name"]).unwrap(), text(&server["status"]).unwrap(), kind)
    };
    value["servers"].as_array().unwrap().iter().map(row).collect()
}

#[test]
fn an_entry_that_cannot_be_used_is_listed_among_the_servers_with_its_reason() {
    let room = Sandbox::new();
    let fixture = Fixture::fault(Place::Stdio, "none", "legacy", &room.log("srv"));
    room.server("srv", &fixture);
    let good = std::fs::read_to_string(room.path("work/mcp.yaml")).unwrap();
    let broken = "  bad:\n    command: [not, a, text]\n    url: https://example.com/mcp\n";
    let row = |name: &str, status: &str, kind: Option<&str>| {
        (name.to_owned(), status.to_owned(), kind.map(str::to_owned))
    };
    let bad = || row("bad", "failed", Some("config"));

    room.file("mcp.yaml", &format!("{good}{broken}"));
    let all = room.with_servers(["servers", "--json"]).check();
    all.exits(11);
    assert_eq!(servers(&all), [row("srv", "ready", None), bad()]);
    let both = room.with_servers(["servers", "bad", "srv", "--json"]).check();
    both.exits(11);
    assert_eq!(servers(&both).len(), 2);
    let only = room.with_servers(["servers", "bad", "--json"]).check();
    only.exits(9);
    assert_eq!(servers(&only), [bad()]);
    let table = room.with_servers(["servers"]).check();
    table.exits(11);
    assert!(table.out().contains("config: out of service: "), "{table}");
    room.with_servers(["servers", "srv"]).check().exits(0);
    let declared = room.with_servers(["servers", "--declared", "--json"]).check();
    assert_eq!(servers(&declared).len(), 2);

    room.file("mcp.yaml", &format!("mcp_servers:\n{broken}"));
    let alone = room.with_servers(["servers", "--json"]).check();
    alone.exits(9);
    assert_eq!(servers(&alone), [bad()]);
}

#[test]
fn a_refusal_shows_what_would_start_however_much_there_is_to_say() {
    let room = Sandbox::new();
    let variables: Vec<String> = (0..60).map(|n| format!("      V{n}: \"{n}\"\n")).collect();
    let long = "x".repeat(6_000);
    for name in ["one", "two"] {
        let entry = format!(
            "  {name}:\n    command: /usr/bin/no-such-{name}\n    args: [\"{long}\", \"end-of-{name}\"]\n    \
             env:\n{}",
            variables.concat()
        );
        let all = std::fs::read_to_string(room.path("work/mcp.yaml")).unwrap_or_default();
        let all = if all.is_empty() { "mcp_servers:\n".to_owned() } else { all };
        room.file("mcp.yaml", &format!("{all}{entry}"));
    }
    let would_start = |name: &str| format!("no-such-{name} {long} end-of-{name}");
    for (command, names) in [
        (&["list"][..], &["one", "two"][..]),
        (&["call", "one-x"], &["one"]),
        (&["list", "--server", "two"], &["two"]),
        (&["servers"], &["one", "two"]),
    ] {
        let finished = room.toolhost(command.iter().copied()).check();
        finished.exits(6);
        let text = format!("{}{}", finished.out(), finished.err());
        for name in names {
            assert!(text.contains(&would_start(name)), "{command:?}: {finished}");
        }
    }
}
