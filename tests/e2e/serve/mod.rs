//! The catalogue as an MCP server, seen from its clients.

mod bridge;
mod caller;
pub mod client;
mod isolation;
mod lean;
mod limits;
mod oauth;
mod reload;
mod tokens;
mod watch;

use serde_json::{Value, json};

use crate::support::Sandbox;
use client::{Frames, Lines, Served, TOKEN, Wire, ask_stateless, post, post_stateless};

/// The parts of a result that do not depend on the era.
fn plain(mut outcome: Value) -> Value {
    outcome.as_object_mut().unwrap().remove("resultType");
    outcome
}

fn initialized(mut wire: impl Wire) -> impl Wire {
    wire.initialize(json!({ "elicitation": {} }));
    wire
}

#[test]
fn a_call_gives_the_same_result_on_every_transport() {
    let room = Sandbox::new();
    let socket = room.path("run/s").display().to_string();
    let words = ["--stdio", "--unix", &socket, "--http", "127.0.0.1:0", "--ws", "127.0.0.1:0"];
    let mut served = Served::start(&room, &words);
    assert_eq!(served.address(), socket);
    let (http, ws) = (served.address(), served.address());
    let mut stdio = initialized(served.streams());
    let mut unix = initialized(Lines::connect(&socket));
    let (status, frames) = Frames::connect(&ws, &format!("Authorization: Bearer {TOKEN}\r\n"));
    assert_eq!(status, 101);
    let mut frames = initialized(frames);
    for (name, arguments) in [
        ("calculator", json!({ "expression": "6*7" })),
        ("demo-weather_report", json!({ "city": "oslo" })),
        ("demo-fail", json!({ "message": "no" })),
        ("calculator", json!({})),
        ("no_such_tool", json!({})),
    ] {
        let first = stdio.call(7, name, arguments.clone());
        let others = [
            unix.call(8, name, arguments.clone()),
            frames.call(9, name, arguments.clone()),
            plain(ask_stateless(
                &http,
                "tools/call",
                json!({ "name": name, "arguments": arguments }),
            )),
        ];
        for other in others {
            assert_eq!(first, other, "{name} {arguments}");
        }
        // In this process, by the command line.
        let arguments = arguments.to_string();
        let called = room.toolhost(["call", name, "--args", &arguments, "--json"]).go();
        if let Some(content) = first.get("content").filter(|_| first.get("isError").is_none()) {
            assert_eq!(&called.json()["content"], content, "{name}");
            assert_eq!(
                called.json().get("structured"),
                first.get("structuredContent").or(Some(&Value::Null))
            );
        } else {
            assert_ne!(called.code, Some(0), "{name}");
        }
    }
    // With nothing before it, an answer is one message and no stream.
    let call = json!({ "name": "calculator", "arguments": { "expression": "6*7" } });
    let (_, body) = post_stateless(&http, TOKEN, "tools/call", call);
    let answer: Value = serde_json::from_str(&body).unwrap_or_else(|_| panic!("{body}"));
    assert_eq!(answer["id"], 1, "{body}");
    drop(stdio);
    assert_eq!(served.ended(), Some(0), "it ends with the client that started it");
    assert!(!std::path::Path::new(&socket).exists(), "the socket is removed");
}

#[test]
fn every_tool_prompt_and_resource_is_offered() {
    let room = Sandbox::new();
    let mut served = Served::start(&room, &[]);
    let mut client = initialized(served.streams());
    let tools = client.ask(1, "tools/list", json!({}));
    let named = |name: &str| {
        let tools = tools["result"]["tools"].as_array().unwrap();
        tools.iter().find(|tool| tool["name"] == name).cloned()
    };
    assert_eq!(named("calculator").unwrap()["inputSchema"]["required"], json!(["expression"]));
    let report = named("demo-weather_report").unwrap();
    assert!(report["outputSchema"].is_object(), "{report}");
    let prompts = client.ask(2, "prompts/list", json!({}));
    assert_eq!(prompts["result"]["prompts"][0]["name"], "demo-greet");
    let filled = json!({ "name": "demo-greet", "arguments": { "name": "Ada" } });
    let filled = client.ask(3, "prompts/get", filled);
    assert!(filled["result"]["messages"][0].to_string().contains("Ada"), "{filled}");
    let read = client.ask(4, "resources/read", json!({ "uri": "demo://readme" }));
    assert_eq!(read["result"]["contents"][0]["uri"], "demo://readme");
    let missing = client.ask(5, "resources/read", json!({ "uri": "demo://nothing" }));
    assert!(missing["error"]["code"].is_i64(), "{missing}");
    let complete = json!({
        "ref": { "type": "ref/resource", "uri": "demo://notes/{name}" },
        "argument": { "name": "name", "value": "d" },
    });
    let complete = client.ask(6, "completion/complete", complete);
    assert_eq!(complete["result"]["completion"]["values"], json!(["draft"]));
    drop(client);
    assert_eq!(served.ended(), Some(0));
}

