//! Values of references: a variable in every key that takes one, every command that prints, and no
//! value anywhere but where its entry sends it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::Value;

use crate::support::{Finished, Sandbox};

/// `@NAME@` stands for the reference to a variable of its own.
const TOOLS: &str = r#"version: 1
defaults: { base_url: 'http://ADDRESS/@BASE@' }
discover: ['@DISCOVER@']
scopes: { mine: '@SCOPE@' }
history: { path: '@HISTORY@/history.jsonl' }
tools:
  - name: sh
    description: Prints what it is given
    command: ['@COMMAND@/sh', '-c', 'echo "$0 $X_ENV $C_PASSED $PWD"; echo "$0 $X_ENV" >&2; exit $1', '@ARGUMENT@', '{code}']
    env: { X_ENV: '@VARIABLE@' }
    env_keys: [C_PASSED]
    cwd: '@DIRECTORY@'
    parameters: { type: object, properties: { code: { type: integer } }, required: [code] }
  - { name: filed, command: [sh, -c, 'echo "$X_FILE"'], env: { X_FILE: '${file:token}' } }
  - { name: caged, command: [cat, '@CAGED@'], sandbox: { level: auto, read: ['@READ@'], write: ['@WRITE@'] } }
  - { name: py, module: leaking, function: leak, root: '@ROOT@', env: { P_ENV: '@PYTHON@' }, env_keys: [C_PYKEY] }
  - { name: get, kind: http, endpoint_url: 'http://ADDRESS/echo/@PATH@', headers: { X-Thing: '@HEADER@' }, query: { z: '@QUERY@' }, auth: { type: bearer, token_env_var: C_BEARER }, parameters: { type: object } }
  - { name: post, kind: http, method: POST, endpoint_url: '/echo/@ENDPOINT@', body: { text: '@BODY@' }, auth: { type: basic, username: ada, password_env_var: C_PASSWORD }, parameters: { type: object } }
  - { name: dead, kind: http, endpoint_url: 'http://127.0.0.1:1/@DEAD@?k=@DEADQUERY@', parameters: { type: object } }
  - { name: nowhere, kind: http, endpoint_url: 'http://@HOST@.invalid/', parameters: { type: object } }
  - { name: refused, kind: http, endpoint_url: 'http://ADDRESS/refused/@REFUSED@', parameters: { type: object } }
  - { name: broken, kind: http, endpoint_url: 'http://ADDRESS/broken/@BROKEN@', parameters: { type: object } }
  - { name: away, kind: http, endpoint_url: 'http://ADDRESS/away/@AWAY@', parameters: { type: object } }
  - { name: wrong, kind: http, endpoint_url: '@WRONG@', parameters: { type: object } }
  - { name: store, kind: storage, storage_type: redis, url: 'redis://me:@REDIS@%AT%127.0.0.1:1/0' }
toolkits:
  - { name: documents, kind: files, root_dir: '@FILES@' }
  - { name: missing, kind: files, root_dir: '@MISSING@/none' }
  - { name: api, openapi: '@DOCUMENT@/api.yaml', base_url: 'http://ADDRESS/echo/@SERVER@', include: { operations: ['*'] }, query: { k: '@COMMON@' } }
"#;

const SERVERS: &str = r#"mcp_servers:
  local:
    command: python3
    args: [server.py, '@MARGUMENT@']
    cwd: '@MDIRECTORY@'
    env: { M_ENV: '@MVARIABLE@' }
    env_keys: [C_MPASSED]
    roots: ['file:///@MROOT@']
  unstartable: { command: '@MCOMMAND@/nothing', args: ['@MNOTHING@'] }
  stopping: { command: sh, args: [-c, 'echo "$0" >&2; exit 3', '@MSTOPPING@'] }
  remote: { url: 'http://127.0.0.1:1/@MPATH@/mcp?k=@MQUERY@', headers: { X-Thing: '@MHEADER@' } }
  refusing: { url: 'http://ADDRESS/refused/@MREFUSED@', auth: { type: bearer, token_env_var: C_MBEARER } }
  unknown: { url: 'http://@MHOST@.invalid/mcp' }
  wrong: { url: '@MWRONG@' }
