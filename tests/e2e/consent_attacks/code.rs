//! Code that a project starts: whatever was shown is what runs, or it is asked about again.

use super::{asks_for_consent, run, trust};
use crate::support::{Finished, Recorder, Sandbox, script};

#[test]
fn the_question_names_the_program_that_the_entrys_own_path_finds() {
    let room = Sandbox::ordinary();
    let own = room.path("work/bin/git");
    script(&own, "#!/bin/sh\necho projects-own\n");
    let entry = format!(
        "{{ name: g, command: [git, --version], env: {{ PATH: '{}:/usr/bin' }} }}",
        room.path("work/bin").display()
    );
    room.file("tools.yaml", &format!("tools: [{entry}]\n"));
    let shown = run(&room, &["trust"]).check();
    let said = shown.exits(6).out() + &shown.err();
    assert!(said.contains(&own.display().to_string()), "{shown}");
    assert!(!said.contains("/usr/bin/git"), "the system's git was named\n{shown}");
    trust(&room);
    assert_eq!(run(&room, &["call", "g"]).check().exits(0).out(), "projects-own\n");
    // It is code of the project, so another program there is another question.
    script(&own, "#!/bin/sh\necho something-else\n");
    asks_for_consent(&run(&room, &["call", "g"]).check());
}

/// How a project starts code of its own, and the file that is this code.
fn started() -> Vec<(&'static str, String, &'static str)> {
    let shell = "#!/bin/sh\necho RESULT\n";
    let python = "print('RESULT')\n";
    vec![
        ("{ name: t, command: [./run] }", "run".to_owned(), shell),
        ("{ name: t, command: [sh, s.sh] }", "s.sh".to_owned(), shell),
        ("{ name: t, command: [sh, -e, ./s] }", "s".to_owned(), shell),
        ("{ name: t, command: [python3, s.py] }", "s.py".to_owned(), python),
        ("{ name: t, command: [python3, -m, pkg.mod] }", "pkg/mod.py".to_owned(), python),
        ("{ name: t, command: [env, ./run] }", "run".to_owned(), shell),
        ("{ name: t, command: [sh, s.sh], cwd: sub }", "sub/s.sh".to_owned(), shell),
        ("{ name: t, command: [sh, ../work/linked] }", "real".to_owned(), shell),
    ]
}

fn with_script(entry: &str, file: &str, text: &str) -> Sandbox {
    let room = Sandbox::ordinary();
    room.file("tools.yaml", &format!("tools: [{entry}]\n"));
    script(&room.path("work").join(file), &text.replace("RESULT", "as-shown"));
    if entry.contains("linked") {
        std::os::unix::fs::symlink("real", room.path("work/linked")).unwrap();
    }
    room
}

#[test]
fn an_edited_script_is_asked_about_again() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let mut ran = Vec::new();
    for (entry, file, text) in started() {
        let room = with_script(entry, &file, text);
        trust(&room);
        let before = run(&room, &["call", "t"]).check();
        assert_eq!(before.exits(0).out(), "as-shown\n", "{entry}");
        script(&room.path("work").join(&file), &text.replace("RESULT", "edited"));
        let after = run(&room, &["call", "t"]).check();
        if after.out().contains("edited") || after.code != Some(6) {
            ran.push(format!("{entry}: exit {:?}", after.code));
        }
        // What it was before needs no new answer.
        script(&room.path("work").join(&file), &text.replace("RESULT", "as-shown"));
        run(&room, &["call", "t"]).check().exits(0);
    }
    assert!(ran.is_empty(), "{}", ran.join("\n"));
}

#[test]
fn an_edited_script_of_a_server_is_asked_about_again() {
    let room = Sandbox::ordinary();
    let recorder = Recorder::new(&room);
    room.file(
        "mcp.yaml",
        "mcp_servers: { s: { command: sh, args: [./serve.sh], start_timeout: 2s } }\n",
    );
    script(&room.path("work/serve.sh"), "#!/bin/sh\nexit 0\n");
    trust(&room);
    let edited = format!("#!/bin/sh\nexec '{}' edited\n", recorder.program.display());
    script(&room.path("work/serve.sh"), &edited);
    for words in [&["call", "s-echo"][..], &["list"], &["servers"], &["trace", "s"]] {
        let finished = run(&room, words).check();
        assert!(recorder.starts().is_empty(), "the edited script ran\n{finished}");
    }
    asks_for_consent(&run(&room, &["call", "s-echo"]).check());
}

