//! Tools made of other tools, through the binary: local ones, and those of another host that is
//! reached over MCP.

use serde_json::{Value, json};

use crate::support::{Finished, Pty, Run, Sandbox};

const SERVERS: &str = "mcp_servers:\n  demo: { command: \"${TOOLHOST}\", args: [demo-server] }\n";

const TOOLS: &str = "\
tools:
  - { name: echo, module: builtin.echo, function: echo }
  - { name: fail, module: builtin.fail, function: fail }
  - name: greet
    parameters_schema: { type: object, properties: { who: { type: string } }, required: [who] }
    steps:
      - { id: hello, tool: demo-echo, args: { message: 'hello {who}' } }
      - { id: sum, tool: demo-add, args: { a: 2, b: 3 } }
    result: { said: '{hello.output}', sum: '{sum.output.sum}', session: '{context.session_id}', tenant: '{context.metadata.tenant}' }
  - { name: outer, steps: [ { id: inner, tool: greet, args: { who: all } } ] }
  - { name: broken, steps: [ { id: one, tool: fail, args: { message: out of paper } } ] }
  - { name: tidy, steps: [ { id: delete, tool: demo-delete_note, args: { name: draft } } ] }
  - { name: lost, steps: [ { id: one, tool: nowhere-at-all } ] }
  - { name: slow, timeout: 1s, steps: [ { id: wait, tool: demo-slow, args: { seconds: 20 } } ] }
";

fn room() -> Sandbox {
    let room = Sandbox::new();
    room.file("tools.yaml", TOOLS).file("mcp.yaml", SERVERS);
    room
}