#[test]
fn a_server_asks_the_person_behind_the_client_in_either_era() {
    let room = Sandbox::new();
    let mut served = Served::start(&room, &["--stdio", "--http", "127.0.0.1:0"]);
    let http = served.address();
    let mut client = initialized(served.streams());
    let call = json!({ "name": "demo-ask_name", "arguments": {} });
    client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call }));
    let question = std::iter::from_fn(|| client.next())
        .find(|message| message["method"] == "elicitation/create")
        .unwrap();
    assert_eq!(question["params"]["message"], "What is your name?");
    let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer }));
    let answered = client.response(1);
    assert_eq!(answered["result"]["content"][0]["text"], "Hello, Ada!", "{answered}");

    let asked = ask_stateless(&http, "tools/call", call.clone());
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let retry = |state: &Value, name: &str, responses: Value| {
        let arguments = json!({});
        json!({ "name": name, "arguments": arguments, "requestState": state,
                "inputResponses": responses })
    };
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let state = &asked["requestState"];
    let stolen = ask_stateless(&http, "tools/call", retry(state, "demo-echo", json!({})));
    assert_eq!(stolen["code"], -32602, "a state belongs to its own call: {stolen}");
    // Without the answer the question comes again, under a new state.
    let again = ask_stateless(&http, "tools/call", retry(state, "demo-ask_name", json!({})));
    assert_eq!(again["resultType"], "input_required", "{again}");
    let answers = json!({ key: answer });
    let done = retry(&again["requestState"], "demo-ask_name", answers);
    let greeted = ask_stateless(&http, "tools/call", done.clone());
    assert_eq!(greeted["content"][0]["text"], "Hello, Ada!", "{greeted}");
    let replayed = ask_stateless(&http, "tools/call", done);
    assert_eq!(replayed["code"], -32602, "a state is good for one retry: {replayed}");
    drop(client);
    assert_eq!(served.ended(), Some(0));
}

#[test]
fn what_needs_approval_is_offered_to_clients_that_can_ask_and_asked_of_them() {
    let room = Sandbox::new();
    let socket = room.path("run/s").display().to_string();
    let mut served = Served::start(&room, &["--unix", &socket]);
    served.address();
    let offers = |client: &mut Lines<_, _>| {
        let listed = client.ask(1, "tools/list", json!({}))["result"]["tools"].to_string();
        listed.contains("demo-delete_note")
    };
    let mut mute = Lines::connect(&socket);
    mute.initialize(json!({}));
    assert!(!offers(&mut mute));
    let refused = mute.call(2, "demo-delete_note", json!({ "name": "draft" }));
    assert_eq!(refused["isError"], true, "{refused}");

    let mut client = Lines::connect(&socket);
    client.initialize(json!({ "elicitation": {} }));
    assert!(offers(&mut client));
    for (id, action, is_refused) in [
        (2, json!({ "action": "decline" }), true),
        (3, json!({ "action": "accept", "content": { "approve": false } }), true),
        (4, json!({ "action": "accept", "content": { "approve": true } }), false),
    ] {
        let call = json!({ "name": "demo-delete_note", "arguments": { "name": "draft" } });
        client.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call }));
        let question = std::iter::from_fn(|| client.next())
            .find(|message| message["method"] == "elicitation/create")
            .unwrap();
        let message = question["params"]["message"].as_str().unwrap();
        assert!(
            message.starts_with("Run 'demo-delete_note' with {\"name\":\"draft\"}?"),
            "{message}"
        );
        client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": action }));
        let answered = client.response(id);
        assert_eq!(answered["result"]["isError"] == true, is_refused, "{answered}");
    }
    drop((mute, client));
    assert_eq!(served.end(), Some(143));
}

