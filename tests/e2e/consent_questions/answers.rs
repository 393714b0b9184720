//! Which answers there are, and what they cover.

use std::fmt::Write as _;

use super::{
    ALLOWS, INTERRUPT, NEXT_PAGE, NO, Project, QUESTION, VIEW, YES, answer, refused, run, terminal,
};
use crate::support::{Pty, Recorder, Sandbox};

#[test]
fn one_answer_covers_the_whole_project() {
    let project = Project::new();
    let (code, screen) = answer(&project.room, &["call", "plain"], YES);
    assert_eq!(code, Some(0), "{screen}");
    assert_eq!(screen.matches(QUESTION).count(), 1, "{screen}");
    // Everything that was allowed stood there, whatever was called.
    for word in ["scripted", "plain", "server", "code.sh", "first", "serve"] {
        assert!(screen.contains(word), "{word} is not in the question\n{screen}");
    }
    assert_eq!(run(&project.room, &["call", "scripted"]).check().exits(0).out(), "as-shown\n");
    let starts = project.recorder.starts().len();
    run(&project.room, &["servers"]).check();
    assert!(project.recorder.starts().len() > starts, "the server was not started");
}

#[test]
fn no_is_the_default() {
    for keys in [NO, "\r", "\u{4}"] {
        let project = Project::new();
        let (code, screen) = answer(&project.room, &["call", "plain"], keys);
        assert_eq!(code, Some(6), "{keys:?}\n{screen}");
        assert!(project.recorder.starts().is_empty(), "{keys:?}\n{screen}");
    }
}

#[test]
fn a_no_is_remembered_for_that_content() {
    let project = Project::new();
    let call = ["call", "plain"];
    assert_eq!(answer(&project.room, &call, NO).0, Some(6));
    let (code, screen) = terminal(&project.room, &call).finish();
    assert_eq!(code, Some(6), "{screen}");
    assert!(!screen.contains(QUESTION) && screen.contains(ALLOWS), "{screen}");
    // Whoever asks for the question has it again, and other content is another question.
    let (code, screen) = answer(&project.room, &["trust"], NO);
    assert_eq!(code, Some(6), "{screen}");
    project.write("second");
    let (code, screen) = answer(&project.room, &call, YES);
    assert_eq!(code, Some(0), "{screen}");
    assert!(project.recorder.starts()[0].contains("second"));
}

/// Neither yes nor no decides anything, least of all for good.
#[test]
fn an_answer_that_is_neither_yes_nor_no_is_asked_for_again() {
    let project = Project::new();
    let mut pty = terminal(&project.room, &["call", "plain"]);
    pty.expect(QUESTION).cleared().type_keys("maybe\r");
    pty.expect("Answer y or n").expect(QUESTION).type_keys(YES);
    let (code, screen) = pty.finish();
    assert_eq!(code, Some(0), "{screen}");
}

#[test]
fn who_declined_is_told_when_and_how_to_be_asked_again() {
    let project = Project::new();
    refused(&project.room, &["call", "plain"]).says(&["not trusted yet"]);
    assert_eq!(answer(&project.room, &["call", "plain"], NO).0, Some(6));
    let declined = refused(&project.room, &["call", "plain"]);
    declined.says(&["you declined it on 20", "asks again"]);
    assert!(!declined.err().contains("yet"), "{declined}");
    refused(&project.room, &["list", "--server", "server"]).says(&["you declined it on 20"]);
}

#[test]
fn an_interruption_is_no_answer() {
    let project = Project::new();
    let (code, screen) = answer(&project.room, &["call", "plain"], INTERRUPT);
    assert_eq!(code, Some(130), "{screen}");
    let (code, screen) = answer(&project.room, &["call", "plain"], YES);
    assert_eq!(code, Some(0), "{screen}");
}

#[test]
fn an_answer_is_read_from_the_terminal_alone() {
    let project = Project::new();
    let piped = run(&project.room, &["call", "plain"]).stdin("y\ny\n").check();
    piped.exits(6).says(&[ALLOWS]);
    let words = "echo y | exec \"$0\" call plain";
    let mut pty = Pty::program(&project.room, "sh", &["-c", words, env!("CARGO_BIN_EXE_toolhost")]);
    pty.expect(QUESTION).type_keys(NO);
    let (code, screen) = pty.finish();
    assert_eq!(code, Some(6), "{screen}");
    assert!(project.recorder.starts().is_empty(), "{screen}");
}

