//! Servers over a Unix socket and over HTTP+SSE, through the binary.

use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::Sandbox;

/// What a correct server of revision 2024-11-05 says to one message.
fn answer(message: &Value) -> Option<Value> {
    let id = message.get("id")?;
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": "2024-11-05",
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "old", "version": "1" },
        }),
        "tools/list" => {
            json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] })
        }
        "tools/call" => {
            let text = &message["params"]["arguments"]["message"];
            json!({ "content": [{ "type": "text", "text": text }] })
        }
        "ping" => json!({}),
        other => {
            let error = json!({ "code": -32601, "message": format!("no method {other}") });
            return Some(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        }
    };
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

/// Method and path of the next request, and its body.
fn request(reader: &mut impl io::BufRead) -> Option<(String, Value)> {
    let (mut first, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        // A client that goes away is part of the tests.
        if reader.read_line(&mut line).unwrap_or_default() == 0 {
            return None;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
        if first.is_empty() {
            first = line;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let target: Vec<&str> = first.split(' ').take(2).collect();
    Some((target.join(" "), serde_json::from_slice(&body).unwrap_or_default()))
}

fn respond(mut stream: impl Write, status: &str, kind: &str, body: &str) {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}");
    write!(stream, "{head}\r\n\r\n{body}").ok();
}

/// Streamable HTTP at `/mcp` over a socket. It ends with the test's process.
fn on_socket(path: &Path) {
    let listener = UnixListener::bind(path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                while let Some((target, message)) = request(&mut reader) {
                    match (target.as_str(), answer(&message)) {
                        ("POST /mcp", Some(answer)) => {
                            respond(&stream, "200 OK", "application/json", &answer.to_string());
                        }
                        ("POST /mcp", None) => respond(&stream, "202 Accepted", "text/plain", ""),
                        _ => respond(&stream, "404 Not Found", "text/plain", "not here"),
                    }
                }
            });
        }
    });
}

/// HTTP+SSE at `/sse`. It ends with the test's process.
fn with_sse() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let events: Arc<Mutex<Option<TcpStream>>> = Arc::default();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let events = Arc::clone(&events);
            std::thread::spawn(move || sse_connection(&stream, &events));
        }
    });
    address
}

fn sse_connection(mut stream: &TcpStream, events: &Mutex<Option<TcpStream>>) {
    let mut reader = BufReader::new(stream);
    while let Some((target, message)) = request(&mut reader) {
        match target.as_str() {
            "GET /sse" => {
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";
                let event = "event: endpoint\ndata: /messages?session=7\n\n";
                write!(stream, "{head}Connection: close\r\n\r\n{event}").unwrap();
                *events.lock().unwrap() = Some(stream.try_clone().unwrap());
                // Nothing more is asked here; the connection ends when the client goes.
                reader.read_to_end(&mut Vec::new()).ok();
                return;
            }
            "POST /messages?session=7" => {
                respond(stream, "202 Accepted", "text/plain", "Accepted");
                if let (Some(answer), Some(events)) =
                    (answer(&message), &mut *events.lock().unwrap())
                {
                    write!(events, "event: message\ndata: {answer}\n\n").ok();
                }
            }
            _ => respond(stream, "404 Not Found", "text/html", "<pre>Cannot POST /sse</pre>"),
        }
    }
}

fn room(entry: &str) -> Sandbox {
    let room = Sandbox::new();
    room.file("mcp.yaml", &format!("mcp_servers:\n  old: {{ {entry} }}\n"));
    room
}

const CALL: [&str; 3] = ["call", "old-echo", "message=hello"];

