//! What one client may cost the server and the other clients.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::client::{
    Frames, Lines, Served, TOKEN, Wire as _, exchange, post, post_stateless, stateless_meta,
};
use super::tokens::issue;
use crate::support::Sandbox;

/// What one message of the largest size may add, and forty of them at once.
const ONE: u64 = 100 << 20;
const FORTY: u64 = 400 << 20;
/// The largest message, in bytes.
const LARGEST: usize = 4 << 20;

/// A call of `name` with `values` as an argument, padded with text to just below the limit.
fn large_call(name: &str, values: &str) -> String {
    let text = " ".repeat(LARGEST - values.len() - 2_000);
    let meta = stateless_meta(&json!({}));
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}","_meta":{meta},"arguments":{{"message":"{text}","more":{values}}}}}}}"#
    )
}

fn send(address: &str, token: &str, name: &str, body: &str) -> (u16, String) {
    let headers = format!(
        "Authorization: Bearer {token}\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: {name}\r\n"
    );
    post(address, "/mcp", &headers, body)
}

#[test]
fn a_message_of_many_values_is_refused_before_it_is_parsed() {
    let room = Sandbox::new();
    let socket = room.path("run/s").display().to_string();
    let mut served = Served::start(&room, &["--unix", &socket, "--http", "127.0.0.1:0"]);
    served.address();
    let http = served.address();
    let (token, _) = issue(&room, &["ci", "--tool", "calculator"]);
    let begin = served.memory();
    let ones = format!("[{}1]", "1,".repeat((LARGEST - 4_000) / 2));
    let body = large_call("demo-echo", &ones);
    let (status, told) = send(&http, &token, "demo-echo", &body);
    assert_eq!(status, 413, "{told}");
    assert!(told.contains("values"), "{told}");
    let peak = served.peak_memory() - begin;
    assert!(peak <= ONE, "one message costs {peak} bytes");
    std::thread::scope(|scope| {
        for _ in 0..40 {
            scope.spawn(|| assert_eq!(send(&http, &token, "demo-echo", &body).0, 413));
        }
    });
    let mut client = Lines::connect(&socket);
    client.initialize(json!({}));
    client.send_text(&body);
    let refused = client.next().unwrap();
    assert!(refused["error"]["message"].as_str().unwrap().contains("values"), "{refused}");
    assert_eq!(
        client.call(2, "calculator", json!({ "expression": "6*7" }))["content"][0]["text"],
        "42"
    );
    let peak = served.peak_memory() - begin;
    assert!(peak <= FORTY, "forty messages cost {peak} bytes");
    assert_eq!(served.end(), Some(143));
}

