//! Who may call what: rules of several files, and the question that a person is asked.

use serde_json::Value;

use crate::support::{Pty, Sandbox, forbidden};

const BINARY: &str = env!("CARGO_BIN_EXE_toolhost");

/// A tool that asks, in a file that is named, so that nothing else is asked about.
fn room(command: &str) -> Sandbox {
    let room = Sandbox::new();
    room.file(
        "named.yaml",
        &format!(
            "tools:\n  - name: say\n    description: Says something. And more of it\n    command: {command}\n    \
             requires_approval: true\n    annotations: {{ destructiveHint: true }}\n    parameters_schema:\n      \
             type: object\n      properties:\n        text: {{ type: string }}\n        \
             code: {{ type: string, format: password }}\n"
        ),
    );
    room
}

const NAMED: [&str; 3] = ["--tools", "named.yaml", "call"];

#[test]
fn the_question_shows_the_exact_command_and_no_secret() {
    let room = room("[echo, \"{text}\", \"x{code}\"]");
    let words = ["say", "text=a\u{1b}[8m\u{202e}b", "code=hunter2-secret"];
    let mut pty = Pty::toolhost(&room, &[&NAMED[..], &words].concat());
    pty.expect("(v: everything) ").cleared();
    pty.type_keys("v\r").expect("arguments").expect("[y/N] ").type_keys("n\r");
    let (status, screen) = pty.finish();
    assert_eq!(status, Some(6), "{screen}");
    for word in
        ["its entry requires approval", "Says something", "may destroy", "/echo\",", "‹secret›"]
    {
        assert!(screen.contains(word), "{word}\n{screen}");
    }
    assert!(screen.contains("\\u001b[8m\\u202e"), "{screen}");
    assert!(!screen.contains("hunter2-secret"), "{screen}");
    // What the terminal itself adds is a carriage return at each line's end.
    let colourless = strip_colour(&screen).replace('\r', "");
    assert_eq!(forbidden(colourless.as_bytes()), None, "{screen}");
}

/// Without the sequences that colour: they are ours.
fn strip_colour(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        out.push_str(before);
        let end = after.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(0);
        assert_eq!(&after[end..=end], "m", "{text:?}");
        rest = &after[end + 1..];
    }
    out + rest
}

#[test]
fn a_yes_counts_only_for_what_was_shown() {
    let room = room("[echo, \"{text}\"]");
    let text = format!("text={}tail-of-it", "long ".repeat(500));
    let call = [&NAMED[..], &["say", &text]].concat();
    let mut pty = Pty::sized(&room, BINARY, &call, 12, 60);
    pty.expect("more lines").expect("v: the rest").type_keys("yes\r");
    pty.cleared().expect("Not everything").expect("[y/N] ").type_keys("v\r");
    pty.expect("Enter for the next").cleared().type_keys("\r").expect("Enter for the next");
    // Leaving before the end is not enough; jumping to it is.
    pty.cleared().type_keys("q\r").expect("v: the rest").type_keys("v\r");
    pty.cleared().expect("Enter for the next").type_keys("e\r").expect("tail-of-it");
    pty.expect("[y/N] ").type_keys("yes\r");
    let (status, screen) = pty.finish();
    assert_eq!(status, Some(0), "{screen}");
    assert!(screen.contains("tail-of-it"), "{screen}");

    let mut pty = Pty::sized(&room, BINARY, &call, 12, 60);
    pty.expect("v: the rest").type_keys("v\r").expect("Enter for the next").type_keys("\u{4}");
    let (status, screen) = pty.finish();
    assert_eq!(status, Some(6), "{screen}");
}

#[test]
fn answers_and_refusals_are_recorded_with_their_reasons() {
    let room = room("[echo, hi]");
    let call = [&NAMED[..], &["say"]].concat();
    for answer in ["y\r", "n\r"] {
        let mut pty = Pty::toolhost(&room, &call);
        pty.expect("[y/N] ").type_keys(answer);
        pty.finish();
    }
    room.toolhost(call).check().exits(6).says(&["no person can be asked"]);
    room.toolhost([&NAMED[..], &["say", "--yes"]].concat()).check().exits(0);
    let audit = room.toolhost(["audit", "--json"]).check();
    let told: Vec<String> = audit
        .json()
        .as_array()
        .unwrap()
        .iter()
        .map(|call| call["decision"].as_str().or(call["message"].as_str()).unwrap().to_owned())
        .collect();
    let starts =
        ["approved by a person", "a person refused", "'say' needs approval", "approved with --yes"];
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(told.iter().zip(starts).all(|(told, start)| told.starts_with(start)), "{told:?}");
}

