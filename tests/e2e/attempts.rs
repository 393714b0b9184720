//! Every attempt to call leaves one record, however early it ends.

use serde_json::{Value, json};

use crate::support::{Pty, Run, Sandbox};

fn audited(room: &Sandbox) -> Vec<Value> {
    let finished = room.toolhost(["audit", "--json"]).check();
    finished.exits(0);
    finished.json().as_array().unwrap().clone()
}

fn own(room: &Sandbox, text: &str) {
    std::fs::write(room.path("config/toolhost/tools.yaml"), text).unwrap();
}

/// The only record, which no attempt was made for.
#[track_caller]
fn only_record(room: &Sandbox, tool: &str, result: &str) -> Value {
    let all = audited(room);
    assert_eq!(all.len(), 1, "{all:?}");
    let record = &all[0];
    assert_eq!((&record["tool"], &record["result"]), (&tool.into(), &result.into()), "{record}");
    assert_eq!(record["attempts"], 0, "{record}");
    let work = room.path("work").canonicalize().unwrap();
    assert_eq!(record["caller"]["cwd"], work.to_str().unwrap(), "{record}");
    record.clone()
}

/// The failures of a tool by their kinds, as the statistics count them.
#[track_caller]
fn failures(room: &Sandbox, tool: &str) -> Value {
    let stats = room.toolhost(["stats", "--json"]).check().json();
    let mut tools = stats["tools"].as_array().unwrap().iter();
    let counted = tools.find(|counted| counted["name"] == tool);
    counted.unwrap_or_else(|| panic!("{tool} is not counted: {stats}"))["errors_by_kind"].clone()
}

fn spooled(room: &Sandbox) -> usize {
    let text = std::fs::read_to_string(room.path("state/toolhost/stats.spool"));
    text.map_or(0, |text| text.lines().count())
}

#[test]
fn a_server_that_does_not_start_is_recorded_and_counted() {
    let room = Sandbox::new();
    room.file("mcp.yaml", "gone: { command: /no/such/program }\n");
    let call: Run<'_> = room.with_servers([
        "call",
        "gone-echo",
        "message=secret words",
        "--session",
        "mine",
        "--context",
        "user_id=ada",
        "--context",
        "tenant:=1",
    ]);
    call.check().exits(4);
    let record = only_record(&room, "gone-echo", "unreachable");
    assert_eq!((&record["server"], &record["session"]), (&"gone".into(), &"mine".into()));
    assert_eq!(record["refused"], false);
    assert_eq!(record["caller"]["user_id"], "ada");
    assert_eq!(record["caller"]["metadata"], json!(["tenant"]));
    // Which arguments are secret is not known without the tool's schema.
    assert_eq!(record["arguments"], json!({ "message": "‹secret›" }));
    let stats = room.toolhost(["stats", "--json"]).check().json();
    assert_eq!(stats["tools"][0]["errors_by_kind"], json!({ "unreachable": 1 }), "{stats}");
    let table = room.toolhost(["audit"]).check();
    assert!(table.out().contains("not sent"), "{table}");
}

#[test]
fn a_missing_program_a_refusal_and_an_untrusted_project_are_recorded() {
    let room = Sandbox::new();
    own(&room, "tools: [{ name: lost, command: [/no/such/program] }]\n");
    room.toolhost(["call", "lost"]).check().exits(4);
    let missing = audited(&room);
    assert_eq!((missing.len(), &missing[0]["result"]), (1, &"unreachable".into()), "{missing:?}");

    let room = Sandbox::new();
    own(
        &room,
        "tools: [{ name: say, command: [echo, hi] }]\npolicy: [{ match: say, action: deny }]\n",
    );
    room.toolhost(["call", "say"]).check().exits(6);
    assert_eq!(only_record(&room, "say", "denied")["refused"], true);
    // A refusal says nothing about the tool.
    assert_eq!(spooled(&room), 0);

    let room = Sandbox::new();
    room.file("tools.yaml", "tools: [{ name: say, command: [echo, hi] }]\n");
    room.toolhost(["call", "say"]).check().exits(6);
    assert_eq!(only_record(&room, "say", "denied")["refused"], true);
    assert_eq!(spooled(&room), 0);
}

