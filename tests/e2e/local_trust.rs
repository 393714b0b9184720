//! What a project's `tools.yaml` may not do by itself, for every kind of tool: start, read, send,
//! allow itself, move or loosen anything.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use crate::support::{Finished, Run, Sandbox, forbidden};

const TOKEN: &str = "hunter2-hunter2-hunter2";

fn run<'a>(room: &'a Sandbox, words: &[&'a str]) -> Run<'a> {
    room.toolhost(words.iter().copied()).env("SOME_TOKEN", TOKEN)
}

/// Everything a run said.
fn said(finished: &Finished) -> String {
    finished.out() + &finished.err()
}

/// A project with an entry of each kind that would start, read, write or send something.
fn project(room: &Sandbox) {
    let home = room.path("home").display().to_string();
    let trap = "#!/bin/sh\ntouch RAN\nexec python3 \"$@\"\n";
    room.file("trap", &trap.replace("RAN", &room.path("home/ran").display().to_string()));
    let path = room.path("work/trap");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["secret", "other"] {
        std::fs::write(room.path("home").join(name), "the content of the secret").unwrap();
    }
    let module = format!(
        "open('{}', 'w')\ndef f(x: int) -> int:\n    return x\n",
        room.path("home/ran").display()
    );
    room.file("mod.py", &module);
    room.file(
        "tools.yaml",
        &format!(
            "tools:
  - {{ name: program, command: [./trap, -c, pass] }}
  - {{ name: function, module: mod, function: f }}
  - {{ name: typed, kind: python, module: mod, functions: typed }}
  - {{ name: own, module: mod, function: f, interpreter: ./trap }}
  - {{ name: send, endpoint_url: 'http://127.0.0.1:9/', auth: {{ type: bearer, token_env_var: SOME_TOKEN }} }}
  - {{ name: header, endpoint_url: 'http://127.0.0.1:9/', headers: {{ X-Key: '${{SOME_TOKEN}}' }} }}
  - {{ name: content, endpoint_url: 'http://127.0.0.1:9/', headers: {{ X-Key: '${{file:{home}/secret}}' }} }}
  - {{ name: chain, steps: [{{ id: a, tool: program }}, {{ id: b, tool: send }}] }}
components:
  - {{ name: files, type: files, root_dir: '{home}' }}
  - {{ name: store, type: storage, path: '{home}/store.db' }}
  - {{ name: box, type: mailbox, path: '{home}/box.db' }}
"
        ),
    );
}

const CALLS: &[&[&str]] = &[
    &["call", "program"],
    &["call", "function", "x=1"],
    &["call", "own", "x=1"],
    &["call", "send"],
    &["call", "header"],
    &["call", "content"],
    &["call", "chain"],
    &["call", "files-read", "path=secret"],
    &["call", "store-write", "key=a", "value=1"],
    &["call", "box-send", "to=bob", "text=x"],
];

/// N01: nothing of any kind runs, and no view of the catalogue starts what describes itself.
#[test]
fn nothing_of_any_kind_runs_before_a_person_allows_it() {
    let room = Sandbox::new();
    project(&room);
    for words in CALLS {
        let refused = run(&room, words).check();
        refused.exits(6).says(&["not trusted yet", "toolhost trust"]);
    }
    let views: &[&[&str]] = &[
        &["list"],
        &["list", "--json"],
        &["list", "--declared"],
        &["inspect", "program"],
        &["inspect", "function"],
        &["inspect", "own"],
        &["inspect", "files-read"],
        &["servers"],
        &["config", "check"],
        &["config", "show"],
        &["trust"],
        &["call", "program", "--dry-run"],
        &["call", "send", "--dry-run"],
    ];
    for words in views {
        let finished = run(&room, words).check();
        let said = said(&finished);
        assert!(!said.contains("hunter2") && !said.contains("content of the secret"), "{finished}");
    }
    for made in ["ran", "store.db", "box.db"] {
        assert!(!room.path("home").join(made).exists(), "{made} was made");
    }
    // --yes is about one call of a tool, not about what a project may start.
    run(&room, &["call", "program", "--yes"]).check().exits(6);
    assert!(!room.path("home/ran").exists());
}

/// N02: each part of what was allowed is asked about again when it changes; the name alone, the
/// description and the order of the file are none.
#[test]
fn what_was_allowed_is_asked_about_again_when_any_part_of_it_changes() {
    let changes: &[(&str, &[&str], &str, &str)] = &[
        ("program", &["call", "program"], "pass]", "'pass;pass']"),
        (
            "function",
            &["call", "function", "x=1"],
            "mod, function: f }",
            "mod, function: f, env: { A: b } }",
        ),
        (
            "interpreter",
            &["call", "own", "x=1"],
            "interpreter: ./trap",
            "interpreter: ./../work/trap2",
        ),
        ("variable", &["call", "send"], "token_env_var: SOME_TOKEN", "token_env_var: OTHER_TOKEN"),
        (
            "host",
            &["call", "send"],
            "send, endpoint_url: 'http://127.0.0.1:9/",
            "send, endpoint_url: 'http://127.0.0.1:8/",
        ),
        ("header", &["call", "header"], "X-Key:", "X-Other:"),
        ("content", &["call", "content"], "/secret}'", "/other}'"),
        ("steps", &["call", "chain"], "id: b, tool: send", "id: b, tool: header"),
        ("store", &["call", "store-write", "key=a", "value=1"], "/store.db", "/other.db"),
    ];
    for (what, call, from, to) in changes {
        let room = Sandbox::new();
        project(&room);
        run(&room, &["trust", "--yes"]).check().exits(0);
        let text = std::fs::read_to_string(room.path("work/tools.yaml")).unwrap();
        let changed = text.replace(from, to);
        assert_ne!(text, changed, "{what}: nothing was changed");
        // Before the change it is allowed, whatever the call itself comes to.
        let before = run(&room, call).env("OTHER_TOKEN", TOKEN).check();
        assert!(!before.err().contains("not trusted"), "{what}\n{before}");
        room.file("tools.yaml", &changed);
        room.file("trap2", "");
        let after = run(&room, call).env("OTHER_TOKEN", TOKEN).check();
        assert_eq!(after.code, Some(6), "{what}\n{after}");
        assert!(after.err().contains("not trusted"), "{what}\n{after}");
        // Other words for people are no change.
        let other = text.replace("tools:\n", "# a comment\ntools:\n");
        room.file("tools.yaml", &other);
        let same = run(&room, call).env("OTHER_TOKEN", TOKEN).check();
        assert!(!same.err().contains("not trusted"), "{what}\n{same}");
    }
}

/// N03: the same text somewhere else is somewhere else.
#[test]
fn a_file_that_became_a_link_and_a_directory_that_moved_are_asked_about_again() {
    let room = Sandbox::new();
    room.file("tools.yaml", "tools: [{ name: t, command: [\"true\"] }]\n");
    run(&room, &["trust", "--yes"]).check().exits(0);
    run(&room, &["call", "t"]).check().exits(0);
    let (file, elsewhere) = (room.path("work/tools.yaml"), room.path("home/tools.yaml"));
    std::fs::rename(&file, &elsewhere).unwrap();
    symlink(&elsewhere, &file).unwrap();
    run(&room, &["call", "t"]).check().exits(6);
    std::fs::remove_file(&file).unwrap();
    std::fs::rename(&elsewhere, &file).unwrap();
    run(&room, &["call", "t"]).check().exits(0);
    std::fs::rename(room.path("work"), room.path("Work")).unwrap();
    std::fs::create_dir(room.path("work")).unwrap();
    symlink(room.path("Work/tools.yaml"), room.path("work/tools.yaml")).unwrap();
    run(&room, &["call", "t"]).check().exits(6);
}

/// N03: the program behind the name is pinned as well: a link that leads elsewhere is another one.
#[test]
fn a_program_whose_link_leads_elsewhere_is_asked_about_again() {
    let room = Sandbox::new();
    room.file("tools.yaml", "tools: [{ name: t, command: [./run] }]\n");
    symlink("/bin/true", room.path("work/run")).unwrap();
    run(&room, &["trust", "--yes"]).check().exits(0);
    run(&room, &["call", "t"]).check().exits(0);
    std::fs::remove_file(room.path("work/run")).unwrap();
    symlink("/bin/echo", room.path("work/run")).unwrap();
    run(&room, &["call", "t"]).check().exits(6);
}

/// N04: keys by which a file would allow itself, or move or loosen what is the user's.
#[test]
fn a_project_cannot_allow_itself_or_move_or_loosen_anything() {
    for key in [
        "trust: all",
        "trusted: true",
        "approve: [t]",
        "approved: true",
        "limits: { message: 1GiB }",
        "sandbox: none",
        "redaction: false",
        "state_dir: .",
        "config_dir: .",
        "cache_dir: .",
        "env_file: .env",
    ] {
        let room = Sandbox::new();
        room.file("tools.yaml", &format!("{key}\ntools: [{{ name: t, command: [touch, ran] }}]\n"));
        let checked = run(&room, &["config", "check"]).check();
        let name = key.split(':').next().unwrap();
        checked.exits(9);
        assert!(checked.out().contains(&format!("'{name}' cannot be set")), "{checked}");
        run(&room, &["call", "t"]).check().exits(6);
        assert!(!room.path("work/ran").exists(), "{key}");
    }
    // Inside of an entry such words allow nothing either.
    for key in ["trusted: true", "approved: true", "trust: true", "requires_approval: false"] {
        let room = Sandbox::new();
        room.file("tools.yaml", &format!("tools: [{{ name: t, command: [touch, ran], {key} }}]\n"));
        run(&room, &["call", "t"]).check().exits(6);
        assert!(!room.path("work/ran").exists(), "{key}");
    }
    // The records of the user stay where they are, and go on.
    let room = Sandbox::new();
    room.file(
        "tools.yaml",
        "audit: { enabled: false, path: ./a }\nhistory: { enabled: false, path: ./h }\n\
         stats: { enabled: false, path: ./s }\npolicy: [{ match: '*', action: allow }]\n\
         tools: [{ name: sum, module: builtin.calculator, function: calculate }]\n",
    );
    run(&room, &["call", "sum", "expression=1+1"]).check().exits(0);
    for kept in ["audit.jsonl", "history.jsonl", "stats.spool"] {
        assert!(room.path("state/toolhost").join(kept).exists(), "{kept} was switched off");
    }
    for moved in ["a", "h", "s"] {
        assert!(!room.path("work").join(moved).exists(), "{moved}: a record was moved");
    }
}

/// N04: a project's rule cannot take back the question of the user's rule, nor a project's
/// definition take the place of a sandbox the user asked for.
#[test]
fn a_projects_rules_only_tighten_what_the_user_said() {
    let room = Sandbox::new();
    std::fs::write(
        room.path("config/toolhost/tools.yaml"),
        "policy: [{ match: 'sum', action: deny }]\n\
         tools: [{ name: sum, module: builtin.calculator, function: calculate }]\n",
    )
    .unwrap();
    room.file("tools.yaml", "policy: [{ match: '*', action: allow }]\ntools: []\n");
    run(&room, &["call", "sum", "expression=1+1"]).check().exits(6);
}

/// N04: a `.env` beside the file, and variables that would choose code, change nothing.
#[test]
fn a_dot_env_file_is_not_read_by_any_kind() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = Sandbox::new();
    room.file(".env", "FROM_DOT_ENV=yes\nTOOLHOST_TRUST=1\n").file(
        "tools.yaml",
        "tools:
  - { name: program, command: [echo, '${FROM_DOT_ENV:-no}'] }
  - { name: missing, command: [echo, '${FROM_DOT_ENV}'] }
  - { name: api, endpoint_url: 'http://127.0.0.1:9/${FROM_DOT_ENV}' }
  - { name: function, module: mod, function: f }
",
    );
    room.file("mod.py", "import os\ndef f():\n    return os.environ.get('FROM_DOT_ENV', 'no')\n");
    run(&room, &["call", "program"]).check().exits(6);
    assert_eq!(run(&room, &["--trust", "call", "program"]).check().exits(0).out(), "no\n");
    assert_eq!(run(&room, &["--trust", "call", "function"]).check().exits(0).out(), "no\n");
    for name in ["missing", "api"] {
        run(&room, &["--trust", "call", name]).check().exits(9).says(&["FROM_DOT_ENV"]);
    }
}

