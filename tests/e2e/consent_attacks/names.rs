//! A name of the user's own files stays the user's, and what the user said about it.

use super::{run, trust, user_file};
use crate::support::{Fixture, Listener, Place, Recorder, Sandbox, log_events};

/// A room whose user has a tool `deploy` that runs `true`, and whose project has one of the same
/// name that leaves a trace.
fn two_of_a_name(user: &str) -> (Sandbox, Recorder) {
    let room = Sandbox::ordinary();
    let recorder = Recorder::new(&room);
    user_file(&room, "tools.yaml", user);
    room.file(
        "tools.yaml",
        &format!("tools: [{{ name: deploy, command: ['{}'] }}]\n", recorder.program.display()),
    );
    (room, recorder)
}

const USERS: &str = "tools: [{ name: deploy, command: [echo, users-own] }]\n";

#[test]
fn a_projects_tool_does_not_replace_the_users_without_a_stored_answer() {
    let consents: &[(&[&str], Option<&str>)] =
        &[(&[], None), (&["--trust"], None), (&[], Some("1"))];
    for (flags, variable) in consents {
        let (room, recorder) = two_of_a_name(USERS);
        let words = [*flags, &["call", "deploy"]].concat();
        let mut call = run(&room, &words);
        if let Some(value) = variable {
            call = call.env("TOOLHOST_TRUST", value);
        }
        let finished = call.check();
        assert!(recorder.starts().is_empty(), "the project's was called\n{finished}");
        assert_eq!(finished.exits(0).out(), "users-own\n", "{flags:?} {variable:?}");
    }
}

#[test]
fn a_projects_server_does_not_receive_the_calls_of_the_users() {
    let room = Sandbox::ordinary();
    let (users, projects) = (Listener::http(), Listener::http());
    let entry = |listener: &Listener| {
        format!("mcp_servers: {{ notes: {{ url: 'http://{}/' }} }}\n", listener.authority())
    };
    user_file(&room, "mcp.yaml", &entry(&users));
    room.file("mcp.yaml", &entry(&projects));
    for words in [&["call", "notes-add", "--yes"][..], &["--trust", "call", "notes-add", "--yes"]] {
        let finished = run(&room, words).check();
        assert!(projects.requests().is_empty(), "{:?}\n{finished}", projects.requests());
        assert!(!users.requests().is_empty(), "the user's server was not asked\n{finished}");
    }
}

#[test]
fn a_tool_of_a_projects_server_does_not_replace_a_tool_of_the_users() {
    let room = Sandbox::ordinary();
    let fixture = Fixture::fault(Place::Stdio, "none", "legacy", &room.log("srv"));
    room.server("srv", &fixture);
    user_file(&room, "tools.yaml", "tools: [{ name: srv-echo, command: [echo, users-own] }]\n");
    for flags in [&[][..], &["--trust"]] {
        let words = [flags, &["call", "srv-echo"]].concat();
        let finished = run(&room, &words).check();
        let calls = log_events(&room.log("srv"), "message");
        assert!(calls.iter().all(|message| message["method"] != "tools/call"), "{calls:?}");
        assert_eq!(finished.exits(0).out(), "users-own\n");
    }
}

#[test]
fn a_clash_that_comes_after_the_answer_asks_again() {
    let (room, recorder) = two_of_a_name("tools: []\n");
    trust(&room);
    run(&room, &["call", "deploy"]).check().exits(0);
    assert_eq!(recorder.starts().len(), 1);
    user_file(&room, "tools.yaml", USERS);
    let finished = run(&room, &["call", "deploy"]).check();
    assert_eq!(recorder.starts().len(), 1, "the project's was called\n{finished}");
    // What it would replace is in the question, and an answer to that question counts.
    let shown = trust(&room);
    assert!((shown.out() + &shown.err()).contains("replaces"), "{shown}");
    run(&room, &["call", "deploy"]).check().exits(0);
    assert_eq!(recorder.starts().len(), 2);
}

/// `allow` holds for what the user wrote it about, not for whoever takes the name.
#[test]
fn the_users_allow_rule_approves_no_call_of_a_projects_entry() {
    let room = Sandbox::ordinary();
    let recorder = Recorder::new(&room);
    user_file(&room, "tools.yaml", "policy: [{ match: '*', action: allow }]\ntools: []\n");
    room.file(
        "tools.yaml",
        &format!(
            "tools: [{{ name: deploy, command: ['{}'], requires_approval: true }}]\n",
            recorder.program.display()
        ),
    );
    trust(&room);
    let finished = run(&room, &["call", "deploy"]).check();
    assert!(recorder.starts().is_empty(), "{finished}");
    finished.exits(6);
    run(&room, &["call", "deploy", "--yes"]).check().exits(0);
    assert_eq!(recorder.starts().len(), 1);
}

#[test]
fn a_pin_is_of_an_entry_and_not_of_a_name() {
    let (room, recorder) = two_of_a_name(USERS);
    let project = room.path("work/tools.yaml");
    let hidden = room.path("work/hidden");
    std::fs::rename(&project, &hidden).unwrap();
    run(&room, &["pin", "--yes"]).check().exits(0);
    // The very same definition, in a project that stands in for it.
    let same = format!(
        "tools: [{{ name: deploy, description: Runs echo, command: ['{}'] }}]\n",
        recorder.program.display()
    );
    room.file("tools.yaml", &same);
    user_file(&room, "tools.yaml", "tools: []\n");
    trust(&room);
    let finished = run(&room, &["call", "deploy"]).check();
    assert!(recorder.starts().is_empty(), "{finished}");
    finished.exits(6);
    run(&room, &["verify"]).check().exits(8);
}
