//! Clients of `toolhost serve` that know nothing but the wire.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::Sandbox;

/// How long an answer may take before the test fails.
const PATIENCE: Duration = Duration::from_mins(1);
/// The token that the tests' servers take.
pub const TOKEN: &str = "sesame";

/// A server under test; told to end when it is dropped.
pub struct Served {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
}

impl Served {
    /// Starts `toolhost serve` with these words, with pipes for its standard streams.
    pub fn start(room: &Sandbox, words: &[&str]) -> Self {
        Self::start_line(room, &[&["serve"], words].concat())
    }

    /// Starts toolhost with a whole command line.
    pub fn start_line(room: &Sandbox, words: &[&str]) -> Self {
        Self::start_with(room, words, &[])
    }

    /// The same with more variables.
    pub fn start_with(room: &Sandbox, words: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_toolhost"))
            .args(words)
            .env_clear()
            .envs(room.environment())
            .env("TOOLHOST_SERVE_TOKEN", TOKEN)
            .envs(variables.iter().copied())
            .current_dir(room.path("work"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stderr }
    }

    /// The next address that it says it listens on.
    pub fn address(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.stderr.read_line(&mut line).unwrap(), 0, "it ended without an address");
            if let Some(address) = line.trim().strip_prefix("listening on ") {
                let address = address.trim_end_matches("/mcp");
                return address.rsplit("//").next().unwrap().to_owned();
            }
        }
    }

    /// Its standard streams, as one client has them.
    pub fn streams(&mut self) -> Lines<ChildStdout, ChildStdin> {
        let input = self.child.stdout.take().unwrap();
        Lines { input: BufReader::new(input), output: self.child.stdin.take().unwrap() }
    }

    /// The next line of its standard error with these words.
    pub fn says(&mut self, words: &str) -> String {
        loop {
            let mut line = String::new();
            let read = self.stderr.read_line(&mut line).unwrap();
            assert_ne!(read, 0, "it ended without saying '{words}'");
            if line.contains(words) {
                return line;
            }
        }
    }

    /// The most memory that it held so far, in bytes.
    pub fn peak_memory(&self) -> u64 {
        self.status("VmHWM:")
    }

    /// The memory that it holds, in bytes.
    pub fn memory(&self) -> u64 {
        self.status("VmRSS:")
    }

    fn status(&self, key: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() << 10
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGHUP, which asks it to read its files.
    pub fn hang_up(&self) {
        kill_process(Pid::from_child(&self.child), Signal::HUP).unwrap();
    }

    /// Tells it to end and gives its exit code.
    pub fn end(mut self) -> Option<i32> {
        drop(self.child.stdin.take());
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }

    /// Waits until it ends by itself.
    pub fn ended(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Ended already, in most tests.
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

/// Sends a message and reads the next one.
pub trait Wire {
    /// Sends one message as it is written.
    fn send_text(&mut self, text: &str);
    /// The next message; `None` when the server hung up.
    fn next(&mut self) -> Option<Value>;

    /// Sends one message.
    fn send(&mut self, message: &Value) {
        self.send_text(&message.to_string());
    }

    /// The response to the request with this id; other messages are left out.
    fn response(&mut self, id: u64) -> Value {
        loop {
            let message = self.next().expect("the server hung up");
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    /// Sends a request and gives its response.
    fn ask(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        self.response(id)
    }

    /// Begins a session of the older era with these capabilities.
    fn initialize(&mut self, capabilities: Value) {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": { "name": "test", "version": "1" },
        });
        let answer = self.ask(0, "initialize", params);
        assert_eq!(answer["result"]["serverInfo"]["name"], "toolhost", "{answer}");
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    }

    /// Calls a tool and gives the result or the error.
    fn call(&mut self, id: u64, name: &str, arguments: Value) -> Value {
        outcome(&self.ask(id, "tools/call", json!({ "name": name, "arguments": arguments })))
    }
}

/// The result or the error of a response.
pub fn outcome(response: &Value) -> Value {
    response.get("result").or_else(|| response.get("error")).unwrap().clone()
}

/// One message a line.
pub struct Lines<R, W> {
    input: BufReader<R>,
    output: W,
}

impl Lines<UnixStream, UnixStream> {
    /// Connects to a Unix socket.
    pub fn connect(path: &str) -> Self {
        Self::of(UnixStream::connect(path).unwrap())
    }

    /// The client at this end of a connection.
    pub fn of(output: UnixStream) -> Self {
        output.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { input: BufReader::new(output.try_clone().unwrap()), output }
    }

    /// Sends one message if the server takes it before the connection's own limit of time.
    pub fn try_send_text(&mut self, text: &str) -> std::io::Result<()> {
        self.output.write_all(format!("{text}\n").as_bytes())
    }
}

impl<R: std::io::Read, W: std::io::Write> Wire for Lines<R, W> {
    fn send_text(&mut self, text: &str) {
        // A server that hangs up is seen when its answer is read.
        let _gone = self.output.write_all(format!("{text}\n").as_bytes());
        let _gone = self.output.flush();
    }

    fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.input.read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(serde_json::from_str(&line).unwrap()),
        }
    }
}

