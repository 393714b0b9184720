//! Clients that harm only themselves: those that vanish, say nothing, or say too much.

use std::io::{BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::client::{
    Frames, HttpSession, Lines, Served, TOKEN, Wire as _, heard, post, stateless_meta,
};
use crate::support::Sandbox;

const WAIT: &str = r#"{"name":"wait","arguments":{"seconds":600}}"#;

fn call(id: u64, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

fn wait() -> Value {
    serde_json::from_str(WAIT).unwrap()
}

/// The head of a POST of this length with the token.
fn head(address: &str, length: usize, more: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Length: {length}\r\n{more}\r\n"
    )
}

#[test]
fn the_calls_of_a_client_that_vanishes_are_cancelled() {
    let room = Sandbox::new();
    let socket = room.path("run/s").display().to_string();
    let words = ["--unix", &socket, "--http", "127.0.0.1:0", "--ws", "127.0.0.1:0"];
    let mut served = Served::start(&room, &words);
    served.address();
    let (http, ws) = (served.address(), served.address());
    let mut client = Lines::connect(&socket);
    client.initialize(json!({}));
    client.send(&call(1, &wait()));
    // A later answer says that the call was taken.
    client.ask(2, "ping", json!({}));
    drop(client);
    let (_, mut frames) = Frames::connect(&ws, &format!("Authorization: Bearer {TOKEN}\r\n"));
    frames.initialize(json!({}));
    frames.send(&call(1, &wait()));
    frames.ask(2, "ping", json!({}));
    drop(frames);
    let params = json!({
        "name": "demo-slow", "arguments": { "seconds": 30 },
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "progressToken": "p",
        },
    });
    let body = call(1, &params).to_string();
    let more =
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: demo-slow\r\n";
    let mut stream = TcpStream::connect(&http).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(stream, "{}{body}", head(&http, body.len(), more)).unwrap();
    // Its stream begins with the first progress: the call runs.
    stream.read_exact(&mut [0; 12]).unwrap();
    drop(stream);
    let ended = |_: &u32| {
        let audit = room.toolhost(["audit", "--json"]).go();
        audit.out().matches("interrupted").count() >= 3
    };
    assert!((0..200).any(|try_| ended(&try_)), "{}", room.toolhost(["audit", "--json"]).go().out());
    assert_eq!(served.end(), Some(143));
}

#[test]
fn the_calls_of_a_session_that_its_client_ends_are_cancelled() {
    let room = Sandbox::new();
    let mut served = Served::start(&room, &["--http", "127.0.0.1:0"]);
    let http = served.address();
    let session = HttpSession::open(&http, TOKEN);
    let params = json!({
        "name": "demo-slow", "arguments": { "seconds": 30 }, "_meta": { "progressToken": "p" },
    });
    let body = call(1, &params).to_string();
    let mut stream = TcpStream::connect(&http).unwrap();
    stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let more = session.headers.split("\r\n").nth(1).unwrap();
    let more = format!("{more}\r\nConnection: close\r\n");
    write!(stream, "{}{body}", head(&http, body.len(), &more)).unwrap();
    let mut stream = BufReader::new(stream);
    heard(&mut stream, "notifications/progress");
    let headers = session.headers.clone();
    session.end();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("\"result\""), "{rest}");
    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
    assert_eq!(post(&http, "/mcp", &headers, &ping.to_string()).0, 404, "an ended session answers");
    let interrupted =
        |_: &u32| room.toolhost(["audit", "--json"]).go().out().contains("interrupted");
    assert!((0..200).any(|try_| interrupted(&try_)), "the call goes on");
    assert_eq!(served.end(), Some(143));
}

