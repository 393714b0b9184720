//! Statistics and history belong to a project, and to a program: what happened elsewhere under the
//! same name is shown when it is asked for, and never in the same line.

use serde_json::Value;

use crate::support::{Finished, Pty, Sandbox};

const TOOLHOST: &str = env!("CARGO_BIN_EXE_toolhost");

/// A project in which `greet` says a word.
fn project(room: &Sandbox, directory: &str, word: &str) {
    let text = format!("tools:\n  - {{ name: greet, command: [echo, {word}] }}\n");
    room.file(&format!("{directory}/tools.yaml"), &text);
}

/// A run of the binary in a directory of the room.
fn run_in(room: &Sandbox, directory: &str, words: &[&str]) -> Finished {
    let line = "cd \"$1\" && shift && exec \"$@\"";
    let start = ["-c", line, "sh", directory, TOOLHOST];
    room.program("sh", start.into_iter().chain(words.iter().copied())).check()
}

fn call(room: &Sandbox, directory: &str) {
    run_in(room, directory, &["--trust", "call", "greet"]).exits(0);
}

/// The lines of the statistics as (calls, directory of the project).
fn lines(finished: &Finished) -> Vec<(u64, String)> {
    let value = finished.exits(0).json();
    let line = |tool: &Value| {
        let project = tool["project"].as_str().unwrap_or_default();
        let directory = project.rsplit('/').next().unwrap_or_default();
        (tool["calls"].as_u64().unwrap(), directory.to_owned())
    };
    let mut lines: Vec<_> = value["tools"].as_array().unwrap().iter().map(line).collect();
    lines.sort();
    lines
}

fn owned(lines: &[(u64, &str)]) -> Vec<(u64, String)> {
    lines.iter().map(|(calls, directory)| (*calls, (*directory).to_owned())).collect()
}

#[test]
fn a_project_counts_its_own_calls_and_others_only_when_asked() {
    let room = Sandbox::new();
    project(&room, "one", "one");
    project(&room, "two", "two");
    call(&room, "one");
    call(&room, "two");
    call(&room, "two");
    let stats = |directory, words: &[&str]| {
        lines(&run_in(&room, directory, &[&["stats", "--json"], words].concat()))
    };
    assert_eq!(stats("one", &[]), owned(&[(1, "one")]));
    assert_eq!(stats("two", &[]), owned(&[(2, "two")]));
    let both = owned(&[(1, "one"), (2, "two")]);
    assert_eq!(stats("one", &["--all-projects"]), both);
    assert_eq!(stats("one", &["greet", "--all-projects"]), both);
    // Where there is no project, there is nothing to leave out.
    assert_eq!(stats(".", &[]), both);
    // A file that is named belongs to its project too, and so does every directory below.
    std::fs::create_dir(room.path("work/one/deep")).unwrap();
    run_in(&room, ".", &["--tools", "one/tools.yaml", "call", "greet"]).exits(0);
    assert_eq!(stats("one/deep", &[]), owned(&[(2, "one")]));
    let table = run_in(&room, "one", &["stats", "--all-projects"]);
    assert!(table.exits(0).out().contains("PROJECT"), "{table}");
    assert!(!run_in(&room, "one", &["stats"]).out().contains("PROJECT"));
    let inspected = run_in(&room, "one", &["inspect", "greet", "--json"]);
    assert_eq!(inspected.json()["stats"]["calls"], 2, "{inspected}");

    // So does the history.
    let history = |directory, words: &[&str]| -> Vec<String> {
        let found = run_in(&room, directory, &[&["history", "--json"], words].concat());
        let calls = found.exits(0).json();
        let project = |call: &Value| call["project"].as_str().unwrap().to_owned();
        calls.as_array().unwrap().iter().map(project).collect()
    };
    assert_eq!(history("one", &[]).len(), 2);
    assert_eq!(history("two", &[]).len(), 2);
    assert_eq!(history("two", &["--all-projects"]).len(), 4);
    let last = run_in(&room, "two", &["history", "show", "last", "--json"]);
    assert_eq!(last.exits(0).json()["output"], "two", "{last}");
}