"#;

/// Variables that no `@NAME@` names: their keys take the name itself.
const BY_NAME: [&str; 6] = ["PASSED", "PYKEY", "BEARER", "PASSWORD", "MPASSED", "MBEARER"];

/// Those whose values need escapes of JSON, of addresses and of shells.
const ESCAPED: [&str; 13] = [
    "ARGUMENT",
    "VARIABLE",
    "PASSED",
    "PYTHON",
    "PYKEY",
    "QUERY",
    "BODY",
    "PASSWORD",
    "MARGUMENT",
    "MVARIABLE",
    "MPASSED",
    "COMMON",
    "CAGED",
];

/// Those whose values are directories.
const DIRECTORIES: [&str; 12] = [
    "DISCOVER",
    "SCOPE",
    "HISTORY",
    "COMMAND",
    "DIRECTORY",
    "READ",
    "WRITE",
    "ROOT",
    "FILES",
    "DOCUMENT",
    "MDIRECTORY",
    "MISSING",
];

/// A server that says all it knows wherever something can be said.
const SERVER: &str = r"
import json, os, sys
said = ' '.join([*sys.argv[1:], os.environ['M_ENV'], os.environ['C_MPASSED'], os.getcwd()])
print(said, file=sys.stderr, flush=True)
def send(id, key, value): print(json.dumps({'jsonrpc': '2.0', 'id': id, key: value}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    id, method = message.get('id'), message.get('method')
    if method == 'initialize':
        send(id, 'result', {'protocolVersion': '2025-06-18', 'capabilities': {'tools': {}}, 'serverInfo': {'name': said, 'version': said}, 'instructions': said})
    elif method == 'tools/list':
        schema = {'type': 'object', 'description': said, 'properties': {'fail': {'type': 'boolean', 'description': said}}}
        send(id, 'result', {'tools': [{'name': 'leak', 'title': said, 'description': said, 'inputSchema': schema, 'annotations': {'readOnlyHint': True, 'title': said}}]})
    elif method == 'tools/call':
        print(said, file=sys.stderr, flush=True)
        fail = message['params'].get('arguments', {}).get('fail', False)
        send(id, 'result', {'content': [{'type': 'text', 'text': json.dumps({'said': said})}], 'structuredContent': {'said': said}, 'isError': fail})
    elif method == 'ping':
        send(id, 'result', {})
    elif id is not None:
        send(id, 'error', {'code': -32601, 'message': 'no method ' + said, 'data': {'said': said}})
";

const MODULE: &str = r"
import os, sys
def leak(fail: bool = False) -> str:
    text = os.environ['P_ENV'] + os.environ['C_PYKEY'] + os.getcwd()
    print(text, file=sys.stderr, flush=True)
    if fail:
        raise ValueError(text)
    return text
";

/// Entries and tools to be inspected.
const NAMES: [&str; 22] = [
    "sh",
    "filed",
    "caged",
    "py",
    "get",
    "post",
    "dead",
    "nowhere",
    "refused",
    "broken",
    "away",
    "wrong",
    "store",
    "missing-read_file",
    "api-geta",
    "local",
    "local-leak",
    "unstartable",
    "stopping",
    "remote",
    "refusing",
    "unknown",
];

/// Calls: the words after `call` and `bench`.
const CALLS: [&str; 15] = [
    "sh code=0",
    "sh code=3",
    "filed",
    "caged",
    "py",
    "py fail=true",
    "get",
    "post",
    "dead",
    "nowhere",
    "refused",
    "broken",
    "away",
    "api-geta",
    "missing-list_directory",
];

/// Commands about everything that is configured.
const OF_ALL: [&str; 20] = [
    "config check",
    "config check --json",
    "config show",
    "config show --json",
    "config paths",
    "config paths --json",
    "trust list --json",
    "list",
    "list -o json",
    "list -v",
    "servers",
    "servers --json",
    "servers -v",
    "servers --declared",
    "pin -y",
    "verify",
    "verify --json --scan",
    "resources list --json",
    "prompts list",
    "auth list --json",
];

/// Commands about what a server says, and runs of many calls.
const OF_A_SERVER: [&str; 16] = [
    "call local-leak --trace",
    "call local-leak --json",
    "call local-leak fail=true --trace-save kept-trace.jsonl",
    "call local-leak --dry-run --json",
    "trace local",
    "trace local --json --save kept-traced.jsonl",
    "trace remote",
    "record local --save kept-recorded.jsonl",
    "bench sh code=3 --allow-writes -n 3 --json",
    "bench get -n 3 --allow-writes --save kept-bench.json",
    "bench refused -n 3 --json",
    "bench dead -n 3",
    "bench py fail=true -n 3 --allow-writes --json",
    "bench local-leak -n 3 --json",
    "bench local-leak fail=true -n 3",
    "inspect wrong --json",
];

/// Commands that show what earlier ones have left.
const OF_THE_PAST: [&str; 8] = [
    "history",
    "history --json",
    "history show last",
    "history show last --json",
    "audit",
    "audit --json",
    "stats --json",
    "stats --export kept-stats.csv",
];

/// Letters of which no word and no hash is made, so that four in a row are found only where a value
/// is.
fn letters(seed: usize) -> String {
    let mut state = seed as u64 + 1;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b"qxzjvkw"[(state >> 33) as usize % 7])
    };
    (0..20).map(|_| next()).collect()
}