#[test]
fn a_document_belongs_to_what_was_shown() {
    let room = Sandbox::ordinary();
    room.file("schema.json", r#"{ "type": "object", "allOf": [{ "$ref": "inner.json#/a" }] }"#)
        .file("inner.json", r#"{ "a": { "properties": { "x": { "$ref": "./last.yaml" } } } }"#)
        .file("last.yaml", "{}")
        .file(
            "tools.yaml",
            "tools: [{ name: t, command: [echo, hi], parameters_schema: { $ref: ./schema.json } }]\n",
        );
    for (name, edited) in [
        ("schema.json", r#"{ "type": "object", "properties": { "x": { "default": "y" } } }"#),
        ("inner.json", r#"{ "a": { "properties": { "x": { "default": "y" } } } }"#),
        ("last.yaml", "{ default: y }"),
    ] {
        let original = std::fs::read_to_string(room.path(&format!("work/{name}"))).unwrap();
        trust(&room);
        run(&room, &["call", "t"]).check().exits(0);
        room.file(name, edited);
        asks_for_consent(&run(&room, &["call", "t"]).check());
        room.file(name, &original);
    }
}

#[test]
fn a_renamed_entry_is_asked_about_again() {
    let room = Sandbox::ordinary();
    let named = |name: &str| {
        room.file("tools.yaml", &format!("tools: [{{ name: {name}, command: [echo, hi] }}]\n"))
    };
    named("harmless");
    trust(&room);
    run(&room, &["call", "harmless"]).check().exits(0);
    named("other");
    asks_for_consent(&run(&room, &["call", "other"]).check());
}

/// Variables of a call come from the command line, which other programs write: they may not choose
/// code.
#[test]
fn context_sets_only_variables_that_the_entry_declares() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = Sandbox::ordinary();
    room.file("mod.py", "import os\ndef f():\n    return dict(os.environ)\n").file(
        "tools.yaml",
        "tools:
  - { name: shell, command: [bash, -c, 'ls; echo $TICKET'], context_env: [TICKET] }
  - { name: python, module: mod, function: f, context_env: [TICKET] }
",
    );
    trust(&room);
    for name in ["shell", "python"] {
        for variable in [
            "BASH_FUNC_ls%%=() { echo planted; }",
            "PYTHONUSERBASE=/tmp/x",
            "BASH_ENV=/tmp/x",
            "LD_PRELOAD=/tmp/x",
            "PATH=/tmp",
            "OTHER=x",
            "GIT_SSH=/tmp/x",
        ] {
            let finished = run(&room, &["call", name, "--context", variable]).check();
            assert!(!finished.out().contains("planted"), "{finished}");
            assert_eq!(finished.code, Some(2), "{variable}\n{finished}");
        }
        let allowed = ["call", name, "--context", "TICKET=t-1", "--context", "TOOLHOST_X=1"];
        let finished = run(&room, &allowed).check();
        finished.exits(0);
        // A worker of Python outlives calls: what belongs to one call reaches it as its context.
        assert!(name == "python" || finished.out().contains("t-1"), "{finished}");
    }
    // A name that decides which code runs cannot be declared.
    let text = "tools: [{ name: t, command: [env], context_env: [LD_PRELOAD] }]\n";
    room.file("tools.yaml", text);
    run(&room, &["trust", "--yes"]).check();
    let finished = run(&room, &["call", "t", "--context", "LD_PRELOAD=/tmp/x"]).check();
    assert_ne!(finished.code, Some(0), "{finished}");
}

fn nested(room: &Sandbox, more: &[&str]) -> Finished {
    run(room, &[&["call", "chain"], more].concat()).check()
}

#[test]
fn yes_approves_the_call_it_was_given_with_and_none_inside_it() {
    let room = Sandbox::ordinary();
    let recorder = Recorder::new(&room);
    room.file(
        "tools.yaml",
        &format!(
            "tools:
  - {{ name: deploy, command: ['{}'], requires_approval: true }}
  - {{ name: chain, steps: [{{ id: a, tool: deploy }}] }}
",
            recorder.program.display()
        ),
    );
    trust(&room);
    nested(&room, &["--yes"]).exits(6);
    assert!(recorder.starts().is_empty());
    nested(&room, &["--yes-nested"]).exits(0);
    nested(&room, &["--yes", "--yes-nested"]).exits(0);
    assert!(!recorder.starts().is_empty());
}

/// How a project starts code that is named by no path, and the file that is this code. `run` is a
/// script that `own` interprets; `bin` is on the `PATH` of every entry.
fn indirect() -> Vec<(&'static str, &'static str, &'static str, &'static str)> {
    let (shell, python) = ("#!/bin/sh\necho RESULT\n", "print('RESULT')\n");
    vec![
        ("[./run]", "own", shell, "#!./own\n"),
        ("[./run]", "bin/own", shell, "#!/usr/bin/env own\n"),
        ("[./run]", "a", shell, "#!/usr/bin/env -S sh ./a\n"),
        ("[own, x]", "bin/own", shell, ""),
        ("[env, own]", "bin/own", shell, ""),
        ("[env, A=b, own]", "bin/own", shell, ""),
        ("[env, 'PATH=./more:/usr/bin:/bin', own]", "more/own", shell, ""),
        ("[timeout, '5', own]", "bin/own", shell, ""),
        ("[nice, -n, '1', sh, a]", "a", shell, ""),
        ("[env, -S, 'sh a']", "a", shell, ""),
        ("[python3, -mmod]", "mod.py", python, ""),
        ("[python3, -um, mod]", "mod.py", python, ""),
        ("[env, python3, -m, mod]", "mod.py", python, ""),
        ("[env, PYTHONPATH=lib, python3, -m, mod]", "lib/mod.py", python, ""),
        ("[node, a]", "a.js", shell, ""),
        ("[node, -r, ./first.js, a]", "a", shell, ""),
        ("[node, '--import=file:./a']", "a", shell, ""),
        ("[node, '--import=file:./a.data', b]", "a.data", shell, ""),
        ("[sh, -c, './a.sh x']", "a.sh", shell, ""),
        ("[sh, -c, 'cd sub && ./a']", "sub/a", shell, ""),
        ("[sh, -c, '. ./a']", "a", shell, ""),
        ("[bash, -ec, 'true; exec own x']", "bin/own", shell, ""),
    ]
}

#[test]
fn code_that_is_named_by_no_path_is_asked_about_again() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let mut ran = Vec::new();
    for (command, file, text, first_line) in indirect() {
        let room = Sandbox::ordinary();
        let path = format!("{}:/usr/bin:/bin", room.path("work/bin").display());
        room.file(
            "tools.yaml",
            &format!("tools: [{{ name: t, command: {command}, env: {{ PATH: '{path}' }} }}]\n"),
        );
        script(&room.path("work/bin/node"), "#!/bin/sh\necho node\n");
        for name in ["first.js", "b"] {
            room.file(name, "x\n");
        }
        script(&room.path("work/run"), first_line);
        let write = |result| {
            let path = room.path("work").join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let text = text.replace("RESULT", result);
            // Only what has to be executable is: the rest is code by its place in the command.
            if file.contains("own")
                || std::path::Path::new(file).extension().is_some_and(|extension| extension == "sh")
                || file == "sub/a"
            {
                script(&path, &text);
            } else {
                std::fs::write(path, text.trim_start_matches("#!/bin/sh\n")).unwrap();
            }
        };
        write("as-shown");
        trust(&room);
        let before = run(&room, &["call", "t"]).check();
        let expected = if command.starts_with("[node") { "node\n" } else { "as-shown\n" };
        assert_eq!(before.exits(0).out(), expected, "{command}");
        write("edited");
        let after = run(&room, &["call", "t"]).check();
        if after.code != Some(6) {
            ran.push(format!("{command} {first_line:?} {file}: exit {:?}", after.code));
        }
        write("as-shown");
        run(&room, &["call", "t"]).check().exits(0);
    }
    assert!(ran.is_empty(), "{}", ran.join("\n"));
}

/// What was checked when the files were read may have been changed by an earlier step.
#[test]
fn code_is_compared_again_just_before_it_starts() {
    for (late, file, text) in [
        ("{ name: late, module: mod, function: f }", "mod.py", "def f():\n    open('RAN', 'w')\n"),
        ("{ name: late, command: [./late.sh] }", "late.sh", "#!/bin/sh\ntouch RAN\n"),
    ] {
        let room = Sandbox::ordinary();
        let ran = room.path("run/ran");
        let write = |text: &str| script(&room.path("work").join(file), text);
        write(if file == "mod.py" { "def f():\n    return 1\n" } else { "#!/bin/sh\nexit 0\n" });
        std::fs::write(room.path("run/new"), text.replace("RAN", &ran.display().to_string()))
            .unwrap();
        room.file(
            "edit.sh",
            &format!("#!/bin/sh\ncat '{}' > {file}\n", room.path("run/new").display()),
        );
        room.file(
            "tools.yaml",
            &format!(
                "tools:
  - {{ name: early, command: [sh, ./edit.sh], cwd: . }}
  - {late}
  - {{ name: chain, steps: [{{ id: a, tool: early }}, {{ id: b, tool: late }}] }}
"
            ),
        );
        trust(&room);
        let finished = run(&room, &["call", "chain", "--yes"]).check();
        assert!(!ran.exists(), "the code that replaced the trusted one ran\n{finished}");
        assert_ne!(finished.code, Some(0), "{late}\n{finished}");
    }
}