#[test]
fn with_ask_all_every_call_is_asked_about_whatever_the_policy_allows() {
    let room = Sandbox::new();
    let policy = "policy: [{ match: \"*\", action: allow }]\n";
    room.file("named.yaml", &format!("tools:\n{CALCULATOR}{policy}"));
    let call = [&NAMED[..], &["calculator", "expression=1+1"]].concat();
    room.toolhost(call.clone()).check().exits(0);
    let asked = [&call[..], &["--ask-all"]].concat();
    let refused = room.toolhost(asked.clone()).check();
    refused.exits(6).says(&["every call needs approval (--ask-all)", "without --ask-all"]);
    for (answer, code) in [("y\r", 0), ("n\r", 6)] {
        let mut pty = Pty::toolhost(&room, &asked);
        pty.expect("every call needs approval").expect("[y/N] ").type_keys(answer);
        let (status, screen) = pty.finish();
        assert_eq!(status, Some(code), "{screen}");
    }
    let inspected = ["--tools", "named.yaml", "inspect", "calculator", "--ask-all", "--json"];
    let inspected = room.toolhost(inspected).check();
    assert_eq!(inspected.json()["decision"]["action"], "ask");
    // A call cannot be asked about and approved unasked.
    for yes in ["--yes", "--yes-nested"] {
        let both = room.toolhost([&asked[..], &[yes]].concat()).check();
        both.exits(2).says(&["cannot be used with", "--ask-all"]);
    }
    // Nor does a benchmark run unasked.
    let bench = ["--tools", "named.yaml", "bench", "calculator", "expression=1", "-n", "2"];
    room.toolhost([&bench[..], &["--ask-all"]].concat()).check().exits(6).says(&["--ask-all"]);
}

#[test]
fn with_ask_all_the_console_asks_before_every_call() {
    let room = Sandbox::new();
    room.file("named.yaml", &format!("tools:\n{CALCULATOR}"));
    let words = ["--tools", "named.yaml", "--ask-all"];
    let mut pty = Pty::console(&room, &words, 40, 120);
    pty.expect_shown("calculator").type_keys("\r").expect_shown("Arguments  calculator");
    pty.type_keys("6*7").expect_shown(r#""expression":"6*7""#).type_keys("\u{1b}[15~");
    pty.expect_shown("every call needs approval (--ask-all)");
    pty.expect_shown("    y allow once").type_keys("\r").expect_shown("denied");
    pty.type_keys("\u{3}y");
    assert_eq!(pty.finish().0, Some(0));
    let audit = room.toolhost(["audit", "--json"]).check();
    assert_eq!(audit.json().as_array().unwrap().len(), 1);
    assert!(audit.json()[0]["decision"].is_null(), "{}", audit.json());
}

const CALCULATOR: &str =
    "  - { name: calculator, module: builtin.calculator, function: calculate }\n";

/// What a call of the calculator comes to under a project's and the user's rules.
fn decided(project: &str, user: &str) -> (Option<i32>, Value) {
    let room = Sandbox::new();
    room.file("tools.yaml", &format!("tools:\n{CALCULATOR}policy: {project}\n"));
    let user = user.replace("WORK", room.path("work").to_str().unwrap());
    std::fs::write(room.path("config/toolhost/tools.yaml"), format!("policy: {user}\n")).unwrap();
    let finished = room.toolhost(["call", "calculator", "expression=1"]).check();
    let inspected = room.toolhost(["inspect", "calculator", "--json"]).check();
    (finished.code, inspected.json()["decision"].clone())
}

#[test]
fn rules_of_the_project_only_tighten_and_the_first_match_counts() {
    const ALLOW: &str = "[{ match: calc*, action: allow }]";
    const ALLOW_HERE: &str = "[{ match: calc*, action: allow, project: WORK }]";
    const ASK: &str = "[{ match: calc*, action: ask }]";
    const DENY: &str = "[{ match: calc*, action: deny }]";
    for (project, user, code, action, words) in [
        ("[]", "[]", 0, "allow", "allowed"),
        (ALLOW, ASK, 6, "ask", "config/toolhost/tools.yaml:1"),
        (ALLOW, "[]", 0, "allow", "allowed"),
        (ASK, "[]", 6, "ask", "work/tools.yaml:3"),
        (DENY, "[]", 6, "deny", "'calc*: deny' at"),
        (DENY, ALLOW, 6, "deny", "work/tools.yaml:3"),
        // The user allows their own tools by name, not a project's.
        (ASK, ALLOW, 6, "ask", "work/tools.yaml:3"),
        (ASK, ALLOW_HERE, 0, "allow", "config/toolhost/tools.yaml:1"),
        (
            "[]",
            "[{ match: calculator, action: allow, project: WORK }, { match: \"*\", action: deny }]",
            0,
            "allow",
            "'calculator: allow'",
        ),
        (
            "[]",
            "[{ match: \"*\", action: deny }, { match: calculator, action: allow }]",
            6,
            "deny",
            "'*: deny'",
        ),
    ] {
        let (status, decision) = decided(project, user);
        let case = format!("project {project}, user {user}: {status:?} {decision}");
        assert_eq!(status, Some(code), "{case}");
        assert_eq!(decision["action"], action, "{case}");
        assert!(decision["reason"].as_str().unwrap().contains(words), "{case}");
    }
}

#[test]
fn inspect_says_what_a_call_would_meet() {
    let room = Sandbox::new();
    room.file(
        "tools.yaml",
        &format!("tools:\n{CALCULATOR}policy: [{{ match: \"*\", action: ask }}]\n"),
    );
    let shown = room.toolhost(["inspect", "calculator"]).check();
    let line = shown.out();
    assert!(line.contains("asks before each call: the rule '*: ask' at"), "{shown}");
}
