//! `toolhost test`: calls, what is expected of them, and what a suite may not do.

use std::os::unix::fs::symlink;

use serde_json::json;

use crate::support::{Run, Sandbox};

const TOOLS: &str = "\
tools:
  - { name: calculator, module: builtin.calculator, function: calculate }
  - { name: uuid, module: builtin.uuid, function: generate }
  - name: echo
    module: builtin.echo
    function: echo
    parameters_schema: { type: object, properties: { text: {}, id: {}, tags: {}, a: {}, b: {} } }
  - name: note
    command: [sh, -c, 'echo made >> notes; cat notes']
    requires_approval: true
  - name: login
    module: builtin.echo
    function: echo
    parameters_schema:
      type: object
      properties: { user: { type: string }, code: { type: string, format: password } }
";

fn room() -> Sandbox {
    let room = Sandbox::new();
    room.file("tools.yaml", TOOLS);
    room
}

fn test<'a>(room: &'a Sandbox, words: &[&'a str]) -> Run<'a> {
    room.toolhost([&["--tools", "tools.yaml", "test"], words].concat())
}

#[track_caller]
fn fails_with(room: &Sandbox, expect: &str, message: &str) {
    let call = "tests:\n  - { tool: calculator, args: { expression: 6*7 }, expect: ";
    room.file("one.yaml", &format!("{call}{expect} }}\n"));
    let finished = test(room, &["one.yaml"]).check();
    assert!(finished.exits(8).out().contains(message), "{expect}: no {message:?}\n{finished}");
}

#[test]
fn every_expectation_can_be_met_and_missed() {
    let room = room();
    room.file(
        "good.yaml",
        "\
tests:
  - tool: calculator
    args: { expression: 6*7 }
    expect:
      equals: 42
      contains: '4'
      jq: ['. > 41', '. < 43']
      schema: { type: integer, maximum: 42 }
      exit: 0
  - name: zero
    tool: calculator
    args: { expression: 1/0 }
    expect: { error: tool, exit: 3, contains: zero }
  - { tool: calculator, args: { expresion: 1 }, expect: { error: usage } }
  - { tool: calculator, args: { expression: '1' }, expect: { latency: { calls: 5, p99: 1h } } }
",
    );
    let finished = test(&room, &["good.yaml"]).check();
    assert!(finished.exits(0).out().contains("4 tests passed"), "{finished}");
    for (expect, message) in [
        ("{ equals: 41 }", "equals: expected 41, got 42"),
        ("{ equals: [41] }", "-[\n"),
        ("{ contains: seven }", "'seven' is not in 42"),
        ("{ jq: '. == 41' }", "jq: '. == 41' gives false for 42"),
        ("{ jq: empty }", "gives nothing"),
        ("{ jq: '.a' }", "jq: '.a':"),
        ("{ schema: { type: string } }", "schema: "),
        ("{ error: tool }", "expected a failure of kind 'tool': the call succeeded with 42"),
        ("{ exit: 3 }", "expected exit code 3"),
        ("{ snapshot: true }", "none was saved yet"),
        ("{ latency: { calls: 3, mean: 1ns } }", "latency: mean is "),
    ] {
        fails_with(&room, expect, message);
    }
}

#[test]
fn a_misspelled_suite_is_refused_with_all_its_problems() {
    let room = room();
    room.file(
        "bad.yaml",
        "\
tests:
  - { tool: echo, expct: {} }
  - { tool: echo, expect: { error: tol } }
  - { name: echo, tool: echo, expect: { jq: '.[' } }
  - { args: {} }
  - { tool: echo, expect: { equls: 1 } }
",
    );
    let finished = test(&room, &["bad.yaml"]).check();
    finished.exits(9).says(&[
        "bad.yaml:2:",
        "(did you mean 'expect'?)",
        "bad.yaml:3:",
        "'tol' is no kind of failure (did you mean 'tool'?)",
        "(did you mean 'equals'?)",
        "bad.yaml:4:",
        "bad.yaml:5:",
    ]);
    room.file("none.yaml", "tests: []\n");
    test(&room, &["none.yaml"]).check().exits(9).says(&["no tests"]);
    test(&room, &["missing.yaml"]).check().exits(9).says(&["missing.yaml"]);
}

#[test]
fn snapshots_are_saved_when_a_person_says_so_and_compared_from_then_on() {
    let room = room();
    let suite = |text: &str, mask: &str| {
        format!(
            "setup: [{{ name: before, tool: echo, expect: {{ snapshot: true }} }}]\ntests:\n  - tool: echo\n    args: {{ text: {text}, id: 7, tags: [a, b] }}\n    expect: {{ snapshot: true{mask} }}\n"
        )
    };
    room.file("s.yaml", &suite("hi", ""));
    test(&room, &["s.yaml"]).check().exits(8);
    assert!(!room.path("work/s.snapshots.json").exists());
    test(&room, &["s.yaml", "--update"]).check().exits(0);
    test(&room, &["s.yaml"]).check().exits(0);
    room.file("s.yaml", &suite("there", ""));
    let finished = test(&room, &["s.yaml"]).check();
    let out = finished.exits(8).out();
    assert!(out.contains("hi") && out.contains("there") && out.contains('+'), "{finished}");
    room.file("s.yaml", &suite("there", ", mask: [.text, .absent]"));
    test(&room, &["s.yaml"]).check().exits(0);
}

#[test]
fn setup_results_and_cleanup() {
    let room = room();
    room.file(
        "flow.yaml",
        "\
setup:
  - { name: made, tool: echo, args: { id: 12 } }
tests:
  - { tool: echo, args: { a: 1 }, args_jq: '{b: .made.id}', expect: { equals: { a: 1, b: 12 } } }
  - { name: wrong, tool: echo, expect: { equals: no } }
  - { tool: echo }
cleanup:
  - { tool: note }
",
    );
    let finished = test(&room, &["flow.yaml", "--json", "--yes"]).check();
    let report = finished.exits(8).json();
    assert_eq!((&report["passed"], &report["failed"]), (&json!(2), &json!(1)), "{report}");
    assert_eq!(
        report["tests"][2]["failures"][0]["message"].as_str().unwrap().split(':').next(),
        Some("equals")
    );
    assert!(report["tests"][1]["call_id"].is_string());
    assert!(room.path("work/notes").exists(), "cleanup ran");
    let stopped = test(&room, &["flow.yaml", "--fail-fast", "--yes", "--only", "*"]).check();
    assert!(stopped.exits(8).out().contains("1 skipped"), "{stopped}");
    let nothing = test(&room, &["flow.yaml", "--only", "nope"]).check();
    nothing.exits(2).says(&["no test matches 'nope'", "wrong"]);
    room.file("broken.yaml", "setup: [{ tool: nowhere }]\ntests: [{ tool: echo }]\n");
    let report = test(&room, &["broken.yaml", "--json"]).check().exits(8).json();
    assert_eq!((&report["failed"], &report["skipped"]), (&json!(1), &json!(1)));
}

#[test]
fn junit_holds_whatever_a_tool_said() {
    let room = room();
    let text = "<b>&\\u001b[31m\\\"'";
    room.file(
        "j.yaml",
        &format!("tests:\n  - {{ name: \"<a&\\\"\", tool: echo, args: {{ text: \"{text}\" }}, expect: {{ contains: no }} }}\n"),
    );
    let nowhere = test(&room, &["j.yaml", "--junit", "none/out.xml"]).check();
    nowhere.exits(2).says(&["--junit: cannot save to", "there is no directory"]);
    assert_eq!(nowhere.out(), "");
    test(&room, &["j.yaml", "--junit", "out.xml"]).check().exits(8);
    let xml = std::fs::read_to_string(room.path("work/out.xml")).unwrap();
    assert!(xml.contains("name=\"&lt;a&amp;&quot;\"") && xml.contains("failures=\"1\""), "{xml}");
    assert!(!xml.contains('\u{1b}') && !xml.contains("<b>"), "{xml}");
}

/// A recording in place of the server, named on the command line.
#[test]
fn a_suite_runs_on_any_server_that_a_command_line_names() {
    let room = Sandbox::new();
    room.file(
        "d.yaml",
        "tests: [{ tool: add, args: { a: 2, b: 3 }, expect: { jq: '.sum == 5' } }]\n",
    );
    let program = env!("CARGO_BIN_EXE_toolhost");
    room.toolhost(["test", "d.yaml", "--", program, "demo-server"]).check().exits(0);
}

#[test]
fn calls_of_the_history_become_tests() {
    let room = room();
    room.toolhost(["call", "calculator", "expression=6*7"]).check().exits(0);
    room.toolhost(["call", "calculator", "expression=1/0"]).check().exits(3);
    room.toolhost(["call", "login", "user=a", "code=hunter2"]).check().exits(0);
    let all = room.toolhost(["history", "--json"]).check().json();
    let ids: Vec<&str> =
        all.as_array().unwrap().iter().map(|call| call["id"].as_str().unwrap()).collect();
    let words = |id| ["history", "save", id, "--as-test", "made.yaml"];
    room.toolhost(words(ids[2])).check().exits(0).says(&["toolhost test made.yaml"]);
    room.toolhost(words(ids[1])).check().exits(0);
    room.toolhost(words(ids[0])).check().exits(0).says(&["lacks what was secret: code"]);
    let text = std::fs::read_to_string(room.path("work/made.yaml")).unwrap();
    assert!(text.contains("error: \"tool\"") || text.contains("{\"error\":\"tool\"}"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
    let finished = test(&room, &["made.yaml", "--only", "calculator*"]).check();
    assert!(finished.exits(0).out().contains("2 tests passed"), "{finished}\n{text}");
    let nowhere = ["history", "save", ids[2], "--as-test", "none/made.yaml"];
    room.toolhost(nowhere).check().exits(2).says(&["there is no directory"]);
    // A file that is something else stays as it is.
    let other = "tests: []\nsetup: []\n";
    room.file("other.yaml", other);
    room.toolhost(["history", "save", ids[2], "--as-test", "other.yaml"]).check().exits(2);
    assert_eq!(std::fs::read_to_string(room.path("work/other.yaml")).unwrap(), other);
}

/// A suite is somebody else's file: it starts nothing, approves nothing and replaces nothing.
#[test]
fn a_suite_has_no_more_rights_than_a_call() {
    let room = Sandbox::new();
    room.file(
        "mcp.yaml",
        "mcp_servers:\n  evil: { command: sh, args: [-c, 'touch started; cat'] }\n",
    );
    room.file("suite.yaml", "tests: [{ tool: evil-run }]\n");
    let finished = room.toolhost(["test", "suite.yaml", "--yes"]).check();
    finished.exits(8);
    assert!(!room.path("work/started").exists(), "{finished}");

    let room = self::room();
    room.file("asks.yaml", "tests: [{ tool: note }]\n");
    let finished = test(&room, &["asks.yaml"]).check();
    assert!(finished.exits(8).out().contains("denied"), "{finished}");
    assert!(!room.path("work/notes").exists());

    room.file("prize", "kept\n");
    room.file("link.yaml", "tests: [{ tool: echo, expect: { snapshot: true } }]\n");
    symlink(room.path("work/prize"), room.path("work/link.snapshots.json")).unwrap();
    std::fs::write(room.path("work/prize"), "{}").unwrap();
    test(&room, &["link.yaml", "--update"]).check().exits(1).says(&["symbolic link"]);
    assert_eq!(std::fs::read_to_string(room.path("work/prize")).unwrap(), "{}");
}
