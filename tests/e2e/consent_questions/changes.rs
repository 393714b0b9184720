//! What a change asks, who is asked at every change, and a change while the question stands.

use std::fmt::Write as _;

use super::{AUTHOR, NO, Project, QUESTION, YES, answer, refused, run, terminal};
use crate::support::{Sandbox, script};

#[test]
fn after_a_change_only_the_difference_is_shown() {
    let room = Sandbox::ordinary();
    let write = |word: &str| {
        let mut text = "tools:\n".to_owned();
        for number in 0..20 {
            let word = if number == 7 { word } else { "same" };
            writeln!(text, "  - {{ name: entry-{number}-, command: [echo, {word}] }}").unwrap();
        }
        room.file("tools.yaml", &text);
    };
    write("before");
    run(&room, &["trust", "--yes"]).check().exits(0);
    write("afterwards");
    let (code, screen) = answer(&room, &["call", "entry-3-"], NO);
    assert_eq!(code, Some(6), "{screen}");
    assert!(screen.contains("entry-7-") && screen.contains("afterwards"), "{screen}");
    for unchanged in ["entry-6-", "entry-8-", "entry-19-"] {
        assert!(!screen.contains(unchanged), "{unchanged} did not change\n{screen}");
    }
    let (code, screen) = answer(&room, &["trust"], YES);
    assert_eq!(code, Some(0), "{screen}");
    run(&room, &["call", "entry-7-"]).check().exits(0);
}

#[test]
fn an_answer_covers_what_was_shown_and_not_what_came_meanwhile() {
    for what in ["configuration", "code"] {
        let project = Project::new();
        let mut pty = terminal(&project.room, &["call", "scripted"]);
        pty.expect(QUESTION);
        match what {
            "code" => project.code("changed-meanwhile"),
            _ => project.write("changed-meanwhile"),
        }
        pty.cleared().type_keys(YES);
        if what == "code" {
            // The same question again, or a refusal; but nothing that was not shown.
            let (code, screen) = pty.finish_with(QUESTION, NO);
            assert!(!screen.contains("changed-meanwhile\r\n") || code == Some(6), "{screen}");
            assert_eq!(code, Some(6), "{screen}");
        } else {
            drop(pty.finish_with(QUESTION, NO));
        }
        let finished = refused(&project.room, &["call", "plain"]);
        assert!(project.recorder.starts().is_empty(), "{what}\n{finished}");
        refused(&project.room, &["call", "scripted"]);
    }
}

/// People who write the code they trust are not asked at every save of it.
#[test]
fn an_author_may_change_code_below_the_root_and_nothing_else() {
    let project = Project::new();
    let outside = project.room.path("home/outside.sh");
    script(&outside, "#!/bin/sh\necho outside\n");
    let text = std::fs::read_to_string(project.room.path("work/tools.yaml")).unwrap();
    let entry = format!("  - {{ name: outside, command: ['{}'] }}\n", outside.display());
    project.room.file("tools.yaml", &(text + &entry));
    let (code, screen) = answer(&project.room, &["call", "scripted"], AUTHOR);
    assert_eq!(code, Some(0), "{screen}");
    project.code("edited");
    assert_eq!(run(&project.room, &["call", "scripted"]).check().exits(0).out(), "edited\n");
    run(&project.room, &["call", "outside"]).check().exits(0);
    script(&outside, "#!/bin/sh\necho changed-outside\n");
    refused(&project.room, &["call", "outside"]);
    script(&outside, "#!/bin/sh\necho outside\n");
    project.write("other-configuration");
    refused(&project.room, &["call", "scripted"]);
    assert!(project.recorder.starts().is_empty());
}

#[test]
fn the_author_is_named_by_the_command_too_and_never_by_a_file() {
    let project = Project::new();
    run(&project.room, &["trust", "--author", "--yes"]).check().exits(0);
    project.code("edited");
    assert_eq!(run(&project.room, &["call", "scripted"]).check().exits(0).out(), "edited\n");
    for line in ["author: true\n", "trust: author\n", "dev: true\n"] {
        let project = Project::new();
        let text = std::fs::read_to_string(project.room.path("work/tools.yaml")).unwrap();
        let entry = text.replace("name: scripted,", "name: scripted, author: true, dev: true,");
        project.room.file("tools.yaml", &(line.to_owned() + &entry));
        run(&project.room, &["trust", "--yes"]).check();
        project.code("edited");
        let finished = run(&project.room, &["call", "scripted"]).check();
        assert!(!finished.out().contains("edited"), "{line}\n{finished}");
    }
}

#[test]
fn variables_that_decide_which_code_runs_are_shown_in_full() {
    let room = Sandbox::ordinary();
    let variables = [
        ("LD_PRELOAD", "/x/own.so"),
        ("PYTHONPATH", "/x/python"),
        ("NODE_OPTIONS", "--require=/x/own.js"),
        ("BASH_ENV", "/x/bashrc"),
        ("PERL5LIB", "/x/perl"),
        ("RUBYOPT", "-r/x/own.rb"),
        ("JAVA_TOOL_OPTIONS", "-javaagent:/x/own.jar"),
        ("GIT_SSH_COMMAND", "/x/ssh"),
        ("SSL_CERT_FILE", "/x/certificates"),
        ("HTTPS_PROXY", "http://proxy.invalid:1"),
    ];
    let list: Vec<String> =
        variables.iter().map(|(name, value)| format!("{name}: '{value}'")).collect();
    let list = list.join(", ");
    let entry = format!("{{ name: t, command: [echo], env: {{ {list}, QUIET: not-decisive }} }}");
    room.file("tools.yaml", &format!("tools: [{entry}]\n"));
    let shown = run(&room, &["trust"]).check();
    let said = shown.out() + &shown.err();
    for (name, value) in variables {
        assert!(said.contains(name) && said.contains(value), "{name}\n{shown}");
    }
    assert!(!said.contains("${"), "{shown}");
}

#[test]
fn the_question_names_what_decides_a_value_and_not_the_value() {
    let room = Sandbox::ordinary();
    room.file(
        "tools.yaml",
        "tools:
  - { name: a, endpoint_url: 'https://api.invalid/${CANARY}/x' }
  - { name: b, command: [echo, '${CANARY}'], env: { TOKEN: '${file:~/token}' } }
",
    );
    std::fs::write(room.path("home/token"), "hunter2-file\n").unwrap();
    let shown = run(&room, &["trust"]).env("CANARY", "hunter2-variable").check();
    let said = shown.exits(6).out() + &shown.err();
    for word in ["CANARY", "api.invalid", "TOKEN", "token"] {
        assert!(said.contains(word), "{word}\n{shown}");
    }
    assert!(!said.contains("hunter2"), "{shown}");
}