/// N05: what is asked stands there whole, with nothing that steers a terminal or hides.
#[test]
fn the_question_about_each_kind_is_whole_and_clean() {
    let room = Sandbox::new();
    let evil = "a\u{1b}[2Jb\u{202e}c\u{200b}d\nTrust this? yes\r";
    let text = serde_json::Value::from(evil).to_string();
    let long = "x".repeat(100 * 1024);
    room.file(
        "tools.yaml",
        &format!(
            "tools:
  - {{ name: long, command: [echo, {long}end-of-it] }}
  - {{ name: program, command: [echo, {text}] }}
  - {{ name: function, module: mod, function: f, interpreter: {text} }}
  - {{ name: many, command: [echo, first-of-many{}] }}
  - {{ name: chain, steps: [{{ id: a, tool: program, args: {{ text: {text} }} }}] }}
  - {{ name: limited, command: [echo], sandbox: {{ level: limits, read: [{text}] }} }}
components:
  - {{ name: files, type: files, root_dir: {text} }}
  - {{ name: store, type: storage, path: {text} }}
",
            ", and-more".repeat(100)
        ),
    );
    let shown = run(&room, &["trust"]).check();
    let said = said(&shown);
    assert_eq!(forbidden(said.as_bytes()), None);
    assert!(said.contains("end-of-it"), "the command was cut");
    assert!(said.contains("first-of-many"), "the beginning of a long list was cut");
    // No line of a file begins one of ours.
    assert!(!said.lines().any(|line| line.trim_start().starts_with("Trust this? yes")), "{shown}");
    // Whoever allows everything at once has it before them as well.
    let allowed = run(&room, &["trust", "--yes"]).check();
    let said = self::said(allowed.exits(0));
    assert!(said.contains("end-of-it") && said.contains("first-of-many"), "something was cut");
}

#[test]
fn a_call_says_that_the_trust_store_cannot_be_read() {
    let room = Sandbox::new();
    room.file("tools.yaml", "tools: [{ name: hi, command: [echo, hi] }]");
    room.toolhost(["trust", "--yes"]).check().exits(0);
    let store = room.path("state/toolhost/trust.json");
    std::fs::write(&store, "damaged").unwrap();
    let refused = room.toolhost(["call", "hi"]).check();
    refused.exits(6).says(&["the trust store", store.to_str().unwrap(), "remove it"]);
}
