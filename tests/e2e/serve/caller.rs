//! Whose call it is, as a client of `serve` says: the servers and tools behind it get that.

use serde_json::{Value, json};

use super::client::{
    Frames, HttpSession, Lines, Served, TOKEN, Wire, outcome, outcome_in, post_with_meta,
    stateless_meta,
};
use super::tokens::issue;
use crate::call_context::SERVER;
use crate::support::Sandbox;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn room() -> Sandbox {
    let room = Sandbox::new();
    room.file("mirror.py", SERVER);
    room.file("mcp.yaml", "mirror: { command: python3, args: [mirror.py] }\n");
    room.file(
        "mod.py",
        "def whose(context):\n    return {'user': context.user_id, 'session': context.session_id,\n\
         \x20           'tenant': context.metadata.get('tenant')}\n",
    );
    room.file("tools.yaml", "tools:\n  - { name: whose, module: mod, function: whose, root: . }\n");
    room
}

/// What a client says of its caller.
fn caller() -> Value {
    json!({
        "dev.toolhost/userId": "ada",
        "dev.toolhost/sessionId": "s-1",
        "dev.toolhost/metadata": { "tenant": { "id": [1] } },
        "com.example/a": 2,
        "flag": true,
        "progressToken": 7,
        "traceparent": PARENT,
    })
}

fn call(name: &str) -> Value {
    json!({ "name": name, "arguments": {} })
}

fn over(wire: &mut impl Wire, name: &str) -> Value {
    let mut params = call(name);
    params["_meta"] = caller();
    outcome(&wire.ask(1, "tools/call", params))
}

fn stateless(http: &str, token: &str, name: &str) -> Value {
    let mut meta = stateless_meta(&json!({}));
    meta.as_object_mut().unwrap().extend(caller().as_object().unwrap().clone());
    outcome_in(&post_with_meta(http, token, "tools/call", call(name), &meta).1)
}

#[test]
fn what_a_client_says_of_its_caller_reaches_every_kind_over_every_transport() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = room();
    let socket = room.path("run/s").display().to_string();
    let files = ["--tools", "tools.yaml", "--mcp", "mcp.yaml"];
    let listeners = ["--stdio", "--unix", &socket, "--http", "127.0.0.1:0", "--ws", "127.0.0.1:0"];
    let mut served = Served::start(&room, &[&files[..], &listeners].concat());
    served.address();
    let (http, ws) = (served.address(), served.address());
    let mut stdio = served.streams();
    stdio.initialize(json!({}));
    let mut unix = Lines::connect(&socket);
    unix.initialize(json!({}));
    let (_, mut frames) = Frames::connect(&ws, &format!("Authorization: Bearer {TOKEN}\r\n"));
    frames.initialize(json!({}));
    let session = HttpSession::open(&http, TOKEN);
    let in_session = |name: &str| {
        let mut params = call(name);
        params["_meta"] = caller();
        outcome(session.ask(1, "tools/call", &params).1.last().unwrap())
    };
    let check = |transport: &str, ask: &mut dyn FnMut(&str) -> Value| {
        let meta = &ask("mirror-meta")["structuredContent"];
        assert_eq!(meta["dev.toolhost/userId"], "ada", "{transport}: {meta}");
        assert_eq!(meta["dev.toolhost/sessionId"], "s-1", "{transport}: {meta}");
        assert_eq!(meta["com.example/a"], 2, "{transport}: {meta}");
        assert_eq!(meta["traceparent"], PARENT, "{transport}: {meta}");
        let own = &meta["dev.toolhost/metadata"];
        assert_eq!(own["tenant"], json!({ "id": [1] }), "{transport}: {meta}");
        assert_eq!(own["flag"], true, "{transport}: {meta}");
        let whose = &ask("whose")["structuredContent"];
        let expected = json!({ "user": "ada", "session": "s-1", "tenant": { "id": [1] } });
        assert_eq!(whose, &expected, "{transport}");
    };
    check("stdio", &mut |name| over(&mut stdio, name));
    check("unix", &mut |name| over(&mut unix, name));
    check("ws", &mut |name| over(&mut frames, name));
    check("http", &mut |name| stateless(&http, TOKEN, name));
    check("http session", &mut |name| in_session(name));
    let mut params = json!({ "name": "mirror-meta", "arguments": {} });
    params["_meta"] = caller();
    let prompt = outcome(&unix.ask(2, "prompts/get", params)).to_string();
    let read = json!({ "uri": "mirror:meta", "_meta": caller() });
    let read = outcome(&unix.ask(3, "resources/read", read)).to_string();
    let reference = json!({ "type": "ref/prompt", "name": "mirror-meta" });
    let complete = json!({ "ref": reference, "argument": { "name": "a", "value": "" },
                           "_meta": caller() });
    let complete = outcome(&unix.ask(4, "completion/complete", complete)).to_string();
    for answer in [prompt, read, complete] {
        assert!(answer.contains("ada") && answer.contains("com.example/a"), "{answer}");
    }
    drop((stdio, unix, frames));
    assert_eq!(served.ended(), Some(0));
}

#[test]
fn a_client_with_its_own_token_names_sessions_of_its_own_only() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = room();
    let files = ["--tools", "tools.yaml", "--mcp", "mcp.yaml", "--http", "127.0.0.1:0"];
    let mut served = Served::start(&room, &files);
    let http = served.address();
    let sessions: Vec<String> = ["a", "b"]
        .map(|client| {
            let (token, _) = issue(&room, &[client, "--tool", "*"]);
            let whose = stateless(&http, &token, "whose");
            whose["structuredContent"]["session"].as_str().unwrap().to_owned()
        })
        .into();
    assert!(sessions.iter().all(|session| session.ends_with("s-1")), "{sessions:?}");
    assert!(sessions[0] != sessions[1] && sessions[0] != "s-1", "{sessions:?}");
    let mut params = call("mirror-meta");
    params["_meta"] = json!({ "dev.toolhost/metadata": { "x": "y".repeat(70_000) } });
    let mut meta = stateless_meta(&json!({}));
    meta.as_object_mut().unwrap().extend(params["_meta"].as_object().unwrap().clone());
    let refused = outcome_in(&post_with_meta(&http, TOKEN, "tools/call", params, &meta).1);
    assert!(refused.to_string().contains("the metadata of the call is"), "{refused}");
    assert_eq!(served.end(), Some(143));
}