/// A text in small letters without the counts of histograms, which are base64: in that, letters stand in any
/// order. They begin with bytes that no planted value does.
fn without_histograms(text: &str) -> String {
    let text = text.replace("\"data\": ", "\"data\":");
    let mut parts = text.split("\"data\":\"aq");
    let mut words = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let counts = part.find(|c: char| !(c.is_ascii_alphanumeric() || "+/=".contains(c)));
        words.push_str(&part[counts.unwrap_or(part.len())..]);
    }
    words
}

/// The room, and what must be seen nowhere: the letters of each value by the name of its variable.
struct Planted {
    room: Sandbox,
    letters: BTreeMap<String, String>,
}

impl Planted {
    fn new() -> Self {
        let mut planted = Self { room: Sandbox::new(), letters: BTreeMap::new() };
        let address = echo();
        let fill = |planted: &mut Self, text: &str| {
            let mut filled = String::new();
            for (at, piece) in text.replace("ADDRESS", &address).split('@').enumerate() {
                if at % 2 == 1 && piece.chars().all(|c| c.is_ascii_uppercase()) && !piece.is_empty()
                {
                    planted.plant(piece);
                    write!(filled, "${{C_{piece}}}").unwrap();
                } else {
                    filled.push_str(piece);
                }
            }
            filled
        };
        // The host of an address follows an '@' of its own.
        let tools = fill(&mut planted, TOOLS).replace("%AT%", "@");
        let servers = fill(&mut planted, SERVERS);
        planted.room.file("tools.yaml", &tools).file("mcp.yaml", &servers);
        for name in BY_NAME {
            planted.plant(name);
        }
        planted.plant("FILE");
        planted.files();
        planted
    }

    fn plant(&mut self, name: &str) {
        let seed = self.letters.len();
        self.letters.insert(name.to_owned(), letters(seed));
    }

    fn value(&self, name: &str) -> String {
        let (head, tail) = self.letters[name].split_at(10);
        if ESCAPED.contains(&name) {
            format!("{head} \"%41\\n&é/'{tail}")
        } else {
            format!("{head}{tail}")
        }
    }

    fn files(&self) {
        let work = self.room.path("work");
        for name in DIRECTORIES {
            std::fs::create_dir_all(work.join(self.value(name))).unwrap();
        }
        symlink("/bin/sh", work.join(self.value("COMMAND")).join("sh")).unwrap();
        let file = |directory: &str, name: &str, text: &str| {
            self.room.file(&format!("{}/{name}", self.value(directory)), text);
        };
        file("ROOT", "leaking.py", MODULE);
        file("MDIRECTORY", "server.py", SERVER);
        file("DISCOVER", "more.yaml", "tools:\n  - { name: more, command: [echo, hi] }\n");
        let document = "openapi: 3.0.0\ninfo: { title: x, version: '1' }\npaths:\n  /a: { get: { operationId: geta, responses: { '200': { description: ok } } } }\n";
        file("DOCUMENT", "api.yaml", document);
        self.room.file("token", &format!("{}\n", self.value("FILE")));
    }