#[test]
fn yes_counts_only_after_the_end_of_a_long_question_was_shown() {
    let room = Sandbox::ordinary();
    let recorder = Recorder::new(&room);
    let mut text = "tools:\n".to_owned();
    for number in 0..60 {
        let program = recorder.program.display();
        writeln!(text, "  - {{ name: entry-{number}-, command: ['{program}'] }}").unwrap();
    }
    room.file("tools.yaml", &text);
    let mut pty = Pty::console(&room, &["call", "entry-0-"], 12, 100);
    // Too early: the rest has not been shown.
    pty.expect("entry-0-").expect(QUESTION).type_keys(YES);
    pty.cleared().expect("Not everything was shown").expect(QUESTION).type_keys(VIEW);
    // Some pages and no more are not enough either.
    pty.expect("Enter for the next").cleared().type_keys(NEXT_PAGE);
    pty.expect("Enter for the next").cleared().type_keys("q\r");
    pty.expect(QUESTION).type_keys(YES).cleared().expect("Not everything was shown");
    pty.expect(QUESTION).type_keys(VIEW).cleared();
    assert!(!pty.screen().contains("entry-59-") && recorder.starts().is_empty());
    pty.expect("Enter for the next").type_keys("e\r").expect("entry-59-");
    pty.expect(QUESTION).type_keys(YES);
    let (code, screen) = pty.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert_eq!(recorder.starts().len(), 1);
}

#[test]
fn without_a_terminal_the_command_that_allows_it_is_named() {
    let project = Project::new();
    for words in [
        &["call", "plain"][..],
        &["call", "plain", "--yes"],
        &["call", "plain", "--json"],
        &["trace", "server"],
        &["bench", "plain", "-n", "1"],
        &["trust"],
    ] {
        refused(&project.room, words);
    }
    assert!(project.recorder.starts().is_empty());
    // One run may be allowed by itself; nothing is stored.
    run(&project.room, &["--trust", "call", "plain"]).check().exits(0);
    run(&project.room, &["call", "plain"]).env("TOOLHOST_TRUST", "1").check().exits(0);
    let named = ["--tools", "tools.yaml", "call", "plain"];
    run(&project.room, &named).check().exits(0);
    refused(&project.room, &["call", "plain"]);
}

/// What was not trusted is listed by its names, and the code says whether anything else was.
#[test]
fn an_untrusted_project_is_listed_as_such() {
    let project = Project::new();
    let statuses = |code: i32| {
        let listed = run(&project.room, &["list", "--json"]).check();
        let value = listed.exits(code).json();
        let tools = value["tools"].as_array().unwrap().clone();
        let pairs = tools.iter().map(|tool| {
            (tool["name"].as_str().unwrap().to_owned(), tool["status"].as_str().unwrap().to_owned())
        });
        (pairs.collect::<std::collections::BTreeMap<_, _>>(), value)
    };
    // A builtin that reaches nothing needs no consent.
    let (tools, value) = statuses(11);
    assert_eq!(tools["scripted"], "untrusted");
    assert_eq!(tools["plain"], "untrusted");
    assert_ne!(tools["sum"], "untrusted");
    assert_eq!(value["servers"][0]["status"], "untrusted", "{value}");
    run(&project.room, &["call", "sum", "expression=1+1"]).check().exits(0);
    // With nothing else there is nothing to answer.
    std::fs::remove_file(project.room.path("work/mcp.yaml")).unwrap();
    project.room.file("tools.yaml", "tools: [{ name: plain, command: [echo, hi] }]\n");
    let (tools, _) = statuses(6);
    assert_eq!(tools["plain"], "untrusted");
    assert!(project.recorder.starts().is_empty());
}

#[test]
fn reading_below_the_project_needs_no_consent_but_dotfiles_do() {
    let room = Sandbox::ordinary();
    room.file("notes.md", "milk\n").file(".env", "A=hunter2\n").file(
        "tools.yaml",
        "components: [{ name: docs, type: files, root_dir: ., access: read }]
tools: [{ name: chain, steps: [{ id: a, tool: docs-read, args: { path: notes.md } }] }]\n",
    );
    run(&room, &["call", "docs-read", "path=notes.md"]).check().exits(0);
    run(&room, &["call", "chain"]).check().exits(0);
    let finished = run(&room, &["call", "docs-read", "path=.env"]).check();
    assert!(!finished.out().contains("hunter2"), "{finished}");
    assert_ne!(finished.code, Some(0), "{finished}");
}

#[test]
fn another_checkout_is_another_project() {
    let project = Project::new();
    run(&project.room, &["trust", "--yes"]).check().exits(0);
    run(&project.room, &["call", "scripted"]).check().exits(0);
    let copy = "cp -r ../work ../copy && cd ../copy && exec \"$0\" call scripted";
    let words = ["-c", copy, env!("CARGO_BIN_EXE_toolhost")];
    project.room.program("sh", words).check().exits(6).says(&[ALLOWS]);
    assert_eq!(project.recorder.starts().len(), 0);
}
