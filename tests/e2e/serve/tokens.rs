//! Access tokens of clients, from their issue to their revocation.

use serde_json::{Value, json};

use super::client::{Frames, Served, TOKEN, Wire as _, outcome_in, post, post_stateless};
use crate::support::Sandbox;

/// Issues a token with these words: the token and its id.
pub fn issue(room: &Sandbox, words: &[&str]) -> (String, String) {
    let words = ["serve", "token", "issue", "--json"].into_iter().chain(words.iter().copied());
    let issued = room.toolhost(words).go();
    let issued = issued.exits(0).json();
    let text = |key: &str| issued[key].as_str().unwrap().to_owned();
    (text("token"), text("id"))
}

/// The outcome of a request with this token.
fn ask(address: &str, token: &str, method: &str, params: Value) -> Value {
    let (status, answer) = post_stateless(address, token, method, params);
    assert!(!matches!(status, 401 | 403), "{answer}");
    outcome_in(&answer)
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
}

#[test]
fn outside_of_its_scope_nothing_exists_for_a_client_and_records_name_it() {
    let room = Sandbox::new();
    let mut served = Served::start(&room, &["--http", "127.0.0.1:0"]);
    let http = served.address();
    let (token, _) = issue(&room, &["ci", "--tool", "demo-echo", "--tool", "calc*"]);
    let ask = |method: &str, params: Value| ask(&http, &token, method, params);

    assert_eq!(names(&ask("tools/list", json!({}))["tools"]), ["calculator", "demo-echo"]);
    for list in ["prompts", "resources"] {
        assert_eq!(ask(&format!("{list}/list"), json!({}))[list], json!([]), "{list}");
    }
    let templates = ask("resources/templates/list", json!({}));
    assert_eq!(templates["resourceTemplates"], json!([]));
    let echoed = ask("tools/call", json!({ "name": "demo-echo", "arguments": { "message": "x" } }));
    assert_eq!(echoed["content"][0]["text"], "x", "{echoed}");

    // What is there for others, under every spelling, and what is not there at all.
    let same = |method: &str, hidden: &str, nowhere: &str, params: &dyn Fn(&str) -> Value| {
        let shown = ask(method, params(hidden)).to_string().replace(hidden, nowhere);
        assert_eq!(shown, ask(method, params(nowhere)).to_string(), "{method} {hidden}");
        assert!(shown.contains("code"), "{method} {hidden}: {shown}");
    };
    let call = |name: &str| json!({ "name": name, "arguments": {} });
    for hidden in ["demo-add", "demo.add", "add", "wait", "notes-read", "demo-slow"] {
        same("tools/call", hidden, "nowhere", &call);
    }
    same("prompts/get", "demo-greet", "demo-grout", &|name| json!({ "name": name }));
    let read = |uri: &str| json!({ "uri": uri });
    same("resources/read", "demo://readme", "demo://nothing", &read);
    same("resources/read", "demo://notes/draft", "demo://notes/nothing", &read);

    // The one who runs the server sees everything.
    let all = super::ask_stateless(&http, "tools/list", json!({}));
    assert!(names(&all["tools"]).contains(&"demo-add"));
    drop(served);
    let audit = room.toolhost(["audit", "--json"]).go();
    let audit = audit.exits(0).json();
    let echo = audit.as_array().unwrap().iter().find(|call| call["tool"] == "demo-echo");
    assert_eq!(echo.unwrap()["caller"]["client"], "ci");
    let history = room.toolhost(["history", "--json"]).go();
    let history = history.exits(0).json();
    assert_eq!(history[0]["caller"]["client"], "ci", "{history}");
    room.toolhost(["audit"]).go().exits(0).says(&[]);
}

#[test]
fn a_token_is_bound_to_its_profile_and_a_profile_to_what_is_served() {
    let room = Sandbox::new();
    let tools = "tools:\n  - { name: one, command: [printf, '1'] }\n  \
                 - { name: two, command: [printf, '2'] }\n  \
                 - { name: all, steps: [{ tool: two }] }\n\
                 profiles:\n  few: { include: [one, all] }\n  other: { exclude: [one] }\n";
    room.file("tools.yaml", tools);
    let (few, _) = issue(&room, &["a", "--profile", "few", "--trust"]);
    let (both, _) = issue(&room, &["b", "--profile", "few", "--tool", "o*", "--trust"]);
    let served = ["--http", "127.0.0.1:0", "--profile", "few", "--trust"];
    let whole = &served[..2];
    let mut narrow = Served::start(&room, &served);
    let mut wide = Served::start(&room, &[whole, &["--trust"]].concat());
    let (narrow, wide) = (narrow.address(), wide.address());
    let list = |address: &str, token: &str| {
        let listed = ask(address, token, "tools/list", json!({}));
        names(&listed["tools"]).join(" ")
    };
    assert_eq!((list(&wide, &few), list(&wide, &both)), ("one all".into(), "one".into()));
    let (other, _) = issue(&room, &["c", "--profile", "other", "--trust"]);
    assert_eq!((list(&wide, &other), list(&narrow, &other)), ("two all".into(), "all".into()));
    // What a tool calls is bound to the scope of its caller too.
    let call = json!({ "name": "all", "arguments": {} });
    let nested = ask(&wide, &few, "tools/call", call.clone());
    assert_eq!(nested["isError"], true, "{nested}");
    assert_eq!(ask(&wide, &other, "tools/call", call)["isError"], Value::Null);
    room.toolhost(["serve", "token", "issue", "x", "--profile", "fow", "--trust"])
        .go()
        .exits(2)
        .says(&["unknown profile 'fow'", "did you mean 'few'?"]);
}