    fn run(&self, line: &str) -> Finished {
        let words = ["--tools", "tools.yaml", "--mcp", "mcp.yaml"];
        let mut run = self.room.toolhost(words.into_iter().chain(line.split(' ')));
        for name in self.letters.keys() {
            run = run.env(&format!("C_{name}"), &self.value(name));
        }
        run.check()
    }

    /// The variables of whose values something stands in a text, in any case, in hex, or in base64.
    fn leaks(&self, text: &[u8]) -> Vec<&str> {
        let text = String::from_utf8_lossy(text).to_lowercase();
        let words = without_histograms(&text);
        let encoded = |letters: &str| -> Vec<String> {
            let digit = |byte: u8| char::from_digit(u32::from(byte), 16).unwrap();
            let hex: String =
                letters.bytes().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
            let base64 = ["", "a", "ab"].map(|before| base64_core(before, letters));
            base64.map(|text| text.to_lowercase()).into_iter().chain([hex]).collect()
        };
        let found = self.letters.iter().filter(|(_, letters)| {
            (0..=letters.len() - 4).any(|at| words.contains(&letters[at..at + 4]))
                || encoded(letters).iter().any(|part| text.contains(part))
        });
        found.map(|(name, _)| name.as_str()).collect()
    }

    /// What is kept in files below the home, and in those that a command saved.
    fn kept(&self, directory: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(directory).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                self.kept(&path, found);
            } else {
                let leaks = self.leaks(&std::fs::read(&path).unwrap());
                if !leaks.is_empty() {
                    found.push(format!("{}: {}", path.display(), leaks.join(" ")));
                }
            }
        }
    }
}

/// The letters that a text always gives in base64 behind `before`.
fn base64_core(before: &str, text: &str) -> String {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits: Vec<u8> = before
        .bytes()
        .chain(text.bytes())
        .flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1))
        .collect();
    let first = (before.len() * 8).div_ceil(6);
    let all = bits.chunks_exact(6).skip(first);
    all.map(|six| char::from(alphabet[six.iter().fold(0, |sum, bit| sum << 1 | *bit) as usize]))
        .collect()
}

/// An API that gives back what it is sent, in the way the path says.
fn echo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    // It ends with the test's process.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || answer(stream.unwrap()));
        }
    });
    address
}

fn answer(mut stream: TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let begun = head.len();
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
        if let Some(value) = head[begun..].to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let whole = head + &String::from_utf8_lossy(&body);
    let path = whole.split(' ').nth(1)?.to_owned();
    let (status, kind, text) = match path.split('/').nth(1)? {
        "refused" => ("403 Forbidden".to_owned(), "text/plain", whole),
        "broken" => ("200 OK".to_owned(), "application/json", format!("{{{whole}")),
        "away" => {
            let status = format!("302 Found\r\nLocation: http://127.0.0.1:1{path}");
            (status, "text/plain", String::new())
        }
        _ => ("200 OK".to_owned(), "text/plain", whole),
    };
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}", text.len());
    stream.write_all(format!("{head}\r\nConnection: close\r\n\r\n{text}").as_bytes()).ok()
}