#[test]
fn clients_that_say_nothing_keep_no_one_out() {
    let room = Sandbox::new();
    let socket = room.path("run/s").display().to_string();
    let mut served = Served::start(&room, &["--unix", &socket, "--http", "127.0.0.1:0"]);
    served.address();
    let http = served.address();
    let silent: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(&http).unwrap()).collect();
    let mute: Vec<_> = (0..100).map(|_| Lines::connect(&socket)).collect();
    let mut client = Lines::connect(&socket);
    client.initialize(json!({}));
    let sum = client.call(1, "calculator", json!({ "expression": "1+1" }));
    assert_eq!(sum["content"][0]["text"], "2");
    assert_eq!(post(&http, "/mcp", "", "{}").0, 401);
    drop((silent, mute, client));
    assert_eq!(served.end(), Some(143));
}

#[test]
fn a_message_that_says_it_has_a_gigabyte_is_refused_before_it_comes() {
    let room = Sandbox::new();
    let mut served = Served::start(&room, &["--http", "127.0.0.1:0"]);
    let http = served.address();
    let mut stream = TcpStream::connect(&http).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(stream, "{}{{", head(&http, 1 << 30, "")).unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 413");
    assert_eq!(served.end(), Some(143));
}

#[test]
fn the_ids_of_one_client_mean_nothing_for_another() {
    let room = Sandbox::new();
    let socket = room.path("run/s").display().to_string();
    let mut served = Served::start(&room, &["--unix", &socket]);
    served.address();
    let (mut first, mut second) = (Lines::connect(&socket), Lines::connect(&socket));
    first.initialize(json!({}));
    second.initialize(json!({}));
    let slow = json!({ "name": "demo-slow", "arguments": { "seconds": 1 } });
    first.send(&call(7, &slow));
    first.ask(8, "ping", json!({}));
    let cancelled = json!({ "requestId": 7, "reason": "not mine" });
    second.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled }),
    );
    let sum = second.call(7, "calculator", json!({ "expression": "6*7" }));
    assert_eq!(sum["content"][0]["text"], "42");
    let waited = first.response(7);
    assert_eq!(waited["result"]["content"][0]["text"], "waited 1 s", "{waited}");
    drop((first, second));
    assert_eq!(served.end(), Some(143));
}

#[test]
fn many_sessions_over_http_are_open_at_once_and_each_goes_on() {
    let room = Sandbox::new();
    let mut served = Served::start(&room, &["--http", "127.0.0.1:0"]);
    let http = served.address();
    let sessions: Vec<_> = (0..1_100).map(|_| HttpSession::open(&http, TOKEN)).collect();
    let sum = json!({ "name": "calculator", "arguments": { "expression": "6*7" } });
    for session in [&sessions[0], &sessions[1_099], &sessions[0]] {
        let (status, messages) = session.ask(1, "tools/call", &sum);
        assert_eq!(status, 200);
        assert_eq!(messages.last().unwrap()["result"]["content"][0]["text"], "42", "{messages:?}");
    }
    let one = sessions.into_iter().next().unwrap();
    let headers = one.headers.clone();
    one.end();
    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
    assert_eq!(post(&http, "/mcp", &headers, &ping.to_string()).0, 404, "an ended session answers");
    assert_eq!(served.end(), Some(143));
}

