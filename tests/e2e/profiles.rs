//! What one agent sees: `--profile` and the servers, entries and calls it hides.

use serde_json::json;

use crate::support::{Fixture, Place, Sandbox};

const TOOLS: &str = "\
tools:
  - { name: calculator, module: builtin.calculator, function: calculate }
  - { name: broken, kind: command }
components:
  - { name: notes, type: storage, storage_type: memory }
profiles:
  notes: { include: [\"notes-*\"], exclude: [\"*-delete\"] }
  shown: { include: [\"shown-*\"] }
  sums: { include: [calculator] }
  listed: { servers: [shown] }
  confined: { safety: [sandboxed], exclude: [\"broken*\"] }
  local: { exclude: [\"shown-*\", \"hidden-*\", \"dead*\", \"broken*\"] }
";

/// Two servers that answer and one that does not; their starts are in the logs `shown` and `hidden`.
fn room() -> Sandbox {
    let room = Sandbox::new();
    for name in ["shown", "hidden"] {
        room.server(name, &Fixture::fault(Place::Stdio, "none", "legacy", &room.log(name)));
    }
    let servers = std::fs::read_to_string(room.path("work/mcp.yaml")).unwrap();
    room.file("mcp.yaml", &format!("{servers}  dead: {{ command: /nonexistent/server }}\n"));
    room.file("tools.yaml", TOOLS);
    room
}

fn run(room: &Sandbox, words: &[&str]) -> crate::support::Finished {
    let files = ["--tools", "tools.yaml", "--mcp", "mcp.yaml"];
    room.toolhost(files.into_iter().chain(words.iter().copied())).check()
}

fn has_started(room: &Sandbox, server: &str) -> bool {
    room.log(server).exists()
}

#[test]
fn only_servers_that_the_profile_can_show_are_contacted() {
    let room = room();
    let listed = run(&room, &["list", "--profile", "notes", "-o", "names"]);
    assert_eq!(listed.exits(0).out(), "notes-read\nnotes-write\nnotes-list\n", "{listed}");
    for profile in ["local", "confined"] {
        run(&room, &["list", "--profile", profile]).exits(0);
    }
    assert!(!has_started(&room, "shown") && !has_started(&room, "hidden"));
    for profile in ["shown", "listed"] {
        let listed = run(&room, &["list", "--profile", profile, "--json"]);
        let listed = listed.exits(0).json();
        assert_eq!(listed["servers"], json!([{ "name": "shown", "status": "ok", "error": null }]));
        assert!(listed["tools"].as_array().unwrap().iter().all(|t| t["server"] == "shown"));
    }
    assert!(has_started(&room, "shown") && !has_started(&room, "hidden"));
    // Without it all are asked, and what is wrong with the others is told.
    run(&room, &["list"]).exits(11).says(&["dead"]);
    assert!(has_started(&room, "hidden"));
}

#[test]
fn a_hidden_tool_is_refused_and_its_server_not_started() {
    let room = room();
    for name in ["hidden-echo", "hidden.echo", "hidden-nothing", "calculator"] {
        let refused = run(&room, &["call", name, "--profile", "notes"]);
        refused.exits(6).says(&["is not part of the profile"]);
    }
    run(&room, &["call", "notes-delete", "key=a", "--profile", "notes", "--yes"]).exits(6);
    run(&room, &["call", "notes-read", "key=a", "--profile", "notes"]).exits(3);
    // A server that is named all the same is refused, too.
    let named = run(&room, &["list", "--server", "hidden", "--profile", "notes"]);
    named.exits(6).says(&["'hidden' is not part of the profile"]);
    let servers = run(&room, &["servers", "--profile", "shown", "-o", "names"]);
    assert_eq!(servers.exits(0).out(), "shown\n");
    assert!(!has_started(&room, "hidden"));
    run(&room, &["servers", "hidden", "--profile", "shown"]).exits(6);
    run(&room, &["servers", "--profile", "notes"])
        .exits(0)
        .says(&["the profile contains no servers"]);
    let bare = run(&room, &["call", "echo", "--profile", "notes"]);
    bare.exits(2).says(&["unknown tool 'echo' in the profile in use"]);
    let unknown = run(&room, &["list", "--profile", "note"]);
    unknown.exits(2).says(&["unknown profile 'note'", "did you mean 'notes'?"]);
}

#[test]
fn an_entry_that_nobody_trusted_is_no_matter_of_a_profile_that_hides_it() {
    let room = Sandbox::new();
    let command = "  - { name: deploy, command: [./deploy.sh] }\n";
    room.file("deploy.sh", "#!/bin/sh\n");
    room.file("tools.yaml", &TOOLS.replace("  - { name: broken, kind: command }\n", command));
    let listed = room.toolhost(["list", "--profile", "sums", "-o", "names"]).check();
    assert_eq!(listed.exits(0).out(), "calculator\n", "{listed}");
    room.toolhost(["list"]).check().exits(11).says(&["not trusted"]);
}

#[test]
fn python_code_that_a_profile_hides_is_not_imported() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = Sandbox::new();
    room.file("mcp.yaml", "mcp_servers: {}\n");
    room.file(
        "mod.py",
        "open('imported', 'a').close()\n\n\ndef tax(x: float) -> float:\n    return x\n",
    );
    room.file("cls.py", "open('imported', 'a').close()\n\n\nclass Box:\n    def open(self) -> str:\n        return 'x'\n");
    room.file(
        "tools.yaml",
        "tools:\n\
         \x20 - { name: calculator, module: builtin.calculator, function: calculate }\n\
         \x20 - { name: sums, module: mod, root: . }\n\
         \x20 - { name: box, module: cls, class: Box, root: . }\n\
         \x20 - { name: one, module: mod, function: tax, root: . }\n\
         profiles:\n\
         \x20 own: { include: [calculator, \"notes-*\"], exclude: [sums] }\n\
         \x20 listed: { servers: [notes] }\n\
         \x20 taxes: { include: [tax] }\n",
    );
    for profile in ["own", "listed"] {
        let listed = run(&room, &["list", "--profile", profile, "-o", "names"]);
        let shown = if profile == "own" { "calculator\n" } else { "" };
        assert_eq!(listed.exits(0).out(), shown, "{listed}");
        for name in ["one", "box", "box-open"] {
            run(&room, &["call", name, "--profile", profile]).exits(6);
        }
        run(&room, &["call", "tax", "x=1", "--profile", profile]).exits(2);
    }
    assert!(!room.path("work/imported").exists());
    let listed = run(&room, &["list", "--profile", "taxes", "-o", "names"]);
    assert_eq!(listed.exits(0).out(), "tax\n", "{listed}");
}

#[test]
fn a_server_out_of_service_is_shown_where_the_profile_shows_it() {
    let room = Sandbox::new();
    room.file("tools.yaml", TOOLS);
    room.file("mcp.yaml", "shown: { command: 7 }\nhidden: { command: 7 }\n");
    let servers = run(&room, &["servers", "--profile", "shown", "--json"]);
    let names: Vec<String> = servers.json()["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|server| server["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["shown"], "{servers}");
}