/// One message in each text frame.
pub struct Frames(TcpStream);

impl Frames {
    /// Connects and shakes hands with these headers more; the status and the client.
    pub fn connect(address: &str, headers: &str) -> (u16, Self) {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(
            stream,
            "GET /mcp HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\
             {headers}\r\n"
        )
        .unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        (status(&String::from_utf8(head).unwrap()), Self(stream))
    }

    /// Sends the head of a text frame of this length, and of the text as much as is taken.
    pub fn send_half(&mut self, length: u64, text: &[u8]) {
        self.send_head(length);
        self.0.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
        let _rest_is_not_read = self.0.write_all(text);
    }

    /// Sends the head of a text frame of this length, and nothing of the text.
    pub fn send_head(&mut self, length: u64) {
        let mut head = vec![0x81, 0x80 | 0x7f];
        head.extend(length.to_be_bytes());
        head.extend([0; 4]);
        self.0.write_all(&head).unwrap();
    }
}

impl Wire for Frames {
    fn send_text(&mut self, text: &str) {
        let mut frame = vec![0x81];
        match u16::try_from(text.len()).unwrap() {
            short @ 0..126 => frame.push(0x80 | u8::try_from(short).unwrap()),
            long => {
                frame.push(0x80 | 0x7e);
                frame.extend(long.to_be_bytes());
            }
        }
        // A mask of zeros leaves the text as it is.
        frame.extend([0; 4]);
        frame.extend(text.as_bytes());
        self.0.write_all(&frame).unwrap();
    }

    fn next(&mut self) -> Option<Value> {
        let mut head = [0; 2];
        self.0.read_exact(&mut head).ok()?;
        if head[0] != 0x81 {
            return None;
        }
        let length = match head[1] {
            126 => {
                let mut more = [0; 2];
                self.0.read_exact(&mut more).ok()?;
                usize::from(u16::from_be_bytes(more))
            }
            short => usize::from(short),
        };
        let mut text = vec![0; length];
        self.0.read_exact(&mut text).ok()?;
        Some(serde_json::from_slice(&text).unwrap())
    }
}

/// Sends one request over HTTP on a connection of its own; its status and its body.
pub fn post(address: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
    let answer = exchange(address, "POST", path, headers, body);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    (status(head), body.to_owned())
}

/// The same at `/mcp`; its status and its head.
pub fn post_head(address: &str, headers: &str, body: &str) -> (u16, String) {
    let answer = exchange(address, "POST", "/mcp", headers, body);
    let head = answer.split("\r\n\r\n").next().unwrap_or_default();
    (status(head), head.to_owned())
}

/// Sends one request on a connection of its own, and gives the whole answer.
pub fn exchange(address: &str, method: &str, path: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let host = if headers.to_lowercase().contains("host:") {
        String::new()
    } else {
        format!("Host: {address}\r\n")
    };
    // A server may answer before it has read everything.
    let _answered = write!(
        stream,
        "{method} {path} HTTP/1.1\r\n{host}Connection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    );
    let mut answer = String::new();
    let _reset = stream.read_to_string(&mut answer);
    answer
}

/// A session of the older era over HTTP.
pub struct HttpSession {
    address: String,
    /// The headers of its requests.
    pub headers: String,
}

impl HttpSession {
    /// Opens one with this token.
    pub fn open(address: &str, token: &str) -> Self {
        let token = format!("Authorization: Bearer {token}\r\n");
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
                             "clientInfo": { "name": "session", "version": "1" } });
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let (status, head) = post_head(address, &token, &hello.to_string());
        assert_eq!(status, 200, "{head}");
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        let id = lines.find(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id")).unwrap().1;
        let headers = format!("{token}Mcp-Session-Id: {id}\r\n");
        let session = Self { address: address.to_owned(), headers };
        session.tell("notifications/initialized", &json!({}));
        session
    }

    /// Sends a notification.
    pub fn tell(&self, method: &str, params: &Value) {
        let note = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        assert_eq!(post(&self.address, "/mcp", &self.headers, &note.to_string()).0, 202);
    }

    /// Sends a request; the status, and all messages on its stream.
    pub fn ask(&self, id: u64, method: &str, params: &Value) -> (u16, Vec<Value>) {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let (status, body) = post(&self.address, "/mcp", &self.headers, &request.to_string());
        (status, messages_in(&body))
    }

    /// The stream that belongs to no request, of which the status was read.
    pub fn events(&self) -> BufReader<TcpStream> {
        self.events_after(None)
    }

    /// The stream of this event, after it.
    pub fn events_after(&self, event: Option<&str>) -> BufReader<TcpStream> {
        let last = event.map(|event| format!("Last-Event-ID: {event}\r\n")).unwrap_or_default();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(
            stream,
            "GET /mcp HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\n{}{last}\r\n",
            self.address, self.headers
        )
        .unwrap();
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        assert!(line.contains("200"), "{line}");
        stream
    }

    /// Ends it.
    pub fn end(self) {
        assert_eq!(status(&exchange(&self.address, "DELETE", "/mcp", &self.headers, "")), 202);
    }
}