/// Runs these commands in a room of their own, and fails if a value is seen in what they print or
/// leave behind. Returns all that was printed.
fn sweep(lines: &[String]) -> (Planted, String) {
    let planted = Planted::new();
    let mut found = Vec::new();
    let mut written = String::new();
    for line in lines {
        let run = planted.run(line);
        for (stream, bytes) in [("stdout", &run.stdout), ("stderr", &run.stderr)] {
            if line.starts_with("record ") {
                // These are the client's own streams: what is recorded is what must not leak.
                continue;
            }
            let leaks = planted.leaks(bytes);
            if !leaks.is_empty() {
                found.push(format!("{line}: {stream}: {}\n{run}", leaks.join(" ")));
            }
        }
        written.push_str(&run.out());
        written.push_str(&run.err());
    }
    for place in ["home", "config", "state", "cache", "data"] {
        planted.kept(&planted.room.path(place), &mut found);
    }
    let work = planted.room.path("work");
    for entry in std::fs::read_dir(&work).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with("kept-") {
            let leaks = planted.leaks(&std::fs::read(entry.path()).unwrap());
            if !leaks.is_empty() {
                found.push(format!("{}: {}", entry.path().display(), leaks.join(" ")));
            }
        }
    }
    planted.kept(&work.join(planted.value("HISTORY")), &mut found);
    assert!(found.is_empty(), "{} leaks\n{}", found.len(), found.join("\n"));
    (planted, written)
}

fn each(template: &str, names: &[&str]) -> Vec<String> {
    names.iter().map(|name| template.replace("{}", name)).collect()
}

fn all(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

/// Every reference that stands in a file is shown as it stands there.
#[test]
fn what_is_configured_is_shown_without_values() {
    let (planted, written) = sweep(&all(&OF_ALL));
    for name in planted.letters.keys().filter(|name| !BY_NAME.contains(&name.as_str())) {
        let reference =
            if name == "FILE" { "${file:token}".into() } else { format!("${{C_{name}}}") };
        assert!(written.contains(&reference), "{reference} is never shown");
    }
}

#[test]
fn entries_are_inspected_without_values() {
    sweep(&each("inspect {}", &NAMES));
}

#[test]
fn entries_are_inspected_without_values_in_json() {
    sweep(&each("inspect {} --json", &NAMES));
}

/// What a program was given by name comes back as a reference too.
#[test]
fn calls_show_and_keep_no_values() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let (_, written) = sweep(&each("call {} -y -v", &CALLS));
    for reference in ["${C_ARGUMENT}", "${C_PASSED}", "${C_PYKEY}", "${C_BEARER}", "${file:token}"]
    {
        assert!(written.contains(reference), "{reference} is never shown");
    }
}

#[test]
fn calls_show_and_keep_no_values_in_json() {
    let lines = [each("call {} -y --json", &CALLS), all(&OF_THE_PAST)].concat();
    sweep(&lines);
}

#[test]
fn previews_show_no_values() {
    sweep(&[each("call {} --dry-run", &CALLS), each("call {} --dry-run --json", &CALLS)].concat());
}

#[test]
fn servers_are_traced_measured_and_recorded_without_values() {
    sweep(&[all(&OF_A_SERVER), all(&OF_THE_PAST)].concat());
}

/// Values that the output is full of, or that its form would change.
#[test]
fn names_of_files_are_shown_with_their_references_and_the_rest_is_as_written() {
    for value in ["tools", "value", "true", "a\tb\u{200b}c", "a\"b\\c"] {
        let room = Sandbox::new();
        std::fs::create_dir(room.path("work").join(value)).unwrap();
        room.file(&format!("{value}/more.yaml"), "tools: [{ name: more, command: [echo, hi] }]\n");
        room.file("tools.yaml", "discover: ['${D}']\n");
        let show = |words: &[&str]| {
            let words = ["--tools", "tools.yaml", "config", "show"].iter().chain(words);
            room.toolhost(words.copied()).env("D", value).check()
        };
        let shown = show(&["--json"]).exits(0).json();
        let files: Vec<_> =
            shown["values"].as_array().unwrap().iter().map(|v| &v["file"]).collect();
        let is_named = |file: &&&Value| file.as_str().unwrap().ends_with("/${D}/more.yaml");
        assert_eq!(files.iter().filter(is_named).count(), 3, "{value}: {shown}");
        assert!(shown["values"][1]["path"] == "tools.more.name", "{value}: {shown}");
        let text = show(&[]);
        assert!(text.exits(0).out().contains("${D}/more.yaml"), "{value}: {text}");
    }
}