#[test]
fn what_belongs_to_a_request_comes_on_its_own_stream_of_a_session() {
    let room = Sandbox::new();
    let mut served = Served::start(&room, &["--http", "127.0.0.1:0"]);
    let http = served.address();
    let session = HttpSession::open(&http, TOKEN);
    let mut events = session.events();
    session.ask(1, "logging/setLevel", &json!({ "level": "debug" }));
    let lines = json!({ "name": "demo-log_lines", "arguments": { "count": 2, "level": "debug" } });
    let (_, messages) = session.ask(2, "tools/call", &lines);
    let texts: Vec<&Value> = messages
        .iter()
        .filter(|message| message["method"] == "notifications/message")
        .map(|message| &message["params"]["data"])
        .collect();
    assert_eq!(texts, ["line 1", "line 2"], "{messages:?}");
    // Another stream of the session with the same token of progress gets none of it.
    let slow = json!({ "name": "demo-slow", "arguments": { "seconds": 0.3 },
                       "_meta": { "progressToken": 7 } });
    let streams: Vec<_> = std::thread::scope(|scope| {
        let ask = |id| {
            let (session, slow) = (&session, &slow);
            scope.spawn(move || session.ask(id, "tools/call", slow).1)
        };
        let both = [ask(3), ask(4)];
        both.map(|one| one.join().unwrap()).into()
    });
    for messages in streams {
        let reports = messages.iter().filter(|m| m["method"] == "notifications/progress");
        let far: Vec<f64> = reports.map(|m| m["params"]["progress"].as_f64().unwrap()).collect();
        assert!(!far.is_empty() && far.is_sorted_by(|a, b| a < b), "{far:?} of another request");
        assert_eq!(messages.last().unwrap()["result"]["content"][0]["text"], "waited 0.3 s");
    }
    // Nothing of it went to the stream that belongs to no request: its next event is another one.
    room.file("tools.yaml", "tools: []\n");
    let _same_level_as_chosen = session.ask(5, "ping", &json!({}));
    let told = heard(&mut events, "data: {");
    assert!(told.contains("list_changed"), "{told}");
    session.end();
    assert_eq!(served.end(), Some(143));
}

#[test]
fn a_client_whose_stream_breaks_off_comes_back_for_the_answer() {
    let room = Sandbox::new();
    let mut served = Served::start(&room, &["--http", "127.0.0.1:0"]);
    let http = served.address();
    let session = HttpSession::open(&http, TOKEN);
    let params = json!({ "name": "demo-slow", "arguments": { "seconds": 1 } });
    let body = call(1, &params).to_string();
    let mut stream = TcpStream::connect(&http).unwrap();
    let more = session.headers.split("\r\n").nth(1).unwrap();
    write!(stream, "{}{body}", head(&http, body.len(), &format!("{more}\r\n"))).unwrap();
    let mut stream = BufReader::new(stream);
    let event = heard(&mut stream, "id: ");
    drop(stream);
    let event = event.trim().trim_start_matches("id:").trim();
    let mut again = session.events_after(Some(event));
    let answer = heard(&mut again, "\"result\"");
    assert!(answer.contains("waited 1 s"), "{answer}");
    // An event that was never sent leads nowhere.
    let mut nothing = session.events_after(Some("99/0"));
    let mut rest = String::new();
    nothing.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("data: {"), "{rest}");
    assert_eq!(served.end(), Some(143));
}

#[test]
fn heads_and_bodies_that_never_end_are_cut_off() {
    let room = Sandbox::new();
    let mut served = Served::start(&room, &["--http", "127.0.0.1:0", "--ws", "127.0.0.1:0"]);
    let (http, ws) = (served.address(), served.address());
    let begin = |address: &str, text: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(2))).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        stream
    };
    let half = head(&http, 1_000, "");
    let streams = [
        begin(&http, ""),
        begin(&http, "POST /mcp HTTP/1.1\r\nHost: loc"),
        begin(&ws, ""),
        begin(&ws, "GET /mcp HTTP/1.1\r\nUpg"),
        begin(&http, &format!("{half}{{")),
    ];
    let sum = super::ask_stateless(
        &http,
        "tools/call",
        json!({ "name": "calculator", "arguments": { "expression": "1+1" } }),
    );
    assert_eq!(sum["content"][0]["text"], "2", "{sum}");
    for (number, mut stream) in streams.into_iter().enumerate() {
        let mut rest = String::new();
        let ended = stream.read_to_string(&mut rest);
        assert!(ended.is_ok(), "{number} is still open: {ended:?}");
        assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 408"), "{number}: {rest}");
    }
    assert_eq!(served.end(), Some(143));
}