#[test]
fn a_revoked_token_is_refused_at_once_by_every_server_and_its_connections_end() {
    let room = Sandbox::new();
    let words = ["--http", "127.0.0.1:0", "--ws", "127.0.0.1:0"];
    let (mut one, mut two) = (Served::start(&room, &words), Served::start(&room, &words));
    let (first, socket) = (one.address(), one.address());
    let second = two.address();
    let (token, id) = issue(&room, &["ci"]);
    let (kept, _) = issue(&room, &["desk", "--expires", "1h"]);
    for address in [&first, &second] {
        ask(address, &token, "tools/list", json!({}));
    }
    let (status, mut frames) =
        Frames::connect(&socket, &format!("Authorization: Bearer {token}\r\n"));
    assert_eq!(status, 101);
    frames.initialize(json!({}));
    let call = json!({ "name": "wait", "arguments": { "seconds": 600 } });
    frames.send(&json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": call }));
    let list = room.toolhost(["serve", "token", "list"]).go();
    list.exits(0);
    assert!(list.out().contains(&id) && !list.out().contains(&token), "{}", list.out());

    room.toolhost(["serve", "token", "revoke", "ci"]).go().exits(0).says(&["revoked", &id]);
    for address in [&first, &second] {
        let (status, answer) = post_stateless(address, &token, "tools/list", json!({}));
        assert_eq!(status, 401, "{answer}");
        ask(address, &kept, "tools/list", json!({}));
    }
    let left = std::iter::from_fn(|| frames.next()).filter(|message| message["id"] == 5);
    for message in left {
        assert!(message.get("error").is_some(), "{message}");
    }
    room.toolhost(["serve", "token", "revoke", "ci"]).go().exits(2).says(&["'ci'"]);
}

#[test]
fn a_session_of_one_client_is_of_no_use_to_another() {
    let room = Sandbox::new();
    let mut served = Served::start(&room, &["--http", "127.0.0.1:0"]);
    let http = served.address();
    let (one, _) = issue(&room, &["one"]);
    let (two, _) = issue(&room, &["two"]);
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" } } });
    let (status, head) = super::client::post_head(
        &http,
        &format!("Authorization: Bearer {one}\r\n"),
        &hello.to_string(),
    );
    assert_eq!(status, 200, "{head}");
    let session = head
        .lines()
        .find_map(|line| line.to_lowercase().strip_prefix("mcp-session-id: ").map(str::to_owned))
        .unwrap_or_else(|| panic!("no session in {head}"));
    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" }).to_string();
    let status = |token: &str| {
        let headers = format!(
            "Authorization: Bearer {token}\r\nMcp-Session-Id: {session}\r\n\
             MCP-Protocol-Version: 2025-11-25\r\n"
        );
        post(&http, "/mcp", &headers, &ping).0
    };
    assert_eq!((status(&one), status(&two), status(TOKEN)), (200, 404, 404));
}

#[test]
fn a_token_is_shown_once_and_kept_as_a_hash() {
    let room = Sandbox::new();
    let issued = room.toolhost(["serve", "token", "issue", "ci", "--expires", "7d"]).go();
    issued.exits(0).says(&["issued", "it is not shown again", "may use everything"]);
    let token = issued.out().trim().to_owned();
    assert!(token.starts_with("toolhost_"), "{token}");
    for (path, bytes) in room.records() {
        assert!(!String::from_utf8_lossy(&bytes).contains(&token), "{}", path.display());
    }
    let list = room.toolhost(["serve", "token", "list", "--json"]).go();
    let list = list.exits(0).json();
    assert_eq!(
        (&list["tokens"][0]["client"], &list["tokens"][0]["expired"]),
        (&"ci".into(), &false.into())
    );
    for (words, said) in [
        (&["issue", "a b"][..], "'a b' is not a valid client name"),
        (&["issue", "a", "--expires", "soon"], "expected a time"),
        (&["revoke", "nobody"], "no token and no client is called 'nobody'"),
    ] {
        let words = ["serve", "token"].into_iter().chain(words.iter().copied());
        room.toolhost(words).go().exits(2).says(&[said]);
    }
    room.toolhost(["serve", "--http", "127.0.0.1:0", "token", "list"]).go().exits(2);
}

#[test]
fn the_owner_s_token_may_stand_in_a_file() {
    let room = Sandbox::new();
    room.file("token", "from a file\n");
    let mut served = Served::start(&room, &["--http", "127.0.0.1:0", "--token-file", "token"]);
    let http = served.address();
    ask(&http, "from a file", "tools/list", json!({}));
    assert_eq!(post_stateless(&http, TOKEN, "tools/list", json!({})).0, 401);
    room.toolhost(["serve", "--http", "127.0.0.1:0", "--token-file", "nowhere"])
        .go()
        .exits(9)
        .says(&["cannot read the token in nowhere"]);
}