#[test]
fn a_request_without_the_right_to_ask_is_refused_and_calls_nothing() {
    let room = Sandbox::new();
    let mut served = Served::start(&room, &["--http", "127.0.0.1:0", "--ws", "127.0.0.1:0"]);
    let (http, ws) = (served.address(), served.address());
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                       "params": { "name": "calculator", "arguments": { "expression": "1" } } });
    let token = format!("Authorization: Bearer {TOKEN}\r\n");
    for (path, headers, wanted) in [
        ("/mcp", String::new(), 401),
        ("/mcp", "Authorization: Bearer guess\r\n".to_owned(), 401),
        ("/mcp", format!("{token}Host: evil.example\r\n"), 403),
        ("/mcp", format!("{token}Origin: http://evil.example\r\n"), 403),
        ("/mcp?token=sesame", String::new(), 400),
        ("/other", token.clone(), 404),
    ] {
        let (status, words) = post(&http, path, &headers, &body.to_string());
        assert_eq!(status, wanted, "{path} {headers} {words}");
    }
    for (headers, wanted) in
        [(String::new(), 401), (format!("{token}Origin: http://evil.example\r\n"), 403)]
    {
        assert_eq!(Frames::connect(&ws, &headers).0, wanted, "{headers}");
    }
    assert_eq!(served.end(), Some(143));
    let audit = room.toolhost(["audit", "--json"]).go();
    assert_eq!(audit.out().trim(), "[]", "nothing was called");
}

#[test]
fn no_port_is_open_to_other_machines_unless_it_is_said() {
    let room = Sandbox::new();
    for host in ["0.0.0.0", "[::]", "0", "0x0", "[::ffff:0.0.0.0]"] {
        for option in ["--http", "--ws"] {
            let address = format!("{host}:0");
            let refused =
                room.toolhost(["serve", option, &address]).env("TOOLHOST_SERVE_TOKEN", "x");
            refused
                .go()
                .exits(2)
                .says(&["can be reached from other machines", "--dangerously-bind"]);
        }
    }
    room.toolhost(["serve", "--http", "nonsense"])
        .go()
        .exits(2)
        .says(&["'nonsense' is not an address to listen on"]);
}

#[test]
fn what_is_no_message_costs_its_sender_an_error_and_others_nothing() {
    let room = Sandbox::new();
    let socket = room.path("run/s").display().to_string();
    let mut served = Served::start(&room, &["--unix", &socket]);
    served.address();
    let mut good = initialized(Lines::connect(&socket));
    let mut bad = Lines::connect(&socket);
    bad.initialize(json!({}));
    for (text, code) in [
        ("no JSON", -32700),
        ("[]", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":7}", -32600),
    ] {
        bad.send_text(text);
        assert_eq!(bad.next().unwrap()["error"]["code"], code, "{text}");
    }
    let still = bad.call(6, "calculator", json!({ "expression": "1+1" }));
    assert_eq!(still["content"][0]["text"], "2");
    let endless = "x".repeat(5 << 20);
    bad.send_text(&endless);
    let told = std::iter::from_fn(|| bad.next()).last();
    assert_eq!(told.map(|message| message["error"]["code"].clone()), Some(json!(-32700)));
    let other = good.call(7, "calculator", json!({ "expression": "2+2" }));
    assert_eq!(other["content"][0]["text"], "4");
    drop((good, bad));
    assert_eq!(served.end(), Some(143));
}

#[test]
fn every_address_that_it_listens_on_is_one_that_a_server_may_have() {
    let room = Sandbox::new();
    let socket = room.path("run/s").display().to_string();
    let mut served = Served::start(&room, &["--unix", &socket, "--ws", "127.0.0.1:0"]);
    served.address();
    let ws = served.address();
    let entries = format!(
        "mcp_servers:
  plain: {{ url: 'unix:{socket}' }}
  lines: {{ url: 'unix:{socket}', transport: lines }}
  ws: {{ url: 'ws://{ws}/mcp', auth: {{ type: bearer, token_env_var: SERVED }} }}
  stranger: {{ url: 'ws://{ws}/mcp', auth: {{ type: bearer, token_env_var: STRANGER }} }}
  astray: {{ url: 'ws://{ws}/other', auth: {{ type: bearer, token_env_var: SERVED }} }}
"
    );
    // Elsewhere, or the server would serve them too.
    let clients = Sandbox::new();
    clients.file("mcp.yaml", &entries);
    let run = |words: &[&str]| {
        let words = words.iter().copied();
        clients.with_servers(words).env("SERVED", TOKEN).env("STRANGER", "stranger").go()
    };
    for (server, transport) in [("plain", "unix"), ("lines", "lines"), ("ws", "websocket")] {
        let called = run(&["call", &format!("{server}-calculator"), "expression=6*7"]);
        assert_eq!(called.exits(0).out(), "42\n", "{called}");
        let asked = run(&["servers", server, "--json"]);
        let server = &asked.exits(0).json()["servers"][0];
        assert_eq!(server["transport"], transport, "{server}");
        assert!(server["ping_ms"].is_f64() || server["era"] == "modern", "{server}");
    }
    let refused = run(&["call", "stranger-calculator", "expression=1"]);
    refused.exits(5).says(&["refused the credentials: 401"]);
    run(&["call", "astray-calculator", "expression=1"]).exits(4).says(&["404", "/other"]);
    assert_eq!(served.end(), Some(143));
}