#[test]
fn a_body_of_no_stated_size_is_cut_off_at_the_limit_and_so_is_a_frame() {
    let room = Sandbox::new();
    let mut served = Served::start(&room, &["--http", "127.0.0.1:0", "--ws", "127.0.0.1:0"]);
    let (http, ws) = (served.address(), served.address());
    let mut stream = TcpStream::connect(&http).unwrap();
    stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let chunked =
        head(&http, 0, "Transfer-Encoding: chunked\r\n").replace("Content-Length: 0\r\n", "");
    stream.write_all(chunked.as_bytes()).unwrap();
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    // A gigabyte, if it were let.
    let sent = (0..16_384).take_while(|_| stream.write_all(chunk.as_bytes()).is_ok()).count();
    assert!(sent < 16_384, "all of it was taken");
    let mut status = [0; 12];
    // What was refused may also be reset before the answer is read.
    if stream.read_exact(&mut status).is_ok() {
        assert_eq!(&status, b"HTTP/1.1 413");
    }
    let (status, mut frames) = Frames::connect(&ws, &format!("Authorization: Bearer {TOKEN}\r\n"));
    assert_eq!(status, 101);
    frames.send_head(1 << 30);
    let told = std::iter::from_fn(|| frames.next()).last();
    assert_eq!(told.map(|message| message["error"]["code"].clone()), Some(json!(-32700)));
    assert!(served.peak_memory() < 256 << 20, "{} bytes", served.peak_memory());
    assert_eq!(served.end(), Some(143));
}

#[test]
fn a_client_that_reads_no_answers_holds_up_only_itself() {
    let room = Sandbox::new();
    let socket = room.path("run/s").display().to_string();
    let mut served = Served::start(&room, &["--unix", &socket]);
    served.address();
    let deaf = UnixStream::connect(&socket).unwrap();
    deaf.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut deaf = Lines::of(deaf);
    deaf.initialize(json!({}));
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let mut sent = 0;
    // Until the server reads no more of it.
    while sent < 200_000 {
        let request = list.to_string().replace(":1,", &format!(":{},", sent + 1));
        if deaf.try_send_text(&request).is_err() {
            break;
        }
        sent += 1;
    }
    assert!(sent < 200_000, "everything is read whether it reads or not");
    let mut other = Lines::connect(&socket);
    other.initialize(json!({}));
    let sum = other.call(1, "calculator", json!({ "expression": "1+1" }));
    assert_eq!(sum["content"][0]["text"], "2");
    assert!(served.peak_memory() < 256 << 20, "{} bytes", served.peak_memory());
    drop((deaf, other));
    assert_eq!(served.end(), Some(143));
}

#[test]
fn a_request_without_a_session_is_in_none_whatever_its_header_says() {
    let room = Sandbox::new();
    room.file(
        "tools.yaml",
        "components:\n  - { name: own, storage_type: memory, scope: session }\n",
    );
    let mut served = Served::start(&room, &["--tools", "tools.yaml", "--http", "127.0.0.1:0"]);
    let http = served.address();
    let session = HttpSession::open(&http, TOKEN);
    let tool = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let write = tool("own-write", json!({ "key": "k", "value": "of the session" }));
    session.ask(1, "tools/call", &write);
    let (_, own) = session.ask(2, "tools/call", &tool("own-read", json!({ "key": "k" })));
    let own = own.last().unwrap().to_string();
    assert!(own.contains("of the session"), "{own}");
    // Revision 2026-07-28 has no sessions, so nothing says whose this one is.
    let params = json!({ "name": "own-read", "arguments": { "key": "k" }, "_meta": stateless_meta(&json!({})) });
    let headers = format!(
        "{}MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: own-read\r\n",
        session.headers
    );
    let (_, other) = post(&http, "/mcp", &headers, &call(3, &params).to_string());
    assert!(other.contains("\"id\":3") && !other.contains("of the session"), "{other}");
    assert_eq!(served.end(), Some(143));
}
