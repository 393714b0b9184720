//! Programs that are confined, from outside: what they reach, what is said, and how they end.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Finished, Fixture, Place, Sandbox, example};

/// Calls a tool of `tools.yaml`, which is named and so may start things.
fn call(room: &Sandbox, arguments: &[&str]) -> Finished {
    let words = ["--tools", "tools.yaml"].iter().chain(arguments).copied();
    room.toolhost(words).check()
}

/// Whether the level can be kept on this machine, as `inspect` of a tool says; tells when not.
fn can(level: &str) -> bool {
    let room = Sandbox::new();
    let entry = format!("tools: [{{ name: t, command: [\"true\"], sandbox: {level} }}]\n");
    room.file("tools.yaml", &entry);
    let tried = call(&room, &["call", "t"]);
    if tried.code != Some(0) {
        crate::support::left_out(&format!("{level} cannot be kept here: {}", tried.err().trim()));
    }
    tried.code == Some(0)
}

#[test]
fn a_sandboxed_command_reads_no_secret_and_says_so() {
    for level in ["landlock", "bwrap"] {
        if !can(level) {
            continue;
        }
        let room = Sandbox::new();
        std::fs::write(room.path("home/secret"), "s3cret").unwrap();
        let secret = room.path("home/secret").display().to_string();
        room.file(
            "tools.yaml",
            &format!(
                "tools:\n  - name: peek\n    command: [cat, ./tools.yaml, {secret}]\n    safety: sandboxed\n    sandbox: {level}\n"
            ),
        );
        let peek = call(&room, &["call", "peek", "--json"]);
        peek.exits(3);
        assert!(!peek.out().contains("s3cret"), "{peek}");
        assert!(peek.out().contains("name: peek"), "{peek}");
        let page = call(&room, &["inspect", "peek"]);
        page.exits(0);
        assert!(page.out().contains(&format!("confined by {level}")), "{page}");
        assert!(page.out().contains("no network"), "{page}");
    }
}

#[test]
fn a_program_in_bubblewrap_gets_no_descriptor_of_ours() {
    if !can("bwrap") {
        return;
    }
    let room = Sandbox::new();
    room.file(
        "tools.yaml",
        "tools:
  - name: open
    sandbox: bwrap
    command: [sh, -c, 'for n in $(seq 0 40); do [ ! -L /proc/$$/fd/$n ] || echo $n; done']
",
    );
    let open = call(&room, &["call", "open"]);
    open.exits(0);
    // The last one is for its progress.
    assert_eq!(open.out(), "0\n1\n2\n3\n", "{open}");
}

#[test]
fn python_runs_under_the_default_policy() {
    let python = Path::new("/usr/bin/python3").exists();
    if !python || !can("auto") {
        return;
    }
    let room = Sandbox::new();
    room.file("count.py", "import json, sys, tempfile, ssl, sqlite3\nprint(json.dumps({'n': len(json.load(sys.stdin)['text'].split())}))\n");
    room.file(
        "tools.yaml",
        "tools:
  - name: count
    command: [/usr/bin/python3, ./count.py]
    output: json
    safety: sandboxed
    parameters_schema: { type: object, properties: { text: { type: string } } }
",
    );
    let counted = call(&room, &["call", "count", "text=one two three", "--json"]);
    counted.exits(0);
    let value: Value = serde_json::from_str(&counted.out()).unwrap();
    assert!(value.to_string().contains("\"n\":3"), "{counted}");
}

#[test]
fn a_limit_that_ended_a_program_is_named() {
    let room = Sandbox::new();
    room.file(
        "tools.yaml",
        "tools:
  - { name: spin, command: [sh, -c, 'while :; do :; done'], sandbox: { level: limits, cpu: 1s } }
  - { name: fill, command: [sh, -c, 'head -c 300M /dev/zero | tail -n 1'], sandbox: { level: limits, memory: 64MiB } }
",
    );
    let spin = call(&room, &["call", "spin"]);
    spin.exits(4);
    assert!(spin.err().contains("cpu limit of 1 s"), "{spin}");
    let fill = call(&room, &["call", "fill"]);
    fill.exits(4);
    assert!(fill.err().contains("memory limit of 64 MiB"), "{fill}");
}

#[test]
fn what_cannot_be_kept_is_refused_and_nothing_runs() {
    let room = Sandbox::new();
    room.file(
        "tools.yaml",
        "tools:
  - { name: less, command: [touch, ran], safety: sandboxed, sandbox: none }
  - { name: odd, command: [touch, ran], sandbox: landlok }
  - { name: former, command: [touch, ran], sandbox: namespaces }
  - { name: gone, command: [touch, ran], sandbox: { write: [./gone] } }
",
    );
    for (tool, code, words) in [
        ("less", 9, "contradict each other"),
        ("odd", 9, "did you mean 'landlock'?"),
        ("former", 9, "use bwrap, which needs bubblewrap, or landlock"),
        ("gone", 6, "cannot be opened for the sandbox"),
    ] {
        let refused = call(&room, &["call", tool]);
        if tool == "gone" && !can("auto") {
            refused.exits(6);
            continue;
        }
        refused.exits(code);
        assert!(refused.err().contains(words), "{refused}");
    }
    assert!(!room.path("work/ran").exists());
}