#[test]
fn a_socket_that_is_in_use_is_not_taken_and_one_that_is_left_behind_is() {
    let room = Sandbox::new();
    let socket = room.path("run/s").display().to_string();
    let mut served = Served::start(&room, &["--unix", &socket]);
    served.address();
    room.toolhost(["serve", "--unix", &socket]).go().exits(9).says(&["another process listens on"]);
    assert_eq!(served.end(), Some(143));
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let mut served = Served::start(&room, &["--unix", &socket]);
    served.address();
    assert_eq!(served.end(), Some(143));
    room.file("plain", "text");
    room.toolhost(["serve", "--unix", "plain"]).go().exits(9).says(&["exists and is not a socket"]);
}

#[test]
fn what_was_asked_before_the_input_ended_is_answered() {
    let room = Sandbox::new();
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {},
                        "clientInfo": { "name": "a pipe", "version": "1" } });
    let call = json!({ "name": "demo-slow", "arguments": { "seconds": 0.3 } });
    let lines = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call }),
    ];
    let served =
        room.toolhost(["serve"]).stdin(lines.map(|line| format!("{line}\n")).concat()).go();
    let said = served.exits(0).out();
    let answer = said.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let answer = answer.into_iter().find(|line| line["id"] == 2).unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "waited 0.3 s", "{answer}");
}

#[test]
fn a_models_calls_are_run_and_answered_in_its_own_dialect() {
    let room = Sandbox::new();
    let response = json!({ "choices": [{ "message": { "role": "assistant", "tool_calls": [
        { "id": "a", "type": "function",
          "function": { "name": "demo-slow", "arguments": "{\"seconds\":0.2}" } },
        { "id": "b", "type": "function",
          "function": { "name": "calculator", "arguments": "{\"expression\":\"6*7\"}" } },
        { "id": "c", "type": "function", "function": { "name": "calculator", "arguments": "{oops" } },
        { "id": "d", "type": "function", "function": { "name": "nothing", "arguments": "{}" } },
    ] } }] });
    let done = room.toolhost(["dispatch", "--format", "openai"]).stdin(response.to_string()).go();
    done.exits(0).says(&["2 calls returned an error"]);
    let answers: Value = serde_json::from_str(&done.out()).unwrap();
    let said: Vec<(&str, &str)> = answers
        .as_array()
        .unwrap()
        .iter()
        .map(|m| (m["tool_call_id"].as_str().unwrap(), m["content"].as_str().unwrap()))
        .collect();
    assert_eq!(said[0], ("a", "waited 0.2 s"));
    assert_eq!(said[1], ("b", "42"));
    assert!(said[2].1.contains("{oops"), "{said:?}");
    assert!(said[3].1.contains("unknown tool 'nothing'"), "{said:?}");
    room.toolhost(["dispatch", "--format", "anthropic"])
        .stdin("{\"error\":\"overloaded\"}")
        .go()
        .exits(2)
        .says(&["not a response in the format anthropic: content is missing"]);
    room.toolhost(["dispatch", "--format", "mcp"]).stdin("{}").go().exits(2);
}