#[test]
fn a_benchmark_that_does_not_begin_is_recorded_and_not_counted() {
    let room = Sandbox::new();
    room.file("mcp.yaml", "gone: { command: /no/such/program }\n");
    room.with_servers(["bench", "gone-echo", "-n", "3"]).check().exits(4);
    assert_eq!(only_record(&room, "gone-echo", "unreachable")["server"], "gone");
    assert_eq!(spooled(&room), 0);
}

#[test]
fn arguments_that_do_not_fit_and_a_name_that_means_no_tool_are_recorded() {
    let room = Sandbox::new();
    own(&room, "tools: [{ name: uuid, module: builtin.uuid, function: generate }]\n");
    room.toolhost(["call", "nothing", "key=words"]).check().exits(2);
    let record = only_record(&room, "nothing", "usage");
    assert_eq!(record["arguments"], json!({ "key": "‹secret›" }));
    // What may be no tool is not counted.
    assert_eq!(spooled(&room), 0);
    room.toolhost(["call", "uuid"]).check().exits(0);
    let before = room.toolhost(["stats", "--json"]).check().json()["tools"][0].clone();
    room.toolhost(["call", "uuid", "nothing=1"]).check().exits(2);
    let record = audited(&room).into_iter().next_back().unwrap();
    assert_eq!((&record["tool"], &record["attempts"]), (&"uuid".into(), &0.into()), "{record}");
    assert_eq!(record["arguments"], json!({ "nothing": "1" }));
    // It is counted, and the times are those of the call that was made.
    let after = room.toolhost(["stats", "--json"]).check().json()["tools"][0].clone();
    assert_eq!((&after["calls"], &after["errors_by_kind"]), (&2.into(), &json!({ "usage": 1 })));
    assert!(before["max_ms"].is_number(), "{before}");
    for time in ["mean_ms", "min_ms", "max_ms", "p99_ms"] {
        assert_eq!(after[time], before[time], "{after}");
    }
    room.toolhost(["bench", "uuid", "nothing=1", "-n", "2"]).check().exits(2);
    assert_eq!(failures(&room, "uuid"), json!({ "usage": 1 }));
}

#[test]
fn a_declared_argument_that_is_no_secret_is_recorded_while_its_server_is_down() {
    let room = Sandbox::new();
    room.file(
        "mcp.yaml",
        "gone:\n  command: /no/such/program\n  provides_tools:\n    - name: echo\n      \
         inputSchema: { type: object, properties: { message: { type: string }, password: { type: \
         string } } }\n",
    );
    room.with_servers(["call", "gone-echo", "message=hi", "password=hunter2"]).check().exits(4);
    let record = only_record(&room, "gone-echo", "unreachable");
    assert_eq!(record["arguments"], json!({ "message": "hi", "password": "‹secret›" }));
}

