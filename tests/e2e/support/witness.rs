//! Witnesses of what a configuration made happen: listeners that keep every request, a program
//! that writes down each of its starts, and a search for planted values in whatever was left.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::Sandbox;

/// A listener that keeps what it was sent. It ends with the test's process.
#[derive(Clone)]
pub struct Listener {
    /// Its address over TCP; a socket in the file system has none.
    address: Option<SocketAddr>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Listener {
    /// An HTTP server that answers every request with 200 and a JSON document which holds the
    /// request itself: what was sent comes back, as from a server that wants it printed.
    pub fn http() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::default();
        let log = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let log = Arc::clone(&log);
                std::thread::spawn(move || {
                    let reader = stream.try_clone().unwrap();
                    converse(reader, stream, &log);
                });
            }
        });
        Self { address: Some(address), requests }
    }

    /// The same at a socket in the file system.
    pub fn unix(path: &Path) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let requests = Arc::default();
        let log = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let log = Arc::clone(&log);
                std::thread::spawn(move || {
                    let reader = stream.try_clone().unwrap();
                    converse(reader, stream, &log);
                });
            }
        });
        Self { address: None, requests }
    }

    /// The address as `HOST:PORT`.
    pub fn authority(&self) -> String {
        self.address.unwrap().to_string()
    }

    /// Every connection so far: its requests, heads and bodies; empty when it sent none.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// Keeps the requests of one connection and answers them. A connection counts before its first
/// byte.
fn converse(reader: impl Read, mut writer: impl Write, log: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(reader);
    let place = {
        let mut log = log.lock().unwrap();
        log.push(String::new());
        log.len() - 1
    };
    loop {
        let (mut head, mut length) = (String::new(), 0_usize);
        loop {
            let mut line = Vec::new();
            // A client may go away, and may speak another protocol, without line breaks.
            if reader.by_ref().take(64 * 1024).read_until(b'\n', &mut line).unwrap_or(0) == 0 {
                log.lock().unwrap()[place].push_str(&head);
                return;
            }
            let line = String::from_utf8_lossy(&line).into_owned();
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            head.push_str(&line);
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let request = head + &String::from_utf8_lossy(&body);
        let answer = serde_json::json!({ "you_sent": request }).to_string();
        log.lock().unwrap()[place].push_str(&request);
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            answer.len()
        );
        if writer.write_all((head + &answer).as_bytes()).is_err() {
            return;
        }
    }
}

/// A program that writes each of its starts into one file: its arguments and its environment.
pub struct Recorder {
    /// The program.
    pub program: PathBuf,
    log: PathBuf,
}

impl Recorder {
    /// Puts the program below `run` of a room.
    pub fn new(room: &Sandbox) -> Self {
        let (program, log) = (room.path("run/recorder"), room.path("run/starts"));
        let text = format!(
            // Starts at the same time do not mix: a line for each, and a file for its environment.
            "#!/bin/sh\necho \"start: $$ $0 $*\" >> '{log}'\n/usr/bin/env > '{log}'.$$\nexit 0\n",
            log = log.display()
        );
        script(&program, &text);
        Self { program, log }
    }

    /// Makes a name for the same program: somewhere else, where a configuration might look.
    pub fn name(&self, path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(&self.program, path).unwrap();
    }

    /// Every start so far: arguments and environment as one text.
    pub fn starts(&self) -> Vec<String> {
        let text = |path: &Path| {
            String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
        };
        let start = |written: &str| {
            let (process, command) = written.split_once(' ').unwrap_or_default();
            format!("{command}{}", text(&self.log.with_added_extension(process)))
        };
        text(&self.log).split("start: ").skip(1).map(start).collect()
    }
}

/// Writes an executable file.
pub fn script(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Every regular file below a directory, links not followed.
pub fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_path_buf()];
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => left.push(entry.path()),
                Ok(kind) if kind.is_file() => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found
}

/// The shapes in which `word` may stand in some bytes without being seen: as it is, in capitals,
/// in hexadecimal, and in base64 at each of the three positions it may have there.
pub fn disguises(word: &str) -> Vec<Vec<u8>> {
    use base64::Engine as _;
    let mut hex = String::new();
    for byte in word.bytes() {
        write!(hex, "{byte:02x}").unwrap();
    }
    let mut shapes = vec![word.to_owned(), word.to_uppercase(), hex.to_uppercase(), hex];
    for offset in 0..3 {
        let padded = "\0".repeat(offset) + word;
        let text = base64::engine::general_purpose::STANDARD_NO_PAD.encode(padded);
        // Letters at the ends that hold bits of the neighbours too are left out.
        let (begin, end) = ((offset * 8).div_ceil(6), (offset + word.len()) * 8 / 6);
        shapes.push(text[begin..end].to_owned());
    }
    shapes.into_iter().map(String::into_bytes).collect()
}

#[test]
fn a_word_is_found_in_each_of_its_disguises() {
    use base64::Engine as _;
    let found = |bytes: &[u8]| {
        disguises("canary").iter().any(|shape| memchr::memmem::find(bytes, shape).is_some())
    };
    for text in ["x canary y", "CANARY", "63616e617279", "63616E617279"] {
        assert!(found(text.as_bytes()), "{text}");
    }
    for before in ["", "a", "ab", "abc", "abcd"] {
        let text = format!("{before}canary and more");
        let text = base64::engine::general_purpose::STANDARD.encode(text);
        assert!(found(text.as_bytes()), "{before}");
    }
    assert!(!found(b"canar y, Canary"));
}

#[test]
fn witnesses_see_what_happens() {
    let room = Sandbox::new();
    let recorder = Recorder::new(&room);
    recorder.name(&room.path("run/bin/other"));
    let other = room.path("run/bin/other").display().to_string();
    room.program(&other, ["one"]).env("SOME", "value").check().exits(0);
    let starts = recorder.starts();
    assert!(starts.len() == 1 && starts[0].contains(" one\n"), "{starts:?}");
    assert!(starts[0].contains("SOME=value"), "{starts:?}");
    let listener = Listener::http();
    let mut stream = std::net::TcpStream::connect(listener.address.unwrap()).unwrap();
    stream.write_all(b"GET /x HTTP/1.1\r\nHost: y\r\n\r\n").unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    assert!(listener.requests()[0].starts_with("GET /x "));
}
