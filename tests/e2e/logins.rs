//! Logging in to a server with OAuth: on a terminal, through a browser, and out again.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::{Pty, Sandbox};

/// An MCP server at `/mcp` that wants a token, and its authorization server, on one port. One
/// request on each connection.
struct Guarded {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Guarded {
    fn start(room: &Sandbox) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&heard);
        // It ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let log = Arc::clone(&log);
                std::thread::spawn(move || serve(stream.unwrap(), address, &log));
            }
        });
        // The user's own entry: what a project names as issuer has to be public.
        let entry = format!("tasks: {{ url: \"http://{address}/mcp\" }}\n");
        std::fs::write(room.path("config/toolhost/mcp.yaml"), entry).unwrap();
        Self { address, heard }
    }

    fn asked(&self, words: &str) -> usize {
        self.heard.lock().unwrap().iter().filter(|heard| heard.contains(words)).count()
    }
}

const ACCESS: &str = "hunter2-access-token";

fn serve(mut stream: TcpStream, address: SocketAddr, log: &Mutex<Vec<String>>) {
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
    let body = String::from_utf8(body).unwrap();
    log.lock().unwrap().push(format!("{head}{body}"));
    let (status, more, answer) = answer(&head, &body, &format!("http://{address}"));
    let length = answer.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{more}Content-Length: {length}\r\n\
         Connection: close\r\n\r\n{answer}"
    )
    .ok();
}

fn answer(head: &str, body: &str, base: &str) -> (&'static str, &'static str, String) {
    let path = head.split(' ').nth(1).unwrap_or_default();
    let document = match path.split('?').next().unwrap_or_default() {
        "/.well-known/oauth-protected-resource/mcp" => json!({
            "resource": format!("{base}/mcp"),
            "authorization_servers": [base],
            "scopes_supported": ["read"],
        }),
        "/.well-known/oauth-authorization-server" => json!({
            "issuer": base,
            "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"),
            "registration_endpoint": format!("{base}/register"),
            "code_challenge_methods_supported": ["S256"],
        }),
        "/register" => {
            let asked: Value = serde_json::from_str(body).unwrap();
            json!({ "client_id": "registered", "redirect_uris": asked["redirect_uris"] })
        }
        "/token" => json!({
            "access_token": ACCESS,
            "refresh_token": "hunter2-refresh-token",
            "token_type": "Bearer",
            "expires_in": 3600,
        }),
        "/mcp" if head.starts_with("POST") => return mcp(head, body),
        "/mcp" => return ("405 Method Not Allowed", "", String::new()),
        _ => return ("404 Not Found", "", String::new()),
    };
    ("200 OK", "", document.to_string())
}

fn mcp(head: &str, body: &str) -> (&'static str, &'static str, String) {
    if !head.contains(&format!("Bearer {ACCESS}")) {
        return ("401 Unauthorized", "WWW-Authenticate: Bearer scope=\"read\"\r\n", String::new());
    }
    let asked: Value = serde_json::from_str(body).unwrap();
    let result = match asked["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "guarded", "version": "1" },
        }),
        "tools/list" => json!({
            "tools": [{ "name": "headers", "inputSchema": { "type": "object" } }],
        }),
        // What it was given comes back, as careless servers do.
        "tools/call" => json!({ "content": [{ "type": "text", "text": format!("got {head}") }] }),
        method if method.starts_with("notifications/") => {
            return ("202 Accepted", "", String::new());
        }
        _ => {
            let error = json!({ "code": -32601, "message": "not known" });
            let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error });
            return ("404 Not Found", "", answer.to_string());
        }
    };
    let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result });
    ("200 OK", "", answer.to_string())
}

/// The address a login ends at, for the page that was shown.
fn end_of(page: &str) -> String {
    let (_, query) = page.split_once('?').unwrap();
    let values: BTreeMap<&str, String> = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (key, value.replace("%3A", ":").replace("%2F", "/")))
        .collect();
    format!("{}?code=hunter2-code&state={}", values["redirect_uri"], values["state"])
}