#[test]
fn arguments_of_a_model_that_do_not_parse_are_kept_and_recorded() {
    let room = Sandbox::new();
    own(&room, "tools: [{ name: uuid, module: builtin.uuid, function: generate }]\n");
    let response = r#"[{"id":"a","function":{"name":"uuid","arguments":"{\"city\": Oslo"}}]"#;
    let words = ["dispatch", "--format", "openai", "--json"];
    let answered = room.toolhost(words).stdin(response).check();
    let content = answered.exits(0).json()[0]["content"].as_str().unwrap().to_owned();
    let content: Value = serde_json::from_str(&content).unwrap();
    assert_eq!(content["_raw_args"], r#"{"city": Oslo"#);
    assert!(content["error"].as_str().unwrap().contains("not a JSON object"), "{content}");
    let record = only_record(&room, "uuid", "usage");
    assert_eq!(record["arguments"], json!({ "_raw_args": "‹secret›" }));
}

#[test]
fn a_call_that_was_refused_or_not_found_has_a_result_in_json() {
    let room = Sandbox::new();
    own(
        &room,
        "tools: [{ name: say, command: [echo, hi] }]\npolicy: [{ match: say, action: deny }]\n",
    );
    for (tool, code, kind) in [("nothing", 2, "usage"), ("say", 6, "denied")] {
        let result = room.toolhost(["call", tool, "--json"]).check();
        result.exits(code);
        let result = result.json();
        assert_eq!((&result["tool"], &result["success"]), (&tool.into(), &false.into()));
        assert_eq!((&result["error"]["kind"], &result["metadata"]), (&kind.into(), &Value::Null));
    }
}

/// What `inspect` says about retries, and the attempts a failing call makes.
#[track_caller]
fn retried(entry: &str, words: &[&str]) -> (String, u64) {
    let room = Sandbox::new();
    room.file("flaky.py", "def fail() -> str:\n    raise ValueError('not yet')\n");
    room.file("tools.yaml", &format!("tools:\n  - {{ name: t, {entry} }}\n"));
    let run = |words: &[&str]| room.toolhost([&["--tools", "tools.yaml"], words].concat()).check();
    let page = run(&["inspect", "t"]);
    let line = page
        .exits(0)
        .out()
        .lines()
        .find(|line| line.trim().starts_with("retries"))
        .map(|line| line.trim().trim_start_matches("retries").trim().to_owned());
    run(&[&["call", "t", "--yes"], words].concat());
    let attempts = audited(&room).pop().unwrap()["attempts"].as_u64().unwrap();
    (line.unwrap(), attempts)
}

#[test]
fn what_inspect_says_of_retries_is_what_a_call_does() {
    let raises = "module: flaky, function: fail, retries: 1";
    let hangs = "command: [sleep, '60'], timeout: 100ms, retries: 1";
    for entry in [raises, hangs] {
        assert_eq!(retried(entry, &[]), ("1".to_owned(), 2), "{entry}");
        let none = "1, but it is not marked safe to repeat: none are made";
        for caution in ["requires_approval: true", "annotations: { destructiveHint: true }"] {
            let careful = format!("{entry}, {caution}");
            assert_eq!(retried(&careful, &[]), (none.to_owned(), 1), "{careful}");
        }
        let marked =
            format!("{entry}, requires_approval: true, annotations: {{ idempotentHint: true }}");
        assert_eq!(retried(&marked, &[]), ("1".to_owned(), 2), "{marked}");
    }
    let unmarked = "command: [sleep, '60'], timeout: 100ms";
    assert_eq!(retried(unmarked, &["--retries", "1"]), ("none".to_owned(), 1));
}

#[test]
fn a_question_that_is_cancelled_leaves_a_record() {
    let room = Sandbox::new();
    own(&room, "tools: [{ name: say, command: [echo, hi], requires_approval: true }]\n");
    let mut pty = Pty::toolhost(&room, &["call", "say"]);
    pty.expect("[y/N] ").type_keys("\u{3}");
    let (code, screen) = pty.finish();
    assert_eq!(code, Some(130), "{screen}");
    assert_eq!(only_record(&room, "say", "interrupted")["decision"], Value::Null);
}

#[test]
fn a_record_that_is_required_and_switched_off_refuses_the_call() {
    let room = Sandbox::new();
    own(&room, "audit: { enabled: false }\ntools: [{ name: touch, command: [touch, made] }]\n");
    room.toolhost(["--require-record", "call", "touch"])
        .check()
        .exits(9)
        .says(&["the audit log is switched off", "audit: { enabled: true }"]);
    assert!(!room.path("work/made").exists());
    room.toolhost(["--require-record", "list"]).check().exits(0);
    room.toolhost(["call", "touch"]).check().exits(0);
}

#[test]
fn lines_of_earlier_versions_are_read_as_before() {
    let room = Sandbox::new();
    std::fs::create_dir_all(room.path("state/toolhost")).unwrap();
    let old = r#"{"event":"outcome","unix":1700000000,"time":"","call":"a","pid":1,"user":null,"tool":"t","server":null,"result":"denied","message":"no","duration_us":0,"attempts":0,"bytes":0,"source":"internal","session":"s","arguments":{}}"#;
    std::fs::write(room.path("state/toolhost/audit.jsonl"), format!("{old}\n")).unwrap();
    let all = audited(&room);
    assert_eq!((&all[0]["refused"], &all[0]["caller"]), (&true.into(), &Value::Null));
}