/// Reads a stream until a line has these words.
pub fn heard(stream: &mut BufReader<TcpStream>, words: &str) -> String {
    let mut line = String::new();
    while !line.contains(words) {
        line.clear();
        assert_ne!(stream.read_line(&mut line).unwrap(), 0, "the stream ended before '{words}'");
    }
    line
}

/// A request of revision 2026-07-28 with the token, and its result or error.
pub fn ask_stateless(address: &str, method: &str, params: Value) -> Value {
    outcome_in(&post_stateless(address, TOKEN, method, params).1)
}

/// A request of revision 2026-07-28 with this token: the status and the body of its answer.
pub fn post_stateless(address: &str, token: &str, method: &str, params: Value) -> (u16, String) {
    post_with_meta(address, token, method, params, &stateless_meta(&json!({ "elicitation": {} })))
}

/// One with these capabilities and this level of log lines: all that comes on its stream.
pub fn stream_stateless(
    address: &str,
    method: &str,
    params: Value,
    capabilities: &Value,
    level: Option<&str>,
) -> Vec<Value> {
    let mut meta = stateless_meta(capabilities);
    if let Some(level) = level {
        meta["io.modelcontextprotocol/logLevel"] = json!(level);
    }
    let (_, answer) = post_with_meta(address, TOKEN, method, params, &meta);
    let said = messages_in(&answer);
    assert!(!said.is_empty(), "no response in {answer}");
    said
}

/// The stream of a subscription with the id 7, of which the head was read.
pub fn subscribe(address: &str, wanted: &Value) -> BufReader<TcpStream> {
    let params = json!({ "notifications": wanted, "_meta": stateless_meta(&json!({})) });
    let method = "subscriptions/listen";
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }).to_string();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nAuthorization: Bearer {TOKEN}\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        assert_ne!(stream.read_line(&mut line).unwrap(), 0, "the stream ended in its head");
        assert!(!line.starts_with("HTTP") || line.contains("200"), "{line}");
    }
    stream
}

/// What a request of revision 2026-07-28 says of its client, with these capabilities.
pub fn stateless_meta(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

/// A request of revision 2026-07-28 with this in its `_meta`: the status and the body of its answer.
pub fn post_with_meta(
    address: &str,
    token: &str,
    method: &str,
    mut params: Value,
    meta: &Value,
) -> (u16, String) {
    params["_meta"] = meta.clone();
    let named = params["name"].as_str().or(params["uri"].as_str());
    let name = named.map(|name| format!("Mcp-Name: {name}\r\n"));
    let headers = format!(
        "Authorization: Bearer {token}\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: {method}\r\n{}",
        name.unwrap_or_default()
    );
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    post(address, "/mcp", &headers, &body.to_string())
}

/// The result or the error in the body of an answer.
pub fn outcome_in(answer: &str) -> Value {
    let said = messages_in(answer);
    outcome(said.last().unwrap_or_else(|| panic!("no response in {answer}")))
}

/// The messages in the body of an answer, which a refusal may send without an event stream.
fn messages_in(answer: &str) -> Vec<Value> {
    let lines = answer.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
    // Sizes of chunks are numbers.
    let values = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    values.filter(Value::is_object).collect()
}

fn status(head: &str) -> u16 {
    head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or_default()
}