#[test]
fn forty_of_the_most_expensive_messages_at_once_are_answered_within_a_budget() {
    let room = Sandbox::new();
    let mut served = Served::start(&room, &["--http", "127.0.0.1:0"]);
    let http = served.address();
    let begin = served.memory();
    // Objects of one member cost most for what they take of the limit.
    let objects = format!("[{}{{}}]", r#"{"a":1},"#.repeat(15_000));
    let body = large_call("demo-echo", &objects);
    std::thread::scope(|scope| {
        for _ in 0..40 {
            scope.spawn(|| {
                let (status, told) = send(&http, TOKEN, "demo-echo", &body);
                let start: String = told.chars().take(200).collect();
                assert_eq!(status, 200, "{start}");
            });
        }
    });
    let peak = served.peak_memory() - begin;
    assert!(peak <= FORTY, "forty messages cost {peak} bytes");
    assert_eq!(served.end(), Some(143));
}

#[test]
fn bodies_that_never_end_hold_a_bounded_part_of_the_memory_and_no_small_request() {
    let room = Sandbox::new();
    let mut served = Served::start(&room, &["--http", "127.0.0.1:0"]);
    let http = served.address();
    let begin = served.memory();
    let half = vec![b' '; LARGEST - 1_000];
    let streams: Vec<TcpStream> = (0..100)
        .map(|_| {
            let mut stream = TcpStream::connect(&http).unwrap();
            stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
            let head = format!(
                "POST /mcp HTTP/1.1\r\nHost: {http}\r\nContent-Type: application/json\r\n\
                 Accept: application/json, text/event-stream\r\nAuthorization: Bearer {TOKEN}\r\n\
                 Content-Length: {LARGEST}\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).unwrap();
            // As much as the server takes.
            let _rest_is_not_read = stream.write_all(&half);
            stream
        })
        .collect();
    let sum = json!({ "name": "calculator", "arguments": { "expression": "6*7" } });
    let (status, answer) = post_stateless(&http, TOKEN, "tools/call", sum);
    assert!(status == 200 && answer.contains("42"), "{answer}");
    let peak = served.peak_memory() - begin;
    assert!(peak <= 128 << 20, "half-sent bodies hold {peak} bytes");
    drop(streams);
    assert_eq!(served.end(), Some(143));
}

/// A room with a tool that writes who called it and ends once it is let.
fn room_with_a_gate() -> Sandbox {
    let room = Sandbox::new();
    let script = "echo \"$0\" >> begun; while [ ! -e open ]; do sleep 0.05; done; sleep 0.3";
    room.file(
        "tools.yaml",
        &format!(
            "tools:\n  - name: gate\n    command: [sh, -c, '{script}', '{{who}}']\n    \
             parameters_schema: {{ type: object, properties: {{ who: {{ type: string }} }} }}\n"
        ),
    );
    room
}

#[test]
fn a_client_with_many_calls_does_not_make_another_wait_for_all_of_them() {
    let room = room_with_a_gate();
    let socket = room.path("run/s").display().to_string();
    let mut served = Served::start(&room, &["--tools", "tools.yaml", "--unix", &socket]);
    served.address();
    let begun = || std::fs::read_to_string(room.path("work/begun")).unwrap_or_default();
    let call = |client: &mut Lines<_, _>, id: u64, who: &str| {
        let params = json!({ "name": "gate", "arguments": { "who": who } });
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        client.send(&call);
    };
    let mut many = Lines::connect(&socket);
    many.initialize(json!({}));
    for id in 1..=30 {
        call(&mut many, id, "many");
    }
    many.ask(99, "ping", json!({}));
    while begun().lines().count() < 8 {
        std::thread::yield_now();
    }
    let mut one = Lines::connect(&socket);
    one.initialize(json!({}));
    call(&mut one, 1, "one");
    one.ask(2, "ping", json!({}));
    room.file("open", "");
    assert_eq!(one.response(1)["result"]["isError"], Value::Null);
    let place = begun().lines().position(|who| who == "one").unwrap();
    assert!(place < 17, "30 calls of another client came first: it is number {place}");
    drop((many, one));
    assert_eq!(served.end(), Some(143));
}

#[test]
fn a_page_of_an_allowed_origin_may_ask_from_a_browser() {
    let room = Sandbox::new();
    let origin = "https://app.example";
    let mut served = Served::start(&room, &["--http", "127.0.0.1:0", "--allow-origin", origin]);
    let http = served.address();
    let preflight = |origin: &str, path: &str| {
        let headers = format!(
            "Origin: {origin}\r\nAccess-Control-Request-Method: POST\r\n\
             Access-Control-Request-Headers: authorization,content-type,mcp-protocol-version\r\n"
        );
        exchange(&http, "OPTIONS", path, &headers, "").to_lowercase()
    };
    // A browser sends no token with it.
    let allowed = preflight(origin, "/mcp");
    assert!(allowed.starts_with("http/1.1 204"), "{allowed}");
    let header = |answer: &str, name: &str| {
        let lines = answer.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(key, _)| *key == name).map(|(_, value)| value.to_owned()).next()
    };
    assert_eq!(header(&allowed, "access-control-allow-origin").as_deref(), Some(origin));
    let methods = header(&allowed, "access-control-allow-methods").unwrap();
    assert!(["get", "post", "delete"].iter().all(|name| methods.contains(name)), "{methods}");
    let headers = header(&allowed, "access-control-allow-headers").unwrap();
    for name in [
        "authorization",
        "content-type",
        "accept",
        "last-event-id",
        "mcp-session-id",
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
    ] {
        assert!(headers.split(", ").any(|known| known == name), "{name}: {headers}");
    }
    assert!(header(&allowed, "access-control-allow-credentials").is_none());
    let other = preflight("https://evil.example", "/mcp");
    assert!(other.starts_with("http/1.1 403"), "{other}");
    assert!(header(&other, "access-control-allow-origin").is_none(), "{other}");

    // The page may read the answer, and the refusal that tells it to get a token.
    for (token, status) in [(TOKEN, "200"), ("wrong", "401")] {
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list",
                           "params": { "_meta": stateless_meta(&json!({})) } });
        let headers = format!(
            "Origin: {origin}\r\nAuthorization: Bearer {token}\r\n\
             MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n"
        );
        let answer = exchange(&http, "POST", "/mcp", &headers, &ping.to_string()).to_lowercase();
        assert!(answer.starts_with(&format!("http/1.1 {status}")), "{answer}");
        assert_eq!(header(&answer, "access-control-allow-origin").as_deref(), Some(origin));
        let exposed = header(&answer, "access-control-expose-headers").unwrap();
        assert!(exposed.contains("mcp-session-id"), "{exposed}");
        assert!(exposed.contains("www-authenticate"), "{exposed}");
    }
    assert_eq!(served.end(), Some(143));
}

#[test]
fn a_client_gets_no_hint_for_the_shell() {
    let room = Sandbox::new();
    let mut served = Served::start(&room, &[]);
    let mut client = served.streams();
    client.initialize(json!({}));
    let refused = client.call(1, "demo-delete_note", json!({ "name": "draft" })).to_string();
    assert!(refused.contains("needs approval"), "{refused}");
    assert!(!refused.contains("--yes"), "{refused}");
    let unknown = client.call(2, "demo-ecko", json!({})).to_string();
    assert!(unknown.contains("did you mean") && !unknown.contains("toolhost "), "{unknown}");
    drop(client);
    assert_eq!(served.ended(), Some(0));
}

