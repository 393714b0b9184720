//! Secrets of entries: whatever is done with them, they appear nowhere.

use std::path::Path;

use crate::support::Sandbox;

/// What is planted, one for each way into an entry.
const PLANTED: [&str; 5] =
    ["planted-in-env", "planted-by-name", "planted-as-reference", "planted-in-address", "90210777"];

const CODE: &str = r"
import os, sys
def leak(fail: bool = False) -> str:
    text = ' '.join(value for name, value in os.environ.items() if name.startswith('P_'))
    print(text, file=sys.stderr, flush=True)
    if fail:
        raise ValueError(text)
    return text
";

const ENV: &str = "{ P_TOKEN: planted-in-env, P_SECRET: '${OUTER_SECRET}', P_NUMBER_KEY: 90210777, P_URL: 'redis://me:planted-in-address@127.0.0.1:1/0' }";

/// Every file below a directory.
fn files(directory: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

#[test]
fn secrets_of_entries_are_neither_shown_nor_kept() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = Sandbox::new();
    room.file("leaking.py", CODE).file(
        "tools.yaml",
        &format!(
            "tools:
  - {{ name: py, module: leaking, function: leak, env: {ENV}, env_keys: [P_API_KEY] }}
  - {{ name: sh, command: [sh, -c, 'env | grep ^P_ | tee /dev/stderr; exit $0', '{{code}}'], env: {ENV}, env_keys: [P_API_KEY], parameters: {{ type: object, properties: {{ code: {{ type: string }} }}, required: [code] }} }}
  - {{ name: web, kind: http, url: 'http://127.0.0.1:1/x', headers: {{ X-Api-Token: '${{OUTER_SECRET}}' }}, parameters: {{ type: object }} }}
  - {{ name: store, kind: storage, storage_type: redis, url: 'redis://me:planted-in-address@127.0.0.1:1/0' }}
"
        ),
    );
    let mut said = String::new();
    let mut masked = 0;
    for words in [
        &["call", "py", "-v"][..],
        &["call", "py", "fail=true", "--json"],
        &["call", "py", "--dry-run"],
        &["call", "sh", "code=0", "-v"],
        &["call", "sh", "code=3"],
        &["call", "sh", "code=0", "--dry-run", "--json"],
        &["call", "web"],
        &["call", "web", "--dry-run"],
        &["list", "-o", "json"],
        &["inspect", "py"],
        &["inspect", "sh", "-o", "json"],
        &["inspect", "web"],
    ] {
        let words = ["--tools", "tools.yaml"].iter().chain(words).copied();
        let run = room.toolhost(words);
        let run = run.env("OUTER_SECRET", PLANTED[2]).env("P_API_KEY", PLANTED[1]).check();
        masked += usize::from(run.out().contains("\u{2039}secret"));
        said += &run.to_string();
    }
    assert!(masked >= 4, "the tools gave away nothing to mask\n{said}");
    let mut kept = Vec::new();
    for place in ["home", "state", "cache"] {
        files(&room.path(place), &mut kept);
    }
    assert!(kept.iter().any(|path| path.ends_with("audit.jsonl")), "{kept:?}");
    for file in kept {
        said.push_str(&String::from_utf8_lossy(&std::fs::read(file).unwrap_or_default()));
    }
    for secret in PLANTED {
        assert!(!said.contains(secret), "{secret}\n{said}");
    }
}

/// A server that sends back a secret of its environment: in results, and in the address of a resource.
const SERVER: &str = r#"
import json, os, sys
secret = os.environ["A_TOKEN"]
ANSWERS = {
    "initialize": {"protocolVersion": "2025-06-18", "serverInfo": {"name": "s", "version": "1"},
                   "capabilities": {"tools": {}, "resources": {}}},
    "tools/list": {"tools": [{"name": "leak", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": secret}]},
    "resources/list": {"resources": [{"uri": "note://" + secret, "name": "secret"},
                                     {"uri": "note://plain", "name": "plain"}]},
    "resources/templates/list": {"resourceTemplates": [
        {"uriTemplate": "note://" + secret + "/{n}", "name": "n"}]},
    "ping": {},
}
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") in ANSWERS and "id" in message:
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": ANSWERS[message["method"]]}
        print(json.dumps(answer), flush=True)
"#;

/// Whether a file that was kept holds some text.
fn is_kept(room: &Sandbox, text: &str) -> bool {
    let records = room.records();
    records.iter().any(|(_, bytes)| String::from_utf8_lossy(bytes).contains(text))
}

#[test]
fn a_secret_on_the_command_line_of_a_server_is_known() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = Sandbox::new();
    room.file("server.py", SERVER);
    let server = ["--", "env", "A_TOKEN=planted-in-command", "python3", "server.py"];
    for words in [&["call", "leak", "-v"][..], &["call", "leak", "--json"], &["history", "list"]] {
        let is_call = words.contains(&"call");
        let words = words.iter().chain(server.iter().filter(|_| is_call)).copied();
        let run = room.toolhost(words).check();
        assert!(!run.exits(0).to_string().replace(server[2], "").contains("planted"), "{run}");
    }
    assert!(is_kept(&room, "A_TOKEN=") && !is_kept(&room, "planted-in-command"));
}

#[test]
fn a_secret_in_the_address_of_a_resource_is_not_kept_for_completion() {
    if crate::support::lacks(&["python3"]) {
        return;
    }
    let room = Sandbox::new();
    room.file("server.py", SERVER);
    room.file(
        "mcp.yaml",
        "mcp_servers:\n  s: { command: python3, args: [server.py], env: { A_TOKEN: planted-in-env } }\n",
    );
    room.with_servers(["resources", "list"]).check().exits(0);
    room.with_servers(["resources", "list", "--templates"]).check().exits(0);
    assert!(is_kept(&room, "note://plain") && !is_kept(&room, "planted-in-env"));
}
