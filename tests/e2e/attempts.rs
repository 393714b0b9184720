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
    assert_eq!(failures(&room, "say"), json!({ "denied": 1 }));
    let inspected = room.toolhost(["inspect", "say"]).check();
    assert!(inspected.exits(0).out().contains("denied 1"), "{inspected}");

    let room = Sandbox::new();
    room.file("tools.yaml", "tools: [{ name: say, command: [echo, hi] }]\n");
    room.toolhost(["call", "say"]).check().exits(6);
    assert_eq!(only_record(&room, "say", "denied")["refused"], true);
    assert_eq!(failures(&room, "say"), json!({ "denied": 1 }));
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
fn arguments_that_do_not_fit_are_recorded_and_a_name_that_means_no_tool_is_not() {
    let room = Sandbox::new();
    own(&room, "tools: [{ name: uuid, module: builtin.uuid, function: generate }]\n");
    room.toolhost(["call", "nothing"]).check().exits(2);
    assert_eq!(audited(&room), [] as [Value; 0]);
    room.toolhost(["call", "uuid"]).check().exits(0);
    let before = room.toolhost(["stats", "--json"]).check().json()["tools"][0].clone();
    room.toolhost(["call", "uuid", "nothing=1"]).check().exits(2);
    let record = audited(&room).into_iter().find(|record| record["result"] == "usage").unwrap();
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