#[test]
fn entries_out_of_service_are_named_when_serving_begins() {
    let room = Sandbox::new();
    room.file("tools.yaml", "tools:\n  - { name: broken, kind: no_such_kind }\n");
    let mut served = Served::start(&room, &["--tools", "tools.yaml"]);
    let told = served.says("out of service");
    assert!(told.contains("'broken'"), "{told}");
    drop(served.streams());
    assert_eq!(served.ended(), Some(0));
}

#[test]
fn frames_that_never_end_hold_a_bounded_part_of_the_memory() {
    let room = Sandbox::new();
    let mut served = Served::start(&room, &["--ws", "127.0.0.1:0"]);
    let ws = served.address();
    let begin = served.memory();
    let token = format!("Authorization: Bearer {TOKEN}\r\n");
    let half = vec![b' '; LARGEST - 1_000];
    let mut clients: Vec<Frames> = (0..60).map(|_| Frames::connect(&ws, &token).1).collect();
    for client in &mut clients {
        client.send_half(LARGEST as u64, &half);
    }
    let (_, mut other) = Frames::connect(&ws, &token);
    other.initialize(json!({}));
    let sum = other.call(1, "calculator", json!({ "expression": "6*7" }));
    assert_eq!(sum["content"][0]["text"], "42");
    let peak = served.peak_memory() - begin;
    assert!(peak <= 128 << 20, "half-sent frames hold {peak} bytes");
    drop((clients, other));
    assert_eq!(served.end(), Some(143));
}

/// A server of the older era that asks in each call, and says of no question whose it is.
const ASKER: &str = r#"
import json, sys, threading
lock, answers = threading.Lock(), {}

def out(message):
    with lock:
        print(json.dumps(message), flush=True)

def call(message):
    key = "q%s" % message["id"]
    answers[key] = [threading.Event(), None]
    out({"jsonrpc": "2.0", "id": key, "method": "elicitation/create",
         "params": {"message": "name?", "requestedSchema": {
             "type": "object", "properties": {"name": {"type": "string"}}}}})
    open("asked-%s" % len(answers), "w").close()
    answers[key][0].wait()
    text = json.dumps(answers[key][1])
    out({"jsonrpc": "2.0", "id": message["id"],
         "result": {"content": [{"type": "text", "text": text}]}})

for line in sys.stdin:
    message = json.loads(line)
    if "method" not in message:
        answers[message["id"]][1] = message.get("result")
        answers[message["id"]][0].set()
    elif message["method"] == "initialize":
        out({"jsonrpc": "2.0", "id": message["id"], "result": {
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "asker", "version": "1"}}})
    elif message["method"] == "tools/list":
        tools = [{"name": "ask", "inputSchema": {"type": "object"}}]
        out({"jsonrpc": "2.0", "id": message["id"], "result": {"tools": tools}})
    elif message["method"] == "tools/call":
        threading.Thread(target=call, args=(message,), daemon=True).start()
    elif "id" in message:
        error = {"code": -32601, "message": "no"}
        out({"jsonrpc": "2.0", "id": message["id"], "error": error})
"#;

#[test]
fn a_question_of_one_client_does_not_decline_those_of_another() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = Sandbox::new();
    room.file("asker.py", ASKER);
    room.file("mcp.yaml", "asker: { command: python3, args: [asker.py] }\n");
    let socket = room.path("run/s").display().to_string();
    let mut served = Served::start(&room, &["--mcp", "mcp.yaml", "--unix", &socket]);
    served.address();
    let begin = |client: &mut Lines<_, _>| {
        client.initialize(json!({ "elicitation": {} }));
        let call = json!({ "name": "asker-ask", "arguments": {} });
        client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call }));
    };
    let answer = |client: &mut Lines<_, _>, name: &str| {
        let question = std::iter::from_fn(|| client.next())
            .find(|message| message["method"] == "elicitation/create" || message["id"] == 1)
            .unwrap();
        assert_eq!(question["params"]["message"], "name?", "{name}: {question}");
        let result = json!({ "action": "accept", "content": { "name": name } });
        client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": result }));
        let answered = client.response(1).to_string();
        assert!(answered.contains(name), "{answered}");
    };
    let (mut first, mut second) = (Lines::connect(&socket), Lines::connect(&socket));
    begin(&mut first);
    // Its question is there, and waits.
    let question = std::iter::from_fn(|| first.next())
        .find(|message| message["method"] == "elicitation/create")
        .unwrap();
    begin(&mut second);
    while !room.path("work/asked-2").exists() {
        std::thread::yield_now();
    }
    let result = json!({ "action": "accept", "content": { "name": "Ada" } });
    first.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": result }));
    let answered = first.response(1).to_string();
    assert!(answered.contains("Ada"), "{answered}");
    answer(&mut second, "Bob");
    drop((first, second));
    assert_eq!(served.end(), Some(143));
}