#[test]
fn a_person_is_shown_the_sandbox_before_allowing_it() {
    let room = Sandbox::new();
    room.file(
        "tools.yaml",
        "tools: [{ name: t, command: [\"true\"], sandbox: { read: [./x], network: true } }]\n",
    );
    let shown = room.toolhost(["trust"]).go();
    let said = format!("{}{}", shown.out(), shown.err());
    assert!(said.contains("sandbox: auto; reads"), "{shown}");
    assert!(said.contains("network"), "{shown}");
}

#[test]
fn a_server_works_within_its_sandbox() {
    for level in ["limits", "landlock", "bwrap"] {
        if !can(level) {
            continue;
        }
        let room = Sandbox::new();
        let log = room.log("srv");
        let fixture = Fixture::fault(Place::Stdio, "none", "legacy", &log);
        let run = room.path("run").display().to_string();
        let sandbox = match level {
            "limits" => "sandbox: limits\n".to_owned(),
            level => format!("sandbox: {{ level: {level}, write: [{run}] }}\n"),
        };
        room.server_with("srv", &fixture, &sandbox);
        room.with_servers(["call", "srv-echo", "message=hi"]).check().exits(0);
        let page = room.with_servers(["inspect", "srv"]).check();
        page.exits(0);
        let word = if level == "limits" { "bounded by limits" } else { "confined by" };
        assert!(page.out().contains(word), "{page}");
    }
}

#[test]
fn nothing_is_left_behind_after_kill_9() {
    if !can("bwrap") {
        return;
    }
    let room = Sandbox::new();
    room.file(
        "tools.yaml",
        "tools:
  - name: stay
    command: [sh, -c, 'setsid sleep 300 & touch ./out/started; sleep 300']
    cwd: .
    sandbox: { level: bwrap, read: [.], write: [./out] }
",
    );
    std::fs::create_dir(room.path("work/out")).unwrap();
    let running = room.toolhost(["--tools", "tools.yaml", "call", "stay"]).start();
    wait_until(|| room.path("work/out/started").exists());
    running.signal(Signal::KILL);
    running.finish();
    wait_until(|| room.inhabitants().is_empty());
}

/// Waits for what has to happen soon.
#[track_caller]
fn wait_until(done: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < deadline, "it did not happen in time");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_example_runs_as_it_says() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    if !can("auto") {
        return;
    }
    let room = Sandbox::new();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/sandbox/tools.yaml");
    let example = example.to_str().unwrap();
    let looked = room.toolhost(["--tools", example, "call", "look_around"]).check();
    looked.exits(0);
    let answers: Value = serde_json::from_str(&looked.out()).unwrap();
    for (key, value) in answers.as_object().unwrap() {
        let allowed = ["read its own file", "write a temporary file"].contains(&key.as_str());
        // Signals are kept inside from Landlock's sixth version on.
        if key != "signal its parent" {
            assert_eq!(value == "yes", allowed, "{key}: {value}");
        }
    }
    let counted =
        room.toolhost(["--tools", example, "call", "count_words", "text=play.txt"]).check();
    counted.exits(0);
    assert_eq!(counted.out().trim(), "8 ./texts/play.txt");
}

