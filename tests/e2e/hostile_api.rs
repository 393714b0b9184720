//! The same hostile server behind an API tool (kind `http`), over every fault that HTTP can show.
//!
//! Runs only when `TOOLHOST_HOSTILE` names the script, as `hostile.rs` does. The tool posts one
//! `tools/call`. What it makes of the answer is another matter than what an MCP client makes of
//! it: a body is a result whatever its JSON means, too large a body is cut, a status is a no. So
//! the table stands here, and not in the script.

use std::fmt::Write as _;
use std::sync::Mutex;
use std::time::Duration;

use crate::support::{Finished, Fixture, Place, Sandbox, log_events};

/// How many faults run at once.
const WORKERS: usize = 4;
/// The limit of a call; longer than what the slowest fault that ends well takes.
const TIMEOUT: Duration = Duration::from_secs(4);
/// The limit where the server needs long to make what it sends.
const PATIENCE: Duration = Duration::from_secs(20);
/// How much later than its limit a call may end (I1).
const GRACE: Duration = Duration::from_secs(5);
/// The most memory, in KiB (I2).
const MEMORY: u64 = 128 * 1024;

/// Each fault, its exit code, and words that say so.
const EXPECTED: &[(&str, i32, &str)] = &[
    ("none", 0, ""),
    // What is no HTTP, or not all of it.
    ("tcp-reset", 4, "connection reset"),
    ("tcp-silent", 7, "no response had arrived"),
    ("tcp-garbage", 10, "does not speak HTTP"),
    ("http-slow-headers", 7, "no response had arrived"),
    ("http-huge-headers", 10, "response headers"),
    ("http-short-body", 10, ""),
    ("http-endless-body", 0, "the response was truncated"),
    ("gzip-bomb", 0, "the response was truncated"),
    ("http-extra-bytes", 0, ""),
    ("http-evil-session", 0, ""),
    // What a status says.
    ("http-500", 3, "500"),
    ("http-429", 3, "asks to wait"),
    ("http-403", 3, "403"),
    ("http-401", 5, "401"),
    ("http-401-with-token", 5, "401"),
    ("http-oauth-injection", 5, "401"),
    ("redirect-file", 6, "not followed"),
    ("redirect-cross", 6, "not followed"),
    ("redirect-loop", 10, ""),
    // An API may answer with a page, with text, or with nothing.
    ("http-html-200", 0, ""),
    ("http-wrong-type", 0, ""),
    ("http-202", 0, ""),
    // JSON that is none, and JSON that is only odd.
    ("deep-json", 10, "not the JSON"),
    ("nan-literal", 10, "not the JSON"),
    ("giant-line", 0, "the response was truncated"),
    ("big-binary", 0, "the response was truncated"),
    ("duplicate-keys", 0, ""),
    ("odd-numbers", 0, ""),
    ("tool-error", 0, ""),
    ("wrong-id", 0, ""),
    ("evil-links", 0, ""),
    // Answers that do not come, or do not end.
    ("never-answer-call", 7, "no response had arrived"),
    ("slow-drip", 7, ""),
    ("sse-no-answer", 7, "of the response"),
    ("sse-endless-event", 0, "the response was truncated"),
    ("sse-reconnect-storm", 0, ""),
    ("sse-odd-framing", 0, ""),
    ("sse-cut", 0, ""),
];

/// What a server must not learn or make out of a request.
const TOKEN: &str = "hunter2-hunter2-hunter2";

