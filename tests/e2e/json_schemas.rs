//! What commands print with `--json` is what `config schema COMMAND` says: every key, and no other.

use serde_json::Value;

use crate::support::Sandbox;

/// The schema of a command's output, told to allow nothing that it does not name.
fn strict(room: &Sandbox, command: &str) -> Value {
    fn close(value: &mut Value) {
        match value {
            Value::Object(object) => {
                let named = object.get("properties").is_some_and(Value::is_object);
                if named && !object.contains_key("additionalProperties") {
                    object.insert("additionalProperties".to_owned(), false.into());
                }
                object.values_mut().for_each(close);
            }
            Value::Array(values) => values.iter_mut().for_each(close),
            _ => {}
        }
    }
    let mut schema = room.toolhost(["config", "schema", command]).check().json();
    close(&mut schema);
    schema
}

/// Runs a command line with `--json` and compares what it prints with the schema.
#[track_caller]
fn fits(room: &Sandbox, schema: &str, arguments: &[&str]) {
    let finished = room.toolhost(arguments.iter().copied().chain(["--json"])).check();
    let validator = jsonschema::validator_for(&strict(room, schema)).unwrap();
    let value = finished.json();
    let errors: Vec<String> =
        validator.iter_errors(&value).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{arguments:?}: {errors:#?}\n{finished}");
}

#[test]
fn outputs_of_tools_and_calls_match_their_schemas() {
    let room = Sandbox::new();
    fits(&room, "list", &["list"]);
    fits(&room, "list", &["list", "--tokens"]);
    fits(&room, "inspect", &["inspect", "calculator"]);
    fits(&room, "inspect", &["inspect", "demo-echo"]);
    fits(&room, "inspect", &["inspect", "demo"]);
    fits(&room, "call", &["call", "calculator", "expression=6*7"]);
    fits(&room, "call", &["call", "demo-echo", "message=hi"]);
    fits(&room, "call", &["call", "calculator", "expression=6*7", "--dry-run"]);
    fits(&room, "call", &["call", "demo-fail"]);
    fits(&room, "servers", &["servers"]);
    fits(&room, "doctor", &["doctor"]);
    room.toolhost(["call", "calculator", "expression=1", "--save-as", "one"]).check().exits(0);
    fits(&room, "run", &["run"]);
    fits(&room, "bench", &["bench", "calculator", "expression=1", "-n", "20"]);
}

#[test]
fn outputs_of_records_match_their_schemas() {
    let room = Sandbox::new();
    for expression in ["expression=1", "expression=2", "expression=1/0"] {
        room.toolhost(["call", "calculator", expression]).check();
    }
    fits(&room, "history", &["history"]);
    fits(&room, "history", &["history", "show", "last"]);
    fits(&room, "history", &["history", "diff", "last", "--rerun"]);
    fits(&room, "call", &["history", "rerun", "last"]);
    fits(&room, "stats", &["stats"]);
    fits(&room, "stats", &["stats", "calculator"]);
    fits(&room, "audit", &["audit"]);
    fits(&room, "pin", &["pin"]);
    fits(&room, "verify", &["verify"]);
    fits(&room, "verify", &["verify", "--scan"]);
}

#[test]
fn outputs_of_everything_else_match_their_schemas() {
    let room = Sandbox::new();
    fits(&room, "resources", &["resources", "list"]);
    fits(&room, "resources", &["resources", "list", "--templates"]);
    fits(&room, "prompts", &["prompts", "list"]);
    fits(&room, "auth", &["auth", "list"]);
    fits(&room, "trust", &["trust", "list"]);
    fits(&room, "serve-token", &["serve", "token", "issue", "ci", "--tool", "demo-*"]);
    fits(&room, "serve-token", &["serve", "token", "list"]);
    fits(&room, "serve-token", &["serve", "token", "revoke", "ci"]);
    fits(&room, "config", &["config", "check"]);
    fits(&room, "config", &["config", "show"]);
    fits(&room, "config", &["config", "paths"]);
}

#[test]
fn changes_of_files_and_of_trust_match_their_schemas() {
    let room = Sandbox::new();
    fits(&room, "change", &["add", "x", "http://127.0.0.1:1/mcp", "--user"]);
    fits(&room, "change", &["remove", "x", "--user"]);
    fits(&room, "connect", &["connect", "cursor", "--dry-run"]);
    fits(&room, "connect", &["connect", "cursor", "--yes"]);
    fits(&room, "connect", &["connect", "--list"]);
    fits(&room, "import", &["import"]);
    fits(&room, "import", &["import", "cursor", "--dry-run"]);
    fits(&room, "change", &["disconnect", "cursor", "--yes"]);
    room.file("tools.yaml", "tools: [{ name: hi, command: [echo, hi] }]");
    for words in [&["trust", "--yes"][..], &["trust"], &["trust", "revoke"]] {
        fits(&room, "trust", words);
    }
    let added = room.toolhost(["add", "y", "http://127.0.0.1:1/mcp", "--user", "--json"]).check();
    let added = added.exits(0).json();
    assert_eq!((&added["written"], &added["added"]), (&true.into(), &serde_json::json!(["y"])));
    // What has no JSON says so before it does anything.
    let without: [&[&str]; 4] = [
        &["init", "--user"],
        &["serve"],
        &["record", "--save", "a.jsonl", "--", "/bin/true"],
        &["replay", "a.jsonl"],
    ];
    for command in without {
        room.toolhost([&["--json"], command].concat()).check().exits(2).says(&["no json output"]);
    }
    room.toolhost(["man", "-o", "yaml"]).check().exits(2).says(&["no yaml output"]);
}

#[test]
fn a_failure_under_json_matches_its_schema() {
    let room = Sandbox::new();
    let failed = room.toolhost(["call", "nothing", "--json"]).check();
    failed.exits(2);
    let line: Value = serde_json::from_str(failed.err().lines().last().unwrap()).unwrap();
    let validator = jsonschema::validator_for(&strict(&room, "error")).unwrap();
    assert!(validator.is_valid(&line), "{line}");
}

#[test]
fn an_unknown_schema_lists_the_known_ones() {
    let room = Sandbox::new();
    let unknown = room.toolhost(["config", "schema", "nothing"]).check();
    unknown.exits(2).says(&["tools", "mcp", "bench", "history"]);
}