#[track_caller]
fn no_secret(room: &Sandbox, text: &str) {
    assert!(!text.contains("hunter2"), "{text}");
    for (path, bytes) in room.records() {
        let found = bytes.windows(7).any(|window| window == b"hunter2");
        assert!(!found, "in {}", path.display());
    }
}

/// Logs in on a terminal by pasting, and gives what was on the screen.
fn log_in(room: &Sandbox, more: &[&str]) -> (Option<i32>, String) {
    log_in_with(room, more, |end| end)
}

/// The same with what is pasted in place of the right address.
fn log_in_with(
    room: &Sandbox,
    more: &[&str],
    pasted: impl Fn(String) -> String,
) -> (Option<i32>, String) {
    let arguments = [&["auth", "login", "tasks", "--no-browser"], more].concat();
    let mut pty = Pty::toolhost(room, &arguments);
    pty.expect("Address of the last page");
    let screen = pty.screen();
    let start = screen.find("http://127.0.0.1").filter(|_| screen.contains("/authorize?")).unwrap();
    let page = screen[start..].split_whitespace().find(|word| word.contains("/authorize?"));
    let end = pasted(end_of(page.unwrap()));
    pty.type_keys(&format!("{end}\n"));
    pty.finish()
}

#[test]
fn a_login_by_pasting_lets_calls_in_and_its_tokens_stay_inside() {
    let room = Sandbox::new();
    let server = Guarded::start(&room);
    let refused = room.toolhost(["call", "tasks-headers"]).check();
    refused.exits(5).says(&["requires credentials", "toolhost auth login tasks"]);
    assert_eq!(server.asked("well-known"), 0, "a call looks for no authorization server");

    let (code, screen) = log_in(&room, &["--scope", "write"]);
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("logged in to"), "{screen}");
    assert!(screen.contains("Requested scopes: read write"), "{screen}");
    no_secret(&room, &screen);

    let (code, screen) = log_in(&room, &["--trace"]);
    assert_eq!(code, Some(0), "{screen}");
    for word in ["GET http://", ".well-known/oauth-", "POST http://", "200 OK"] {
        assert!(screen.contains(word), "{word}: {screen}");
    }
    no_secret(&room, &screen);

    let called = room.toolhost(["call", "tasks-headers"]).check();
    called.exits(0);
    assert!(called.out().contains("‹secret:access_token›"), "{}", called.out());
    no_secret(&room, &format!("{}{}", called.out(), called.err()));

    let listed = room.toolhost(["auth", "list", "--json"]).check();
    listed.exits(0);
    let login = &listed.json()["logins"][0];
    assert_eq!(login["servers"], json!(["tasks"]));
    assert_eq!(login["issuer"], format!("http://{}", server.address));
    assert_eq!(login["renewable"], true);
    no_secret(&room, &listed.out());

    room.toolhost(["auth", "logout", "tasks"]).check().exits(0);
    room.toolhost(["call", "tasks-headers"]).check().exits(5);
}

#[test]
fn an_ad_hoc_server_that_wants_credentials_is_told_how_to_give_them() {
    let room = Sandbox::new();
    let url = format!("http://{}/mcp", Guarded::start(&room).address);
    let command = format!("toolhost auth login --server-url {url}");
    let refused = room.toolhost(["list", "--as", "other", "--", &url]).check();
    refused.exits(5).says(&["requires credentials", &command, "--header 'Authorization: Bearer"]);
    let login = room.toolhost(["auth", "login", "--server-url", &url]).check();
    login.exits(5).says(&["needs a browser or a terminal"]);
}

#[test]
fn what_is_pasted_has_to_be_the_page_where_the_login_ends() {
    let room = Sandbox::new();
    let server = Guarded::start(&room);
    let other_pages: [fn(String) -> String; 4] = [
        |end| end.replace("127.0.0.1", "evil.example"),
        |end| end.replace("http://", "https://"),
        |end| end.replace("/callback", "/other"),
        |end| end.replace("127.0.0.1", "localhost"),
    ];
    for other in other_pages {
        let (code, screen) = log_in_with(&room, &[], other);
        assert_eq!(code, Some(5), "{screen}");
        assert!(screen.contains("not the one this login ends at"), "{screen}");
        no_secret(&room, &room.toolhost(["auth", "list"]).check().out());
    }
    assert_eq!(server.asked("POST /token"), 0, "a code of another page was exchanged");
}