#[test]
fn tools_are_exported_for_the_model_that_is_named() {
    let room = Sandbox::new();
    let exported = room.toolhost(["export", "--model", "claude-sonnet-4", "calculator"]).go();
    let tools: Value = serde_json::from_str(&exported.exits(0).out()).unwrap();
    assert_eq!(tools[0]["name"], "calculator");
    assert_eq!(tools[0]["input_schema"]["type"], "object");
    let exported = room.toolhost(["export", "--format", "gemini", "notes-*", "-v"]).go();
    let tools: Value = serde_json::from_str(&exported.exits(0).out()).unwrap();
    assert_eq!(tools.as_array().unwrap().len(), 4, "{tools}");
    assert!(tools[0]["parametersJsonSchema"]["properties"]["key"].get("pattern").is_none());
    exported.says(&["'/properties/key/pattern' is left out"]);
    room.toolhost(["export", "--model", "unheard-of"])
        .go()
        .exits(2)
        .says(&["no known model family"]);
    room.toolhost(["export"]).go().exits(2);
    let nothing = room.toolhost(["export", "--format", "openai", "nope"]).go();
    nothing.exits(0).says(&["no tool matches 'nope'"]);
}

#[test]
fn what_a_catalogue_costs_is_counted_as_it_is_exported() {
    let room = Sandbox::new();
    let costs = room.toolhost(["list", "--tokens", "--json"]).go().exits(0).json();
    for format in ["openai", "openai-responses", "anthropic", "gemini", "mcp"] {
        let exported = room.toolhost(["export", "--format", format]).go().exits(0).out();
        let tools: Value = serde_json::from_str(&exported).unwrap();
        let sizes = tools.as_array().unwrap().iter().map(|tool| tool.to_string().len() as u64);
        let bytes: u64 = sizes.sum();
        assert_eq!(costs["total"][format]["bytes"], bytes, "{format}");
        let tokens = costs["total"][format]["tokens_estimate"].as_u64().unwrap();
        assert!(bytes / 6 < tokens && tokens < bytes / 3, "{format}: {bytes} bytes, {tokens}");
        for part in ["servers", "tools"] {
            let parts = costs[part].as_array().unwrap().iter();
            let sum: u64 = parts.map(|part| part["costs"][format]["bytes"].as_u64().unwrap()).sum();
            assert_eq!(sum, bytes, "{part} in {format}");
        }
    }
    let table = room.toolhost(["list", "--tokens=anthropic", "--server", "demo"]).go();
    table.exits(0).says(&["in the anthropic format; tokens are estimated"]);
    let out = table.out();
    assert!(out.contains("~TOKENS") && out.contains("demo-echo"), "{out}");
    assert!(!out.contains("calculator"), "{out}");
    room.toolhost(["list", "--tokens=latin"]).go().exits(2);
}

#[test]
fn nothing_of_an_untrusted_project_is_offered_or_started() {
    let room = Sandbox::new();
    let witness = room.path("run/witness").display().to_string();
    let touch = format!("[touch, {witness}]");
    room.file("tools.yaml", &format!("tools:\n  - {{ name: sneaky, command: {touch} }}\n"));
    let server = format!("mcp_servers:\n  bad: {{ command: touch, args: [{witness}] }}\n");
    room.file("mcp.yaml", &server);
    let mut served = Served::start(&room, &[]);
    let mut client = initialized(served.streams());
    let tools = client.ask(1, "tools/list", json!({}))["result"]["tools"].to_string();
    assert!(!tools.contains("sneaky") && !tools.contains("bad"), "{tools}");
    for name in ["sneaky", "bad-tool"] {
        let refused = client.call(2, name, json!({}));
        assert!(refused["isError"] == true || refused["code"].is_i64(), "{refused}");
    }
    drop(client);
    assert_eq!(served.ended(), Some(0));
    assert!(!room.path("run/witness").exists(), "it was started");
}

#[test]
fn a_client_that_floods_the_server_with_calls_is_refused_and_others_are_not() {
    let room = Sandbox::new();
    let socket = room.path("run/s").display().to_string();
    let mut served = Served::start(&room, &["--unix", &socket]);
    served.address();
    let mut flood = initialized(Lines::connect(&socket));
    for id in 1..=300 {
        let call = json!({ "name": "wait", "arguments": { "seconds": 600 } });
        flood.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call }));
    }
    let refused =
        std::iter::from_fn(|| flood.next()).find(|message| message.get("error").is_some());
    let words = refused.unwrap()["error"]["message"].to_string();
    assert!(words.contains("256 calls of this client are already running"), "{words}");
    let mut other = initialized(Lines::connect(&socket));
    let answer = other.call(1, "calculator", json!({ "expression": "1+1" }));
    assert_eq!(answer["content"][0]["text"], "2");
    drop((flood, other));
    assert_eq!(served.end(), Some(143));
}
