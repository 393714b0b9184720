//! The first minutes: files are begun, servers added and taken over, calls saved, and what is wrong
//! with a machine is said.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::json;

use crate::support::{Pty, Sandbox, script};

const TOOLHOST: &str = env!("CARGO_BIN_EXE_toolhost");

fn own_file(room: &Sandbox) -> PathBuf {
    room.path("config/toolhost/mcp.yaml")
}

/// Writes a file below the home directory, or wherever `base` is.
fn write(room: &Sandbox, path: &str, text: &str) {
    let path = room.path(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[test]
fn a_server_is_added_and_works_at_once() {
    let room = Sandbox::new();
    let add = |words: &[&str]| room.toolhost(words.iter().copied()).check();
    add(&[
        "add",
        "mine",
        "--description",
        "For me",
        "-e",
        "LEVEL=x",
        "--",
        TOOLHOST,
        "demo-server",
    ])
    .exits(0)
    .says(&[
        "added mine to",
        "replace the built-in examples",
        "8 tools: echo, add, ",
        "toolhost list --server mine",
    ]);
    let failing = add(&["add", "failing", "--", "sh", "-c", "echo no disk >&2; exit 3"]);
    failing.exits(0).says(&["it does not start yet: the process exited with 3", "no disk"]);
    assert!(!failing.err().contains("built-in examples"), "{failing}");
    let called = room.toolhost(["call", "mine-echo", "message=hi"]).check();
    assert_eq!(called.exits(0).out(), "hi\n");
    add(&["add", "web", "https://x.test/mcp", "--bearer-token-env", "WEB_TOKEN"]).exits(0);
    let text = std::fs::read_to_string(own_file(&room)).unwrap();
    for line in ["mcp_servers:", "  mine:", "    env:", "  web:", "      token_env_var: WEB_TOKEN"]
    {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    // A name that is taken, a secret in clear, words that are none: nothing is written.
    for words in [
        &["add", "mine", "https://y.test"][..],
        &["add", "new", "-e", "API_TOKEN=abcdefgh12", "--", "x"],
        &["add", "new", "-e", "=x", "--", "x"],
        &["add", "new", "https://y.test", "--header", "Authorization: Bearer abcdefgh12"],
        &["add", "new", "just-a-word"],
        &["add", "no name", "https://y.test"],
        &["add", "new"],
    ] {
        add(words).exits(2);
    }
    assert_eq!(std::fs::read_to_string(own_file(&room)).unwrap(), text);
}

#[test]
fn a_project_keeps_its_comments_and_is_asked_about_what_was_added() {
    let room = Sandbox::new();
    room.file("mcp.yaml", "# ours\nmcp_servers:\n  a: { command: \"false\" } # never\n");
    let added = room.toolhost(["add", "b", "--", TOOLHOST, "demo-server"]).check();
    assert!(!added.exits(0).err().contains("8 tools"), "nothing is started: {added}");
    let text = std::fs::read_to_string(room.path("work/mcp.yaml")).unwrap();
    assert!(text.starts_with("# ours\nmcp_servers:\n  a: { command: \"false\" } # never\n  b:\n"));
    room.toolhost(["call", "b-echo", "message=hi"]).check().exits(6);
    let called = room.toolhost(["--trust", "call", "b-echo", "message=hi"]).check();
    assert_eq!(called.exits(0).out(), "hi\n");
    room.toolhost(["add", "c", "--user", "--", TOOLHOST, "demo-server"]).check().exits(0);
    assert!(own_file(&room).is_file());
}

/// A program of a few bytes: those of a debug build take long to compare.
fn demo_script(room: &Sandbox) -> String {
    let path = room.path("data/demo");
    script(&path, &format!("#!/bin/sh\nexec '{TOOLHOST}' demo-server\n"));
    path.display().to_string()
}

#[test]
fn what_a_command_writes_into_a_trusted_project_is_trusted_with_it() {
    let room = Sandbox::new();
    let demo = demo_script(&room);
    let server = json!({ "command": demo });
    let run = |words: &[&str]| room.toolhost(words.iter().copied()).check();
    // A project that the command begins is all its own.
    run(&["add", "a", "--project", "--", &demo]).exits(0);
    run(&["call", "a-echo", "message=hi"]).exits(0);
    run(&["add", "b", "--project", "--", &demo]).exits(0);
    room.file(".cursor/mcp.json", &json!({ "mcpServers": { "c": server } }).to_string());
    run(&["import", "cursor", "--project", "--yes"]).exits(0);
    for tool in ["a-echo", "b-echo", "c-echo"] {
        run(&["call", tool, "message=hi"]).exits(0);
    }
    // What somebody else changed meanwhile is asked about, with what the command adds.
    let path = room.path("work/mcp.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("command:", "description: x\n    command:", 1)).unwrap();
    let added = run(&["add", "d", "--project", "--", &demo]);
    added.exits(0).says(&["toolhost trust"]);
    run(&["call", "b-echo", "message=hi"]).exits(6);
}

#[test]
fn what_a_command_adds_replaces_no_server_of_the_users_unasked() {
    let room = Sandbox::new();
    let demo = demo_script(&room);
    let run = |words: &[&str]| room.toolhost(words.iter().copied()).check();
    run(&["add", "own", "--user", "--", &demo]).exits(0);
    run(&["add", "a", "--project", "--", &demo]).exits(0);
    run(&["call", "a-echo", "message=hi"]).exits(0);
    run(&["add", "own", "--project", "--", &demo]).exits(0).says(&["toolhost trust"]);
    run(&["call", "a-echo", "message=hi"]).exits(6);
}

#[test]
fn a_check_finds_what_a_list_warns_of() {
    let room = Sandbox::new();
    room.file(
        "tools.yaml",
        "tools: [{ name: notes-read, module: builtin.echo, function: echo }]
components: [{ name: notes, type: storage, storage_type: memory }]\n",
    );
    let listed = room.toolhost(["list"]).check();
    listed.says(&["'notes-read'", "is skipped"]);
    let checked = room.toolhost(["config", "check"]).check();
    checked.exits(9);
    assert!((checked.out() + &checked.err()).contains("'notes-read'"), "{checked}");
    let doctor = room.toolhost(["doctor", "--json"]).check().json();
    let configuration =
        doctor["checks"].as_array().unwrap().iter().find(|c| c["name"] == "configuration").unwrap();
    assert_eq!(configuration["status"], "error", "{doctor}");
}

#[test]
fn errors_of_entries_name_the_choices_there_are() {
    let room = Sandbox::new();
    room.file(
        "tools.yaml",
        "tools:
  - { name: a, module: mod, functions: '*' }
  - { name: b, kind: nonsense }\n",
    );
    let checked = room.toolhost(["--tools", "tools.yaml", "config", "check"]).check();
    let text = checked.exits(9).out() + &checked.err();
    assert!(text.contains("'functions' can only be 'typed'"), "{checked}");
    for spelling in ["api_client", "langchain_toolkit", "custom_local_tool"] {
        assert!(text.contains(spelling), "{spelling}\n{checked}");
    }
}

#[test]
fn servers_of_editors_are_taken_over_without_their_secrets() {
    let room = Sandbox::new();
    let secret = "ghp_abcdefghijklmnop1234";
    let codex = format!(
        "model = \"x\"\n[mcp_servers.docs]\ncommand = \"{TOOLHOST}\"\nargs = [\"demo-server\"]\n\
         [mcp_servers.docs.env]\nGITHUB_TOKEN = \"{secret}\"\n[mcp_servers.web]\n\
         url = \"https://x.test/mcp\"\nbearer_token_env_var = \"WEB\"\n"
    );
    write(&room, "home/.codex/config.toml", &codex);
    let goose = "extensions:\n  developer: { type: builtin, enabled: true }\n  clock: { type: stdio, cmd: uvx, args: [mcp-server-time], enabled: false }\n";
    write(&room, "config/goose/config.yaml", goose);
    room.file(
        ".cursor/mcp.json",
        "{ // comments\n \"mcpServers\": { \"docs\": { \"command\": \"x\" } } }",
    );
    let listed = room.toolhost(["import"]).check();
    let out = listed.exits(0).out();
    for row in ["codex   2        ~/.codex/config.toml", "cursor  1", "goose   2"] {
        assert!(out.contains(row), "{row}\n{out}");
    }
    // Without a yes nothing is written.
    let shown = room.toolhost(["import", "codex", "--dry-run"]).check();
    assert!(shown.exits(0).out().contains("+  docs:"), "{shown}");
    room.toolhost(["import", "codex"]).check().exits(6).says(&["--yes"]);
    assert!(!own_file(&room).exists());
    let taken = room.toolhost(["import", "codex", "--yes"]).check();
    taken.exits(0).says(&["Set these before use", "GITHUB_TOKEN", "added 2 servers"]);
    let text = std::fs::read_to_string(own_file(&room)).unwrap();
    assert!(
        text.contains("GITHUB_TOKEN: ${GITHUB_TOKEN}") || text.contains("\"${GITHUB_TOKEN}\""),
        "{text}"
    );
    assert!(!text.contains(secret) && !taken.err().contains(secret), "{text}");
    let run = room.toolhost(["call", "docs-echo", "message=hi"]).env("GITHUB_TOKEN", "x").check();
    assert_eq!(run.exits(0).out(), "hi\n");
    // What is there already stays, what is part of an editor is left out.
    let again = room.toolhost(["import", "cursor", "--yes"]).check();
    again.exits(0).says(&["skipped 'docs'", "nothing to import"]);
    let goose = room.toolhost(["import", "goose", "--yes"]).check();
    goose.exits(0).says(&["skipped 'developer': it is part of the editor", "added 1 server"]);
    // A file tells by its shape whose it is.
    room.file(
        "zed.json",
        "{ \"context_servers\": { \"z\": { \"source\": \"custom\", \"command\": \"x\" } } }",
    );
    room.toolhost(["import", "zed.json", "--yes"]).check().exits(0);
    room.file("none.json", "{ \"other\": 1 }");
    room.toolhost(["import", "none.json"]).check().exits(9).says(&["contains no servers"]);
    room.file("bad.toml", "[mcp_servers.x\n");
    room.toolhost(["import", "bad.toml"]).check().exits(9).says(&["bad.toml:1"]);
    room.toolhost(["import", "nonsense"]).check().exits(2).says(&["known editors: claude, "]);
    room.toolhost(["import", "windsurf"]).check().exits(2).says(&["no Windsurf configuration"]);
}

#[test]
fn a_person_sees_the_difference_before_an_import_is_written() {
    let room = Sandbox::new();
    room.file(".mcp.json", "{ \"mcpServers\": { \"seen\": { \"command\": \"x\" } } }");
    for (answer, is_written) in [("n\r", false), ("y\r", true)] {
        let mut pty = Pty::toolhost(&room, &["import", "claude"]);
        pty.expect("+  seen:").expect("Write this?").type_keys(answer);
        let (code, screen) = pty.finish();
        assert_eq!(
            (code, own_file(&room).exists()),
            (Some(if is_written { 0 } else { 6 }), is_written)
        );
        assert!(screen.contains("+    command: x"), "{screen:?}");
    }
}

#[test]
fn files_of_editors_are_read_under_the_rules_of_a_project() {
    let room = Sandbox::new();
    // A program of the system's is not bound by its content, which takes long of one for debugging.
    let start = format!("exec '{TOOLHOST}' demo-server");
    let entry = json!({ "command": "sh", "args": ["-c", start], "dev": { "watch": "*" },
                        "cwd": "${workspaceFolder}", "envFile": "${workspaceFolder}/.env" });
    let file = json!({ "inputs": [], "servers": { "demo": entry } });
    room.file(".vscode/mcp.json", &file.to_string()).file(".env", "LEVEL=info\n");
    let call = ["call", "demo-echo", "message=hi"];
    room.toolhost(call).check().exits(6).says(&["toolhost trust"]);
    let shown = room.toolhost(["trust"]).check();
    shown.exits(6).says(&["passes it the variables in ${workspaceFolder}/.env", "demo-server"]);
    room.toolhost(["trust", "--yes"]).check().exits(0);
    assert_eq!(room.toolhost(call).check().exits(0).out(), "hi\n");
    // What it is given is a part of what was trusted, and may not decide what runs.
    room.file(".env", "LEVEL=debug\n");
    room.toolhost(call).check().exits(6);
    room.file(".env", "LD_PRELOAD=/tmp/x.so\n");
    let refused = room.toolhost([&["--trust"], &call[..]].concat()).check();
    refused.exits(9).says(&["LD_PRELOAD, which may decide what code runs"]);
    // Another editor's file may have the same server; an entry of mcp.yaml needs none of them.
    room.file(".env", "")
        .file(".mcp.json", "{ \"mcpServers\": { \"demo\": { \"command\": \"false\" } } }");
    room.toolhost([&["--trust"], &call[..]].concat()).check().exits(4);
    room.file("mcp.yaml", "mcp_servers: {}\n");
    room.toolhost([&["--trust"], &call[..]].concat()).check().exits(2);
    // They are not searched upwards.
    let below = Sandbox::new();
    below.file(".mcp.json", "{ \"mcpServers\": { \"s\": { \"command\": \"false\" } } }");
    std::fs::create_dir(below.path("work/deep")).unwrap();
    let listed = below.toolhost(["config", "paths"]).check();
    assert!(listed.exits(0).out().contains(".mcp.json"));
}

#[test]
fn what_an_editor_asks_for_is_a_variable() {
    let room = Sandbox::new();
    let entry =
        json!({ "command": TOOLHOST, "args": ["demo-server"], "env": { "K": "${input:api-key}" } });
    room.file(".vscode/mcp.json", &json!({ "servers": { "demo": entry } }).to_string());
    let call = ["--trust", "call", "demo-echo", "message=hi"];
    room.toolhost(call).check().exits(9).says(&["'api-key'", "TOOLHOST_INPUT_API_KEY"]);
    room.toolhost(call).env("TOOLHOST_INPUT_API_KEY", "hunter22").check().exits(0);
}

#[test]
fn a_first_pair_of_files_is_valid_and_never_replaces_one() {
    let room = Sandbox::new();
    room.toolhost(["init"]).check().exits(0).says(&["tools.yaml", "mcp.yaml"]);
    let called = room.toolhost(["call", "calculator", "expression=6*7"]).check();
    assert_eq!(called.exits(0).out(), "42\n");
    room.toolhost(["config", "check", "--strict"]).check().exits(0);
    // Sentences begin with a capital letter; the other comments are examples, and valid too.
    for (name, option) in [("tools.yaml", "--tools"), ("mcp.yaml", "--mcp")] {
        let text = std::fs::read_to_string(room.path("work").join(name)).unwrap();
        let is_example = |line: &str| {
            let rest = line.trim_start().strip_prefix("# ");
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_uppercase()))
        };
        let line = |line: &str| {
            if is_example(line) { line.replacen("# ", "", 1) } else { line.to_owned() }
        };
        let live: Vec<String> = text.lines().map(line).collect();
        let example = Sandbox::new();
        example.file(name, &live.join("\n"));
        example.file("pytools.py", "def greet(name: str) -> str:\n    return name\n");
        let checked = example.toolhost([option, name, "config", "check", "--strict"]);
        checked.env("TASK_TOKEN", "x").env("SEARCH_TOKEN", "x").check().exits(0);
    }
    room.toolhost(["add", "time", "--project", "--", "uvx", "mcp-server-time"]).check().exits(0);
    room.toolhost(["config", "check", "--strict"]).check().exits(0);
    room.toolhost(["init"]).check().exits(2).says(&["already exists"]);
    let own = Sandbox::new();
    own.toolhost(["init", "--user"]).check().exits(0);
    assert!(own.path("config/toolhost/tools.yaml").is_file());
}

#[test]
fn a_call_is_saved_run_changed_listed_and_forgotten() {
    let room = Sandbox::new();
    let run = |words: &[&str]| room.toolhost(words.iter().copied()).check();
    run(&["run"]).exits(0).says(&["no saved calls"]);
    run(&["run", "sum"]).exits(2).says(&["--save-as"]);
    let words = ["call", "calculator", "expression=6*7", "--timeout", "20s", "--save-as", "sum"];
    run(&words).exits(0).says(&["saved as 'sum': toolhost run sum"]);
    assert_eq!(run(&["run", "sum"]).exits(0).out(), "42\n");
    assert_eq!(run(&["run", "sum", "expression=1+1"]).exits(0).out(), "2\n");
    assert_eq!(run(&["run", "sum", "--json"]).exits(0).json()["tool"], "calculator");
    assert_eq!(run(&["run", "-o", "names"]).exits(0).out(), "sum\n");
    let listed = run(&["run", "--json"]).exits(0).json();
    assert_eq!(listed["calls"][0]["command"][0], "call");
    run(&["run", "sun"]).exits(2).says(&["did you mean 'sum'?"]);
    // What was not dispatched is not kept.
    run(&["call", "nothing", "--save-as", "bad"]).exits(2);
    run(&["run", "bad"]).exits(2);
    // What cannot be saved is not called.
    let nameless = run(&["call", "calculator", "expression=1", "--save-as", "b/d"]);
    assert_eq!(nameless.exits(2).says(&["cannot save the call"]).out(), "");
    let ad_hoc = ["call", "echo", "message=a", "--save-as", "x", "--", TOOLHOST, "demo-server"];
    assert_eq!(run(&ad_hoc).exits(2).out(), "");
    let mode = room.path("config/toolhost/saved-calls.json").metadata().unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let completed = room.toolhost(["--", "toolhost", "run", ""]).env("COMPLETE", "fish").check();
    assert!(completed.exits(0).out().contains("sum\t"), "{completed}");
    run(&["run", "sum", "--remove"]).exits(0);
    run(&["run", "sum"]).exits(2);
    write(&room, "config/toolhost/saved-calls.json", "{ damaged");
    run(&["run"]).exits(9).says(&["is damaged"]);
}

#[test]
fn the_doctor_names_what_keeps_a_server_from_starting() {
    let room = Sandbox::new();
    script(&room.path("home/.local/bin/only-in-shells"), "#!/bin/sh\n");
    write(
        &room,
        "config/toolhost/mcp.yaml",
        "mcp_servers:\n  far: { command: only-in-shells }\n  web: { command: sh, args: [-c, x] }\n",
    );
    let found = room.toolhost(["doctor"]).env("WEB_TOKEN", "hunter22").check();
    let out = found.exits(11).out();
    assert!(out.contains(".local/bin/only-in-shells"), "{out}");
    assert!(out.contains("env_keys: [WEB_TOKEN]") && !out.contains("hunter22"), "{out}");
    assert!(out.contains("x: not found") || out.contains("x: command not found"), "{out}");
    let report = room.toolhost(["doctor", "--json"]).check();
    let checks = report.exits(11).json()["checks"].clone();
    for name in ["terminal", "configuration", "trust", "audit log", "history", "sandbox"] {
        assert!(checks.as_array().unwrap().iter().any(|c| c["name"] == name), "{name}: {checks}");
    }
}

#[test]
fn the_doctor_tries_trusted_servers_and_warnings_are_no_failure() {
    let room = Sandbox::new();
    let started = room.path("work/started");
    let entry = "{ command: sh, args: [-c, 'touch started; exec toolhost-of-nobody'] }";
    room.file("mcp.yaml", &format!("mcp_servers:\n  mine: {entry}\n"));
    let untrusted = room.toolhost(["doctor"]).check();
    let out = untrusted.exits(0).out();
    assert!(out.contains("waits for trust") && !started.exists(), "{out}");
    let trusted = room.toolhost(["--trust", "doctor"]).check();
    let out = trusted.exits(11).out();
    assert!(out.contains("the process exited with 127") && started.exists(), "{out}");
    assert!(out.contains("toolhost-of-nobody"), "{out}");

    let room = Sandbox::new();
    let sound = room.toolhost(["doctor"]).check();
    let out = sound.exits(0).out();
    assert!(out.contains("server demo: responds, with 8 tools"), "{out}");
}

#[test]
fn help_is_a_command_and_has_a_short_form() {
    let room = Sandbox::new();
    let run = |words: &[&str]| room.toolhost(words.iter().copied()).check();
    let long = run(&["call", "--help"]).exits(0).out();
    assert_eq!(run(&["help", "call"]).exits(0).out(), long);
    let short = run(&["call", "-h"]).exits(0).out();
    assert!(short.lines().count() < long.lines().count() && short.contains("--help"), "{short}");
    // It promises examples only where there are some.
    for (command, has_examples) in [("bench", true), ("servers", false)] {
        let short = run(&[command, "-h"]).exits(0).out();
        assert_eq!(short.contains("shows every option, and examples."), has_examples, "{short}");
    }
    let usages =
        "  usage: toolhost trust [OPTIONS] [DIRECTORY]\n  usage: toolhost trust <COMMAND>\n";
    run(&["trust", "--nothing"]).exits(2).says(&[usages]);
    assert!(run(&["help"]).exits(0).out().contains("Exit codes:"));
    run(&["help", "nothing"]).exits(2);
}

#[test]
fn every_command_has_a_manual_page() {
    let room = Sandbox::new();
    let page = |words: &[&str]| room.toolhost(words.iter().copied()).check();
    assert!(page(&["man"]).exits(0).out().contains(".TH toolhost 1"));
    let call = page(&["man", "call"]).exits(0).out();
    assert!(
        call.contains(".TH toolhost-call 1") && call.contains("\\-\\-idle\\-timeout"),
        "{call}"
    );
    page(&["man", "nothing"]).exits(2);
    page(&["man", "demo-server"]).exits(2);
    page(&["man", "--dir", "pages"]).exits(0);
    for name in ["toolhost.1", "toolhost-call.1", "toolhost-history-rerun.1"] {
        assert!(room.path("work/pages").join(name).is_file(), "{name}");
    }
}

#[test]
fn the_source_column_says_what_the_option_takes() {
    let room = Sandbox::new();
    let names = |source: &str| {
        let listed = room.toolhost(["list", "--source", source, "-o", "names"]).check();
        listed.exits(0).out()
    };
    assert!(names("demo").lines().all(|name| name.starts_with("demo-")));
    assert_eq!(names("pipeline").lines().count(), 1);
    assert!(names("internal").contains("calculator") && !names("internal").contains("demo-"));
    let unknown = room.toolhost(["list", "--source", "nothing"]).check();
    unknown.exits(2).says(&["there is no source 'nothing'", "known: builtin, ", ", internal, "]);
    room.toolhost(["list", "--kind", "comand"]).check().exits(2).says(&["no kind 'comand'"]);
}
