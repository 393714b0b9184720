//! Runners of packages fetch their code: whatever decides what they fetch is shown, and asked about again.

use std::fmt::Write as _;

use super::{asks_for_consent, run, trust};
use crate::support::{Sandbox, script};

/// A room in which `npx` and `uvx` are there, and say that they ran.
fn room(command: &str) -> Sandbox {
    let room = Sandbox::ordinary();
    for runner in ["npx", "uvx", "bunx", "deno", "go", "docker"] {
        script(&room.path("home/bin").join(runner), "#!/bin/sh\necho ran\n");
    }
    let path = format!("{}:/usr/bin:/bin", room.path("home/bin").display());
    room.file(
        "tools.yaml",
        &format!("tools: [{{ name: t, command: {command}, env: {{ PATH: '{path}' }} }}]\n"),
    );
    room
}

#[test]
fn every_variable_that_an_entry_sets_is_shown() {
    let room = Sandbox::ordinary();
    room.file(".env", "API_BASE_URL=https://api.invalid/from-file\nMY_TOKEN=hunter2-in-file\n")
        .file(
            "mcp.yaml",
            "mcp_servers:
  s:
    command: npx
    args: [-y, server@1.0.0]
    envFile: .env
    env:
      npm_config_registry: http://registry.invalid
      UV_INDEX_URL: http://index.invalid
      DOTNET_STARTUP_HOOKS: /x/hook.dll
      WHATEVER_ELSE: some-value
      FROM_OUTSIDE: '${CANARY}'
      API_TOKEN: hunter2-literal
",
        );
    let shown = run(&room, &["trust"]).check();
    let said = shown.exits(6).out() + &shown.err();
    for line in [
        "npm_config_registry=http://registry.invalid",
        "UV_INDEX_URL=http://index.invalid",
        "DOTNET_STARTUP_HOOKS=/x/hook.dll",
        "WHATEVER_ELSE=some-value",
        "FROM_OUTSIDE=${CANARY}",
        "API_TOKEN=***",
        "API_BASE_URL=https://api.invalid/from-file",
        "MY_TOKEN=***",
    ] {
        assert!(said.contains(line), "{line}\n{shown}");
    }
    assert!(!said.contains("hunter2"), "{shown}");
}

#[test]
fn a_file_of_variables_sets_only_settings() {
    let room = Sandbox::ordinary();
    for (name, is_taken) in [
        ("API_TOKEN", true),
        ("DATABASE_URL", true),
        ("APP_MODE", true),
        ("UV_INDEX_URL", false),
        ("npm_config_registry", false),
        ("DOCKER_HOST", false),
        ("GOPROXY", false),
        ("OPENSSL_CONF", false),
        ("DOTNET_STARTUP_HOOKS", false),
        ("SOMETHING_UNKNOWN", false),
    ] {
        room.file(".env", &format!("{name}=x\n"))
            .file("m.yaml", "s: { command: 'true', envFile: .env }\n")
            .file("n.yaml", &format!("s: {{ command: 'true', context_env: [{name}] }}\n"));
        for file in ["m.yaml", "n.yaml"] {
            let checked = room.toolhost(["--mcp", file, "config", "check"]).check();
            assert_eq!(checked.code, Some(if is_taken { 0 } else { 9 }), "{name}\n{checked}");
        }
    }
}

#[test]
fn what_decides_which_package_runs_is_asked_about_again() {
    let mut ran = Vec::new();
    for (command, file) in [
        ("[npx, -y, server@1.0.0]", ".npmrc"),
        ("[npx, -y, '@scope/server@1.0.0']", "node_modules/@scope/server/package.json"),
        ("[npx, server]", "node_modules/.bin/server"),
        ("[env, npx, -y, server@1.0.0]", ".npmrc"),
        ("[sh, -c, 'exec npx -y server@1.0.0']", ".npmrc"),
        ("[uvx, server==1.0]", "uv.toml"),
        ("[uvx, server==1.0]", "pyproject.toml"),
        ("[bunx, server@1.0.0]", "bunfig.toml"),
        ("[deno, run, 'npm:server@1.0.0']", "deno.json"),
        ("[go, run, 'example.invalid/server@v1.0.0']", "go.mod"),
        ("[docker, compose, run, server]", "compose.yaml"),
    ] {
        let room = room(command);
        trust(&room);
        let call = || run(&room, &["call", "t"]).check();
        assert_eq!(call().exits(0).out(), "ran\n", "{command}");
        // It appears, it changes, it goes; also where the project itself lies.
        room.file(file, "one\n");
        let appeared = call();
        trust(&room);
        call().exits(0);
        room.file(file, "two\n");
        let changed = call();
        trust(&room);
        std::fs::remove_file(room.path("work").join(file)).unwrap();
        let gone = call();
        for (what, finished) in [("new", appeared), ("changed", changed), ("gone", gone)] {
            if finished.code != Some(6) {
                ran.push(format!("{command}: {what} {file}: exit {:?}", finished.code));
            }
        }
    }
    assert!(ran.is_empty(), "{}", ran.join("\n"));
}

#[test]
fn what_lies_above_the_project_decides_too_but_not_what_is_the_users() {
    let room = room("[npx, -y, server@1.0.0]");
    let below = room.path("work/deep/project");
    std::fs::create_dir_all(&below).unwrap();
    std::fs::rename(room.path("work/tools.yaml"), below.join("tools.yaml")).unwrap();
    let call = |words: &str| {
        let line = format!("cd deep/project && exec '{}' {words}", env!("CARGO_BIN_EXE_toolhost"));
        room.program("sh", ["-c", &line]).check()
    };
    call("trust --yes").exits(0);
    call("call t").exits(0);
    std::fs::write(room.path("home/.npmrc"), "x\n").unwrap();
    call("call t").exits(0);
    room.file(".npmrc", "registry=http://registry.invalid\n");
    asks_for_consent(&call("call t"));
    let shown = call("trust");
    let text = shown.out() + &shown.err();
    assert!(text.contains("what it runs is decided by") && text.contains("work/.npmrc"), "{shown}");
}

#[test]
fn more_than_can_be_hashed_is_bound_by_size_and_time_and_the_question_says_so() {
    // Not of an ordinary user: changing owners would change the time of change.
    let room = Sandbox::new();
    let mut text = "tools:\n".to_owned();
    for number in 0..20 {
        let file = std::fs::File::create(room.path("work").join(format!("{number}.py"))).unwrap();
        // Nothing of it is on the disk.
        file.set_len(1 << 30).unwrap();
        writeln!(text, "  - {{ name: t{number}, command: [echo, {number}.py] }}").unwrap();
    }
    room.file("tools.yaml", &text);
    let shown = run(&room, &["trust"]).check();
    let said = shown.exits(6).out() + &shown.err();
    assert!(said.contains("bound by size and time of change only: 20 files"), "{shown}");
    trust(&room);
    run(&room, &["call", "t7"]).check().exits(0);
    std::fs::File::options()
        .write(true)
        .open(room.path("work/7.py"))
        .unwrap()
        .set_len(1 << 29)
        .unwrap();
    asks_for_consent(&run(&room, &["call", "t7"]).check());
}
