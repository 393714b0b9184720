//! API tools through the binary: the documents' form, exit codes, trust, and secrets that stay.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::support::{Run, Sandbox};

/// A server that answers by path, one request on each connection, and keeps what it heard.
struct Api {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Api {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&heard);
        // It ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let log = Arc::clone(&log);
                std::thread::spawn(move || serve(stream.unwrap(), &log));
            }
        });
        Self { address, heard }
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    /// A file of tools for this server.
    fn tools(&self, room: &Sandbox) {
        let text = TOOLS.replace("URL", &format!("http://{}", self.address));
        room.file("tools.yaml", &text);
    }
}

/// Answers one request; the whole of it goes into the log.
fn serve(mut stream: TcpStream, log: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        // A client that goes away is part of the tests.
        if reader.read_line(&mut line).unwrap_or_default() == 0 {
            return;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head.push_str(&line);
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let whole = head + &String::from_utf8(body).unwrap();
    let path = whole.split(' ').nth(1).unwrap_or_default().to_owned();
    log.lock().unwrap().push(whole.clone());
    let (status, more, body) = match path.split('?').next().unwrap_or_default() {
        "/api/agent/tasks" => {
            ("201 Created", "Content-Type: application/json", r#"{"id":7}"#.into())
        }
        "/echo" => ("200 OK", "Content-Type: text/plain", whole),
        "/missing" => {
            ("404 Not Found", "Content-Type: text/html", "<title>No\x1b[2J</title>".into())
        }
        "/login" => ("401 Unauthorized", "WWW-Authenticate: Bearer", String::new()),
        "/away" => ("302 Found", "Location: http://127.0.0.1:1/", String::new()),
        "/broken" => ("200 OK", "Content-Type: application/json", "{".into()),
        "/slow" => {
            // Nothing comes until the client has gone.
            stream.read_to_end(&mut Vec::new()).ok();
            return;
        }
        _ => ("200 OK", "Content-Type: application/json", r#"{"ok":true}"#.into()),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\n{more}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .ok();
}

const TOOLS: &str = r#"
defaults: { base_url: "URL" }
schemas:
  CreateTaskParams:
    type: object
    properties:
      title: { type: string }
      priority: { type: integer, minimum: 1 }
    required: [title]
  TaskResponse:
    type: object
    properties: { id: { type: integer } }
    required: [id]
  Strict: { type: object, required: [nowhere] }
tools:
  - provider_type: api_client
    tool_name: create_task
    description: Creates a new task
    endpoint_url: /api/agent/tasks
    method: POST
    param_schema_ref: CreateTaskParams
    response_schema_ref: TaskResponse
  - { name: strict, endpoint_url: /api/agent/tasks, response_schema_ref: Strict }
  - { name: item, endpoint_url: "/items/{id}" }
  - { name: missing, endpoint_url: /missing }
  - { name: login, endpoint_url: /login }
  - { name: away, endpoint_url: /away }
  - { name: broken, endpoint_url: /broken }
  - { name: slow, endpoint_url: /slow, timeout: 300ms }
  - { name: nobody, endpoint_url: "http://127.0.0.1:1/" }
  - { name: drop, endpoint_url: "/items/{id}", method: DELETE }
  - name: echo
    endpoint_url: /echo
    headers: { Authorization: "Bearer ${ECHO_TOKEN}" }
    query: { again: "${ECHO_TOKEN}" }
"#;

const TOKEN: &str = "hunter2-hunter2-hunter2";

fn named<'a>(room: &'a Sandbox, arguments: &[&'a str]) -> Run<'a> {
    let arguments = ["--tools", "tools.yaml"].iter().chain(arguments).copied();
    room.toolhost(arguments).env("ECHO_TOKEN", TOKEN)
}

#[test]
fn the_documents_own_entry_creates_a_task() {
    let (room, api) = (Sandbox::new(), Api::start());
    api.tools(&room);
    let done = named(&room, &["call", "create_task", "title=milk", "priority=2", "--json"]).check();
    done.exits(0);
    assert_eq!(done.json()["output"]["id"], 7);
    let heard = api.heard().pop().unwrap();
    assert!(heard.starts_with("POST /api/agent/tasks HTTP/1.1\r\n"), "{heard}");
    assert!(heard.ends_with(r#"{"title":"milk","priority":2}"#), "{heard}");
    named(&room, &["call", "create_task", "priority=0"])
        .check()
        .exits(2)
        .says(&["title", "priority"]);
    named(&room, &["call", "strict"]).check().exits(10).says(&["output schema"]);
    assert_eq!(api.heard().len(), 2, "nothing is sent for arguments that do not fit");
}

#[test]
fn every_way_to_fail_has_its_code() {
    let (room, api) = (Sandbox::new(), Api::start());
    api.tools(&room);
    for (name, code, words) in [
        ("missing", 3, "404 Not Found: No"),
        ("login", 5, "401"),
        ("away", 6, "which is not followed"),
        ("broken", 10, "not the JSON"),
        ("slow", 7, "no response had arrived"),
        ("nobody", 4, "connection refused"),
    ] {
        named(&room, &["call", name]).check().exits(code).says(&[words]);
    }
    named(&room, &["call", "item", "id=.."]).check().exits(2).says(&["would change the directory"]);
    named(&room, &["call", "drop", "id=3"]).check().exits(6).says(&["--yes"]);
    named(&room, &["call", "drop", "id=3", "--yes"]).check().exits(0);
    let last = api.heard().pop().unwrap();
    assert!(last.starts_with("DELETE /items/3 "), "{last}");
}

#[test]
fn a_token_goes_to_the_server_and_nowhere_else() {
    let (room, api) = (Sandbox::new(), Api::start());
    api.tools(&room);
    for arguments in [
        &["call", "echo"][..],
        &["call", "echo", "--json"],
        &["call", "echo", "--dry-run"],
        &["inspect", "echo"],
        &["config", "show"],
        &["config", "check"],
    ] {
        let done = named(&room, arguments).check();
        done.exits(0);
        assert!(!format!("{}{}", done.out(), done.err()).contains("hunter2"), "{done}");
    }
    let sent = api.heard();
    assert_eq!(sent.len(), 2, "a dry run sends nothing");
    assert!(sent[0].contains(&format!("authorization: Bearer {TOKEN}")), "{}", sent[0]);
    for (path, bytes) in room.records() {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(!text.contains("hunter2"), "{}", path.display());
    }
}

#[test]
fn a_projects_file_gets_no_credentials_before_a_person_allows_it() {
    let (room, api) = (Sandbox::new(), Api::start());
    api.tools(&room);
    let run = |arguments: &[&'static str]| {
        room.toolhost(arguments.iter().copied()).env("ECHO_TOKEN", TOKEN).check()
    };
    run(&["call", "echo"]).exits(6).says(&["toolhost trust"]);
    assert_eq!(api.heard().len(), 0);
    // A plain address is not contacted either.
    run(&["call", "item", "id=1"]).exits(6);
    assert_eq!(api.heard().len(), 0);
    run(&["--trust", "call", "item", "id=1"]).exits(0);
    run(&["--trust", "call", "echo"]).exits(0);
    assert_eq!(api.heard().len(), 2);
}
