//! `serve --lean`: three tools in place of all definitions, with the rules of direct calls.

use serde_json::{Value, json};

use super::client::{Served, Wire};
use crate::support::Sandbox;

const TOOLS: &str = "profiles: { few: { exclude: [\"secret*\"] } }\npolicy: [{ match: denied, action: deny }]\ntools:\n  \
    - { name: add, module: builtin.calculator, function: calculate, description: Adds numbers }\n  \
    - { name: secret, module: builtin.calculator, function: calculate, description: Adds in secret }\n  \
    - { name: denied, module: builtin.calculator, function: calculate }\n  \
    - { name: asks, module: builtin.calculator, function: calculate, requires_approval: true }\n";

fn text(result: &Value) -> String {
    result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

fn names(wire: &mut impl Wire) -> Vec<String> {
    let tools = wire.ask(2, "tools/list", json!({}))["result"]["tools"].clone();
    tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn three_tools_find_describe_and_call_the_others() {
    let room = Sandbox::new();
    room.file("t.yaml", TOOLS);
    let line = ["--tools", "t.yaml", "--profile", "few", "serve", "--lean", "--whole", "add*"];
    let mut served = Served::start_line(&room, &line);
    let mut wire = served.streams();
    wire.initialize(json!({}));
    assert_eq!(names(&mut wire), ["find_tools", "describe_tool", "call_tool", "add"]);
    let mut call = |name: &str, arguments: Value| wire.call(9, name, arguments);
    let found = call("find_tools", json!({ "query": "numbers" }));
    let expected =
        json!({ "tools": [{ "name": "add", "description": "Adds numbers" }], "matches": 1 });
    assert_eq!(serde_json::from_str::<Value>(&text(&found)).unwrap(), expected);
    // Where no tool has all the words, the one with most of them is first.
    assert!(text(&call("find_tools", json!({ "query": "add the numbers" }))).contains("\"add\""));
    let many = format!("{} numbers", "no ".repeat(32));
    let beyond = text(&call("find_tools", json!({ "query": many })));
    assert!(beyond.contains("\"matches\":0"), "only the first words count: {beyond}");
    let described = text(&call("describe_tool", json!({ "name": "add" })));
    assert!(described.contains("inputSchema") && described.contains("expression"), "{described}");
    let arguments = json!({ "expression": "6*7" });
    let through = call("call_tool", json!({ "name": "add", "arguments": arguments }));
    assert_eq!(through, call("add", arguments.clone()));
    // What direct calls refuse, these do not find, describe or call either.
    for hidden in ["secret", "denied", "asks"] {
        let found = text(&call("find_tools", json!({ "query": hidden })));
        assert!(found.contains("\"matches\":0"), "{found}");
        assert_eq!(call("describe_tool", json!({ "name": hidden }))["isError"], true, "{hidden}");
        let through = call("call_tool", json!({ "name": hidden, "arguments": arguments }));
        assert_eq!(through, call(hidden, arguments.clone()), "{hidden}");
        assert!(through["isError"] == true || through.get("code").is_some(), "{through}");
    }
    for (name, wrong) in [
        ("call_tool", json!({})),
        ("call_tool", json!({ "name": "add", "arguments": 1 })),
        ("call_tool", json!({ "name": "add", "arguments": {} })),
        ("call_tool", json!({ "name": ["add"] })),
        ("describe_tool", json!({ "name": "call_tool" })),
        ("find_tools", json!({ "query": 1 })),
    ] {
        assert_eq!(call(name, wrong.clone())["isError"], true, "{name} {wrong}");
    }
}

#[test]
fn calls_through_it_are_those_of_the_tool_and_tools_in_use_are_served_whole() {
    let room = Sandbox::new();
    room.file("t.yaml", TOOLS);
    let lean = ["--tools", "t.yaml", "serve", "--lean"];
    {
        let mut served = Served::start_line(&room, &lean);
        let mut wire = served.streams();
        wire.initialize(json!({}));
        assert_eq!(names(&mut wire).len(), 3);
        let call = json!({ "name": "add", "arguments": { "expression": "1+1" } });
        assert_eq!(text(&wire.call(9, "call_tool", call)), "2");
        drop(wire);
        served.ended();
    }
    let files = ["--tools", "t.yaml"];
    for record in ["stats", "history", "audit"] {
        let shown = room.toolhost(files.into_iter().chain([record])).check().out();
        assert!(shown.contains("add") && !shown.contains("call_tool"), "{record}: {shown}");
    }
    let mut served = Served::start_line(&room, &[&lean[..], &["--whole", "used"]].concat());
    let mut wire = served.streams();
    wire.initialize(json!({}));
    assert_eq!(names(&mut wire)[3..], ["add"]);
    drop(wire);
    served.ended();
    let tokens = room.toolhost(files.into_iter().chain(["list", "--tokens"])).check();
    tokens.exits(0).says(&["'serve --lean' lists 3 tools of ~"]);
    room.toolhost(["serve", "--whole", "x"]).check().exits(2).says(&["--lean"]);
}