/// Runs toolhost as somebody who is not root: root is not bound by the modes of files and needs no
/// user namespace.
fn as_ordinary_user(room: &Sandbox, arguments: &[&str]) -> Finished {
    const NOBODY: u32 = 65534;
    if !rustix::process::geteuid().is_root() {
        return room.toolhost(arguments.iter().copied()).go();
    }
    let mut left = vec![room.path("work").parent().unwrap().to_path_buf()];
    while let Some(path) = left.pop() {
        std::os::unix::fs::lchown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        if path.symlink_metadata().unwrap().is_dir() {
            left.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    let user = ["--user", "65534", env!("CARGO_BIN_EXE_toolhost")];
    let words = user.iter().chain(arguments).copied();
    room.program(example("launcher").to_str().unwrap(), words).go()
}

#[test]
fn an_ordinary_users_files_and_processes_are_out_of_reach() {
    for level in ["landlock", "bwrap"] {
        if !can(level) || !Path::new("/usr/bin/python3").exists() {
            continue;
        }
        let room = Sandbox::new();
        let victim = room.path("home/secret");
        std::fs::write(&victim, "s3cret").unwrap();
        let attack = "import os, resource, socket, sys
victim, pid = sys.argv[1], int(sys.argv[2])
def attempt(name, act):
    try:
        act()
        print('did', name)
    except OSError:
        print('kept', name)
attempt('read', lambda: open(victim).read())
attempt('chmod', lambda: os.chmod(victim, 0o777))
attempt('utime', lambda: os.utime(victim, (1, 1)))
attempt('xattr', lambda: os.setxattr(victim, 'user.mark', b'x'))
attempt('limits', lambda: resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0)))
attempt('signal', lambda: os.kill(pid, 0))
attempt('socket', lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
";
        room.file("attack.py", attack);
        let (path, own) = (victim.display().to_string(), std::process::id().to_string());
        room.file(
            "tools.yaml",
            &format!(
                "tools:\n  - name: attack\n    command: [/usr/bin/python3, ./attack.py, {path}, '{own}']\n    cwd: .\n    sandbox: {level}\n"
            ),
        );
        let words = ["--tools", "tools.yaml", "call", "attack"];
        let tried = as_ordinary_user(&room, &words);
        tried.exits(0);
        assert!(!tried.out().contains("did "), "{level}: {tried}");
        assert_eq!(tried.out().matches("kept ").count(), 7, "{level}: {tried}");
    }
}

#[test]
fn inspect_tells_what_is_kept_and_what_is_left_open() {
    for (level, kept, by, open) in [
        ("landlock", "permissions, owners", "system call filter", "whether any file exists"),
        ("bwrap", "permissions, owners", "mount namespace", "advisory locks"),
        ("{ level: landlock, metadata: true }", "other files", "Landlock", "permissions, owners"),
        ("limits", "", "", "every file that you may read or change"),
    ] {
        if !can(level) {
            continue;
        }
        let room = Sandbox::new();
        let entry = format!("tools: [{{ name: t, command: [\"true\"], sandbox: {level} }}]\n");
        room.file("tools.yaml", &entry);
        let page = call(&room, &["inspect", "t"]);
        page.exits(0);
        assert!(page.out().contains("left open: "), "{page}");
        let json = call(&room, &["inspect", "t", "--json"]);
        let value: Value = serde_json::from_str(&json.out()).unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let sandbox = find(&value, "sandbox").unwrap_or_else(|| panic!("{json}"));
        let keeps = sandbox["keeps"].as_array().unwrap();
        let found = keeps.iter().find(|entry| text(&entry["what"]).starts_with(kept));
        let mechanisms = found.map(|entry| entry["by"].to_string()).unwrap_or_default();
        assert!(mechanisms.contains(by), "{level}: {json}");
        let opens = sandbox["leaves_open"].as_array().unwrap();
        assert!(opens.iter().any(|line| text(line).starts_with(open)), "{level}: {json}");
    }
}

#[test]
fn a_program_in_bubblewrap_has_landlock_around_it_too_and_ends_in_peace() {
    if !can("bwrap") || !can("landlock") {
        return;
    }
    let room = Sandbox::new();
    // No mount keeps the names in the root from being read.
    room.file(
        "tools.yaml",
        "tools:
  - { name: look, command: [ls, /], sandbox: bwrap }
  - { name: pick, command: [\"true\"], safety: sandboxed }
",
    );
    call(&room, &["call", "look"]).exits(3).says(&["Permission denied"]);
    let page = call(&room, &["inspect", "look"]);
    assert!(page.out().contains("confined by bwrap, landlock (ABI "), "{page}");
    assert!(call(&room, &["inspect", "pick"]).out().contains("confined by bwrap, landlock (ABI "));
    assert!(call(&room, &["inspect", "pick"]).out().contains("(auto)"));
    let own = env!("CARGO_BIN_EXE_toolhost");
    let servers = format!(
        "mcp_servers:
  stay:
    command: sh
    args: [-c, 'trap \"echo peace >out/end; exit\" TERM; {own} demo-server; while :; do sleep 0.01; done']
    sandbox: {{ level: bwrap, read: [{own}], write: [./out] }}
"
    );
    room.file("mcp.yaml", &servers);
    std::fs::create_dir(room.path("work/out")).unwrap();
    let listed = room.toolhost(["--mcp", "mcp.yaml", "list"]).check();
    assert!(listed.exits(0).out().contains("stay-echo"), "{listed}");
    assert_eq!(std::fs::read_to_string(room.path("work/out/end")).unwrap(), "peace\n");
}

/// The value of a key, however deep it is.
fn find<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    match value {
        Value::Object(map) => map.get(key).or_else(|| map.values().find_map(|v| find(v, key))),
        Value::Array(list) => list.iter().find_map(|v| find(v, key)),
        _ => None,
    }
}

#[test]
fn limits_alone_close_no_files_and_a_closed_file_is_named() {
    let room = Sandbox::new();
    let other = tempfile::tempdir().unwrap();
    std::fs::write(other.path().join("x.txt"), "open\n").unwrap();
    let named = other.path().join("x.txt").display().to_string();
    room.file(
        "tools.yaml",
        &format!(
            "tools:\n  - {{ name: bounded, command: [cat, '{named}'], sandbox: {{ memory: 256MiB }} }}\n  - {{ name: closed, command: [cat, '{named}'], sandbox: {{ memory: 256MiB, network: false, read: [.] }} }}\n"
        ),
    );
    let call = |name: &'static str| room.toolhost(["--tools", "tools.yaml", "call", name]).check();
    assert_eq!(call("bounded").exits(0).out(), "open\n");
    let closed = call("closed");
    let hint = format!("list '{}' under 'read' of 'sandbox'", other.path().display());
    closed.exits(3).says(&["its sandbox does not let it read", &hint, "'level: limits'"]);
}
