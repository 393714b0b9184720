//! Whose call it is: what a call carries beside its arguments, in every kind of tool.

use serde_json::{Value, json};

use crate::support::{Run, Sandbox};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// An MCP server that answers each call with the `_meta` it came with.
pub(crate) const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18",
                  "capabilities": {"tools": {}, "prompts": {}, "resources": {}, "completions": {}},
                  "serverInfo": {"name": "mirror", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "meta", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        meta = params.get("_meta", {})
        result = {"content": [], "structuredContent": meta}
    elif method == "prompts/list":
        result = {"prompts": [{"name": "meta", "arguments": [{"name": "a"}]}]}
    elif method == "resources/list":
        result = {"resources": [{"uri": "mirror:meta", "name": "meta"}]}
    elif method == "prompts/get":
        text = json.dumps(params.get("_meta", {}))
        result = {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
    elif method == "resources/read":
        result = {"contents": [{"uri": "mirror:meta", "text": json.dumps(params.get("_meta", {}))}]}
    elif method == "completion/complete":
        result = {"completion": {"values": [json.dumps(params.get("_meta", {}))]}}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"],
                          "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

fn room() -> Sandbox {
    let room = Sandbox::new();
    room.file("mirror.py", SERVER);
    room.file(
        "mcp.yaml",
        "mirror: { command: python3, args: [mirror.py], context_env: [TICKET] }\n",
    );
    room.file(
        "mod.py",
        "def whose(context):\n    return {'user': context.user_id, 'trace': context.traceparent}\n",
    );
    room.file(
        "tools.yaml",
        "tools:\n\
         \x20 - { name: show, command: [env] }\n\
         \x20 - { name: whose, module: mod, function: whose, root: . }\n\
         \x20 - { name: both, kind: pipeline, steps: [{ id: a, tool: mirror-meta, args: {} }],\n\
         \x20     result: { user: '{context.user_id}', inner: '{a.output}' } }\n",
    );
    room
}

fn run<'a>(room: &'a Sandbox, words: &[&'a str]) -> Run<'a> {
    let files = ["--tools", "tools.yaml", "--mcp", "mcp.yaml", "call"];
    room.toolhost(files.into_iter().chain(words.iter().copied()))
}

/// The `_meta` of a call, without the token of progress, which is the wire's own.
#[track_caller]
fn meta(run: Run<'_>) -> (Value, Value) {
    let finished = run.check();
    finished.exits(0);
    let mut call = finished.json();
    let mut meta = call["structured"].take();
    meta.as_object_mut().unwrap().remove("progressToken");
    (meta, call["metadata"]["call_id"].clone())
}

#[test]
fn a_server_gets_what_the_call_carries_under_keys_of_its_own() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = room();
    let words = [
        "mirror-meta",
        "--json",
        "--session",
        "s-1",
        "--context",
        "user_id=ada",
        "--context",
        "tenant:={\"id\": [1]}",
        "--context",
        "com.example/a:=2",
        "--context",
        "TICKET=7",
        "--context",
        &format!("traceparent={PARENT}"),
        "--context",
        "tracestate=v=1",
    ];
    let (meta, call) = meta(run(&room, &words));
    assert_eq!(
        meta,
        json!({
            "com.example/a": 2,
            "dev.toolhost/sessionId": "s-1",
            "dev.toolhost/callId": call,
            "dev.toolhost/userId": "ada",
            "dev.toolhost/metadata": { "tenant": { "id": [1] } },
            "dev.toolhost/environment": { "TICKET": "7" },
            "traceparent": PARENT,
            "tracestate": "v=1",
        })
    );
}

#[test]
fn prompts_resources_and_completions_carry_what_calls_carry() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = room();
    let ask = |words: &[&str]| {
        let words = ["--mcp", "mcp.yaml"].into_iter().chain(words.iter().copied());
        let run = room.toolhost(words).env("TOOLHOST_USER", "ada").env("TRACEPARENT", PARENT);
        let answer = run.check().exits(0).out();
        let mut meta: Value = serde_json::from_str(answer.trim()).unwrap();
        let members = meta.as_object_mut().unwrap();
        let call = members.remove("dev.toolhost/callId").unwrap();
        assert!(members.remove("dev.toolhost/sessionId").is_some_and(|id| id.is_string()));
        members.remove("progressToken");
        assert_eq!(meta, json!({ "dev.toolhost/userId": "ada", "traceparent": PARENT }));
        call.as_str().unwrap().to_owned()
    };
    let calls = [
        ask(&["prompts", "get", "mirror-meta", "-o", "raw"]),
        ask(&["resources", "read", "mirror:meta", "-o", "raw"]),
        ask(&["complete", "mirror-meta", "a", "x"]),
    ];
    assert!(calls.iter().all(|call| !call.is_empty()) && calls[0] != calls[1], "{calls:?}");
}

#[test]
fn nothing_that_was_not_given_is_sent_and_no_known_secret() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = room();
    let (bare, _) = meta(run(&room, &["mirror-meta", "--json", "--session", "s"]));
    let keys: Vec<&String> = bare.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["dev.toolhost/sessionId", "dev.toolhost/callId"]);
    run(&room, &["mirror-meta", "--context", "OTHER_ID=1"])
        .check()
        .exits(2)
        .says(&["context_env: [OTHER_ID]"]);
    // A value that a file reads from the environment is known, wherever it is passed.
    room.file(
        "mcp.yaml",
        "mirror: { command: python3, args: [mirror.py], env: { KEY: '${API_KEY}' } }\n",
    );
    let secret = "hunter2-hunter2";
    let given = format!("note:=\"with {secret}\"");
    let (sent, _) =
        meta(run(&room, &["mirror-meta", "--json", "--context", &given]).env("API_KEY", secret));
    assert_eq!(sent["dev.toolhost/metadata"]["note"], "with ${API_KEY}", "{sent}");
}

