//! Names that nothing has, while some server is silent.

use crate::support::{Run, Sandbox};

/// A store, a server that answers, and two that cannot be started.
fn room() -> Sandbox {
    let room = Sandbox::new();
    room.file(
        "tools.yaml",
        "components:\n  - { name: notes, type: storage, storage_type: memory }\n",
    );
    room.file(
        "mcp.yaml",
        "demo: { command: \"${TOOLHOST}\", args: [demo-server] }\n\
         one: { command: /no/such/program }\ntwo: { command: /no/such/program }\n",
    );
    room
}

fn run<'a>(room: &'a Sandbox, words: &[&'a str]) -> Run<'a> {
    let files = ["--tools", "tools.yaml", "--mcp", "mcp.yaml"];
    room.toolhost(files.into_iter().chain(words.iter().copied()))
}

#[test]
fn a_name_that_nothing_has_is_wrong_although_servers_are_down() {
    let room = room();
    let unknown = run(&room, &["call", "notes-nope"]).check();
    unknown.exits(2).says(&[
        "unknown tool 'notes-nope'",
        "its tools are notes-read, notes-write, notes-list, notes-delete",
        "2 servers did not answer and may offer 'notes-nope': one, two",
    ]);
    for (name, hint) in [("notes-reed", "'notes-read'"), ("demo-ecko", "'demo-echo'")] {
        run(&room, &["call", name]).check().exits(2).says(&["did you mean", hint]);
        run(&room, &["inspect", name]).check().exits(2).says(&[hint]);
    }
    // The server that was asked for by its name is the one that failed.
    run(&room, &["call", "one-echo"]).check().exits(4).says(&["server 'one'"]);
    run(&room, &["call", "--server", "one", "echo"]).check().exits(4).says(&["server 'one'"]);
    // Alone, it is all that was asked.
    room.file("mcp.yaml", "one: { command: /no/such/program }\n");
    room.toolhost(["--mcp", "mcp.yaml", "call", "echo"]).check().exits(4).says(&["server 'one'"]);
}

#[test]
fn a_bare_name_costs_one_line_for_all_silent_servers() {
    let room = room();
    let found = run(&room, &["call", "echo", "message=hi"]).check();
    assert_eq!(found.exits(0).out(), "hi\n");
    let said = found.err();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("2 servers did not answer and may offer 'echo' too: one, two"), "{said}");
}

#[test]
fn prompts_and_resources_that_nothing_has_are_wrong_too() {
    let room = room();
    let note = "2 servers did not answer and may offer";
    run(&room, &["prompts", "get", "nope"]).check().exits(2).says(&["unknown prompt", note]);
    run(&room, &["prompts", "get", "demo-nope"]).check().exits(2).says(&["unknown prompt"]);
    run(&room, &["resources", "read", "no:where"])
        .check()
        .exits(2)
        .says(&["no server lists", note]);
    run(&room, &["prompts", "get", "one-nope"]).check().exits(4).says(&["server 'one'"]);
}

#[test]
fn a_typo_is_answered_with_the_name_that_was_meant_and_no_error_of_another_entry() {
    let room = Sandbox::new();
    room.file(
        "tools.yaml",
        "tools:
  - { name: git, command: [git], speed: nope }
  - { name: git-log, command: [git, log] }
components: [{ name: store, type: storage, storage_type: nope }]\n",
    );
    let call = |name: &'static str| room.toolhost(["--tools", "tools.yaml", "call", name]).check();
    call("git-lgo").exits(2).says(&["unknown tool 'git-lgo'", "did you mean 'git-log'"]);
    // A store that is out of service may well have had the tool.
    call("store-read").exits(9).says(&["'store' is out of service"]);
}

#[test]
fn servers_out_of_service_are_counted_with_those_that_do_not_answer() {
    let room = Sandbox::new();
    room.file(
        "mcp.yaml",
        "mcp_servers: { a: { command: ./nothing }, b: { command: x, protocol: nope } }\n",
    );
    room.file("tools.yaml", "tools: [{ name: echo, module: builtin.echo }]\n");
    let words = ["--mcp", "mcp.yaml", "--tools", "tools.yaml", "list"];
    let listed = room.toolhost(words).check();
    listed.exits(11).says(&["2 of 2 servers could not be listed"]);
}

#[test]
fn a_server_is_called_as_its_file_calls_it_too() {
    let room = Sandbox::new();
    let entry = "{ command: \"${TOOLHOST}\", args: [demo-server] }";
    room.file("mcp.yaml", &format!("\"My Office/2\": {entry}\n"));
    let run = |words: &[&'static str]| {
        room.toolhost(["--mcp", "mcp.yaml"].into_iter().chain(words.iter().copied())).check()
    };
    let warning = "mcp.yaml:1:1: warning: the server 'My Office/2' is called 'My-Office-2' here";
    assert!(run(&["config", "check"]).out().contains(warning));
    let listed = run(&["list", "--server", "My Office/2"]);
    assert!(listed.out().contains("My-Office-2-echo"), "{listed}");
    for words in [
        &["call", "My-Office-2-echo", "message=hi"][..],
        &["call", "--server", "My Office/2", "echo", "message=hi"],
        &["servers", "My Office/2"],
        &["trace", "My Office/2"],
    ] {
        run(words).exits(0);
    }
}

#[test]
fn a_schema_of_parts_with_addresses_is_read_and_checked_and_fetches_nothing() {
    let room = Sandbox::new();
    let schema = "{ $id: 'https://127.0.0.1:9/schemas/shape', type: object, required: [at], \
        properties: { at: { $ref: place }, secret: { $ref: '/schemas/key' } }, \
        $defs: { p: { $id: place, type: object, required: [street], properties: { street: { type: string } } }, \
                 k: { $id: /schemas/key, type: string, writeOnly: true } } }";
    let text = format!(
        "tools: [{{ name: shape, module: builtin.echo, function: echo, parameters_schema: {schema} }}]\n"
    );
    room.file("tools.yaml", &text);
    let call = |at: &'static str| room.toolhost(["call", "shape", at, "secret=hunter22"]).check();
    call("at:={}").exits(2).says(&["at.street: is required", "'at:={\"street\":\"text\"}'"]);
    call("at:={\"street\":\"x\"}").exits(0);
    let history = room.toolhost(["history", "--json"]).check();
    assert!(history.out().contains("street") && !history.out().contains("hunter22"), "{history}");
}