#[test]
fn a_server_on_a_socket_is_used_like_any_other() {
    let room = room("url: \"unix:./mcp.sock\"");
    on_socket(&room.path("work/mcp.sock"));
    assert_eq!(room.with_servers(CALL).check().exits(0).out(), "hello\n");
    let finished = room.with_servers(["servers", "--json"]).check();
    let server = &finished.exits(0).json()["servers"][0];
    assert_eq!((&server["transport"], &server["tools"]), (&json!("unix"), &json!(1)));
    let endpoint = format!("unix://{}:/mcp", room.path("work/mcp.sock").display());
    assert_eq!(server["endpoint"], endpoint);
    // A socket knows the user by the user's rights: a project's file asks first.
    let refused = room.toolhost(CALL).check();
    refused.exits(6).says(&["not trusted yet", "contacts unix:./mcp.sock"]);

    let elsewhere = format!("unix://{}:/elsewhere", room.path("work/mcp.sock").display());
    room.file("mcp.yaml", &format!("mcp_servers:\n  old: {{ url: \"{elsewhere}\" }}\n"));
    let finished = room.with_servers(CALL).check();
    finished.exits(4).says(&["404 Not Found", "over the socket", "HTTP+SSE was tried as well"]);
}

#[test]
fn a_socket_that_speaks_lines_is_named_with_the_transport_to_set() {
    let room = room("url: \"unix:./mcp.sock\"");
    let path = room.path("work/mcp.sock");
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                for line in BufReader::new(&stream).lines().map_while(Result::ok) {
                    let message = serde_json::from_str(&line).ok();
                    let broken = || {
                        Some(json!({ "jsonrpc": "2.0", "id": null, "error":
                        { "code": -32700, "message": "not JSON" } }))
                    };
                    let answer = message.map_or_else(broken, |message| answer(&message));
                    if let Some(answer) = answer {
                        writeln!(&stream, "{answer}").ok();
                    }
                }
            });
        }
    });
    let finished = room.with_servers(CALL).check();
    let place = format!("the socket {}", path.display());
    finished.exits(10).says(&[&place, "does not speak HTTP", "set transport: lines"]);
    assert!(!finished.err().contains("localhost:80"), "{finished}");
    room.file("mcp.yaml", "mcp_servers:\n  old: { url: \"unix:./mcp.sock\", transport: lines }\n");
    assert_eq!(room.with_servers(CALL).check().exits(0).out(), "hello\n");
}

#[test]
fn a_socket_that_nobody_listens_on_is_named() {
    let room = room("url: \"unix:./mcp.sock\"");
    let path = room.path("work/mcp.sock").display().to_string();
    room.with_servers(CALL).check().exits(4).says(&["there is no socket", &path]);
    room.file("mcp.sock", "");
    room.with_servers(CALL).check().exits(4).says(&["is not a socket", &path]);
    std::fs::remove_file(&path).unwrap();
    drop(UnixListener::bind(&path).unwrap());
    room.with_servers(CALL).check().exits(4).says(&["nothing is listening on the socket", &path]);
}

#[test]
fn http_with_sse_is_spoken_when_the_entry_says_so() {
    let room = room(&format!("type: sse, url: \"http://{}/sse\"", with_sse()));
    let finished = room.with_servers(CALL).check();
    assert_eq!((finished.exits(0).out(), finished.err()), ("hello\n".into(), String::new()));
    let finished = room.with_servers(["servers", "--json"]).check();
    let server = &finished.exits(0).json()["servers"][0];
    assert_eq!((&server["transport"], &server["era"]), (&json!("sse"), &json!("legacy")));
    assert_eq!(server["protocol"], "2024-11-05");
    assert!(server["ping_ms"].is_f64(), "{server}");
}

#[test]
fn a_server_that_refuses_streamable_http_is_tried_with_sse() {
    let address = with_sse();
    let entry = |kind: &str| room(&format!("{kind}url: \"http://{address}/sse\""));
    let finished = entry("").with_servers(CALL).check();
    assert_eq!(finished.exits(0).out(), "hello\n");
    finished.says(&["set type: sse in its entry"]);
    // Whoever names a transport gets that one.
    let finished = entry("type: http, ").with_servers(CALL).check();
    finished.exits(4).says(&["404 Not Found"]);
    assert!(!finished.err().contains("HTTP+SSE"), "{finished}");
    // What is neither is told by what came first.
    let room = room(&format!("url: \"http://{address}/nothing\""));
    let finished = room.with_servers(CALL).check();
    finished.exits(4).says(&["/nothing: 404 Not Found", "HTTP+SSE was tried as well"]);
}