#[test]
fn the_environment_names_the_user_and_the_trace_for_every_kind() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = room();
    let with = |words: &[&str]| {
        let words: Vec<&str> = words.to_vec();
        let files = ["--tools", "tools.yaml", "--mcp", "mcp.yaml", "call"];
        let finished = room
            .toolhost(files.into_iter().chain(words))
            .env("TOOLHOST_USER", "ada")
            .env("TRACEPARENT", PARENT)
            .check();
        finished.exits(0);
        finished
    };
    let shown = with(&["show"]).out();
    assert!(shown.contains("TOOLHOST_USER=ada\n"), "{shown}");
    assert!(shown.contains(&format!("TRACEPARENT={PARENT}\n")), "{shown}");
    let whose = with(&["whose", "--json"]).json();
    assert_eq!(whose["structured"], json!({ "user": "ada", "trace": PARENT }));
    // What a call says itself comes before it, and reaches the calls inside it.
    let nested = with(&["both", "--json", "--context", "user_id=bob"]).json();
    let inner = &nested["structured"]["inner"];
    assert_eq!(nested["structured"]["user"], "bob", "{nested}");
    assert_eq!(inner["dev.toolhost/userId"], "bob", "{nested}");
    assert_eq!(inner["traceparent"], PARENT, "{nested}");
    // What is wrong in the environment is left out, and said.
    let odd = run(&room, &["mirror-meta", "--json"]).env("TRACEPARENT", "00-x").check();
    odd.exits(0).says(&["TRACEPARENT is ignored"]);
    assert!(odd.json()["structured"].get("traceparent").is_none());
}

#[test]
fn what_a_call_cannot_carry_is_a_usage_error() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = room();
    let large = format!("text:=\"{}\"", "x".repeat(60 << 10));
    let more = large.replacen("text", "more", 1);
    for (words, told) in [
        (vec![&*large, &*more], "more than 64.0 KiB"),
        (vec!["io.modelcontextprotocol/x:=1"], "is reserved"),
        (vec!["session_id=x"], "--session ID"),
        (vec!["TOOLHOST_USER=x"], "user_id=NAME"),
        (vec!["user_id:=1"], "must be text"),
        (vec!["traceparent=00-1"], "not a W3C trace parent"),
        (vec!["k:={"], "invalid JSON"),
    ] {
        let mut all = vec!["mirror-meta"];
        for word in words {
            all.extend(["--context", word]);
        }
        run(&room, &all).check().exits(2).says(&[told]);
    }
}