/// A login belongs to the user's entry; an entry of a project with the same address is a stranger.
#[test]
fn a_stored_login_is_not_used_by_an_untrusted_entry_of_the_same_address() {
    let room = Sandbox::new();
    let server = Guarded::start(&room);
    assert_eq!(log_in(&room, &[]).0, Some(0));
    room.toolhost(["call", "tasks-headers"]).check().exits(0);
    let before = server.heard.lock().unwrap().len();
    let address = server.address;
    room.file("mcp.yaml", &format!("other: {{ url: \"http://{address}/mcp\" }}\n"));
    room.toolhost(["call", "other-headers", "--yes"]).check().exits(6);
    room.toolhost(["list", "--server", "other"]).check().exits(6);
    let heard = server.heard.lock().unwrap();
    assert_eq!(heard.len(), before, "{:?}", &heard[before..]);
}

#[test]
fn a_browser_is_started_with_the_address_and_comes_back_by_itself() {
    let room = Sandbox::new();
    let server = Guarded::start(&room);
    let (opener, seen) = (room.path("work").join("xdg-open"), room.path("work").join("opened"));
    // It says what it was given in one step, and is no browser.
    let script = format!(
        "#!/bin/sh\nprintf '%s' \"$#:$1\" > '{0}.new'\nmv '{0}.new' '{0}'\n",
        seen.display()
    );
    std::fs::write(&opener, script).unwrap();
    std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", room.path("work").display());
    let run = room.toolhost(["auth", "login", "tasks"]).env("DISPLAY", ":7").env("PATH", &path);
    let running = run.start();
    let opened = loop {
        if let Ok(opened) = std::fs::read_to_string(&seen) {
            break opened;
        }
        std::thread::yield_now();
    };
    let page = opened.strip_prefix("1:").unwrap();
    let end = end_of(page);
    let (host, target) = end.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{target} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut shown = String::new();
    stream.read_to_string(&mut shown).unwrap();
    assert!(shown.contains("You can close this page"), "{shown}");
    let finished = running.finish();
    finished.exits(0).says(&["logged in to tasks", page]);
    no_secret(&room, &finished.err());
    assert_eq!(server.asked("POST /token"), 1);
}

#[test]
fn without_a_terminal_and_a_browser_nobody_can_log_in() {
    let room = Sandbox::new();
    Guarded::start(&room);
    let finished = room.toolhost(["auth", "login", "tasks"]).check();
    finished.exits(5).says(&["needs a browser or a terminal"]);
    room.toolhost(["auth", "login", "nothing"]).check().exits(2);
    room.toolhost(["auth", "list"]).check().exits(0);
}

#[test]
fn logins_that_cannot_be_read_are_said_and_can_be_forgotten() {
    let room = Sandbox::new();
    Guarded::start(&room);
    assert_eq!(log_in(&room, &[]).0, Some(0));
    let list =
        |key: &str| room.toolhost(["auth", "list"]).env("TOOLHOST_ENCRYPTION_KEY", key).check();
    list("a key").exits(0);
    let logins = find(&room.path(""), "logins").unwrap();
    std::fs::write(&logins, "nonsense").unwrap();
    list("a key").exits(5).says(&["cannot be read", "logout --all"]);
    let called = room.toolhost(["call", "tasks-headers"]).check();
    called.exits(5).says(&["cannot be read"]);
    assert_eq!(std::fs::read(&logins).unwrap(), b"nonsense");
    room.toolhost(["auth", "logout", "--all"]).check().exits(0);
    list("a key").exits(0);
}

/// A file by its name, anywhere below.
fn find(directory: &std::path::Path, name: &str) -> Option<std::path::PathBuf> {
    std::fs::read_dir(directory).ok()?.flatten().find_map(|entry| {
        let path = entry.path();
        let is_it = path.file_name().is_some_and(|own| own == name) && path.is_file();
        if is_it { Some(path) } else { find(&path, name) }
    })
}
