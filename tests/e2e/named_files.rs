//! Files that the command line names: what is missing or cannot be read is told in one way.

use std::os::unix::fs::PermissionsExt as _;

use crate::support::Sandbox;

const ECHO: &str = "tools: [{ name: echo, module: builtin.echo }]\n";

#[test]
fn a_named_file_that_is_not_there_is_exit_9_whichever_option_names_it() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = Sandbox::new();
    room.file("t.yaml", ECHO);
    for words in [
        &["--tools", "none.x", "list"][..],
        &["--mcp", "none.x", "list"],
        &["--tools-module", "none.x", "list"],
        &["--tools", "t.yaml", "call", "echo", "message=@none.x"],
        &["--tools", "t.yaml", "call", "echo", "message:=@none.x"],
        &["--tools", "t.yaml", "call", "echo", "--args", "@none.x"],
        &["--tools", "t.yaml", "call", "echo", "message=a", "--answers", "none.x"],
        &["--tools", "t.yaml", "verify", "--file", "none.x"],
        &["--tools", "t.yaml", "bench", "echo", "message=a", "-n", "1", "--baseline", "none.x"],
        &["--tools", "t.yaml", "bench", "echo", "-n", "1", "--args-lines", "none.x"],
        &["replay", "none.x"],
    ] {
        let missing = room.toolhost(words.iter().copied()).check();
        missing.exits(9).says(&["none.x"]);
    }
}

#[test]
fn a_named_file_that_cannot_be_read_is_told_the_same_way() {
    let room = Sandbox::new();
    room.file("t.yaml", ECHO);
    std::fs::create_dir(room.path("work/dir")).unwrap();
    std::fs::set_permissions(room.path("work/dir"), std::fs::Permissions::from_mode(0o755))
        .unwrap();
    for words in [
        &["--tools", "dir", "list"][..],
        &["--mcp", "dir", "list"],
        &["--tools", "t.yaml", "call", "echo", "message=@dir"],
        &["--tools", "t.yaml", "call", "echo", "--args", "@dir"],
        &["--tools", "t.yaml", "call", "echo", "message=a", "--answers", "dir"],
        &["--tools", "t.yaml", "verify", "--file", "dir"],
        &["--tools", "t.yaml", "bench", "echo", "message=a", "-n", "1", "--baseline", "dir"],
        &["replay", "dir"],
    ] {
        room.toolhost(words.iter().copied()).check().exits(9).says(&["dir"]);
    }
}

/// What is asked for by name has to be there: a list without it would be no answer.
#[test]
fn a_named_file_that_cannot_be_parsed_is_a_configuration_error() {
    let room = Sandbox::new();
    room.file("bad.yaml", "mcp_servers:\n  a: { command: [x\n").file("t.yaml", ECHO);
    for words in [
        &["--mcp", "bad.yaml", "list"][..],
        &["--mcp", "bad.yaml", "servers"],
        &["--mcp", "bad.yaml", "call", "a-x"],
        &["--mcp", "bad.yaml", "export", "--format", "openai"],
        &["--mcp", "bad.yaml", "--tools", "t.yaml", "call", "echo", "message=a"],
        &["--tools", "bad.yaml", "list"],
    ] {
        room.toolhost(words.iter().copied()).check().exits(9).says(&["bad.yaml:2:"]);
    }
    let path = room.path("work/bad.yaml").display().to_string();
    for words in [&["list"][..], &["servers"]] {
        let run = room.toolhost(words.iter().copied()).env("TOOLHOST_MCP", &path);
        run.check().exits(9).says(&["bad.yaml:2:"]);
    }
}

/// Definitions for a model are as incomplete as the list without an entry that is out of service.
#[test]
fn an_export_says_which_entries_are_missing() {
    let room = Sandbox::new();
    let bad = "tools:\n- { name: echo, module: builtin.echo }\n- { name: bad, command: {} }\n";
    room.file("t.yaml", bad);
    for words in [&["list"][..], &["export", "--format", "mcp"]] {
        let words = ["--tools", "t.yaml"].into_iter().chain(words.iter().copied());
        room.toolhost(words).check().exits(11).says(&["out of service", "t.yaml"]);
    }
}

#[test]
fn a_file_of_the_other_kind_is_told_so_by_every_command() {
    let room = Sandbox::new();
    room.file("t.yaml", "tools: [{ name: echo, module: builtin.echo }]\n");
    room.file("m.yaml", "mcp_servers: { x: { command: x } }\n");
    for words in [&["list"][..], &["servers"], &["call", "echo"]] {
        let named =
            |option: [&'static str; 2]| room.toolhost([&option[..], words].concat()).check();
        named(["--mcp", "t.yaml"]).says(&["t.yaml:1:1", "tools belong in tools.yaml (--tools)"]);
        named(["--tools", "m.yaml"]).says(&["m.yaml:1:1", "servers belong in mcp.yaml (--mcp)"]);
    }
}

#[test]
fn where_nothing_answers_the_exit_code_is_that_of_the_reason() {
    let room = Sandbox::new();
    room.file("bad.yaml", "mcp_servers: { x: { bad: 1 } }\n");
    let both = "mcp_servers: { x: { bad: 1 }, y: { url: \"http://127.0.0.1:1\" } }\n";
    room.file("both.yaml", both);
    room.file("t.yaml", "tools: [{ name: a, module: builtin.nope }]\n");
    for words in [&["list"][..], &["servers"], &["export", "--format", "mcp"], &["call", "foo"]] {
        // What a call asks for may be what the silent server has.
        let files = if words[0] == "call" { &["bad.yaml"][..] } else { &["bad.yaml", "both.yaml"] };
        for file in files {
            let words = [&["--mcp", file][..], words].concat();
            let finished = room.toolhost(words).check();
            let text = finished.exits(9).out() + &finished.err();
            assert!(text.contains("out of service"), "{finished}");
        }
        let (bad, dead) = (["--", "http://"], ["--", "http://127.0.0.1:1"]);
        room.toolhost([words, &bad].concat()).check().exits(9).says(&["empty host"]);
        room.toolhost([words, &dead].concat()).check().exits(4).says(&["connection refused"]);
    }
    room.toolhost(["--mcp", "both.yaml", "call", "foo"]).check().exits(4).says(&["server 'y'"]);
    room.toolhost(["--tools", "t.yaml", "list"]).check().exits(9).says(&["builtin.nope"]);
}