#[test]
fn the_console_shows_a_projects_calls_and_those_of_all_when_asked() {
    let room = Sandbox::new();
    project(&room, "one", "one");
    project(&room, "two", "two");
    call(&room, "one");
    call(&room, "two");
    call(&room, "two");
    let start = format!("cd one && exec {TOOLHOST} --trust");
    let mut pty = Pty::sized(&room, "sh", &["-c", &start], 24, 80);
    pty.expect_shown("greet").type_keys("6").expect_shown("History 1  this project");
    pty.type_keys("P").expect_shown("History 3  all projects");
    // The statistics follow, by name in the palette too.
    pty.type_keys("4").expect_shown("last 1h  all projects");
    pty.type_keys(":all-proj").expect_shown("show calls of all projects").type_keys("\r");
    pty.expect_shown("last 1h  this project");
    pty.type_keys("6").expect_shown("History 1  this project").type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
    // Elsewhere there is nothing to widen.
    let mut pty = Pty::console(&room, &["--fresh"], 24, 80);
    pty.expect_shown("1 Tools]").type_keys("6").expect_shown("History 3");
    pty.type_keys("P").expect_shown("no project here").type_keys("q");
    assert_eq!(pty.finish().0, Some(0));
}

#[test]
fn another_program_under_the_same_name_has_a_line_of_its_own() {
    let room = Sandbox::new();
    project(&room, ".", "first");
    call(&room, ".");
    call(&room, ".");
    project(&room, ".", "second");
    call(&room, ".");
    let stats = room.toolhost(["stats", "greet", "--json"]).check();
    let tools = stats.exits(0).json()["tools"].as_array().unwrap().clone();
    let mut found: Vec<_> = tools
        .iter()
        .map(|tool| (tool["calls"].as_u64().unwrap(), tool["program"].as_str().unwrap()))
        .collect();
    found.sort_unstable();
    let [(1, now), (2, before)] = found[..] else { panic!("{stats}") };
    assert_ne!(now, before);
    let inspected = room.toolhost(["--trust", "inspect", "greet"]).check();
    let out = inspected.exits(0).out();
    assert!(out.contains(&format!("@{now}")) && out.contains("1 call, "), "{inspected}");
    let table = room.toolhost(["stats"]).check();
    for shown in [format!("@{now}"), format!("@{before}")] {
        assert!(table.exits(0).out().contains(&shown), "{shown}\n{table}");
    }
    table.says(&["marks programs with the same name"]);
}

#[test]
fn a_server_that_cannot_start_is_counted_with_its_program() {
    let room = Sandbox::new();
    let entry = |args: &str| format!("mcp_servers:\n  srv: {{ command: sh, args: {args} }}\n");
    let works = format!("[-c, \"test -e down || exec '{TOOLHOST}' demo-server\"]");
    room.file(".cursor/mcp.json", "{ \"mcpServers\": {} }").file("mcp.yaml", &entry(&works));
    let call = ["--trust", "call", "srv-echo", "message=hi"];
    room.toolhost(call).check().exits(0);
    room.file("down", "");
    room.toolhost(call).check().exits(4);
    let stats = room.toolhost(["stats", "--json"]).check();
    let value = stats.exits(0).json();
    let tools = value["tools"].as_array().unwrap();
    assert_eq!((tools.len(), &tools[0]["calls"]), (1, &Value::from(2)), "{stats}");
    // The project of an editor's file is the directory that the editor's stands in.
    std::fs::remove_file(room.path("work/mcp.yaml")).unwrap();
    std::fs::remove_file(room.path("work/down")).unwrap();
    let servers = serde_json::json!({ "mcpServers": { "srv": {
        "command": "sh", "args": ["-c", format!("exec '{TOOLHOST}' demo-server")] } } });
    room.file(".cursor/mcp.json", &servers.to_string());
    room.toolhost(call).check().exits(0);
    let stats = room.toolhost(["stats", "--json"]).check();
    let value = stats.exits(0).json();
    let projects: Vec<_> =
        value["tools"].as_array().unwrap().iter().map(|tool| tool["project"].clone()).collect();
    let root = room.path("work").canonicalize().unwrap();
    assert_eq!(projects, [root.to_str().unwrap(), root.to_str().unwrap()], "{stats}");
}