#[test]
#[ignore = "needs TOOLHOST_HOSTILE, a server outside of this repository"]
fn every_fault_of_http_ends_as_documented_for_an_api_tool() {
    let Some(script) = std::env::var_os("TOOLHOST_HOSTILE") else {
        crate::support::left_out("TOOLHOST_HOSTILE names no hostile server");
        return;
    };
    let script = script.into_string().unwrap();
    let (left, wrong) = (Mutex::new(EXPECTED.iter()), Mutex::new(String::new()));
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let next = left.lock().unwrap().next();
                    let Some((fault, code, words)) = next else { return };
                    let (finished, mut found) = attack(&script, fault);
                    if finished.code != Some(*code) {
                        found.push(format!("expected {code}"));
                    }
                    if !finished.err().contains(words) {
                        found.push(format!("stderr lacks {words:?}"));
                    }
                    if !found.is_empty() {
                        let found = found.join("; ");
                        writeln!(wrong.lock().unwrap(), "{fault}: {found}\n{finished}").unwrap();
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// Every second request is refused: the second call says so, and nobody repeats it.
#[test]
#[ignore = "needs TOOLHOST_HOSTILE, a server outside of this repository"]
fn a_post_that_is_refused_is_not_repeated() {
    let Some(script) = std::env::var_os("TOOLHOST_HOSTILE") else {
        crate::support::left_out("TOOLHOST_HOSTILE names no hostile server");
        return;
    };
    let room = Sandbox::new();
    let _server = serve(&room, script.to_str().unwrap(), "http-503-flaky");
    let call = ["--tools", "tools.yaml", "call", "probe"];
    room.toolhost(call).check().exits(0);
    room.toolhost(call).check().exits(3).says(&["503"]);
    assert_eq!(log_events(&room.log("bad"), "http").len(), 2);
}

fn limit(fault: &str) -> Duration {
    if matches!(fault, "gzip-bomb" | "giant-line") { PATIENCE } else { TIMEOUT }
}

/// Starts the server with one fault, and writes the file of the tool that meets it.
fn serve(room: &Sandbox, script: &str, fault: &str) -> Fixture {
    let log = room.log("bad").display().to_string();
    let command = ["python3", script, "--fault", fault, "--era", "both", "--event-log", &log];
    let more = ["--max-seconds", "60"];
    let command = command.iter().chain(&more).map(|word| (*word).to_owned()).collect();
    let fixture = Fixture::new(Place::Http, command);
    let url = fixture.url().unwrap();
    let timeout = limit(fault).as_secs();
    room.file(
        "tools.yaml",
        &format!(
            "tools:
  - name: probe
    kind: http
    method: POST
    endpoint_url: {url}
    timeout: {timeout}s
    headers:
      Accept: application/json, text/event-stream
      Authorization: Bearer ${{PROBE_TOKEN:-{TOKEN}}}
      MCP-Protocol-Version: '2026-07-28'
      Mcp-Method: tools/call
      Mcp-Name: echo
    body:
      jsonrpc: '2.0'
      id: 1
      method: tools/call
      params:
        name: echo
        arguments: {{ text: hello }}
        _meta:
          io.modelcontextprotocol/protocolVersion: '2026-07-28'
          io.modelcontextprotocol/clientInfo: {{ name: probe, version: '1' }}
          io.modelcontextprotocol/clientCapabilities: {{}}
"
        ),
    );
    fixture
}

/// Calls the tool behind one fault; also what is against the invariants.
fn attack(script: &str, fault: &str) -> (Finished, Vec<String>) {
    let room = Sandbox::new();
    let _server = serve(&room, script, fault);
    let finished = room
        .toolhost(["--tools", "tools.yaml", "call", "probe"])
        .env("PROBE_TOKEN", TOKEN)
        .limit(limit(fault) + GRACE)
        .go();
    let mut found = finished.violations(&room);
    if finished.peak_rss > MEMORY {
        found.push(format!("I2: {} KiB of memory", finished.peak_rss));
    }
    let said = finished.out() + &finished.err();
    for (what, text) in [("I9: the token", TOKEN), ("what was smuggled", "SMUGGLED")] {
        if said.contains(text) {
            found.push(format!("{what} is shown"));
        }
    }
    let log = room.log("bad");
    let requests = log_events(&log, "http").len();
    // A redirect to the same place may be followed a few times; nothing else is asked twice.
    let most = if fault == "redirect-loop" { 6 } else { 1 };
    if requests > most {
        found.push(format!("{requests} requests instead of {most}"));
    }
    if !log_events(&log, "canary").is_empty() {
        found.push("another origin was asked".to_owned());
    }
    (finished, found)
}