fn run<'a>(room: &'a Sandbox, words: &[&'a str]) -> Run<'a> {
    let files = ["--tools", "tools.yaml", "--mcp", "mcp.yaml"];
    room.toolhost([&files[..], words].concat())
}

#[track_caller]
fn shows(finished: &Finished, words: &str) {
    assert!(finished.exits(0).out().contains(words), "stdout lacks {words:?}\n{finished}");
}

fn audit(room: &Sandbox) -> Vec<Value> {
    let text = std::fs::read_to_string(room.path("state/toolhost/audit.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_pipeline_calls_the_tools_of_another_host_and_every_call_is_recorded() {
    let room = room();
    let words = ["call", "outer", "--json", "--session", "s-1", "--context", "tenant:=7"];
    let finished = run(&room, &words).check();
    let value = finished.exits(0).json();
    assert_eq!(
        value["output"],
        json!({ "said": "hello all", "sum": 5, "session": "s-1", "tenant": 7 })
    );
    assert_eq!(value["_meta"]["steps"][0]["id"], "inner");
    let rows = audit(&room);
    let intents: Vec<&Value> = rows.iter().filter(|row| row["event"] == "intent").collect();
    let tools: Vec<&str> = intents.iter().map(|row| row["tool"].as_str().unwrap()).collect();
    assert_eq!(tools, ["outer", "greet", "demo-echo", "demo-add"]);
    assert_eq!(intents[0]["parent"], Value::Null);
    assert_eq!(intents[1]["parent"], intents[0]["call"]);
    assert_eq!(intents[2]["parent"], intents[1]["call"]);
    assert!(intents.iter().all(|row| row["session"] == "s-1"), "{intents:?}");
    assert_eq!(rows.len(), 8);
}

#[test]
fn the_failure_of_a_step_decides_the_exit_code() {
    let room = room();
    run(&room, &["call", "broken"]).check().exits(3).says(&["step 'one' (fail): out of paper"]);
    run(&room, &["call", "lost"]).check().exits(2).says(&["step 'one' (nowhere-at-all)"]);
    let slow = run(&room, &["call", "slow"]).check();
    slow.exits(7)
        .says(&["'slow' did not finish within 1 s", "step 'wait' (demo-slow) was running"]);
    let last: Vec<Value> = audit(&room).into_iter().rev().take(2).collect();
    assert_eq!(last[0]["tool"], "slow");
    assert_eq!(
        (&last[1]["tool"], &last[1]["result"]),
        (&json!("demo-slow"), &json!("interrupted"))
    );
}

#[test]
fn a_step_that_needs_approval_asks_there_and_is_announced() {
    let room = room();
    let refused = run(&room, &["call", "tidy"]).check();
    refused.exits(6).says(&["step 'delete' (demo-delete_note)", "needs approval"]);
    // A yes to the pipeline is none to what its steps would ask about.
    let refused = run(&room, &["call", "tidy", "--yes"]).check();
    refused.exits(6).says(&["needs approval", "--yes-nested approves"]);
    run(&room, &["history", "replay", "last", "--yes"]).check().exits(6);
    run(&room, &["history", "replay", "last", "--yes-nested"]).check().exits(0);
    run(&room, &["call", "tidy", "--yes-nested"]).check().exits(0);
    shows(&run(&room, &["inspect", "tidy"]).check(), "calls demo-delete_note");
    let asking =
        TOOLS.replace("module: builtin.fail,", "module: builtin.fail, requires_approval: true,");
    room.file("tools.yaml", &asking);
    let warning = "calls 'fail', which needs approval: its entry requires approval";
    shows(&run(&room, &["inspect", "broken"]).check(), warning);
    run(&room, &["call", "broken", "--dry-run"]).check().exits(0).says(&[warning]);
    let finished = run(&room, &["call", "fail", "message=x", "--dry-run"]).check();
    shows(&finished, "needs approval: its entry requires approval");
}

#[test]
fn a_dry_run_shows_the_steps_and_calls_nothing() {
    let room = room();
    let finished = run(&room, &["call", "greet", "who=ada", "--dry-run", "--json"]).check();
    let value = finished.exits(0).json();
    assert_eq!(value["request"]["steps"][0]["args"], json!({ "message": "hello ada" }));
    assert_eq!(value["request"]["result"]["sum"], "{sum.output.sum}");
    assert_eq!(value["decision"]["action"], "allow");
    assert!(!room.path("state/toolhost/audit.jsonl").exists());
}

#[test]
fn progress_of_steps_is_told_with_v() {
    let room = room();
    let finished = run(&room, &["call", "greet", "who=ada", "-v"]).check();
    finished.exits(0).says(&["0 %  hello (demo-echo)", "50 %  sum (demo-add)"]);
}

/// What a project's pipeline hands from tool to tool is the user's to allow, as are the programs
/// that its steps start.
#[test]
fn a_pipeline_of_a_project_is_asked_about_with_what_it_calls() {
    let room = Sandbox::new();
    room.file(
        "tools.yaml",
        "tools:\n  - { name: both, steps: [ { tool: words, args: { text: hi } } ] }\n  \
         - { name: words, command: [wc, -w], input: stdin_text, parameters_schema: { type: object, properties: { text: { type: string } } } }\n",
    );
    let refused = room.toolhost(["call", "both"]).check();
    refused.exits(6).says(&["not trusted yet", "calls words with {\"text\":\"hi\"}"]);
    let mut pty = Pty::toolhost(&room, &["call", "both"]);
    pty.expect("calls words").expect("starts wc").expect("[y/N] ").type_keys("yes\r");
    let (status, screen) = pty.finish();
    assert_eq!(status, Some(0), "{screen}");
    room.toolhost(["call", "both"]).check().exits(0);
}

#[test]
fn the_example_runs_as_it_says() {
    let room = Sandbox::new();
    for name in ["tools.yaml", "mcp.yaml"] {
        let path = format!("{}/examples/pipeline/{name}", env!("CARGO_MANIFEST_DIR"));
        room.file(name, &std::fs::read_to_string(path).unwrap());
    }
    let call = |cities: &'static str| -> Finished {
        run(&room, &["call", "report", cities, "--json"]).check()
    };
    let report = call("cities:=[\"oslo\", \"lima\"]").exits(0).json();
    assert_eq!(report["output"]["heading"], "WEATHER");
    assert_eq!(report["output"]["mean"], "7.0");
    let report = call("cities:=[\"oslo\", \"atlantis\"]").exits(0).json();
    assert_eq!(report["output"]["mean"], Value::Null);
    assert!(report["output"]["problem"].as_str().unwrap().contains("item 2"), "{report}");
    shows(&run(&room, &["call", "tidy", "name=draft", "--yes-nested"]).check(), "draft is gone");
    run(&room, &["config", "check"]).check().exits(0);
}
